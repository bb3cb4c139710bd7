//! Reading a value in pieces, as it was at one moment, while it changes.
//!
//! A snapshot or a dump of a large filter takes seconds. The filter must still answer and grow
//! during that time, and there may be several readers. So a reader copies the bits a page at a
//! time. Before a page changes that a reader has not passed, its old bytes are kept: a small change
//! is noted and undone later; for a larger one the whole page is copied. One copy serves all
//! readers. It is freed when the last reader that needs it has passed the page or has ended.
//!
//! [`Capture`] is the part of a value that does this. Its `moment` counts the readers that have
//! begun. Old bytes are kept under the current moment, so a reader that began at moment 3 undoes
//! the changes of moments 3 and later.

use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::fmt;
use core::mem::size_of;
use core::ops::{Range, RangeBounds};

use super::Layer;
use crate::limits;

/// Changes are tracked by as many bytes: what an insertion changes is all over a value, so that by
/// pages soon all of it would have changed.
const LINE_BYTES: u64 = 64;

/// A byte's position in its page, and its old value.
type Note = (u16, u8);
/// A byte of a value: the number of its array, and its place there.
type Position = (usize, u64);
/// A page of a value at a moment: the number of its array, its number there, the moment.
type Version = (usize, u64, u64);

/// Arrays that a value has dropped, by number and moment.
type Dropped = BTreeMap<(usize, u64), Array>;

/// An array that a value has dropped. Readers take it over as it is: a copy of it would take long,
/// and memory that may not be there.
pub(crate) enum Array {
    Bytes(Box<[u8]>),
    Layer(Layer),
}

/// The data that a value keeps for its readers. Nearly always there are none.
///
/// The value consists of arrays of bytes, such as the layers of a filter, laid end to end. Its
/// owner calls [`note`](Self::note) before each change. A clone of the value has no readers, and
/// readers say nothing about the value, so two captures are always equal.
///
/// ```
/// use everbloom::host::Capture;
///
/// let (mut bytes, mut capture) = (b"before".to_vec(), Capture::default());
/// capture.begin(1, [6].into_iter(), 0..6);
/// capture.note(0, &bytes, 0..6);
/// bytes.copy_from_slice(b"behind");
///
/// capture.begin(2, [6].into_iter(), 3..6);
/// let (mut one, mut two) = (Vec::new(), Vec::new());
/// while capture.next(1, |_| bytes.as_slice().into(), &mut one) {}
/// while capture.next(2, |_| bytes.as_slice().into(), &mut two) {}
/// [1, 2].map(|id| capture.end(id));
/// assert_eq!((&one[..], &two[..]), (&b"before"[..], &b"ind"[..]));
/// assert!(!capture.is_active());
/// ```
#[derive(Default)]
pub struct Capture(Option<Box<State>>);

#[derive(Default)]
struct State {
    readers: Vec<Reader>,
    /// How many readers have begun.
    moment: u64,
    /// The old bytes of changed pages that some reader has not passed.
    kept: BTreeMap<Version, Kept>,
    /// Bytes of the kept data.
    kept_bytes: usize,
    /// How many of the first arrays the value has dropped. They keep their numbers, so that of its
    /// arrays now the first has this number.
    first: usize,
    /// Arrays that the value has dropped, by number and moment.
    dropped: Dropped,
    /// Bytes of the dropped arrays.
    dropped_bytes: usize,
}

struct Reader {
    id: u64,
    /// When it began.
    moment: u64,
    next: Position,
    end: Position,
    /// What has changed since, if that is tracked.
    changes: Option<Changes>,
}

/// The changes of a value.
#[derive(Default)]
struct Changes {
    /// A bit for each line of an array, by the number of the array.
    lines: BTreeMap<usize, Vec<u64>>,
    /// An array was dropped.
    dropped: bool,
}

/// The changes of a page during one moment.
enum Kept {
    /// Bytes that changed, with what they were, oldest first.
    Notes(Vec<Note>),
    /// The page as it was when the moment began.
    Copy(Box<[u8]>),
}

impl Capture {
    /// Whether there are readers.
    #[inline]
    #[must_use]
    pub fn is_active(&self) -> bool {
        self.0.is_some()
    }

