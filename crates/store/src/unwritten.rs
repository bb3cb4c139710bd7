//! The data that waits to be written to the log, with marks where its files begin and end.

use std::collections::VecDeque;

use crate::limits::RECORD_BYTES;

/// Encoded commands that wait to be written.
#[derive(Debug, Default)]
pub struct Unwritten {
    bytes: Vec<u8>,
    /// How many bytes at the front are written.
    done: usize,
    /// Files that begin or end, in order.
    marks: VecDeque<(usize, Mark)>,
    /// The journal's position at the end of `bytes`.
    end: u64,
    /// Whether no more data follows.
    last: bool,
}

/// What happens to the log's file at an offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    /// The log continues in a new file.
    NewFile,
    /// The log ends here: the data before it is no longer needed.
    LogEnds,
    /// A change is missing here, because there was no memory to record it. Only a rewrite from
    /// memory makes the log complete.
    Lost,
}

impl Unwritten {
    /// An empty queue, from this position of the journal on, in an empty buffer.
    pub(crate) fn after(end: u64, buffer: Vec<u8>) -> Self {
        Unwritten {
            bytes: buffer,
            end,
            ..Unwritten::default()
        }
    }

    /// Appends the selection of a database, which may be empty, and commands. Without memory for
    /// them they are lost. Long commands are not copied if they are the first.
    pub(crate) fn push(&mut self, selection: &[u8], commands: Vec<u8>) {
        let len = selection.len() + commands.len();
        if self.bytes.is_empty() && selection.is_empty() && commands.len() >= RECORD_BYTES.get() {
            self.bytes = commands;
        } else if self.reserve(len) {
            self.bytes.extend_from_slice(selection);
            self.bytes.extend_from_slice(&commands);
        } else {
            return self.lose();
        }
        self.end += u64::try_from(len).unwrap_or(0);
    }

    /// Marks the current end as a place where a change is missing, and gives it a position that its
    /// reply can wait for.
    pub(crate) fn lose(&mut self) {
        self.mark(Mark::Lost);
        self.end += 1;
    }

    /// Whether there is memory for so many bytes more.
    pub(crate) fn reserve(&mut self, len: usize) -> bool {
        self.bytes.try_reserve(len).is_ok()
    }

    /// Marks the current end.
    pub(crate) fn mark(&mut self, mark: Mark) {
        self.marks.push_back((self.bytes.len(), mark));
    }

    /// Marks that no more data follows.
    pub(crate) fn set_last(&mut self) {
        self.last = true;
    }

    /// Total bytes.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether there are no bytes and no marks.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty() && self.marks.is_empty()
    }

    /// Whether a file begins or ends in it.
    pub fn has_marks(&self) -> bool {
        !self.marks.is_empty()
    }

    /// Whether the next mark switches the log to a new file.
    pub fn has_new_file(&self) -> bool {
        matches!(self.marks.front(), Some((_, Mark::NewFile)))
    }

    /// The journal's position at the end.
    pub fn end(&self) -> u64 {
        self.end
    }

    /// Whether no more data follows.
    pub fn is_last(&self) -> bool {
        self.last
    }

    /// Appends later data, for which memory is reserved.
    pub(crate) fn append(&mut self, later: Unwritten) {
        let before = self.bytes.len();
        self.bytes.extend_from_slice(&later.bytes);
        let marks = later.marks.into_iter();
        self.marks
            .extend(marks.map(|(at, mark)| (before + at, mark)));
        self.end = later.end;
        self.last |= later.last;
    }

    /// The bytes before the next mark.
    pub fn next_bytes(&self) -> &[u8] {
        let until = self.next_offset();
        self.bytes.get(self.done..until).unwrap_or_default()
    }

    /// Marks [`Unwritten::next_bytes`] as written.
    pub fn skip_bytes(&mut self) {
        self.done = self.next_offset();
    }

    fn next_offset(&self) -> usize {
        self.marks.front().map_or(self.bytes.len(), |mark| mark.0)
    }

    /// The mark after [`Unwritten::next_bytes`], and how many of the same are at its offset.
    pub fn next_mark(&self) -> Option<(Mark, u64)> {
        let first = self.marks.front()?;
        let same = self.marks.iter().take_while(|mark| *mark == first).count();
        Some((first.1, u64::try_from(same).unwrap_or(0)))
    }

    /// Removes the mark that [`Unwritten::next_mark`] returns.
    pub fn skip_mark(&mut self) {
        if let Some(first) = self.marks.pop_front() {
            while self.marks.front() == Some(&first) {
                self.marks.pop_front();
            }
        }
    }

    /// Drops the data before the last end of the log, if it ends. Returns how many files should
    /// have begun there.
    pub fn drop_ended_log(&mut self) -> Option<u64> {
        let ends = |mark: &(usize, Mark)| mark.1 == Mark::LogEnds;
        let last = self.marks.iter().rposition(ends)?;
        let mut files = 0;
        for (at, mark) in self.marks.drain(..=last) {
            self.done = at;
            files += u64::from(mark == Mark::NewFile);
        }
        Some(files)
    }

    /// The buffer, once everything is written.
    pub fn into_buffer(self) -> Vec<u8> {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(bytes: &[u8], marks: &[Mark]) -> Unwritten {
        let mut piece = Unwritten::default();
        piece.push(b"", bytes.to_vec());
        marks.iter().for_each(|mark| piece.mark(*mark));
        piece
    }

    #[test]
    fn bytes_and_marks_come_in_order() {
        let mut unwritten = piece(b"ab", &[Mark::NewFile, Mark::NewFile]);
        unwritten.append(piece(b"cd", &[Mark::LogEnds]));
        assert_eq!(unwritten.next_bytes(), b"ab");
        unwritten.skip_bytes();
        assert_eq!(unwritten.next_bytes(), b"");
        // Two new files at one offset are one.
        assert_eq!(unwritten.next_mark(), Some((Mark::NewFile, 2)));
        unwritten.skip_mark();
        assert_eq!(unwritten.next_bytes(), b"cd");
        unwritten.skip_bytes();
        assert_eq!(unwritten.next_mark(), Some((Mark::LogEnds, 1)));
        unwritten.skip_mark();
        assert_eq!(unwritten.next_mark(), None);
    }

    #[test]
    fn what_is_before_the_end_of_the_log_is_dropped() {
        let mut unwritten = piece(b"ab", &[Mark::NewFile]);
        unwritten.append(piece(b"cd", &[Mark::LogEnds, Mark::NewFile]));
        unwritten.append(piece(b"ef", &[]));
        assert_eq!(unwritten.drop_ended_log(), Some(1));
        assert_eq!(unwritten.drop_ended_log(), None);
        assert_eq!(unwritten.next_bytes(), b"");
        assert_eq!(unwritten.next_mark(), Some((Mark::NewFile, 1)));
        unwritten.skip_mark();
        assert_eq!(unwritten.next_bytes(), b"ef");
    }
}
