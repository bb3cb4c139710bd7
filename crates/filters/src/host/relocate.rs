//! Moving the bits of a filter to another place in memory, for hosts that fight fragmentation.

use alloc::boxed::Box;

use crate::scalable::ScalableBloomFilter;

impl ScalableBloomFilter {
    /// Passes the bit array of a layer (numbered from 0) to `relocate`, which returns the same
    /// bytes, perhaps at another address. Does nothing if there is no such layer. In the blocked
    /// layout the array is a few bytes longer, so that the blocks in it can be aligned.
    ///
    /// ```
    /// # use everbloom::ScalableBloomFilter;
    /// let mut seen = ScalableBloomFilter::builder().build()?;
    /// seen.insert("a");
    /// seen.relocate_bits(0, |bits| bits.clone());
    /// assert!(seen.contains("a"));
    /// # Ok::<(), everbloom::BuildError>(())
    /// ```
    ///
    /// # Panics
    ///
    /// When `relocate` returns another number of bytes; the layer is then unusable.
    pub fn relocate_bits(&mut self, layer: usize, relocate: impl FnOnce(Box<[u8]>) -> Box<[u8]>) {
        if let Some(layer) = self.layers.get_mut(layer) {
            layer.relocate(relocate);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{Layout, ScalableBloomFilter};
    use alloc::boxed::Box;
    use alloc::vec;
    use alloc::vec::Vec;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    fn filter(layout: Layout) -> ScalableBloomFilter {
        let builder = ScalableBloomFilter::builder().capacity(100).layout(layout);
        let builder = match layout {
            Layout::Classic => builder.layout(layout),
            Layout::Blocked => builder.seed(1),
        };
        let mut filter = builder.build().unwrap();
        filter.extend((0..5000).map(|i: u32| i.to_le_bytes()));
        assert!(filter.layers().len() > 1);
        filter
    }

    /// A copy of bytes whose place in a cache line is another.
    fn copy_elsewhere(bytes: &[u8]) -> Box<[u8]> {
        let place = |bytes: &[u8]| bytes.as_ptr().align_offset(64);
        let mut tried = Vec::new();
        while tried.len() < 1000 {
            // Blocks of other lengths, so that the next one begins elsewhere.
            tried.push(vec![0_u8; 16 + tried.len() % 7 * 16].into_boxed_slice());
            let copy: Box<[u8]> = bytes.into();
            if place(&copy) != place(bytes) {
                return copy;
            }
            tried.push(copy);
        }
        panic!("the allocator gives one alignment only");
    }

    #[test]
    fn blocks_are_aligned_wherever_they_go() {
        let mut moved = filter(Layout::Blocked);
        for round in 0..8 {
            for layer in 0..moved.layers().len() {
                moved.relocate_bits(layer, |bits| copy_elsewhere(&bits));
                let start = moved.layers()[layer].as_bytes().as_ptr();
                assert_eq!(start.align_offset(64), 0, "round {round}");
            }
            assert_eq!(moved, filter(Layout::Blocked));
        }
        moved.insert(b"another");
        assert!(moved.contains(b"another"));
    }

    #[test]
    fn relocated_bits_are_the_same_bits() {
        for layout in [Layout::Classic, Layout::Blocked] {
            let mut moved = filter(layout);
            for layer in 0..moved.layers().len() {
                let before = moved.layers()[layer].as_bytes().as_ptr();
                let mut old = None;
                moved.relocate_bits(layer, |bits| {
                    let new = bits.clone();
                    old = Some(bits);
                    new
                });
                assert_ne!(moved.layers()[layer].as_bytes().as_ptr(), before);
            }
            moved.relocate_bits(99, |_| unreachable!("there is no such layer"));
            assert_eq!(moved, filter(layout));
        }
    }

    #[test]
    fn bits_of_another_length_are_refused() {
        for layout in [Layout::Classic, Layout::Blocked] {
            let mut moved = filter(layout);
            let short = AssertUnwindSafe(|| moved.relocate_bits(0, |_| vec![0; 7].into()));
            assert!(catch_unwind(short).is_err());
        }
    }
}
