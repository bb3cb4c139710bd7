//! What INFO says of all filters of a host: sums, under the names of valkey-bloom.

use std::ffi::CStr;

use crate::filter::Filter;

/// A section of INFO: its name and the names of its fields, all of them without [`PREFIX`].
pub type Section<const N: usize> = (&'static CStr, [&'static CStr; N]);

/// What stands before every name. A host of modules puts it there by itself.
pub const PREFIX: &str = "bf_";

/// The section of the [`Metrics`], with their names in the order of [`Metrics::figures`].
pub const CORE: Section<5> = (
    c"bloom_core_metrics",
    [
        c"bloom_total_memory_bytes",
        c"bloom_num_objects",
        c"bloom_num_filters_across_objects",
        c"bloom_num_items_across_objects",
        c"bloom_capacity_across_objects",
    ],
);

/// The section of defragmentation: how many allocations it moved, and how many it left.
pub const DEFRAGMENTATION: Section<2> = (
    c"bloom_defrag_metrics",
    [c"bloom_defrag_hits", c"bloom_defrag_misses"],
);

/// Figures of one filter, or the sums of those of many. They wrap, so that taking away what was
/// added gives what was before even if a sum was too large for 64 bits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Metrics([u64; 5]);

impl Metrics {
    /// The figures of one filter of either family. Takes time linear in its layers or tables. What
    /// a cuckoo filter is made for are its slots.
    #[inline]
    pub fn of(filter: &Filter) -> Self {
        Metrics::of_memory(filter, filter.memory_usage())
    }

    /// The same, for a filter whose memory is known.
    #[inline]
    pub fn of_memory(filter: &Filter, memory: usize) -> Self {
        let (arrays, capacity) = match filter {
            Filter::Bloom(filter) => match filter.layers() {
                // Nearly every filter, at nearly every change of one.
                [only] => (1, only.capacity()),
                layers => (layers.len(), filter.capacity()),
            },
            Filter::Cuckoo(filter) => (filter.tables(), filter.capacity()),
        };
        Metrics([memory as u64, 1, arrays as u64, filter.items(), capacity])
    }

    /// Bytes, filters, layers and tables, items, and the items that the filters are made for.
    pub fn figures(self) -> [u64; 5] {
        self.0
    }

    /// The figures when the memory is so many bytes more, or less.
    #[inline]
    #[must_use]
    pub fn grown(mut self, bytes: isize) -> Metrics {
        let [memory, ..] = &mut self.0;
        *memory = memory.wrapping_add_signed(bytes as i64);
        self
    }

    /// Both together.
    #[inline]
    #[must_use]
    pub fn plus(self, other: Metrics) -> Metrics {
        self.with(other, u64::wrapping_add)
    }

    /// What is left without the other.
    #[inline]
    #[must_use]
    pub fn minus(self, other: Metrics) -> Metrics {
        self.with(other, u64::wrapping_sub)
    }

    #[inline]
    fn with(mut self, other: Metrics, operation: fn(u64, u64) -> u64) -> Metrics {
        for (figure, other) in self.0.iter_mut().zip(other.0) {
            *figure = operation(*figure, other);
        }
        self
    }
}
