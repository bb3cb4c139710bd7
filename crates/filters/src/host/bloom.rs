//! Scalable filters for hosts: prefetching, reading while they change, moving bits.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::ops::Range;

use crate::bits::memory::prefetch_value;
use crate::bloom::layered::LayeredFilter;
use crate::bloom::window::MaybeWindow;
use crate::hash::item::Item;
use crate::layer::Layer;
use crate::layer::capture::{Capture, part_of};
use crate::layer::classic::RUN;

impl<W: MaybeWindow> LayeredFilter<W> {
    /// Prefetches the headers of the layers, or the key of a single one. It reads the filter struct, so call
    /// [`prefetch`](super::prefetch) for that first. [Example](crate::host).
    #[inline]
    pub fn prefetch_layers(&self) {
        match self.layers.only() {
            Some(only) => only.prefetch_key(),
            None => prefetch_value(self.layers()),
        }
    }

    /// Prefetches the bits that a test of an item reads. [Example](crate::host).
    #[inline]
    pub fn prefetch_item<T: Item + ?Sized>(&self, item: &T) {
        if let [only] = self.layers()
            && only.prefetch_short()
        {
            return;
        }
        let pair = self.hash(item);
        let mut newest_first = self.layers.iter().rev();
        if let Some(newest) = newest_first.next() {
            newest.prefetch(pair, u32::MAX);
        }
        // In older layers, prefetch only the bits that a test reads first.
        newest_first.for_each(|layer| layer.prefetch(pair, RUN));
    }

    /// Begins to read a part of the bits as they are now: of the bytes of all layers laid end to
    /// end, as [`stream_chunk`](Self::stream_chunk) reads them. The caller chooses `id`, which must
    /// be unique among the readers.
    ///
    /// ```
    /// # let mut filter = everbloom::host::LayeredFilter::builder().build()?;
    /// filter.insert("before");
    /// let then = filter.clone();
    ///
    /// let mut captured = everbloom::host::LayeredFilter::from_parts(&filter.parts(), 1 << 20)?;
    /// filter.begin_capture(1, 0..filter.stream_len());
    /// let (mut piece, mut at) = (Vec::new(), 0);
    /// while filter.capture_next(1, &mut piece) {
    ///     filter.insert("while it lasts");
    ///     captured.load_chunk(at, &piece)?;
    ///     at += piece.len() as u64;
    ///     piece.clear();
    /// }
    /// filter.capture_mut().end(1);
    /// assert!(captured == then);
    /// assert!(filter.contains("while it lasts"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn begin_capture(&mut self, id: u64, part: Range<u64>) {
        let lengths = self.layers.iter().map(Layer::bytes);
        self.capture.begin(id, lengths, part);
    }

    /// Appends the next captured bytes to `out`, at most 64 KiB and of one layer; false when there
    /// are none. [Example](Self::begin_capture).
    pub fn capture_next(&mut self, id: u64, out: &mut Vec<u8>) -> bool {
        let layers = &self.layers;
        let bytes = |number: usize| layers.get(number).map(Layer::as_bytes);
        self.capture
            .next(id, |number| bytes(number).unwrap_or_default(), out)
    }

    /// The readers of the filter.
    #[must_use]
    pub fn capture(&self) -> &Capture {
        &self.capture
    }

    /// The readers of the filter, to end some of them.
    pub fn capture_mut(&mut self) -> &mut Capture {
        &mut self.capture
    }

    /// Makes a copy, which has what this reader has read, a copy of the filter as it is now: only
    /// what has changed since is copied. False, and then the copy is of no use, if the reader does
    /// not [track changes](Capture::track_changes) of this filter, or the layers are others by now.
    ///
    /// ```
    /// # use everbloom::host::LayeredFilter;
    /// let mut seen = LayeredFilter::builder().build()?;
    /// let mut copy = seen.clone();
    /// seen.begin_capture(1, 0..seen.stream_len());
    /// seen.capture_mut().track_changes(1);
    /// seen.insert("later");
    /// assert!(seen.update_copy(1, &mut copy) && copy == seen);
    /// assert!(!seen.update_copy(2, &mut copy));
    /// # Ok::<(), everbloom::BuildError>(())
    /// ```
    #[must_use]
    pub fn update_copy(&self, id: u64, copy: &mut Self) -> bool {
        let lengths = |filter: &Self| filter.layers.iter().map(Layer::bytes).collect::<Vec<_>>();
        let is_same = lengths(self) == lengths(copy) && self.stream_start() == copy.stream_start();
        let Some(changes) = self.capture.changes(id).filter(|_| is_same) else {
            return false;
        };
        for (number, part) in changes {
            let Some(bytes) = self.layers.get(number).map(Layer::as_bytes) else {
                return false;
            };
            let (start, bytes) = part_of(&bytes, part);
            if copy.load_layer(number, start, bytes).is_err() {
                return false;
            }
        }
        for (copy, layer) in copy.layers.iter_mut().zip(&self.layers) {
            copy.set_len(layer.len());
        }
        copy.items = self.items;
        copy.window.clone_from(&self.window);
        true
    }

    /// Passes the bit array of a layer (numbered from 0) to `relocate`, which returns the same
    /// bytes, perhaps at another address. Does nothing if there is no such layer. In the blocked
    /// layout an array of more than 4 KiB is a few bytes longer, so that the blocks in it can be
    /// aligned.
    ///
    /// ```
    /// # use everbloom::host::LayeredFilter;
    /// let mut seen = LayeredFilter::builder().build()?;
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
    use alloc::boxed::Box;
    use alloc::vec;
    use alloc::vec::Vec;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use proptest::prelude::*;

    use crate::Layout;
    use crate::host::{LayeredFilter, prefetch};

    #[test]
    fn any_value_can_be_prefetched() {
        prefetch(&());
        prefetch(&[0_u8; 1000]);
        prefetch("text");
        prefetch(&Vec::<u8>::new());
    }

    proptest! {
        /// Filters of no bit array, of one and of many, before and after they grow.
        #[test]
        fn filters_of_any_size_can_be_prefetched(
            blocked: bool, capacity in prop_oneof![1_u64..300, Just(3_000_000)], fixed: bool,
            rate in 0.0001..0.5, items in prop::collection::vec(0_u16..500, 0..400),
        ) {
            let mut builder = LayeredFilter::builder().capacity(capacity).error_rate(rate);
            builder = match blocked {
                true => builder.seed(1),
                false => builder.layout(Layout::Classic),
            };
            if fixed {
                builder = builder.fixed();
            }
            let mut plain = builder.build().unwrap();
            let mut filter = plain.clone();
            for item in items {
                prefetch(&filter);
                filter.prefetch_layers();
                filter.prefetch_item(&item);
                prop_assert_eq!(filter.insert(&item), plain.insert(&item));
            }
            prop_assert!(filter == plain);
        }
    }

    fn filter(layout: Layout) -> LayeredFilter {
        let builder = LayeredFilter::builder().capacity(100).layout(layout);
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
                let bytes = moved.layers()[layer].as_bytes();
                // Short arrays begin anywhere.
                let align = if bytes.len() > 4096 { 64 } else { 8 };
                assert_eq!(bytes.as_ptr().align_offset(align), 0, "round {round}");
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
