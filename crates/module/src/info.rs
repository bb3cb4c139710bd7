//! What INFO says: the sums over all filters, what defragmentation did, and [some
//! filters](watchlist).

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use everbloom_commands::Filter;
use everbloom_commands::metrics::{CORE, DEFRAGMENTATION, Metrics, Section};

use crate::raw::entry::InfoWriter;
use crate::watchlist;

/// The sums. A filter may be freed on any thread.
static SUMS: [AtomicU64; 5] = [const { AtomicU64::new(0) }; 5];
/// What defragmentation moved and what it left.
static DEFRAGMENTED: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];

/// Writes the sections of INFO.
pub(crate) fn report(writer: &mut InfoWriter) {
    section(writer, &CORE, &SUMS);
    section(writer, &DEFRAGMENTATION, &DEFRAGMENTED);
    watchlist::report(writer);
}

fn section<const N: usize>(
    writer: &mut InfoWriter,
    (title, names): &Section<N>,
    figures: &[AtomicU64; N],
) {
    if writer.section(title) {
        for (name, figure) in names.iter().zip(figures) {
            writer.field(name, figure.load(Relaxed));
        }
    }
}

/// Counts what a defragmentation did.
pub(crate) fn defragmented((moved, left): (u64, u64)) {
    add(&DEFRAGMENTED, [moved, left]);
}

/// One value's part of the sums, taken back when it is dropped.
#[derive(Debug, Default)]
pub(crate) struct Counted(Metrics);

impl Counted {
    /// Counts a new value.
    pub(crate) fn new(filter: &Filter) -> Self {
        let mut counted = Counted::default();
        counted.update(filter);
        counted
    }

    /// Counts a value again that may have changed.
    pub(crate) fn update(&mut self, filter: &Filter) {
        self.set(Metrics::of(filter));
    }

    #[inline]
    fn set(&mut self, metrics: Metrics) {
        add(&SUMS, metrics.minus(self.0).figures());
        self.0 = metrics;
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.set(Metrics::default());
    }
}

fn add<const N: usize>(sums: &[AtomicU64; N], changes: [u64; N]) {
    for (sum, change) in sums.iter().zip(changes) {
        if change != 0 {
            sum.fetch_add(change, Relaxed);
        }
    }
}
