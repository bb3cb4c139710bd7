//! One filter of a server, read in pieces.
//!
//! The pieces are those of SCANDUMP, not the payload of DUMP. A payload is as long as the filter.
//! It also carries the version of its host's RDB files, which other hosts refuse: Redis 7.4 and
//! later write version 12, which Valkey does not read. Only valkey-bloom, which has no SCANDUMP, is
//! read by DUMP.

use std::ops::Range;
use std::rc::Rc;

use everbloom::host::LayeredFilter;
use everbloom::redisbloom::CuckooParts;
use everbloom_commands::bf::dump::piece as piece_of;
use everbloom_commands::format::header::{self, cuckoo};
use everbloom_commands::piece::MAX_CHUNK;
use everbloom_commands::{Filter, Parts};
use everbloom_files::Value;
use everbloom_files::rdb::restore;
use everbloom_resp::Reply;

use super::family::Family;
use super::server::Server;
use crate::failure::Failure;

/// The commands of servers whose filters can be read: RedisBloom's, and valkey-bloom's, whose
/// filters DUMP gives.
pub(crate) const READABLE: &[&str] = &["BF.SCANDUMP", "BF.LOAD"];

/// The command of servers to which filters can be written.
pub(crate) const WRITABLE: &[&str] = &["BF.LOADCHUNK"];

/// The most bytes of a payload of DUMP, and of the filter in it.
const MAX_PAYLOAD: usize = 1 << 30;

/// All of a filter but its bits or fingerprints.
#[derive(Clone, Debug)]
pub(crate) struct Header {
    /// What LOADCHUNK takes first.
    pub(crate) bytes: Vec<u8>,
    pub(crate) parts: Parts,
    /// The number of the first byte: that of a window which has dropped layers is not 0.
    pub(crate) start: u64,
    /// The bytes of all pieces.
    pub(crate) length: u64,
    /// The filter itself, from a server without SCANDUMP.
    whole: Option<Rc<LayeredFilter>>,
}

impl Header {
    /// From the bytes that BF.SCANDUMP gives first.
    pub(crate) fn of_bloom(bytes: Vec<u8>) -> Option<Self> {
        let parts = header::decode(&bytes)?;
        let sizes = parts.layers.iter().map(|layer| layer.bytes);
        let length = sizes.into_iter().try_fold(0, u64::checked_add)?;
        let start = parts.stream_start();
        Self::of(bytes, Parts::Bloom(parts), start, length)
    }

    fn of_cuckoo(parts: CuckooParts) -> Option<Self> {
        let sizes = (0..parts.tables).map(|number| Some(parts.table(number)?.1));
        let length = sizes
            .into_iter()
            .try_fold(0_u64, |sum, size| sum.checked_add(size?))?;
        // CF.SCANDUMP gives nothing of RedisBloom's filters without items. All their slots are empty.
        let is_empty = parts.items == 0 && parts.keyed.is_none();
        let length = if is_empty { 0 } else { length };
        Self::of(cuckoo::encode(&parts), Parts::Cuckoo(parts), 0, length)
    }

    fn of(bytes: Vec<u8>, parts: Parts, start: u64, length: u64) -> Option<Self> {
        // Iterators are signed, and the last one is one behind the last byte.
        let end = start.checked_add(length)?;
        (end < i64::MAX.unsigned_abs()).then_some(Self {
            bytes,
            parts,
            start,
            length,
            whole: None,
        })
    }

    /// From the payload that DUMP gives of a Bloom filter.
    fn of_payload(payload: &[u8]) -> Option<Self> {
        let restored = restore(payload, MAX_PAYLOAD as u64).ok()?;
        let Value::Filter(Filter::Bloom(filter)) = restored else {
            return None;
        };
        let (_, bytes) = piece_of(&filter, 0)?;
        let mut header = Self::of_bloom(bytes)?;
        header.whole = Some(Rc::new(filter));
        Some(header)
    }

    /// Whether the filter forgets.
    pub(crate) fn has_window(&self) -> bool {
        matches!(&self.parts, Parts::Bloom(parts) if parts.window.is_some())
    }

    /// The numbers of all bytes.
    pub(crate) fn all(&self) -> Range<u64> {
        self.start..self.end()
    }

    /// The number behind the last byte.
    pub(crate) fn end(&self) -> u64 {
        self.start.saturating_add(self.length)
    }

    fn family(&self) -> Family {
        match self.parts {
            Parts::Bloom(_) => Family::Bloom,
            Parts::Cuckoo(_) => Family::Cuckoo,
        }
    }

    /// Why only everbloom and its module know this filter, if that is so.
    pub(crate) fn why_ours(&self) -> Option<&'static str> {
        match &self.parts {
            Parts::Bloom(parts) if parts.key.is_some() => Some("it is in the blocked layout"),
            Parts::Bloom(parts) if parts.valkey.is_some() => Some("it came from valkey-bloom"),
            Parts::Cuckoo(parts) if parts.keyed.is_some() => Some("it has a chosen error rate"),
            _ => None,
        }
    }
}

/// Prepares the request for the header of a filter.
pub(crate) fn ask_for_header(server: &mut Server, key: &[u8], family: Family) {
    server.prepare(&[family.scandump().as_bytes(), key, b"0"]);
}

