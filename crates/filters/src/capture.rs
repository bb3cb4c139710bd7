//! Reading a filter in pieces, as it was at one moment, while it goes on changing.
//!
//! A snapshot of a large filter takes seconds, and the filter must go on answering and growing
//! meanwhile. So the bits are copied a page at a time, and what changes in a page that has not been
//! copied yet is noted with what was there before: a few bytes for an item, whose notes are undone
//! in the copy of the page. A page that changes much is copied ahead of its turn, so the notes
//! never take more memory than the filter.
//!
//! ```
//! # let mut filter = everbloom::ScalableBloomFilter::builder().build()?;
//! filter.insert("before");
//! let then = filter.clone();
//!
//! let parts = filter.begin_capture(1);
//! let mut captured = everbloom::ScalableBloomFilter::from_parts(&parts, 1 << 20)?;
//! let (mut piece, mut at) = (Vec::new(), 0);
//! while filter.capture_next(&mut piece) {
//!     filter.insert("while it lasts");
//!     captured.load_chunk(at, &piece)?;
//!     at += piece.len() as u64;
//!     piece.clear();
//! }
//! assert!(captured == then);
//! assert!(filter.contains("while it lasts"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::fmt;

use crate::dump::FilterParts;
use crate::scalable::ScalableBloomFilter;

/// The bytes of a page, which is the longest piece.
const PAGE: usize = 256 << 10;
/// A page with more notes than this is copied: a note is 8 bytes.
const MOST_NOTES: usize = PAGE / 8;

/// What has happened to a page since the capture began.
enum Page {
    /// Bytes that changed, with what they were, oldest first.
    Notes(Vec<(u32, u8)>),
    /// The page as it was.
    Copy(Box<[u8]>),
}

/// A capture in progress.
pub(crate) struct Capture {
    id: u64,
    /// The layers there were when it began.
    layers: usize,
    /// The next page to hand out: its layer and its number there.
    next: (usize, u64),
    changed: BTreeMap<(usize, u64), Page>,
}

/// Room for a capture in a filter. A clone of the filter is not captured, and whether one is says
/// nothing about the filter's value.
#[derive(Default)]
pub(crate) struct Recording(pub(crate) Option<Box<Capture>>);

impl Clone for Recording {
    fn clone(&self) -> Self {
        Recording(None)
    }
}

impl PartialEq for Recording {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl fmt::Debug for Recording {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() {
            "captured"
        } else {
            "not captured"
        })
    }
}

impl Capture {
    /// Whether changes to a page matter: it was there, and has not been handed out.
    fn wants(&self, page: (usize, u64)) -> bool {
        page.0 < self.layers && page >= self.next
    }

    /// A byte of the bit array of layer `number` is about to change from `old`.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a remainder of PAGE fits 32 bits"
    )]
    pub(crate) fn note(&mut self, bytes: &[u8], number: usize, byte: u64, old: u8) {
        let page = (number, byte / PAGE as u64);
        if !self.wants(page) {
            return;
        }
        let state = self
            .changed
            .entry(page)
            .or_insert_with(|| Page::Notes(Vec::new()));
        if let Page::Notes(notes) = state {
            notes.push(((byte % PAGE as u64) as u32, old));
            if notes.len() > MOST_NOTES {
                // The note just made says what the byte is now, so the copy undoes it rightly.
                *state = Page::Copy(undone(bytes, page.1, notes).into());
            }
        }
    }

    /// Bytes of that bit array are about to be overwritten.
    pub(crate) fn note_range(&mut self, bytes: &[u8], number: usize, start: u64, len: u64) {
        if len == 0 {
            return;
        }
        for index in start / PAGE as u64..=(start + len - 1) / PAGE as u64 {
            let page = (number, index);
            if !self.wants(page) {
                continue;
            }
            let state = self
                .changed
                .entry(page)
                .or_insert_with(|| Page::Notes(Vec::new()));
            if let Page::Notes(notes) = state {
                *state = Page::Copy(undone(bytes, index, notes).into());
            }
        }
    }

    /// Bytes that the notes and copies take.
    pub(crate) fn memory_usage(&self) -> usize {
        let page = |page: &Page| match page {
            Page::Notes(notes) => notes.capacity() * size_of::<(u32, u8)>(),
            Page::Copy(copy) => copy.len(),
        };
        size_of::<Self>() + self.changed.values().map(page).sum::<usize>()
    }
}

