//! Totals over entries. Every change updates them, so nothing has to walk over the entries.

use everbloom_commands::Filter;
use everbloom_commands::metrics::Metrics;
use everbloom_files::Value;

use super::entry::Entry;

/// The figures of one entry, or the totals of many.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DbSums {
    /// Bytes of the entries, their keys and their values.
    pub memory: isize,
    /// The figures of the filters among the values.
    pub filters: Metrics,
}

impl DbSums {
    /// The figures of one entry.
    pub fn of(entry: &Entry) -> Self {
        let mut sums = Self::of_value(&entry.value);
        sums.memory += entry.memory_of_key().cast_signed();
        sums
    }

    /// The same without the entry itself and its key.
    #[inline]
    fn of_value(value: &Value) -> Self {
        let (memory, filters) = match value {
            Value::Filter(filter) => {
                let memory = filter.memory_usage();
                let beside = memory - size_of::<Filter>();
                (beside, Metrics::of_memory(filter, memory))
            }
            Value::Text(text) => (text.memory(), Metrics::default()),
        };
        DbSums {
            memory: memory.cast_signed(),
            filters,
        }
    }

    /// Adds the figures of more entries.
    #[inline]
    pub fn add(&mut self, more: DbSums) {
        self.memory += more.memory;
        self.filters = self.filters.plus(more.filters);
    }

    /// Subtracts the figures of some entries.
    #[inline]
    pub fn remove(&mut self, less: DbSums) {
        self.memory -= less.memory;
        self.filters = self.filters.minus(less.filters);
    }

    /// Replaces the figures of an entry, whose key stays.
    #[inline]
    pub(super) fn change<R>(
        &mut self,
        entry: &mut Entry,
        change: impl FnOnce(&mut Entry) -> R,
    ) -> R {
        let before = DbSums::of_value(&entry.value);
        let result = change(entry);
        self.add(DbSums::of_value(&entry.value));
        self.remove(before);
        result
    }

    /// Lets a reader of an entry's value read on. Of its figures only the bytes that are kept for
    /// readers change: to add up all arrays of a filter for each of them would take time that is
    /// quadratic in their number.
    pub(super) fn read<R>(&mut self, entry: &mut Entry, read: impl FnOnce(&mut Value) -> R) -> R {
        let kept = |value: &Value| value.capture().memory_usage().cast_signed();
        let before = kept(&entry.value);
        let result = read(&mut entry.value);
        let grown = kept(&entry.value) - before;
        self.memory += grown;
        if let Value::Filter(_) = entry.value {
            self.filters = self.filters.grown(grown);
        }
        result
    }
}
