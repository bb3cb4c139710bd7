//! A string of bytes that can be read in pieces, as it was at one moment, while it changes.
//!
//! A snapshot must not copy hundreds of megabytes while commands wait. So it captures a long string
//! as it captures a large filter (`everbloom::host`): the string is read a page at a time, and a
//! page that is to change before it was read is copied first.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::{Deref, Range};

use everbloom::host;
use smallvec::SmallVec;

/// The bytes of a page.
const PAGE: usize = 64 << 10;

/// A string shorter than this grows to twice its length, as in Redis.
const SHORT: usize = 1 << 20;

/// A string of bytes; a short one costs no allocation. It is read as a slice, and each change has a
/// method of its own.
#[derive(Default)]
pub struct Text {
    bytes: SmallVec<[u8; 16]>,
    capture: Option<Box<Capture>>,
}

/// A capture in progress.
struct Capture {
    id: u64,
    /// How long the string was when it began.
    len: usize,
    /// Where the page begins that is to be read next.
    next: usize,
    /// Pages that have changed, as they were, by where they begin.
    changed: BTreeMap<usize, Box<[u8]>>,
}

impl Text {
    /// An empty string with room for so many bytes.
    pub fn with_capacity(len: usize) -> Self {
        let (bytes, capture) = (SmallVec::with_capacity(len), None);
        Text { bytes, capture }
    }

    /// Some bytes of the string, to be changed; none if it is shorter.
    #[inline]
    pub fn part_mut(&mut self, part: Range<usize>) -> &mut [u8] {
        if let Some(capture) = &mut self.capture {
            capture.note(&self.bytes, part.clone());
        }
        self.bytes.get_mut(part).unwrap_or_default()
    }

    /// Appends bytes.
    pub fn append(&mut self, more: &[u8]) {
        self.make_room(self.bytes.len().saturating_add(more.len()));
        // Behind the end there is nothing that a capture wants.
        self.bytes.extend_from_slice(more);
    }

    /// Makes room for a length, and ahead for some more: little enough that a long string takes
    /// hardly more memory than its length, and enough that one that grows byte by byte is not
    /// copied all the time. (Redis takes 1 MiB ahead, however long the string is.)
    fn make_room(&mut self, len: usize) {
        if len <= self.bytes.capacity() {
            return;
        }
        let ahead = match len {
            _ if self.bytes.is_empty() => 0,
            0..SHORT => len,
            _ => SHORT.max(len / 16),
        };
        let more = len.saturating_add(ahead) - self.bytes.len();
        self.bytes.reserve_exact(more);
    }

    /// Fills a shorter string up with zeros. When most of it will be zeros, they are memory that
    /// the system gives once it is written.
    pub fn fill_up(&mut self, len: usize) {
        if len <= self.bytes.len() {
            return;
        }
        if len / 2 < self.bytes.len() || len <= self.bytes.capacity() {
            self.make_room(len);
            return self.bytes.resize(len, 0);
        }
        let mut bytes = vec![0; len];
        if let Some(start) = bytes.get_mut(..self.bytes.len()) {
            start.copy_from_slice(&self.bytes);
        }
        let old = std::mem::replace(&mut self.bytes, bytes.into());
        if old.spilled() {
            host::give_back(old.into_vec());
        }
    }

    /// Heap bytes: those of a long string, and those that a capture holds.
    pub fn memory(&self) -> usize {
        let copied = |capture: &Capture| size_of::<Capture>() + capture.changed.len() * PAGE;
        let bytes = match self.bytes.spilled() {
            true => self.bytes.capacity(),
            false => 0,
        };
        bytes + self.capture.as_deref().map_or(0, copied)
    }

    /// Begins to capture the string as it is now. `id` is the caller's, to know the capture by.
    pub fn begin_capture(&mut self, id: u64) {
        self.capture = Some(Box::new(Capture {
            id,
            len: self.bytes.len(),
            next: 0,
            changed: BTreeMap::new(),
        }));
    }