/// A page of a bit array with what the notes say undone, the newest first.
fn undone(bytes: &[u8], index: u64, notes: &[(u32, u8)]) -> Vec<u8> {
    let start = usize::try_from(index)
        .unwrap_or(usize::MAX)
        .saturating_mul(PAGE);
    let rest = bytes.get(start..).unwrap_or_default();
    let mut page = rest.get(..PAGE).unwrap_or(rest).to_vec();
    for (at, old) in notes.iter().rev() {
        if let Some(byte) = page.get_mut(*at as usize) {
            *byte = *old;
        }
    }
    page
}

impl ScalableBloomFilter {
    /// Begins to capture the filter as it is now, and returns all of it but the bits. A capture
    /// that was in progress is given up. `id` is the caller's, to know the capture by.
    pub fn begin_capture(&mut self, id: u64) -> FilterParts {
        let layers = self.layers().len();
        let capture = Capture {
            id,
            layers,
            next: (0, 0),
            changed: BTreeMap::new(),
        };
        self.recording_mut().0 = Some(Box::new(capture));
        self.parts()
    }

    /// The id of the capture in progress.
    #[must_use]
    pub fn capture_id(&self) -> Option<u64> {
        self.recording().0.as_ref().map(|capture| capture.id)
    }

    /// Gives up the capture in progress, if there is one.
    pub fn end_capture(&mut self) {
        self.recording_mut().0 = None;
    }

    /// Appends the next bytes of the captured bits to `out`, at most 256 KiB and of one layer.
    /// False when there are none: then the capture has ended, or none was begun.
    ///
    /// The pieces are those of the layers laid end to end, as [`stream_chunk`](Self::stream_chunk)
    /// reads them.
    pub fn capture_next(&mut self, out: &mut Vec<u8>) -> bool {
        let Some(mut capture) = self.recording_mut().0.take() else {
            return false;
        };
        let (number, index) = capture.next;
        if number >= capture.layers {
            return false;
        }
        let Some(layer) = self.layers().get(number) else {
            return false;
        };
        let bytes = layer.as_bytes();
        match capture.changed.remove(&capture.next) {
            Some(Page::Copy(copy)) => out.extend_from_slice(&copy),
            Some(Page::Notes(notes)) => out.extend_from_slice(&undone(&bytes, index, &notes)),
            None => out.extend_from_slice(&undone(&bytes, index, &[])),
        }
        let more = (index + 1).saturating_mul(PAGE as u64) < layer.bytes();
        capture.next = if more {
            (number, index + 1)
        } else {
            (number + 1, 0)
        };
        self.recording_mut().0 = Some(capture);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;
    use proptest::prelude::*;

    /// A filter of a few pages in each of its layers.
    fn large() -> ScalableBloomFilter {
        let mut filter = ScalableBloomFilter::builder()
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
            filter.insert_all(&items.collect::<Vec<_>>());
        } else {
            filter.extend(items);
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
                let notes = filter.recording().0.as_ref().unwrap().memory_usage();
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
            let mut filter =
                ScalableBloomFilter::builder().capacity(20).expansion(expansion).build().unwrap();
            filter.extend((0..before).map(u32::to_le_bytes));
            let then = filter.clone();
            let captured = capture(&mut filter, |filter, at| {
                add(filter, at, between, as_batch);
            });
            prop_assert!(captured == then);
        }
    }
}
