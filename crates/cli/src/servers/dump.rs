//! One filter of a server, read in pieces.
//!
//! The pieces are those of SCANDUMP for every filter, not the payload of DUMP. A payload is as long
//! as the filter. It also carries the version of its host's RDB files, which other hosts refuse:
//! Redis 7.4 and later write version 12, which Valkey does not read.

use everbloom::redisbloom::FilterParts;
use everbloom_commands::bf::dump::MAX_CHUNK;
use everbloom_commands::format::header;
use everbloom_resp::Reply;

use super::server::{Server, Trouble};

/// All of a filter but its bits.
#[derive(Clone, Debug)]
pub(crate) struct Header {
    /// As SCANDUMP gave it.
    pub(crate) bytes: Vec<u8>,
    pub(crate) parts: FilterParts,
    /// The bytes of all bit arrays.
    pub(crate) length: u64,
}

impl Header {
    fn decode(bytes: Vec<u8>) -> Option<Self> {
        let parts = header::decode(&bytes)?;
        let sizes = parts.layers.iter().map(|layer| layer.bytes);
        let length = sizes.into_iter().try_fold(0, u64::checked_add)?;
        // Iterators are signed, and the last one is one behind the last byte.
        (length < i64::MAX.unsigned_abs()).then_some(Self {
            bytes,
            parts,
            length,
        })
    }
}

/// Prepares the request for the header of a filter.
pub(crate) fn ask_for_header(server: &mut Server, key: &[u8]) {
    server.prepare(&[b"BF.SCANDUMP", key, b"0"]);
}

/// The answer to `ask_for_header`.
pub(crate) fn take_header(server: &mut Server) -> Result<Header, Trouble> {
    let (_, bytes) = take(server)?;
    Header::decode(bytes)
        .ok_or_else(|| Trouble::filter(format!("{} sent no valid header", server.name())))
}

fn take(server: &mut Server) -> Result<(i64, Vec<u8>), Trouble> {
    let reply = server.demand("BF.SCANDUMP")?.into_elements();
    match reply.map(<[Reply; 2]>::try_from) {
        Some(Ok([Reply::Integer(next), Reply::Bulk(bytes)])) => Ok((next, bytes)),
        _ => Err(server.odd("BF.SCANDUMP")),
    }
}

/// Reads the bits of a filter. It asks for a piece before the last one is used, so that the server
/// works while we do.
#[derive(Debug)]
pub(crate) struct Reader {
    key: Vec<u8>,
    /// Where the next piece begins.
    at: u64,
    length: u64,
}

impl Reader {
    pub(crate) fn new(server: &mut Server, key: &[u8], length: u64) -> Result<Self, Trouble> {
        let reader = Self {
            key: key.to_vec(),
            at: 0,
            length,
        };
        reader.ask(server)?;
        Ok(reader)
    }

    fn ask(&self, server: &mut Server) -> Result<(), Trouble> {
        if self.at < self.length {
            let iterator = (self.at + 1).to_string();
            server.prepare(&[b"BF.SCANDUMP", self.key.as_slice(), iterator.as_bytes()]);
            server.flush()?;
        }
        Ok(())
    }

    /// The next piece; `None` at the end.
    pub(crate) fn next(&mut self, server: &mut Server) -> Result<Option<Vec<u8>>, Trouble> {
        if self.at >= self.length {
            return Ok(None);
        }
        let (next, piece) = take(server)?;
        let long = u64::try_from(piece.len()).unwrap_or(u64::MAX);
        let end = self.at.saturating_add(long);
        if piece.is_empty() {
            // It was deleted, or replaced by a smaller one.
            return Err(Trouble::filter("it changed while it was read"));
        }
        let announced = u64::try_from(next).ok();
        if piece.len() > MAX_CHUNK || end > self.length || announced != end.checked_add(1) {
            return Err(server.odd("BF.SCANDUMP"));
        }
        self.at = end;
        self.ask(server)?;
        Ok(Some(piece))
    }
}

/// Milliseconds that a key has to live.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Life {
    /// There is no such key.
    Over,
    Endless,
    Left(u64),
}

/// Prepares the request for the time that a key has to live.
pub(crate) fn ask_for_life(server: &mut Server, key: &[u8]) {
    server.prepare(&[b"PTTL", key]);
}

/// The answer to `ask_for_life`.
pub(crate) fn take_life(server: &mut Server) -> Result<Life, Trouble> {
    match server.demand("PTTL")?.as_integer() {
        Some(-1) => Ok(Life::Endless),
        Some(-2) => Ok(Life::Over),
        Some(left) => u64::try_from(left)
            .map(Life::Left)
            .map_err(|_| server.odd("PTTL")),
        None => Err(server.odd("PTTL")),
    }
}