    /// The id of the capture in progress.
    pub fn capture_id(&self) -> Option<u64> {
        self.capture.as_ref().map(|capture| capture.id)
    }

    /// Gives up the capture in progress.
    pub fn end_capture(&mut self) {
        self.capture = None;
    }

    /// Appends the next captured bytes to `out`, at most 64 KiB. False when there are none: then
    /// the capture has ended, or none was begun.
    pub fn capture_next(&mut self, out: &mut Vec<u8>) -> bool {
        let Some(capture) = &mut self.capture else {
            return false;
        };
        let page = capture.page(capture.next);
        if page.is_empty() {
            self.end_capture();
            return false;
        }
        match capture.changed.remove(&page.start) {
            Some(copy) => out.extend_from_slice(&copy),
            None => out.extend_from_slice(self.bytes.get(page.clone()).unwrap_or_default()),
        }
        capture.next = page.end;
        true
    }
}

impl Capture {
    /// The captured page that begins here.
    fn page(&self, start: usize) -> Range<usize> {
        start..start.saturating_add(PAGE).min(self.len)
    }

    /// Copies the pages, not yet read, in which this part lies.
    #[cold]
    fn note(&mut self, bytes: &[u8], part: Range<usize>) {
        let first = (part.start / PAGE * PAGE).max(self.next);
        for start in (first..part.end.min(self.len)).step_by(PAGE) {
            let page = self.page(start);
            let copy = || bytes.get(page).unwrap_or_default().into();
            self.changed.entry(start).or_insert_with(copy);
        }
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
        let mut bytes = SmallVec::from_vec(bytes);
        if bytes.len() <= bytes.inline_size() {
            bytes.shrink_to_fit();
        }
        let capture = None;
        Text { bytes, capture }
    }
}

impl From<&[u8]> for Text {
    fn from(bytes: &[u8]) -> Self {
        let (bytes, capture) = (SmallVec::from_slice(bytes), None);
        Text { bytes, capture }
    }
}

impl Drop for Text {
    #[inline]
    fn drop(&mut self) {
        if self.bytes.spilled() {
            host::give_back(std::mem::take(&mut self.bytes).into_vec());
        }
    }
}

/// A clone is not captured.
impl Clone for Text {
    fn clone(&self) -> Self {
        (**self).into()
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
            text.begin_capture(7);
            for ((change, reads), byte) in changes.into_iter().zip(0..) {
                match change {
                    Change::Part(part) => {
                        text.part_mut(part.clone()).fill(byte);
                        now.get_mut(part).unwrap_or_default().fill(byte);
                    }
                    Change::Append(len) => {
                        text.append(&vec![byte; len]);
                        now.resize(now.len() + len, byte);
                    }
                    Change::FillUp(len) => {
                        text.fill_up(len);
                        now.resize(now.len().max(len), 0);
                    }
                }
                prop_assert!(*text == *now);
                if reads {
                    text.capture_next(&mut captured);
                }
            }
            while text.capture_next(&mut captured) {}
            prop_assert!(captured == then);
            prop_assert_eq!(text.capture_id(), None);
        }
    }

    #[test]
    fn a_capture_counts_what_it_holds_and_ends() {
        let mut text = Text::from(vec![0; 2 * PAGE]);
        let before = text.memory();
        text.begin_capture(7);
        assert_eq!(
            (text.capture_id(), text.clone().capture_id()),
            (Some(7), None)
        );
        text.part_mut(0..1).fill(1);
        assert!(text.memory() >= before + PAGE);
        text.end_capture();
        assert_eq!((text.memory(), text.capture_id()), (before, None));
        assert!(!text.capture_next(&mut Vec::new()));
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
        let ways: [Grow; 2] = [Text::fill_up, |text, len| {
            text.append(&vec![1; len - text.len()]);
        }];
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
            filled.fill_up(len);
            appended.append(&vec![1; len]);
            assert_eq!((filled.memory(), appended.memory()), (len, len));
        }
    }
}