/// The answer to `ask_for_header`, which must be the only one to come.
pub(crate) fn take_header(
    server: &mut Server,
    key: &[u8],
    family: Family,
) -> Result<Header, Failure> {
    let header = match family {
        Family::Bloom => match server.reply()? {
            Reply::Error(text) if text.starts_with("ERR unknown command") => {
                server.prepare(&[b"DUMP", key]);
                server.flush()?;
                match server.demand_long("DUMP", MAX_PAYLOAD)? {
                    Reply::Bulk(payload) => Header::of_payload(&payload),
                    _ => return Err(Failure::filter("it is there no more")),
                }
            }
            reply => Header::of_bloom(taken(server, family, reply)?.1),
        },
        Family::Cuckoo => {
            let reply = server.reply()?;
            let (_, bytes) = taken(server, family, reply)?;
            // CF.SCANDUMP gives nothing of RedisBloom's filters without items. CF.INFO has the numbers
            // of their headers.
            let parts = match bytes.is_empty() {
                false => cuckoo::decode(&bytes),
                true => {
                    server.prepare(&[b"CF.INFO", key]);
                    server.flush()?;
                    cuckoo_parts(server.demand("CF.INFO")?)
                }
            };
            parts.and_then(Header::of_cuckoo)
        }
    };
    header.ok_or_else(|| Failure::filter(format!("{} sent no valid header", server.name())))
}

/// The header of a filter.
pub(crate) fn header_of(
    server: &mut Server,
    key: &[u8],
    family: Family,
) -> Result<Header, Failure> {
    ask_for_header(server, key, family);
    server.flush()?;
    take_header(server, key, family)
}

/// The numbers of a header, as CF.INFO gives them.
fn cuckoo_parts(info: Reply) -> Option<CuckooParts> {
    let info = info.into_elements()?;
    let (fields, _) = info.as_chunks::<2>();
    let field = |wanted: &str| {
        let named = |[name, _]: &&[Reply; 2]| name.as_bytes() == Some(wanted.as_bytes());
        let [_, value] = fields.iter().find(named)?;
        u64::try_from(value.as_integer()?).ok()
    };
    Some(CuckooParts {
        items: field("Number of items inserted")?,
        removed: field("Number of items deleted")?,
        buckets: field("Number of buckets")?,
        tables: field("Number of filters")?.try_into().ok()?,
        bucket_size: field("Bucket size")?.try_into().ok()?,
        max_kicks: field("Max iterations")?.try_into().ok()?,
        expansion: field("Expansion rate")?.try_into().ok()?,
        keyed: None,
    })
}

/// A piece, and the iterator that belongs to it. The piece behind the last one is empty.
fn taken(server: &mut Server, family: Family, reply: Reply) -> Result<(i64, Vec<u8>), Failure> {
    let command = family.scandump();
    let reply = server.accepted(reply, command)?.into_elements();
    match reply.map(<[Reply; 2]>::try_from) {
        Some(Ok([Reply::Integer(next), Reply::Bulk(bytes)])) => Ok((next, bytes)),
        Some(Ok([Reply::Integer(next), Reply::Null])) => Ok((next, Vec::new())),
        _ => Err(server.odd(command)),
    }
}

/// Reads the pieces of a filter. It asks for a piece before the last one is used, so that the
/// server works while we do.
#[derive(Debug)]
pub(crate) struct PieceReader {
    key: Vec<u8>,
    family: Family,
    /// Where the next piece begins.
    at: u64,
    end: u64,
    /// The filter, when it is here already.
    whole: Option<Rc<LayeredFilter>>,
}

impl PieceReader {
    /// Reads these bytes of the filter with this header.
    pub(crate) fn new(
        server: &mut Server,
        key: &[u8],
        header: &Header,
        bytes: Range<u64>,
    ) -> Result<Self, Failure> {
        let reader = Self {
            key: key.to_vec(),
            family: header.family(),
            at: bytes.start,
            end: bytes.end,
            whole: header.whole.clone(),
        };
        reader.ask(server)?;
        Ok(reader)
    }

    fn ask(&self, server: &mut Server) -> Result<(), Failure> {
        if self.at < self.end && self.whole.is_none() {
            let iterator = (self.at + 1).to_string();
            let command = self.family.scandump().as_bytes();
            server.prepare(&[command, self.key.as_slice(), iterator.as_bytes()]);
            server.flush()?;
        }
        Ok(())
    }

    /// The next piece; `None` at the end.
    pub(crate) fn next(&mut self, server: &mut Server) -> Result<Option<Vec<u8>>, Failure> {
        if self.at >= self.end {
            return Ok(None);
        }
        let (next, piece) = match &self.whole {
            Some(filter) => {
                let iterator = i64::try_from(self.at + 1).unwrap_or(i64::MAX);
                piece_of(filter, iterator).unwrap_or_default()
            }
            None => {
                let reply = server.reply()?;
                taken(server, self.family, reply)?
            }
        };
        let long = u64::try_from(piece.len()).unwrap_or(u64::MAX);
        let end = self.at.saturating_add(long);
        if piece.is_empty() {
            // It was deleted, emptied, or replaced by a smaller one.
            return Err(Failure::filter("it changed while it was read"));
        }
        let announced = u64::try_from(next).ok();
        if piece.len() > MAX_CHUNK || end > self.end || announced != end.checked_add(1) {
            return Err(server.odd(self.family.scandump()));
        }
        self.at = end;
        self.ask(server)?;
        Ok(Some(piece))
    }
}
