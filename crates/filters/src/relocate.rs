//! Moving the bits of a filter to another place in memory, for hosts that fight fragmentation.

use alloc::boxed::Box;

use crate::scalable::ScalableBloomFilter;

impl ScalableBloomFilter {
    /// Hands the bit array of a layer, by its number from 0, to `relocate` and takes back what that
    /// gives: the same bytes, at another place perhaps. Without such a layer nothing happens, nor with
    /// one that has no array of its own because few of its bits are 1, nor in the blocked layout,
    /// whose blocks have an alignment.
    ///
    /// # Panics
    ///
    /// When it gives back another number of bytes; the layer is of no use then.
    pub fn relocate_bits(&mut self, layer: usize, relocate: impl FnOnce(Box<[u8]>) -> Box<[u8]>) {
        let (layers, _) = self.layers_and_capture();
        if let Some(layer) = layers.get_mut(layer) {
            layer.relocate_bits(relocate);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::ScalableBloomFilter;
    use alloc::vec;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    fn filter() -> ScalableBloomFilter {
        let mut filter = ScalableBloomFilter::builder()
            .capacity(100)
            .build()
            .unwrap();
        filter.extend((0..5000).map(|i: u32| i.to_le_bytes()));
        assert!(filter.layers().len() > 2);
        filter
    }

    #[test]
    fn relocated_bits_are_the_same_bits() {
        let mut moved = filter();
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
        assert_eq!(moved, filter());
    }

    #[test]
    fn bits_of_another_length_are_refused() {
        let mut moved = filter();
        let short = AssertUnwindSafe(|| moved.relocate_bits(0, |_| vec![0; 7].into()));
        assert!(catch_unwind(short).is_err());
    }
}
