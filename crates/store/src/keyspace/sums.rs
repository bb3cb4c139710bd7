//! What entries come to, kept up to date with every change so that nobody has to walk over them.

use everbloom_commands::metrics::Metrics;
use everbloom_files::Value;

use super::entry::Entry;

/// The figures of an entry, or the sums of those of many.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sums {
    /// Bytes of the entries, their keys and their values.
    pub memory: isize,
    /// The figures of the filters among the values.
    pub filters: Metrics,
}

impl Sums {
    /// The figures of one entry.
    #[inline]
    pub fn of(entry: &Entry) -> Self {
        Sums {
            memory: entry.memory().cast_signed(),
            filters: match &entry.value {
                Value::Filter(filter) => Metrics::of(filter),
                Value::Text(_) => Metrics::default(),
            },
        }
    }

    /// Counts more entries.
    #[inline]
    pub fn add(&mut self, more: Sums) {
        self.memory += more.memory;
        self.filters = self.filters.plus(more.filters);
    }

    /// Counts some entries no more.
    #[inline]
    pub fn remove(&mut self, less: Sums) {
        self.memory -= less.memory;
        self.filters = self.filters.minus(less.filters);
    }

    /// Changes an entry that is counted.
    #[inline]
    pub(super) fn change<R>(
        &mut self,
        entry: &mut Entry,
        change: impl FnOnce(&mut Entry) -> R,
    ) -> R {
        let before = Sums::of(entry);
        let result = change(entry);
        self.add(Sums::of(entry));
        self.remove(before);
        result
    }
}
