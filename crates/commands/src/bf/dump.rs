//! BF.SCANDUMP and BF.LOADCHUNK: a filter read and written in pieces.
//!
//! Iterator 0 asks for the header. From 1 on, iterator `i` stands for byte `i - 1` of the bit
//! arrays of all layers, laid end to end. A piece ends with its layer at the latest. BF.LOADCHUNK
//! takes a piece with the iterator that BF.SCANDUMP gave with it. That iterator stands for the byte
//! behind the piece.

use crate::args::Args;
use crate::context::Context;
use crate::error::CommandError;
use crate::format::header;
use crate::number;
use crate::run::{Answers, Changes, Run};
use crate::slot::{ReadSlot, Slot};
use everbloom::ScalableBloomFilter;
use everbloom::redisbloom::{ChunkError, PartsError};
use everbloom_resp::Reply;

pub(crate) const SCANDUMP: &str = "bf.scandump";
pub(crate) const LOADCHUNK: &str = "bf.loadchunk";

/// The longest piece that BF.SCANDUMP gives, in bytes.
pub const MAX_CHUNK: usize = 16 << 20;

/// The iterator that BF.SCANDUMP gives with a header.
const HEADER: i64 = 1;

struct ScanDump<'a> {
    iterator: &'a [u8],
}

impl<'a> ScanDump<'a> {
    fn parse(mut args: Args<'a>) -> Result<Self, CommandError> {
        args.next_bytes()?;
        let scan = Self {
            iterator: args.next_bytes()?,
        };
        args.finish()?;
        Ok(scan)
    }

    /// The key is checked before the iterator, as in RedisBloom.
    fn execute(&self, slot: ReadSlot<'_>) -> Result<Reply, CommandError> {
        let filter = slot.required()?;
        let iterator = number::integer(self.iterator).ok_or(CommandError::ScanIterator)?;
        let (next, data) = piece(filter, iterator);
        Ok(Reply::Array(vec![Reply::Integer(next), Reply::Bulk(data)]))
    }
}

/// One piece of the dump of a filter, and the iterator that belongs to it. Behind the last piece it
/// is `(0, empty)`. A host that rewrites its log starts with iterator 0 and writes
/// `BF.LOADCHUNK key iterator piece` for each piece.
pub fn piece(filter: &ScalableBloomFilter, iterator: i64) -> (i64, Vec<u8>) {
    if iterator == 0 {
        return (HEADER, header::encode(filter));
    }
    let found = u64::try_from(iterator)
        .ok()
        .and_then(|iterator| filter.stream_chunk(iterator - 1, MAX_CHUNK))
        .filter(|data| !data.is_empty());
    match found {
        // The stream is in memory, so its length fits an i64 by far.
        Some(data) => match i64::try_from(data.len()) {
            Ok(len) => (iterator.saturating_add(len), data.to_vec()),
            Err(_) => (0, Vec::new()),
        },
        None => (0, Vec::new()),
    }
}

/// `BF.SCANDUMP key iterator`
pub fn scandump(_: &Context, run: &mut Run<'_>, slot: ReadSlot<'_>, answers: &mut dyn Answers) {
    let scan = ScanDump::parse(run.next_args(SCANDUMP));
    answers.answer(scan.and_then(|scan| scan.execute(slot)));
}

#[derive(Debug)]
struct LoadChunk<'a> {
    iterator: i64,
    data: &'a [u8],
}

impl<'a> LoadChunk<'a> {
    fn parse(mut args: Args<'a>) -> Result<Self, CommandError> {
        args.next_bytes()?;
        let (iterator, data) = (args.next_bytes()?, args.next_bytes()?);
        args.finish()?;
        let iterator = number::integer(iterator).ok_or(CommandError::LoadIterator)?;
        Ok(Self { iterator, data })
    }

    fn execute(&self, context: &Context, slot: &mut Slot<'_>) -> Result<(), CommandError> {
        match slot {
            Slot::OtherType => return Err(CommandError::WrongType),
            Slot::Held(filter) => self.load_data(filter)?,
            Slot::Vacant(Some(filter)) => self.load_data(filter)?,
            Slot::Vacant(value) => **value = Some(self.load_header(context)?),
        }
        Ok(())
    }

    fn load_header(&self, context: &Context) -> Result<ScalableBloomFilter, CommandError> {
        if self.iterator != HEADER {
            return Err(CommandError::NotFound);
        }
        let parts = header::decode(self.data).ok_or(CommandError::BadData)?;
        // Only the blocked layout has a key.
        if context.classic_only && parts.key.is_some() {
            return Err(CommandError::ClassicOnly);
        }
        ScalableBloomFilter::from_parts(&parts, context.max_new_filter_bytes()).map_err(|error| {
            match error {
                PartsError::OutOfMemory => CommandError::InsufficientMemory,
                _ => CommandError::BadData,
            }
        })
    }

    fn load_data(&self, filter: &mut ScalableBloomFilter) -> Result<(), CommandError> {
        let end = u64::try_from(self.iterator).map_err(|_| CommandError::BadData)?;
        let len = u64::try_from(self.data.len()).map_err(|_| CommandError::BadData)?;
        if end == 0 || end < len {
            return Err(CommandError::BadData);
        }
        // Iterators start at 1, so a piece as long as its iterator would start before byte 0.
        let offset = (end - len)
            .checked_sub(1)
            .ok_or(CommandError::ChunkOffset)?;
        filter
            .load_chunk(offset, self.data)
            .map_err(|error| match error {
                ChunkError::NoLayer => CommandError::ChunkOffset,
                ChunkError::TooLong => CommandError::ChunkTooBig,
            })
    }
}

/// `BF.LOADCHUNK key iterator data`
pub fn loadchunk(
    context: &Context,
    run: &mut Run<'_>,
    slot: &mut Slot<'_>,
    answers: &mut dyn Answers,
    changes: &mut dyn Changes,
) {
    let request = run.first();
    let load = LoadChunk::parse(run.next_args(LOADCHUNK));
    answers.answer(load.and_then(|load| {
        changes.touch();
        load.execute(context, slot)?;
        changes.repeat(request);
        Ok(Reply::OK)
    }));
}