    /// Begins to read a part of the value, whose arrays have these lengths. The length of an array
    /// must not change until it is dropped; only a value of one array may grow. The caller chooses
    /// `id`, which must be unique among the readers.
    pub fn begin(&mut self, id: u64, lengths: impl Iterator<Item = u64>, part: Range<u64>) {
        let lengths: Vec<u64> = lengths.collect();
        let state = self.0.get_or_insert_default();
        state.moment += 1;
        state.readers.push(Reader {
            id,
            moment: state.moment,
            next: position(state.first, &lengths, |len| part.start < len, part.start),
            end: position(state.first, &lengths, |len| part.end <= len, part.end),
            changes: None,
        });
    }

    /// The ids of all readers.
    pub fn ids(&self) -> impl Iterator<Item = u64> {
        let readers = self.0.iter().flat_map(|state| &state.readers);
        readers.map(|reader| reader.id)
    }

    /// Ends a reader, which may have read everything or not.
    pub fn end(&mut self, id: u64) {
        self.retain(|reader| reader != id);
    }

    /// Ends the readers whose id is refused.
    pub fn retain(&mut self, is_kept: impl Fn(u64) -> bool) {
        let Some(state) = &mut self.0 else { return };
        state.readers.retain(|reader| is_kept(reader.id));
        if state.readers.is_empty() {
            self.0 = None;
        } else {
            state.release(.., ..);
        }
    }

    /// Appends the next bytes for a reader to `out`, at most a page of 64 KiB and of one array;
    /// false when there are none. `bytes` gives the bytes of an array as they are now.
    pub fn next<'b>(
        &mut self,
        id: u64,
        bytes: impl FnOnce(usize) -> Cow<'b, [u8]>,
        out: &mut Vec<u8>,
    ) -> bool {
        let state = self.0.as_mut();
        state.is_some_and(|state| state.next(id, bytes, out))
    }

    /// A part of an array is about to change; `bytes` are those of the whole array.
    #[inline]
    pub fn note(&mut self, array: usize, bytes: &[u8], part: Range<u64>) {
        if let Some(state) = &mut self.0 {
            state.note(state.first + array, bytes, part);
        }
    }

    /// The value drops its last array, which has this number.
    pub(crate) fn keep_last(&mut self, array: usize, dropped: impl Into<Array>) {
        if let Some(state) = &mut self.0 {
            state.keep_dropped(state.first + array, dropped.into());
        }
    }

    /// The value drops its first array.
    pub(crate) fn keep_first(&mut self, dropped: impl Into<Array>) {
        if let Some(state) = &mut self.0 {
            state.keep_dropped(state.first, dropped.into());
            state.first += 1;
        }
    }

    /// From now on, tracks for a reader what changes.
    pub fn track_changes(&mut self, id: u64) {
        if let Some(reader) = self.reader_mut(id) {
            reader.changes.get_or_insert_default();
        }
    }

    /// The parts of arrays that have changed since they are [tracked](Self::track_changes), or were
    /// taken: the numbers of the arrays, and at most 64 KiB of each, which may go beyond its end.
    /// `None` without such a reader, and when an array was dropped.
    #[must_use]
    pub fn changes(&self, id: u64) -> Option<Vec<(usize, Range<u64>)>> {
        let state = self.0.as_deref()?;
        let reader = state.readers.iter().find(|reader| reader.id == id)?;
        let changes = reader.changes.as_ref().filter(|it| !it.dropped)?;
        Some(changes.parts(state.first))
    }

    /// The same, and forgets them.
    pub fn take_changes(&mut self, id: u64) -> Option<Vec<(usize, Range<u64>)>> {
        let parts = self.changes(id)?;
        let changes = self.reader_mut(id)?.changes.as_mut()?;
        changes.lines.clear();
        Some(parts)
    }

    fn reader_mut(&mut self, id: u64) -> Option<&mut Reader> {
        let mut readers = self.0.iter_mut().flat_map(|state| &mut state.readers);
        readers.find(|reader| reader.id == id)
    }

    /// Heap bytes of the kept data.
    #[inline]
    #[must_use]
    pub fn memory_usage(&self) -> usize {
        self.0.as_ref().map_or(0, |state| {
            size_of::<State>() + state.kept_bytes + state.dropped_bytes
        })
    }
}

