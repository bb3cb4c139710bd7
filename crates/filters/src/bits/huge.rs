//! Moves the memory of an array to huge pages, one at a time while the array fills.

use core::ops::Range;

use super::{memory, pages};

/// The huge pages of an array.
pub(crate) struct HugePages<'a> {
    pub(crate) bytes: &'a [u8],
    /// How many places of the array an item touches.
    pub(crate) touched: u32,
}

impl HugePages<'_> {
    /// Collapses the pages that have become due since the previous item count; that is 0 after
    /// a load.
    #[cold]
    pub(crate) fn collapse_since(&self, before: u64, items: u64) {
        memory::collapse(self.bytes, self.due(before)..self.due(items));
    }

    /// Collapses the pages that begin within this part of the bytes, if they are due at this item
    /// count. Call it before the part is written: then there is nothing to move, and the system
    /// provides memory once.
    pub(crate) fn prepare(&self, part: Range<usize>, items: u64) {
        let first = |at| memory::first_huge_page(self.bytes, at);
        let end = first(part.end).min(self.due(items));
        memory::collapse(self.bytes, first(part.start)..end);
    }

    fn due(&self, items: u64) -> usize {
        let due = pages::due(self.bytes.len() as u64, items, self.touched);
        usize::try_from(due).unwrap_or(usize::MAX)
    }
}
