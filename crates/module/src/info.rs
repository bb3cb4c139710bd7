//! What INFO says: the sums over all filters, under the names of valkey-bloom.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use everbloom::ScalableBloomFilter;

use crate::raw::entry::InfoWriter;

/// The sums, and what defragmentation did. A filter may be freed on any thread.
struct Sums {
    memory: AtomicU64,
    filters: AtomicU64,
    layers: AtomicU64,
    items: AtomicU64,
    capacity: AtomicU64,
    moved: AtomicU64,
    kept: AtomicU64,
}

static SUMS: Sums = Sums {
    memory: AtomicU64::new(0),
    filters: AtomicU64::new(0),
    layers: AtomicU64::new(0),
    items: AtomicU64::new(0),
    capacity: AtomicU64::new(0),
    moved: AtomicU64::new(0),
    kept: AtomicU64::new(0),
};

/// Writes the sections of INFO.
pub(crate) fn report(writer: &mut InfoWriter) {
    if writer.section(c"bloom_core_metrics") {
        writer.field(c"bloom_total_memory_bytes", SUMS.memory.load(Relaxed));
        writer.field(c"bloom_num_objects", SUMS.filters.load(Relaxed));
        writer.field(
            c"bloom_num_filters_across_objects",
            SUMS.layers.load(Relaxed),
        );
        writer.field(c"bloom_num_items_across_objects", SUMS.items.load(Relaxed));
        writer.field(
            c"bloom_capacity_across_objects",
            SUMS.capacity.load(Relaxed),
        );
    }
    if writer.section(c"bloom_defrag_metrics") {
        writer.field(c"bloom_defrag_hits", SUMS.moved.load(Relaxed));
        writer.field(c"bloom_defrag_misses", SUMS.kept.load(Relaxed));
    }
}

/// Counts what a defragmentation did.
pub(crate) fn defragmented((moved, kept): (u64, u64)) {
    SUMS.moved.fetch_add(moved, Relaxed);
    SUMS.kept.fetch_add(kept, Relaxed);
}

/// One value's part of the sums, taken back when it is dropped.
#[derive(Debug, Default)]
pub(crate) struct Counted {
    memory: u64,
    layers: u64,
    items: u64,
    capacity: u64,
}

impl Counted {
    /// Counts a new value.
    pub(crate) fn new(filter: &ScalableBloomFilter) -> Self {
        SUMS.filters.fetch_add(1, Relaxed);
        let mut counted = Counted::default();
        counted.update(filter);
        counted
    }

    /// Counts a value anew that may have changed.
    pub(crate) fn update(&mut self, filter: &ScalableBloomFilter) {
        put(&SUMS.items, &mut self.items, filter.len());
        put(&SUMS.layers, &mut self.layers, filter.layers().len() as u64);
        put(&SUMS.capacity, &mut self.capacity, filter.capacity());
        put(&SUMS.memory, &mut self.memory, filter.memory_usage() as u64);
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        SUMS.filters.fetch_sub(1, Relaxed);
        SUMS.memory.fetch_sub(self.memory, Relaxed);
        SUMS.layers.fetch_sub(self.layers, Relaxed);
        SUMS.items.fetch_sub(self.items, Relaxed);
        SUMS.capacity.fetch_sub(self.capacity, Relaxed);
    }
}

/// Replaces what a sum has of a value. Sums wrap, so that taking back gives what was before even
/// if they were too large for 64 bits.
fn put(sum: &AtomicU64, had: &mut u64, has: u64) {
    if *had != has {
        sum.fetch_add(has.wrapping_sub(*had), Relaxed);
        *had = has;
    }
}