/// The place of a byte of arrays laid end to end, in the first of them that is `long_enough` for
/// what is left of its offset. The first array has the number `first`.
fn position(
    first: usize,
    lengths: &[u64],
    long_enough: impl Fn(u64) -> bool,
    offset: u64,
) -> Position {
    let mut before = 0_u64;
    for (array, len) in (first..).zip(lengths) {
        let end = before.saturating_add(*len);
        if long_enough(end) {
            return (array, offset - before);
        }
        before = end;
    }
    (first + lengths.len(), 0)
}

impl Reader {
    fn needs(&self, array: usize, page: u64) -> bool {
        let start = page * page_bytes();
        self.next < (array, start + page_bytes()) && (array, start) < self.end
    }

    fn needs_array(&self, array: usize) -> bool {
        self.next.0 <= array && (array, 0) < self.end
    }
}

impl Changes {
    fn note(&mut self, array: usize, part: &Range<u64>) {
        let lines = self.lines.entry(array).or_default();
        let words = at_most(part.end.div_ceil(LINE_BYTES).div_ceil(64));
        if lines.len() < words {
            lines.resize(words, 0);
        }
        for line in part.start / LINE_BYTES..part.end.div_ceil(LINE_BYTES) {
            if let Some(word) = lines.get_mut(at_most(line / 64)) {
                *word |= 1 << (line % 64);
            }
        }
    }

    /// The parts that changed, of arrays whose first has this number.
    fn parts(&self, first: usize) -> Vec<(usize, Range<u64>)> {
        let mut parts: Vec<(usize, Range<u64>)> = Vec::new();
        for (array, lines) in &self.lines {
            let array = array.saturating_sub(first);
            for (number, mut word) in (0_u64..).zip(lines.iter().copied()) {
                while word != 0 {
                    let line = number * 64 + u64::from(word.trailing_zeros());
                    word &= word - 1;
                    let (start, end) = (line * LINE_BYTES, (line + 1) * LINE_BYTES);
                    match parts.last_mut() {
                        Some((of, part))
                            if *of == array
                                && part.end == start
                                && end - part.start <= page_bytes() =>
                        {
                            part.end = end;
                        }
                        _ => parts.push((array, start..end)),
                    }
                }
            }
        }
        parts
    }
}

impl State {
    fn keep_dropped(&mut self, array: usize, dropped: Array) {
        let tracked = self.readers.iter_mut().filter_map(|r| r.changes.as_mut());
        tracked.for_each(|changes| changes.dropped = true);
        let needs = |reader: &Reader| {
            reader.needs_array(array)
                && dropped_since(&self.dropped, array, reader.moment).is_none()
        };
        if self.readers.iter().any(needs) {
            self.dropped_bytes += dropped.memory();
            let before = self.dropped.insert((array, self.moment), dropped);
            self.dropped_bytes -= before.map_or(0, |before| before.memory());
        }
    }

    #[cold]
    fn note(&mut self, array: usize, bytes: &[u8], part: Range<u64>) {
        let tracked = self.readers.iter_mut().filter_map(|r| r.changes.as_mut());
        tracked.for_each(|changes| changes.note(array, &part));
        let pages = part.start / page_bytes()..part.end.div_ceil(page_bytes());
        for page in pages {
            if !self.wants(array, page) {
                continue;
            }
            let (bytes, start) = (page_of(bytes, page), page * page_bytes());
            let part = part.start.max(start) - start..part.end.min(start + page_bytes()) - start;
            let version = (array, page, self.moment);
            let kept = self.kept.entry(version).or_insert(Kept::Notes(Vec::new()));
            self.kept_bytes -= kept.bytes();
            kept.note(bytes, part);
            self.kept_bytes += kept.bytes();
        }
    }

    /// Whether a reader needs a page that is about to change, and has no copy of it.
    fn wants(&self, array: usize, page: u64) -> bool {
        let mut versions = self.kept.range((array, page, 0)..=(array, page, u64::MAX));
        let copied = match versions.next_back() {
            Some(((_, _, moment), Kept::Copy(_))) => *moment,
            _ => 0,
        };
        self.readers.iter().any(|reader| {
            reader.moment > copied
                && reader.needs(array, page)
                && dropped_since(&self.dropped, array, reader.moment).is_none()
        })
    }

