//! What a capture in progress remembers: pages of the bits as they were when it began.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::fmt;
use core::mem::size_of;

use crate::bits::Bytes;

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
    /// The bytes of layers that the filter has dropped meanwhile, as they were then.
    dropped: BTreeMap<usize, Bytes>,
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
    /// A capture that begins now, of a filter of so many layers.
    pub(crate) fn new(id: u64, layers: usize) -> Capture {
        Capture {
            id,
            layers,
            next: (0, 0),
            changed: BTreeMap::new(),
            dropped: BTreeMap::new(),
        }
    }

    /// What its caller knows it by.
    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    /// The number of the layer whose page is the next to be handed out; `None` at the end.
    pub(crate) fn next_layer(&self) -> Option<usize> {
        Some(self.next.0).filter(|number| *number < self.layers)
    }

    /// Keeps the bytes of layer `number`, which the filter drops, for as long as they are needed.
    pub(crate) fn keep(&mut self, number: usize, bytes: Bytes) {
        if number < self.layers && number >= self.next.0 {
            self.dropped.entry(number).or_insert(bytes);
        }
    }

    /// Appends the next page to `out`, as it was; `bytes` are those of its layer now, unless it was
    /// [kept](Self::keep).
    pub(crate) fn hand_out(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        let (number, index) = self.next;
        let dropped = self.dropped.remove(&number);
        let bytes = dropped.as_deref().unwrap_or(bytes);
        match self.changed.remove(&self.next) {
            Some(Page::Copy(copy)) => out.extend_from_slice(&copy),
            Some(Page::Notes(notes)) => out.extend_from_slice(&undone(bytes, index, &notes)),
            None => out.extend_from_slice(page_of(bytes, index)),
        }
        let more = (index + 1).saturating_mul(PAGE as u64) < bytes.len() as u64;
        self.next = if more {
            (number, index + 1)
        } else {
            (number + 1, 0)
        };
        if more && let Some(dropped) = dropped {
            self.dropped.insert(number, dropped);
        }
    }

    /// Whether changes to a page matter: it was there, is still, and has not been handed out.
    fn wants(&self, page: (usize, u64)) -> bool {
        page.0 < self.layers && page >= self.next && !self.dropped.contains_key(&page.0)
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
        let dropped = self.dropped.values().map(|bytes| bytes.len());
        size_of::<Self>() + self.changed.values().map(page).sum::<usize>() + dropped.sum::<usize>()
    }
}

/// A page of a bit array as it is.
fn page_of(bytes: &[u8], index: u64) -> &[u8] {
    let start = usize::try_from(index)
        .unwrap_or(usize::MAX)
        .saturating_mul(PAGE);
    let rest = bytes.get(start..).unwrap_or_default();
    rest.get(..PAGE).unwrap_or(rest)
}

/// A page of a bit array with what the notes say undone, the newest first.
fn undone(bytes: &[u8], index: u64, notes: &[(u32, u8)]) -> Vec<u8> {
    let mut page = page_of(bytes, index).to_vec();
    for (at, old) in notes.iter().rev() {
        if let Some(byte) = page.get_mut(*at as usize) {
            *byte = *old;
        }
    }
    page
}
