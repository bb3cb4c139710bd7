//! When a layer's memory goes to huge pages.

use core::ops::Range;

use super::{Bits, Layer};
use crate::bits;
use crate::pages::{self, HUGE};

impl Layer {
    /// Puts on huge pages what has become due since there were so many items.
    #[cold]
    pub(super) fn collapse_since(&self, items: u64) {
        self.collapse(self.huge_pages_due(items)..self.huge_pages_due(self.items));
    }

    /// Puts on huge pages what should be there with so many items, after bits were loaded.
    pub(crate) fn collapse_loaded(&self) {
        self.collapse(0..self.huge_pages_due(self.items));
    }

    /// The same for the huge pages that end within this part of the bytes.
    pub(crate) fn collapse_part(&self, part: Range<usize>) {
        if let Some(bytes) = self.large() {
            let pages = bits::huge_pages(bytes, part.start)..bits::huge_pages(bytes, part.end);
            let due = self.huge_pages_due(self.items);
            bits::collapse(bytes, pages.start..pages.end.min(due));
        }
    }

    fn collapse(&self, pages: Range<usize>) {
        if let Some(bytes) = self.large() {
            bits::collapse(bytes, pages);
        }
    }

    /// The bytes, if a huge page may lie in them.
    fn large(&self) -> Option<&[u8]> {
        match &self.bits {
            _ if self.bytes() < HUGE as u64 => None,
            Bits::Classic(bits) => bits.dense(),
            Bits::Blocked(bits) => Some(bits.as_bytes()),
        }
    }

    /// How many huge pages should be in use with so many items.
    fn huge_pages_due(&self, items: u64) -> usize {
        let touched = match &self.bits {
            Bits::Classic(_) => self.hashes(),
            Bits::Blocked(_) => 1,
        };
        let due = pages::due(self.bytes(), items, touched);
        usize::try_from(due).unwrap_or(usize::MAX)
    }
}