    fn next<'b>(
        &mut self,
        id: u64,
        bytes: impl FnOnce(usize) -> Cow<'b, [u8]>,
        out: &mut Vec<u8>,
    ) -> bool {
        let mut readers = self.readers.iter_mut();
        let Some(reader) = readers.find(|r| r.id == id && r.next < r.end) else {
            return false;
        };
        let ((array, from), end) = (reader.next, reader.end);
        let page = from / page_bytes();
        let (bytes, until) = match dropped_since(&self.dropped, array, reader.moment) {
            Some((at, dropped)) => (dropped.bytes(), at),
            None => (bytes(array.saturating_sub(self.first)), u64::MAX),
        };
        let (first, mut then) = (out.len(), Cow::Borrowed(page_of(&bytes, page)));
        let versions = (array, page, reader.moment)..=(array, page, until);
        for (_, kept) in self.kept.range(versions).rev() {
            match kept {
                Kept::Copy(copy) => then = Cow::Borrowed(copy),
                Kept::Notes(notes) => undo(notes, then.to_mut()),
            }
        }
        let (start, len) = (page * page_bytes(), bytes.len() as u64);
        let last_byte = if array == end.0 { len.min(end.1) } else { len };
        let to = last_byte.min(start + page_bytes());
        let part = at_most(from - start)..at_most(to.max(from) - start);
        out.extend_from_slice(then.get(part).unwrap_or_default());
        debug_assert_eq!(
            out.len() - first,
            at_most(to.saturating_sub(from)),
            "a whole piece"
        );
        reader.next = if to < last_byte {
            (array, to)
        } else {
            (array + 1, 0)
        };
        let passed = (array, 0)..=(array, u64::MAX);
        self.release((array, page, 0)..=(array, page, u64::MAX), passed);
        true
    }

    /// Frees those of these page versions and dropped arrays that no reader needs.
    fn release(
        &mut self,
        versions: impl RangeBounds<Version>,
        arrays: impl RangeBounds<(usize, u64)>,
    ) {
        let readers = &self.readers;
        let is_needed = |(array, page, moment): &Version| {
            let needs = |reader: &Reader| reader.moment <= *moment && reader.needs(*array, *page);
            readers.iter().any(needs)
        };
        let kept = self.kept.range(versions).map(|(version, _)| *version);
        let unneeded: Vec<Version> = kept.filter(|version| !is_needed(version)).collect();
        for version in unneeded {
            let kept = self.kept.remove(&version);
            self.kept_bytes -= kept.map_or(0, |kept| kept.bytes());
        }
        let is_needed = |(array, moment): &(usize, u64)| {
            let needs = |reader: &Reader| reader.moment <= *moment && reader.needs_array(*array);
            readers.iter().any(needs)
        };
        let dropped = self.dropped.range(arrays).map(|(number, _)| {
            #[cfg(test)]
            tests::LOOKED.set(tests::LOOKED.get() + 1);
            *number
        });
        let unneeded: Vec<(usize, u64)> = dropped.filter(|number| !is_needed(number)).collect();
        for number in unneeded {
            let dropped = self.dropped.remove(&number);
            self.dropped_bytes -= dropped.map_or(0, |dropped| dropped.memory());
        }
    }
}

/// An array that was dropped after this moment, and when that was.
fn dropped_since(dropped: &Dropped, array: usize, moment: u64) -> Option<(u64, &Array)> {
    let mut dropped = dropped.range((array, moment)..=(array, u64::MAX));
    dropped.next().map(|((_, at), array)| (*at, array))
}

impl Array {
    fn bytes(&self) -> Cow<'_, [u8]> {
        match self {
            Array::Bytes(bytes) => Cow::Borrowed(bytes),
            Array::Layer(layer) => layer.as_bytes(),
        }
    }

    fn memory(&self) -> usize {
        match self {
            Array::Bytes(bytes) => bytes.len(),
            Array::Layer(layer) => size_of::<Layer>() + layer.heap_bytes(),
        }
    }
}

impl From<Box<[u8]>> for Array {
    fn from(bytes: Box<[u8]>) -> Array {
        Array::Bytes(bytes)
    }
}

