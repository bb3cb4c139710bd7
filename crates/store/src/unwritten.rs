//! The data that waits to be written to the log, with marks where its files begin and end.

use std::collections::VecDeque;
use std::mem;

use crate::limits::RECORD_BYTES;

/// What waits to be written, in pieces. A long record is a piece of its own, which nobody copies.
#[derive(Debug, Default)]
pub struct Unwritten {
    pieces: VecDeque<Piece>,
    /// The bytes of all pieces.
    len: usize,
    /// A buffer for the next piece, or one that was written.
    spare: Vec<u8>,
    /// The journal's position at the end.
    end: u64,
    /// Whether no more data follows.
    last: bool,
}

/// A part of what waits.
#[derive(Debug, PartialEq, Eq)]
enum Piece {
    /// Encoded commands, to which more are appended.
    Commands(Vec<u8>),
    /// A long record. It would be copied to grow.
    Record(Vec<u8>),
    /// Something that happens to the log's file.
    Mark(Mark),
}

/// What is to be done next.
#[derive(Debug, PartialEq, Eq)]
pub enum Next<'a> {
    /// These bytes are to be written.
    Bytes(&'a [u8]),
    /// This happens to the log's file, so many times.
    Mark(Mark, u64),
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

impl Piece {
    fn bytes(&self) -> &[u8] {
        match self {
            Piece::Commands(bytes) | Piece::Record(bytes) => bytes,
            Piece::Mark(_) => &[],
        }
    }
}

impl Unwritten {
    /// An empty queue, from this position of the journal on, in an empty buffer.
    pub(crate) fn after(end: u64, buffer: Vec<u8>) -> Self {
        Unwritten {
            spare: buffer,
            end,
            ..Unwritten::default()
        }
    }

    /// Appends the selection of a database, which may be empty, and commands. Without memory for
    /// them they are lost. Long commands are not copied.
    pub(crate) fn push(&mut self, selection: &[u8], commands: Vec<u8>) {
        let len = selection.len() + commands.len();
        let is_pushed = match commands.len() < RECORD_BYTES.get() {
            true => self.extend(&[selection, &commands]),
            false => self.extend(&[selection]) && self.push_piece(Piece::Record(commands)),
        };
        if !is_pushed {
            return self.lose();
        }
        self.end += u64::try_from(len).unwrap_or(0);
    }

    /// Appends short parts to the last piece, or to a new one. Whether there is memory for them.
    fn extend(&mut self, parts: &[&[u8]]) -> bool {
        let len = parts.iter().map(|part| part.len()).sum();
        let last = match self.pieces.back_mut() {
            Some(Piece::Commands(bytes)) => Some(bytes),
            _ => None,
        };
        let is_new = last.is_none();
        let bytes = last.unwrap_or(&mut self.spare);
        if bytes.try_reserve(len).is_err() {
            return false;
        }
        parts.iter().for_each(|part| bytes.extend_from_slice(part));
        if is_new && len > 0 {
            let bytes = mem::take(&mut self.spare);
            return self.push_piece(Piece::Commands(bytes));
        }
        self.len += len;
        true
    }

    /// Appends a piece. Whether there is memory for it.
    fn push_piece(&mut self, piece: Piece) -> bool {
        let has_room = self.pieces.try_reserve(1).is_ok();
        if has_room {
            self.len += piece.bytes().len();
            self.pieces.push_back(piece);
        }
        has_room
    }

    /// Marks the current end as a place where a change is missing, and gives it a position that its
    /// reply can wait for.
    pub(crate) fn lose(&mut self) {
        self.mark(Mark::Lost);
        self.end += 1;
    }

    /// Marks the current end.
    pub(crate) fn mark(&mut self, mark: Mark) {
        self.pieces.push_back(Piece::Mark(mark));
    }

    /// Marks that no more data follows.
    pub(crate) fn set_last(&mut self) {
        self.last = true;
    }

    /// Total bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no bytes and no marks.
    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// The marks that are left.
    fn marks(&self) -> impl Iterator<Item = Mark> {
        self.pieces.iter().filter_map(|piece| match piece {
            Piece::Mark(mark) => Some(*mark),
            Piece::Commands(_) | Piece::Record(_) => None,
        })
    }

    /// Whether a file begins or ends in it.
    pub fn has_marks(&self) -> bool {
        self.marks().next().is_some()
    }

    /// Whether the next mark switches the log to a new file, and there are bytes before it.
    pub fn has_bytes_before_new_file(&self) -> bool {
        let has_bytes = matches!(self.next(), Some(Next::Bytes(_)));
        has_bytes && self.marks().next() == Some(Mark::NewFile)
    }

    /// The journal's position at the end.
    pub fn end(&self) -> u64 {
        self.end
    }

    /// Whether no more data follows.
    pub fn is_last(&self) -> bool {
        self.last
    }

    /// Whether there is memory to [append](Self::append) later data.
    pub(crate) fn has_room_for(&mut self, later: &Unwritten) -> bool {
        self.pieces.try_reserve(later.pieces.len()).is_ok()
    }

    /// Appends later data.
    pub(crate) fn append(&mut self, later: Unwritten) {
        self.pieces.extend(later.pieces);
        self.len += later.len;
        self.end = later.end;
        self.last |= later.last;
    }

    /// What is to be done next.
    pub fn next(&self) -> Option<Next<'_>> {
        Some(match self.pieces.front()? {
            Piece::Commands(bytes) | Piece::Record(bytes) => Next::Bytes(bytes),
            Piece::Mark(mark) => {
                let same = |piece: &&Piece| **piece == Piece::Mark(*mark);
                let same = self.pieces.iter().take_while(same).count();
                Next::Mark(*mark, u64::try_from(same).unwrap_or(0))
            }
        })
    }

    /// That is done.
    pub fn skip(&mut self) {
        match self.pieces.pop_front() {
            Some(Piece::Commands(mut bytes) | Piece::Record(mut bytes)) => {
                self.len = self.len.saturating_sub(bytes.len());
                bytes.clear();
                self.spare = bytes;
            }
            Some(mark) => {
                while self.pieces.front() == Some(&mark) {
                    self.pieces.pop_front();
                }
            }
            None => {}
        }
    }

    /// Drops the data before the last end of the log, if it ends. Returns how many files should
    /// have begun there.
    pub fn drop_ended_log(&mut self) -> Option<u64> {
        let ends = |piece: &Piece| *piece == Piece::Mark(Mark::LogEnds);
        let last = self.pieces.iter().rposition(ends)?;
        let mut files = 0;
        for piece in self.pieces.drain(..=last) {
            self.len = self.len.saturating_sub(piece.bytes().len());
            files += u64::from(piece == Piece::Mark(Mark::NewFile));
        }
        Some(files)
    }

    /// All its commands, encoded.
    pub fn to_bytes(&self) -> Vec<u8> {
        let pieces = self.pieces.iter().map(Piece::bytes);
        pieces.collect::<Vec<_>>().concat()
    }

    /// A buffer that was written, once everything is.
    pub fn into_buffer(self) -> Vec<u8> {
        self.spare
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

    /// All that is to be done.
    fn rest(mut unwritten: Unwritten) -> Vec<String> {
        let mut all = Vec::new();
        while let Some(next) = unwritten.next() {
            all.push(match next {
                Next::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
                Next::Mark(mark, times) => format!("{mark:?} {times}"),
            });
            unwritten.skip();
        }
        assert_eq!((unwritten.len(), unwritten.is_empty()), (0, true));
        all
    }

    #[test]
    fn bytes_and_marks_come_in_order() {
        let mut unwritten = piece(b"ab", &[Mark::NewFile, Mark::NewFile]);
        unwritten.append(piece(b"cd", &[Mark::LogEnds]));
        assert_eq!(unwritten.len(), 4);
        // Two new files at one place are one.
        assert_eq!(rest(unwritten), ["ab", "NewFile 2", "cd", "LogEnds 1"]);
    }

    #[test]
    fn what_is_before_the_end_of_the_log_is_dropped() {
        let mut unwritten = piece(b"ab", &[Mark::NewFile]);
        unwritten.append(piece(b"cd", &[Mark::LogEnds, Mark::NewFile]));
        unwritten.append(piece(b"ef", &[]));
        assert_eq!(unwritten.drop_ended_log(), Some(1));
        assert_eq!(unwritten.drop_ended_log(), None);
        assert_eq!(rest(unwritten), ["NewFile 1", "ef"]);
    }

    #[test]
    fn a_long_record_is_not_copied() {
        let long = vec![b'x'; RECORD_BYTES.get()];
        let place = long.as_ptr();
        let mut unwritten = piece(b"before ", &[]);
        unwritten.push(b"select ", long);
        unwritten.push(b"", b"be".to_vec());
        unwritten.push(b"", b"hind".to_vec());
        assert_eq!(unwritten.next(), Some(Next::Bytes(b"before select ")));
        unwritten.skip();
        let Some(Next::Bytes(bytes)) = unwritten.next() else {
            panic!("bytes");
        };
        assert_eq!((bytes.as_ptr(), bytes.len()), (place, RECORD_BYTES.get()));
        unwritten.skip();
        assert_eq!(rest(unwritten), ["behind"]);
    }
}
