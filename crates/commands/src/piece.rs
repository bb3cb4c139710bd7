//! A piece of the dump of a filter: what SCANDUMP answers with, and LOADCHUNK takes.
//!
//! The command says which bytes these are, and the host reads them: all at once, or some at a time
//! while other clients are served. So both ways give the same bytes.

use std::borrow::Cow;
use std::ops::Range;

use everbloom_resp::Reply;

use crate::filter::Filter;
use crate::limits;

/// The longest piece, in bytes.
pub const MAX_CHUNK: usize = limits::MAX_CHUNK;

/// A piece of a dump.
#[derive(Clone, Debug, PartialEq)]
pub struct Piece {
    /// The iterator that LOADCHUNK takes with the piece, and SCANDUMP for the next one.
    pub next: i64,
    /// What it consists of.
    pub content: Content,
}

/// What a piece consists of.
#[derive(Clone, Debug, PartialEq)]
pub enum Content {
    /// The header, or the answer behind the last piece.
    Made(Reply),
    /// These bytes of the arrays of the filter laid end to end. They lie in one array.
    Bytes(Range<u64>),
}

impl Piece {
    /// The header of a filter; its arrays begin at this iterator.
    pub(crate) fn header(next: i64, header: Vec<u8>) -> Piece {
        Piece {
            next,
            content: Content::Made(Reply::Bulk(header)),
        }
    }

    /// The piece of these arrays that begins at `offset`; `None` behind the end. `iterator` stands
    /// for its first byte.
    pub(crate) fn of_arrays<'f>(
        iterator: i64,
        offset: u64,
        chunk: impl FnOnce(u64, usize) -> Option<Cow<'f, [u8]>>,
    ) -> Option<Piece> {
        let len = chunk(offset, limits::CHUNK_BYTES.get())?.len();
        Some(Piece {
            next: iterator.checked_add(i64::try_from(len).ok()?)?,
            content: Content::Bytes(offset..offset.checked_add(len as u64)?),
        })
    }

    /// What stands behind the last piece.
    pub(crate) fn end(answer: Reply) -> Piece {
        Piece {
            next: 0,
            content: Content::Made(answer),
        }
    }

    /// The iterator and the bytes of a piece, read from the arrays now.
    pub(crate) fn into_data<'f>(
        self,
        chunk: impl FnOnce(u64, usize) -> Option<Cow<'f, [u8]>>,
    ) -> Option<(i64, Vec<u8>)> {
        let data = match self.content {
            Content::Made(Reply::Bulk(header)) => header,
            Content::Made(_) => return None,
            Content::Bytes(part) => read(part, chunk),
        };
        Some((self.next, data))
    }

    /// The reply, with all bytes read from the filter now.
    pub fn into_reply(self, filter: Option<&Filter>) -> Reply {
        let content = match self.content {
            Content::Made(reply) => reply,
            Content::Bytes(part) => Reply::Bulk(read(part, |offset, max| {
                filter.and_then(|filter| filter.stream_chunk(offset, max))
            })),
        };
        Reply::Array(vec![Reply::Integer(self.next), content])
    }
}

/// These bytes of arrays, which lie in one of them.
fn read<'f>(part: Range<u64>, chunk: impl FnOnce(u64, usize) -> Option<Cow<'f, [u8]>>) -> Vec<u8> {
    let len = usize::try_from(part.end - part.start).unwrap_or(usize::MAX);
    chunk(part.start, len).unwrap_or_default().into_owned()
}