impl From<Layer> for Array {
    fn from(layer: Layer) -> Array {
        Array::Layer(layer)
    }
}

impl Kept {
    /// A part of the page is about to change; `bytes` are those of the page now.
    fn note(&mut self, bytes: &[u8], part: Range<u64>) {
        let Kept::Notes(notes) = self else { return };
        let len = part.end.saturating_sub(part.start);
        // No more notes than take the memory of a copy.
        let max_notes = limits::PAGE_BYTES.get() / size_of::<Note>();
        if len > limits::NOTED_BYTES.get_u64() || notes.len() >= max_notes {
            let mut then = bytes.to_vec();
            undo(notes, &mut then);
            *self = Kept::Copy(then.into());
            return;
        }
        // A place in a page fits 16 bits.
        notes.extend(part.filter_map(|at| {
            let old = bytes.get(at_most(at))?;
            Some((u16::try_from(at).ok()?, *old))
        }));
    }

    fn bytes(&self) -> usize {
        match self {
            Kept::Notes(notes) => notes.capacity() * size_of::<Note>(),
            Kept::Copy(copy) => copy.len(),
        }
    }
}

/// Undoes what the notes say, the newest first.
fn undo(notes: &[Note], page: &mut [u8]) {
    for (at, old) in notes.iter().rev() {
        if let Some(byte) = page.get_mut(usize::from(*at)) {
            *byte = *old;
        }
    }
}

/// A page of an array as it is.
fn page_of(bytes: &[u8], page: u64) -> &[u8] {
    let rest = bytes
        .get(at_most(page * page_bytes())..)
        .unwrap_or_default();
    rest.get(..at_most(page_bytes())).unwrap_or(rest)
}

/// The bytes of a page.
#[inline]
fn page_bytes() -> u64 {
    limits::PAGE_BYTES.get_u64()
}

/// A part of an array that may end before it, and where it starts.
pub(crate) fn part_of(bytes: &[u8], part: Range<u64>) -> (usize, &[u8]) {
    let start = at_most(part.start);
    let end = at_most(part.end).min(bytes.len());
    (start, bytes.get(start..end).unwrap_or_default())
}

/// A length in memory.
fn at_most(len: u64) -> usize {
    usize::try_from(len).unwrap_or(usize::MAX)
}

impl Clone for Capture {
    fn clone(&self) -> Self {
        Capture(None)
    }
}

