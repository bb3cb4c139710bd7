//! Reading a filter in pieces, as it was at one moment, while it goes on changing.
//!
//! A snapshot of a large filter takes seconds, and the filter must go on answering and growing
//! meanwhile. So the bits are copied a page at a time, and what changes in a page that has not been
//! copied yet is noted with what was there before: a few bytes for an item, whose notes are undone
//! in the copy of the page. A page that changes much is copied ahead of its turn, so the notes
//! never take more memory than the filter.

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::recording::Capture;
use crate::redisbloom::FilterParts;
use crate::scalable::ScalableBloomFilter;

impl ScalableBloomFilter {
    /// Begins to capture the filter as it is now, and returns all of it but the bits. A capture
    /// that was in progress is given up. `id` is the caller's, to know the capture by.
    ///
    /// ```
    /// # let mut filter = everbloom::ScalableBloomFilter::builder().build()?;
    /// filter.insert("before");
    /// let then = filter.clone();
    ///
    /// let parts = filter.begin_capture(1);
    /// assert_eq!(filter.capture_id(), Some(1));
    /// let mut captured = everbloom::ScalableBloomFilter::from_parts(&parts, 1 << 20)?;
    /// let (mut piece, mut at) = (Vec::new(), 0);
    /// while filter.capture_next(&mut piece) {
    ///     filter.insert("while it lasts");
    ///     captured.load_chunk(at, &piece)?;
    ///     at += piece.len() as u64;
    ///     piece.clear();
    /// }
    /// assert!(captured == then);
    /// assert!(filter.contains("while it lasts"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn begin_capture(&mut self, id: u64) -> FilterParts {
        let capture = Capture::new(id, self.layers().len());
        self.recording.0 = Some(Box::new(capture));
        self.parts()
    }

    /// The id of the capture in progress. [Example](Self::begin_capture).
    #[must_use]
    pub fn capture_id(&self) -> Option<u64> {
        self.recording.0.as_ref().map(|capture| capture.id())
    }

    /// Gives up the capture in progress, if there is one.
    ///
    /// ```
    /// # let mut filter = everbloom::ScalableBloomFilter::builder().build()?;
    /// filter.begin_capture(1);
    /// filter.end_capture();
    /// assert_eq!(filter.capture_id(), None);
    /// # Ok::<(), everbloom::BuildError>(())
    /// ```
    pub fn end_capture(&mut self) {
        self.recording.0 = None;
    }

    /// Appends the next bytes of the captured bits to `out`, at most 256 KiB and of one layer.
    /// False when there are none: then the capture has ended, or none was begun.
    ///
    /// The pieces are those of the layers laid end to end, as [`stream_chunk`](Self::stream_chunk)
    /// reads them. [Example](Self::begin_capture).
    pub fn capture_next(&mut self, out: &mut Vec<u8>) -> bool {
        let Some(mut capture) = self.recording.0.take() else {
            return false;
        };
        let number = capture.next_layer();
        let Some(layer) = number.and_then(|number| self.layers.get(number)) else {
            return false;
        };
        capture.hand_out(&layer.as_bytes(), out);
        self.recording.0 = Some(capture);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Layout;
    use alloc::format;
    use proptest::prelude::*;

    /// A filter of a few pages in each of its layers.
    fn large() -> ScalableBloomFilter {
        let mut filter = ScalableBloomFilter::builder()
            .layout(Layout::Classic)
            .capacity(400_000)
            .error_rate(0.01)
            .build()
            .unwrap();
        filter.extend((0..500_000u32).map(u32::to_le_bytes));
        filter
    }

    /// What the capture hands out while `meddle` is let loose on the filter between the pieces.
    fn capture(
        filter: &mut ScalableBloomFilter,
        mut meddle: impl FnMut(&mut ScalableBloomFilter, usize),
    ) -> ScalableBloomFilter {
        let parts = filter.begin_capture(7);
        assert_eq!(filter.capture_id(), Some(7));
        let mut captured = ScalableBloomFilter::from_parts(&parts, u64::MAX).unwrap();
        meddle(filter, 0);
        let (mut at, mut piece) = (0, Vec::new());
        while filter.capture_next(&mut piece) {
            captured.load_chunk(at, &piece).unwrap();
            at += piece.len() as u64;
            piece.clear();
            meddle(filter, usize::try_from(at).unwrap());
        }
        assert_eq!(at, captured.stream_len());
        assert_eq!(filter.capture_id(), None);
        captured
    }

    /// Inserts items one by one, or as a batch, which has a way of its own where there is room.
    fn add(filter: &mut ScalableBloomFilter, at: usize, count: u32, as_batch: bool) {
        let items = (0..count).map(|i| format!("{at}:{i}"));
        if as_batch {
            filter.extend(items);
        } else {
            for item in items {
                filter.insert(&item);
            }
        }
    }

    #[test]
    fn a_capture_is_the_filter_as_it_was() {
        for as_batch in [false, true] {
            let mut filter = large();
            let then = filter.clone();
            let captured = capture(&mut filter, |filter, at| {
                add(filter, at, 150_000, as_batch);
            });
            assert!(captured == then, "as a batch: {as_batch}");
            assert!(
                filter.layers().len() > then.layers().len(),
                "it has grown meanwhile"
            );
        }
    }

    #[test]
    fn overwritten_bytes_are_captured_as_they_were() {
        let mut filter = large();
        let then = filter.clone();
        let captured = capture(&mut filter, |filter, at| {
            filter.insert(&format!("{at}"));
            let junk = [0xa5; 300_000];
            let last = filter.stream_len() - 300_000;
            let first_layer = filter.layers()[0].bytes() - 300_000;
            filter
                .load_chunk((at as u64 * 3) % first_layer, &junk)
                .unwrap();
            filter.load_chunk(last, &junk).unwrap();
        });
        assert!(captured == then);
    }

    #[test]
    fn a_page_that_changes_much_is_copied_once() {
        let mut filter = large();
        let then = filter.clone();
        let bytes = usize::try_from(filter.stream_len()).unwrap();
        let captured = capture(&mut filter, |filter, at| {
            if at == 0 {
                filter.extend((0..700_000u32).map(|i| i.to_be_bytes()));
                let notes = filter.recording.0.as_ref().unwrap().memory_usage();
                assert!(notes < bytes + bytes / 4, "{notes} bytes for {bytes}");
            }
        });
        assert!(captured == then);
    }

    #[test]
    fn a_clone_is_not_captured() {
        let mut filter = large();
        filter.begin_capture(1);
        assert_eq!(filter.clone().capture_id(), None);
        assert!(filter.clone() == filter);
    }

    proptest! {
        #[test]
        fn small_filters_too(
            before in 0..300u32, between in 0..300u32, expansion in 1..4u32, as_batch: bool,
        ) {
            let builder = ScalableBloomFilter::builder().layout(Layout::Classic).capacity(20);
            let mut filter = builder.expansion(expansion).build().unwrap();
            filter.extend((0..before).map(u32::to_le_bytes));
            let then = filter.clone();
            let captured = capture(&mut filter, |filter, at| {
                add(filter, at, between, as_batch);
            });
            prop_assert!(captured == then);
        }
    }
}
