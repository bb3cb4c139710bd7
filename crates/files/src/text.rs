//! A string of bytes that can be read in pieces, as it was at one moment, while it changes: by the
//! same [`Capture`] as a filter.

use std::borrow::Cow;
use std::fmt;
use std::ops::{Deref, Range};

use everbloom::host::{self, Capture};
use smallvec::SmallVec;
use thiserror::Error;

/// A string shorter than this grows to twice its length, as in Redis.
const SHORT: usize = 1 << 20;

/// There is no memory for a string, which is as it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("there is no memory for the string")]
pub struct OutOfMemory;

/// A string of bytes; a short one costs no allocation. It is read as a slice, and each change has a
/// method of its own.
#[derive(Default)]
pub struct Text {
    bytes: SmallVec<[u8; 16]>,
    capture: Capture,
    /// Whether some of its bytes were changed since it was set as a whole.
    edited: bool,
}

impl Text {
    /// An empty string with room for this many bytes.
    pub fn with_capacity(len: usize) -> Result<Self, OutOfMemory> {
        let mut text = Text::default();
        text.make_room(len)?;
        Ok(text)
    }

    /// A string of these bytes.
    pub fn copy_of(bytes: &[u8]) -> Result<Self, OutOfMemory> {
        let mut text = Text::with_capacity(bytes.len())?;
        text.bytes.extend_from_slice(bytes);
        Ok(text)
    }

    /// A copy without readers.
    pub fn try_clone(&self) -> Result<Self, OutOfMemory> {
        Ok(Text {
            edited: self.edited,
            ..Text::copy_of(self)?
        })
    }

    /// Some bytes of the string, mutable; empty if it is shorter.
    #[inline]
    pub fn part_mut(&mut self, part: Range<usize>) -> &mut [u8] {
        let changed = part.start as u64..part.end.min(self.bytes.len()) as u64;
        self.capture.note(0, &self.bytes, changed);
        self.edited = true;
        self.bytes.get_mut(part).unwrap_or_default()
    }

    /// Appends bytes.
    pub fn append(&mut self, more: &[u8]) -> Result<(), OutOfMemory> {
        self.make_room(self.bytes.len().saturating_add(more.len()))?;
        self.edited |= !self.bytes.is_empty();
        // Behind the end there is nothing that a reader needs.
        self.bytes.extend_from_slice(more);
        Ok(())
    }

    /// Makes room for a length, and ahead for some more: little enough that a long string takes
    /// hardly more memory than its length, and enough that one that grows byte by byte is not
    /// copied all the time. (Redis takes 1 MiB ahead, however long the string is.)
    fn make_room(&mut self, len: usize) -> Result<(), OutOfMemory> {
        if len <= self.bytes.capacity() {
            return Ok(());
        }
        let ahead = match len {
            _ if self.bytes.is_empty() => 0,
            0..SHORT => len,
            _ => SHORT.max(len / 16),
        };
        let more = len.saturating_add(ahead) - self.bytes.len();
        let reserved = self.bytes.try_reserve_exact(more);
        reserved.map_err(|_| OutOfMemory)
    }

    /// Fills a shorter string up with zeros. When most of it will be zeros, they are memory that
    /// the system gives once it is written.
    pub fn fill_up(&mut self, len: usize) -> Result<(), OutOfMemory> {
        if len <= self.bytes.len() {
            return Ok(());
        }
        if len / 2 < self.bytes.len() || len <= self.bytes.capacity() {
            self.make_room(len)?;
            self.bytes.resize(len, 0);
            return Ok(());
        }
        let mut bytes = host::zeros(len).ok_or(OutOfMemory)?;
        if let Some(start) = bytes.get_mut(..self.bytes.len()) {
            start.copy_from_slice(&self.bytes);
        }
        self.bytes = bytes.into();
        Ok(())
    }

    /// Whether some of its bytes were changed since it was set as a whole. Redis says so of a key.
    pub fn is_edited(&self) -> bool {
        self.edited
    }