impl PartialEq for Capture {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl fmt::Debug for Capture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.ids()).finish()
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use proptest::prelude::*;

    use super::*;
    use crate::host::LayeredFilter;
    use crate::{CuckooFilter, Layout};

    const PAGE: usize = 64 << 10;
    const PAGE_BYTES: u64 = PAGE as u64;

    std::thread_local! {
        /// Counts the dropped arrays that this thread has looked at, for a test of cost.
        pub(super) static LOOKED: core::cell::Cell<usize> = const { core::cell::Cell::new(0) };
    }

    /// What happens to a value of several arrays, and to its readers.
    #[derive(Clone, Debug)]
    enum Step {
        /// Changes this many bytes at a place of an array.
        Change(usize, usize, usize),
        /// Appends to the last array, as a string grows.
        Append(usize),
        Drop,
        Push(usize),
        Begin(usize, usize),
        Read(usize),
        End(usize),
    }

    fn step() -> impl Strategy<Value = Step> {
        let at = || 0..3 * PAGE;
        prop_oneof![
            6 => (0..4_usize, at()).prop_map(|(array, at)| Step::Change(array, at, 1)),
            2 => (0..4_usize, at(), 1..40_usize).prop_map(|(a, at, len)| Step::Change(a, at, len)),
            2 => (0..4_usize, at(), at()).prop_map(|(a, at, len)| Step::Change(a, at, len)),
            1 => (1..PAGE).prop_map(Step::Append),
            1 => Just(Step::Drop),
            1 => at().prop_map(|len| Step::Push(len + 1)),
            3 => (0..8 * PAGE, 0..8 * PAGE).prop_map(|(from, to)| Step::Begin(from, to)),
            8 => (0..9_usize).prop_map(Step::Read),
            1 => (0..9_usize).prop_map(Step::End),
        ]
    }

    /// A value with its readers. Of each: its id, what it must read, and what it has read.
    #[derive(Default)]
    struct Model {
        arrays: Vec<Vec<u8>>,
        /// It is one array that may grow, not several that come and go.
        is_text: bool,
        capture: Capture,
        readers: Vec<(u64, Vec<u8>, Vec<u8>)>,
        begun: u64,
    }

    impl Model {
        fn step(&mut self, step: Step, byte: u8) {
            match step {
                Step::Change(array, at, len) => self.change(array, at, len, byte),
                Step::Append(len) => {
                    if let (true, Some(only)) = (self.is_text, self.arrays.first_mut()) {
                        only.resize(only.len() + len, byte);
                    }
                }
                Step::Drop | Step::Push(_) if self.is_text => {}
                Step::Drop => {
                    if let Some(last) = self.arrays.pop() {
                        let last = last.into_boxed_slice();
                        self.capture.keep_last(self.arrays.len(), last);
                    }
                }
                Step::Push(len) if self.arrays.len() < 4 => self.arrays.push(vec![byte; len]),
                Step::Push(_) => {}
                Step::Begin(from, to) => self.begin(from, to),
                Step::Read(index) if index < self.readers.len() => {
                    if !self.read(index) {
                        self.capture.end(self.readers.remove(index).0);
                    }
                }
                Step::End(index) if index < self.readers.len() => {
                    self.capture.end(self.readers.remove(index).0);
                }
                Step::Read(_) | Step::End(_) => {}
            }
            let ids: Vec<u64> = self.capture.ids().collect();
            assert!(ids.iter().copied().eq(self.readers.iter().map(|it| it.0)));
        }

        fn change(&mut self, array: usize, at: usize, len: usize, byte: u8) {
            let Some(bytes) = self.arrays.get_mut(array) else {
                return;
            };
            let part = at.min(bytes.len())..(at + len).min(bytes.len());
            let changed = part.start as u64..part.end as u64;
            self.capture.note(array, bytes, changed);
            bytes[part].fill(byte);
        }

        fn begin(&mut self, from: usize, to: usize) {
            let all = self.arrays.concat();
            let part = from.min(all.len())..to.clamp(from.min(all.len()), all.len());
            let lengths = self.arrays.iter().map(|array| array.len() as u64);
            self.begun += 1;
            let wanted = part.start as u64..part.end as u64;
            self.capture.begin(self.begun, lengths, wanted);
            self.readers.push((self.begun, all[part].to_vec(), vec![]));
        }

        /// Reads a piece; at the end, compares all.
        fn read(&mut self, index: usize) -> bool {
            let (id, then, read) = &mut self.readers[index];
            let bytes = |array: usize| match self.arrays.get(array) {
                Some(bytes) => Cow::Borrowed(&bytes[..]),
                None => Cow::default(),
            };
            let more = self.capture.next(*id, bytes, read);
            assert!(then.starts_with(read), "reader {id} sees another moment");
            assert!(more || then.len() == read.len(), "reader {id} ends early");
            more
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]

        /// However many readers begin, read and end, each sees exactly its moment.
        #[test]
        fn each_reader_sees_its_moment(
            lengths in prop::collection::vec(1..3 * PAGE, 1..4),
            steps in prop::collection::vec(step(), 0..120),
        ) {
            let mut model = Model::default();
            model.arrays = lengths.into_iter().map(|len| vec![255; len]).collect();
            model.is_text = model.arrays.len() == 1;
            for (step, byte) in steps.into_iter().zip((0..=250).cycle()) {
                model.step(step, byte);
            }
            while !model.readers.is_empty() {
                model.step(Step::Read(0), 0);
            }
            prop_assert_eq!((model.capture.is_active(), model.capture.memory_usage()), (false, 0));
        }
    }

    /// A value of four pages and readers with the ids from 1 on.
    fn with_readers(readers: u64) -> (Vec<u8>, Capture) {
        let (bytes, mut capture) = (vec![7; 4 * PAGE], Capture::default());
        for id in 1..=readers {
            capture.begin(id, [4 * PAGE_BYTES].into_iter(), 0..4 * PAGE_BYTES);
        }
        (bytes, capture)
    }

    fn read_all(bytes: &[u8], capture: &mut Capture, id: u64) -> Vec<u8> {
        let mut out = Vec::new();
        while capture.next(id, |_| bytes.into(), &mut out) {}
        capture.end(id);
        out
    }

    #[test]
    fn a_page_is_kept_once_for_all_readers_and_released_by_the_last() {
        let (mut bytes, mut capture) = with_readers(3);
        let then = bytes.clone();
        let empty = capture.memory_usage();
        capture.note(0, &bytes, 0..2 * PAGE_BYTES);
        bytes[..2 * PAGE].fill(8);
        assert_eq!(capture.memory_usage(), empty + 2 * PAGE);
        // A page that is kept is not kept again.
        capture.note(0, &bytes, 0..PAGE_BYTES);
        bytes[..PAGE].fill(9);
        assert_eq!(capture.memory_usage(), empty + 2 * PAGE);

        assert_eq!(read_all(&bytes, &mut capture, 1), then);
        assert_eq!(capture.memory_usage(), empty + 2 * PAGE);
        let mut piece = Vec::new();
        assert!(capture.next(2, |_| bytes[..].into(), &mut piece));
        capture.end(3);
        // One reader is left, which has passed the first page.
        assert_eq!(capture.memory_usage(), empty + PAGE);
        capture.note(0, &bytes, 0..PAGE_BYTES);
        assert_eq!(capture.memory_usage(), empty + PAGE);
        capture.end(2);
        assert_eq!(capture.memory_usage(), 0);
    }

    #[test]
    fn only_the_pages_of_the_part_are_kept() {
        let (bytes, mut capture) = with_readers(0);
        let (from, to) = (PAGE_BYTES + 5, PAGE_BYTES + 9);
        capture.begin(1, [4 * PAGE_BYTES].into_iter(), from..to);
        let empty = capture.memory_usage();
        capture.note(0, &bytes, 0..4 * PAGE_BYTES);
        assert_eq!(capture.memory_usage(), empty + PAGE);
    }

    #[test]
    fn many_small_changes_take_no_more_than_the_page() {
        let (mut bytes, mut capture) = with_readers(1);
        let (then, empty) = (bytes.clone(), capture.memory_usage());
        capture.note(0, &bytes, 3..4);
        assert!(capture.memory_usage() < empty + 100);
        for at in (0..PAGE).chain(0..PAGE) {
            capture.note(0, &bytes, at as u64..at as u64 + 1);
            bytes[at] = bytes[at].wrapping_add(1);
            assert!(capture.memory_usage() <= empty + PAGE);
        }
        assert_eq!(read_all(&bytes, &mut capture, 1), then);
    }

    #[test]
    fn changes_are_tracked_behind_a_reader_too() {
        let (bytes, mut capture) = with_readers(2);
        capture.track_changes(2);
        capture.note(0, &bytes, PAGE_BYTES - 1..PAGE_BYTES + 1);
        while capture.next(2, |_| bytes[..].into(), &mut Vec::new()) {}
        capture.note(0, &bytes, 3 * PAGE_BYTES + 70..3 * PAGE_BYTES + 71);
        let part = |from: u64, to: u64| (0, from * LINE_BYTES..to * LINE_BYTES);
        let page = PAGE_BYTES / LINE_BYTES;
        let parts = [part(page - 1, page + 1), part(3 * page + 1, 3 * page + 2)];
        assert_eq!(capture.changes(2).unwrap(), parts);
        assert!(capture.changes(1).is_none());
        assert_eq!(capture.take_changes(2).unwrap(), parts);
        assert_eq!(capture.changes(2).unwrap(), []);
        // A long part is cut.
        capture.note(0, &bytes, 0..3 * PAGE_BYTES);
        assert_eq!(capture.changes(2).unwrap().len(), 3);
        // What the numbers of the arrays mean is not certain any more.
        capture.keep_last(0, Box::<[u8]>::default());
        assert!(capture.take_changes(2).is_none());
    }

    /// A filter of a few pages in each of its layers.
    fn large() -> LayeredFilter {
        let mut filter = LayeredFilter::builder()
            .layout(Layout::Classic)
            .capacity(400_000)
            .error_rate(0.01)
            .build()
            .unwrap();
        filter.extend((0..500_000u32).map(u32::to_le_bytes));
        filter
    }

    /// Two readers of a filter that grows by single items, batches and overwritten bytes.
    #[test]
    fn a_filter_is_read_as_it_was() {
        let mut filter = large();
        let mut readers = Vec::new();
        for round in 0..400_u32 {
            if round % 3 == 0 {
                filter.extend((0..500).map(|item| u64::from(item * 1000 + round)));
            } else if round % 3 == 1 {
                filter.insert(&round);
            } else {
                let at = u64::from(round) * 1000;
                filter.load_chunk(at, &[0xa5; 3000]).unwrap();
            }
            if round == 1 || round == 9 {
                let captured = LayeredFilter::from_parts(&filter.parts(), u64::MAX).unwrap();
                filter.begin_capture(round.into(), 0..filter.stream_len());
                readers.push((u64::from(round), filter.clone(), captured, 0));
            }
            for (id, _, captured, at) in &mut readers {
                let mut piece = Vec::new();
                if filter.capture_next(*id, &mut piece) {
                    captured.load_chunk(*at, &piece).unwrap();
                    *at += piece.len() as u64;
                }
            }
        }
        assert!(filter.layers().len() > 1);
        for (id, then, captured, _) in readers {
            assert!(captured == then, "reader {id}");
        }
    }

    #[test]
    fn the_memory_of_a_filter_has_what_is_kept_and_its_clone_has_no_readers() {
        let mut filter = large();
        let (before, bytes) = (filter.memory_usage(), filter.stream_len());
        filter.begin_capture(1, 0..bytes);
        assert!(!filter.clone().capture().is_active());
        assert!(filter.clone() == filter);
        filter.load_chunk(0, &[1; 3 * PAGE]).unwrap();
        assert!(filter.memory_usage() >= before + 3 * PAGE);
        filter.capture_mut().end(1);
        assert_eq!(filter.memory_usage(), before);
    }

    #[test]
    fn a_dropped_table_is_kept_for_those_who_need_it() {
        let builder = CuckooFilter::builder().slots(1 << 18).expansion(1);
        let mut filter = builder.build().unwrap();
        (0..600_000_u32).for_each(|item| filter.insert(&item).unwrap());
        assert!(filter.tables() > 1);
        let then = filter.clone();
        filter.begin_capture(1, 0..filter.slots());
        let before = filter.memory_usage();
        for item in 0..600_000_u32 {
            filter.remove(&item);
        }
        assert_eq!(filter.tables(), 1);
        assert!(
            filter.memory_usage() > before - 100_000,
            "the tables are kept"
        );
        let mut captured = CuckooFilter::from_parts(&then.parts(), u64::MAX).unwrap();
        let (mut at, mut piece) = (0, Vec::new());
        while filter.capture_next(1, &mut piece) {
            captured.load_chunk(at, &piece).unwrap();
            at += piece.len() as u64;
            piece.clear();
        }
        assert!(captured == then);
        filter.capture_mut().end(1);
        assert_eq!(filter.capture().memory_usage(), 0);
    }

    /// A loaded filter may have had 65 535 tables, which one compaction has dropped. A look at all
    /// of them for each piece would take minutes.
    #[test]
    fn reading_dropped_arrays_takes_time_linear_in_their_number() {
        const ARRAYS: usize = 1000;
        let mut capture = Capture::default();
        let lengths = || std::iter::repeat_n(2, ARRAYS);
        capture.begin(1, lengths(), 0..2 * ARRAYS as u64);
        capture.begin(2, lengths(), 0..2 * ARRAYS as u64);
        for array in (0..ARRAYS).rev() {
            capture.keep_last(array, vec![7_u8, 7].into_boxed_slice());
        }
        let (kept, mut out) = (capture.memory_usage(), Vec::new());
        assert!(kept >= 2 * ARRAYS);
        LOOKED.set(0);
        for id in [1, 2] {
            while capture.next(id, |_| Cow::default(), &mut out) {}
        }
        assert_eq!(out, [7].repeat(4 * ARRAYS));
        assert!(
            capture.memory_usage() <= kept - 2 * ARRAYS,
            "none is needed"
        );
        assert!(LOOKED.get() <= 2 * ARRAYS, "{} looked at", LOOKED.get());
    }
}