    /// Counts it as edited, although its bytes may be as they were.
    #[inline]
    pub fn edit(&mut self) {
        self.edited = true;
    }

    /// The same string, as one that was edited.
    #[must_use]
    pub fn edited(self) -> Self {
        Text {
            edited: true,
            ..self
        }
    }

    /// Heap bytes: those of a long string, and those kept for readers.
    pub fn memory(&self) -> usize {
        let bytes = match self.bytes.spilled() {
            true => self.bytes.capacity(),
            false => 0,
        };
        bytes + self.capture.memory_usage()
    }

    /// Begins to read a part of the string as it is now. `id` is the caller's, and no other
    /// reader's.
    pub fn begin_capture(&mut self, id: u64, part: Range<u64>) {
        let len = self.bytes.len() as u64;
        self.capture.begin(id, [len].into_iter(), part);
    }

    /// Appends the next captured bytes to `out`, at most 64 KiB; false when there are none.
    pub fn capture_next(&mut self, id: u64, out: &mut Vec<u8>) -> bool {
        let bytes = Cow::Borrowed(&self.bytes[..]);
        self.capture.next(id, |_| bytes, out)
    }

    /// The readers of the string.
    #[inline]
    pub fn capture(&self) -> &Capture {
        &self.capture
    }

    /// The readers of the string, to end some of them.
    pub fn capture_mut(&mut self) -> &mut Capture {
        &mut self.capture
    }

    /// Brings a copy up to date that this reader has read: copies only what has changed since. False
    /// if the reader does not [track changes](Capture::track_changes) of this string, or there is
    /// no memory.
    pub fn update_copy(&self, id: u64, copy: &mut Text) -> bool {
        let Some(changes) = self.capture.changes(id) else {
            return false;
        };
        let len = copy.len();
        let clip = |at: u64| usize::try_from(at).unwrap_or(len).min(len);
        for (_, part) in changes {
            let part = clip(part.start)..clip(part.end);
            let now = self.bytes.get(part.clone()).unwrap_or_default();
            copy.part_mut(part).copy_from_slice(now);
        }
        // A string that is read never becomes shorter.
        let more = self.bytes.get(len..).unwrap_or_default();
        copy.append(more).is_ok()
    }
}

impl Deref for Text {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

impl From<Vec<u8>> for Text {
    fn from(bytes: Vec<u8>) -> Self {
        let mut bytes: SmallVec<_> = SmallVec::from_vec(bytes);
        if bytes.len() <= bytes.inline_size() {
            bytes.shrink_to_fit();
        }
        bytes.into()
    }
}

impl From<&[u8]> for Text {
    fn from(bytes: &[u8]) -> Self {
        SmallVec::from_slice(bytes).into()
    }
}

impl From<SmallVec<[u8; 16]>> for Text {
    fn from(bytes: SmallVec<[u8; 16]>) -> Self {
        Text {
            bytes,
            capture: Capture::default(),
            edited: false,
        }
    }
}

/// A clone has no readers.
impl Clone for Text {
    fn clone(&self) -> Self {
        Text {
            edited: self.edited,
            ..Text::from(&**self)
        }
    }
}

impl PartialEq for Text {
    fn eq(&self, other: &Self) -> bool {
        self.bytes == other.bytes
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.bytes.len())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PAGE: usize = 64 << 10;

    /// A change, and whether a page is read behind it.
    fn change() -> impl Strategy<Value = (Change, bool)> {
        let len = 0..4 * PAGE;
        let change = prop_oneof![
            4 => (len.clone(), 1..2 * PAGE).prop_map(|(at, len)| Change::Part(at..at + len)),
            4 => (len.clone()).prop_map(|at| Change::Part(at..at + 1)),
            1 => (1..PAGE).prop_map(Change::Append),
            1 => len.prop_map(Change::FillUp),
        ];
        (change, any::<bool>())
    }

    #[derive(Debug, Clone)]
    enum Change {
        Part(Range<usize>),
        Append(usize),
        FillUp(usize),
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn a_capture_is_the_string_as_it_was(
            len in 1..4 * PAGE, changes in proptest::collection::vec(change(), 0..40),
        ) {
            let then: Vec<u8> = (0..len).map(|at| u8::try_from(at % 251).unwrap()).collect();
            let (mut text, mut now) = (Text::from(then.clone()), then.clone());
            let mut captured = Vec::new();
            text.begin_capture(7, 0..len as u64);
            text.capture_mut().track_changes(7);
            for ((change, reads), byte) in changes.into_iter().zip(0..) {
                match change {
                    Change::Part(part) => {
                        text.part_mut(part.clone()).fill(byte);
                        now.get_mut(part).unwrap_or_default().fill(byte);
                    }
                    Change::Append(len) => {
                        text.append(&vec![byte; len]).unwrap();
                        now.resize(now.len() + len, byte);
                    }
                    Change::FillUp(len) => {
                        text.fill_up(len).unwrap();
                        now.resize(now.len().max(len), 0);
                    }
                }
                prop_assert!(*text == *now);
                if reads {
                    text.capture_next(7, &mut captured);
                }
            }
            while text.capture_next(7, &mut captured) {}
            prop_assert!(captured == then);
            let mut copy = Text::from(captured);
            prop_assert!(text.update_copy(7, &mut copy) && *copy == *now);
            prop_assert!(!text.update_copy(8, &mut copy));
        }
    }

    /// What a command changes is kept for a reader, and no more: BITFIELD and SETBIT change some
    /// bytes, SETRANGE may change pages.
    #[test]
    fn what_is_kept_is_in_proportion_to_the_change() {
        const LEN: usize = 1000 * PAGE;
        let mut text = Text::from(vec![0; LEN]);
        let before = text.memory();
        text.begin_capture(7, 0..LEN as u64);
        assert!(!text.clone().capture().is_active());
        text.part_mut(5 * PAGE - 4..5 * PAGE + 5).fill(1);
        text.part_mut(LEN - 1..LEN).fill(1);
        assert!(text.memory() < before + 1000);
        text.part_mut(5 * PAGE - 100..6 * PAGE).fill(2);
        assert!((before + 2 * PAGE..before + 2 * PAGE + 1000).contains(&text.memory()));
        text.capture_mut().end(7);
        assert_eq!(text.memory(), before);
        assert!(!text.capture_next(7, &mut Vec::new()));
    }

    /// What a string takes that grows by so many bytes at a time, and how often it is given a new
    /// place.
    fn grown(from: usize, to: usize, grow: impl Fn(&mut Text, usize)) -> (usize, usize) {
        let mut text = Text::from(vec![0; from]);
        let (mut memory, mut moves) = (text.memory(), 0);
        for len in (from..to).step_by(1000) {
            grow(&mut text, len);
            assert_eq!(text.len(), len);
            moves += usize::from(text.memory() != memory);
            memory = text.memory();
        }
        (memory, moves)
    }

    #[test]
    fn a_long_string_grows_by_little_and_seldom() {
        const MIB: usize = 1 << 20;
        type Grow = fn(&mut Text, usize);
        let ways: [Grow; 2] = [
            |text, len| text.fill_up(len).unwrap(),
            |text, len| text.append(&vec![1; len - text.len()]).unwrap(),
        ];
        for grow in ways {
            let (memory, moves) = grown(30 * MIB, 60 * MIB, grow);
            assert!((60 * MIB - 1000..64 * MIB).contains(&memory), "{memory}");
            // As often as 30 times 17/16 makes 60.
            assert!((1..=12).contains(&moves), "{moves}");
            let (memory, moves) = grown(1000, 900_000, grow);
            assert!(memory < 1_800_000, "{memory}");
            assert!((1..=11).contains(&moves), "{moves}");
        }
        // A new one takes what it holds.
        for len in [100, SHORT, 3 * SHORT] {
            let (mut filled, mut appended) = (Text::default(), Text::default());
            filled.fill_up(len).unwrap();
            appended.append(&vec![1; len]).unwrap();
            assert_eq!((filled.memory(), appended.memory()), (len, len));
        }
    }
}
