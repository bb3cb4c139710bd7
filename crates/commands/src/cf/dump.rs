//! CF.SCANDUMP and CF.LOADCHUNK: a filter read and written in pieces.
//!
//! Position 0 asks for the header. From 1 on, position `p` stands for byte `p - 1` of the slots of
//! all tables, laid end to end. A piece ends with its table at the latest. CF.LOADCHUNK takes a
//! piece with the position that CF.SCANDUMP gave with it. That position stands for the byte behind
//! the piece.

use crate::args::Args;
use crate::bf::dump::MAX_CHUNK;
use crate::context::Context;
use crate::error::CommandError;
use crate::format::header::cuckoo as header;
use crate::number;
use crate::run::{Answers, Changes, Run};
use crate::slot::{ReadSlot, Slot};
use everbloom::{CuckooError, CuckooFilter};
use everbloom_resp::Reply;

pub(crate) const SCANDUMP: &str = "cf.scandump";
pub(crate) const LOADCHUNK: &str = "cf.loadchunk";

/// The position that CF.SCANDUMP gives with a header.
const HEADER: i64 = 1;

/// One piece of the dump of a filter, and the position that belongs to it; `None` behind the last
/// one. A host that rewrites its log starts with position 0 and writes
/// `CF.LOADCHUNK key position piece` for each piece.
pub fn piece(filter: &CuckooFilter, position: u64) -> Option<(i64, Vec<u8>)> {
    let Some(offset) = position.checked_sub(1) else {
        return Some((HEADER, header::encode(&filter.parts())));
    };
    let data = filter.stream_chunk(offset, MAX_CHUNK)?;
    let next = position.checked_add(data.len() as u64)?;
    Some((i64::try_from(next).ok()?, data.into_owned()))
}

/// `CF.SCANDUMP key position`
pub fn scandump(
    _: &Context,
    run: &mut Run<'_>,
    slot: ReadSlot<'_, CuckooFilter>,
    answers: &mut dyn Answers,
) {
    let request = run.next_args(SCANDUMP).exactly();
    answers.answer(request.and_then(|[_, position]| {
        // The position is checked before the key.
        let position = number::integer(position).and_then(|number| u64::try_from(number).ok());
        let position = position.ok_or(CommandError::InvalidPosition)?;
        let filter = slot.required()?;
        // RedisBloom gives nothing of a filter without items, not even its header.
        let found = (!filter.is_empty()).then(|| piece(filter, position));
        Ok(Reply::Array(match found.flatten() {
            Some((next, data)) => vec![Reply::Integer(next), Reply::Bulk(data)],
            None => vec![Reply::Integer(0), Reply::Null],
        }))
    }));
}

#[derive(Debug)]
struct LoadChunk<'a> {
    position: i64,
    data: &'a [u8],
}

impl<'a> LoadChunk<'a> {
    fn parse(args: Args<'a>) -> Result<Self, CommandError> {
        let [_, position, data] = args.exactly()?;
        let position = number::integer(position).filter(|position| *position != 0);
        let position = position.ok_or(CommandError::InvalidPosition)?;
        Ok(Self { position, data })
    }

    fn execute(
        &self,
        context: &Context,
        slot: &mut Slot<'_, CuckooFilter>,
    ) -> Result<(), CommandError> {
        if self.position == HEADER {
            self.load_header(context, slot)?;
        } else {
            let filter = slot.filter()?.ok_or(CommandError::NotFound)?;
            self.load_data(filter).ok_or(CommandError::CuckooChunk)?;
        }
        Ok(())
    }

    fn load_header(
        &self,
        context: &Context,
        slot: &mut Slot<'_, CuckooFilter>,
    ) -> Result<(), CommandError> {
        let vacant = slot.vacant()?;
        if self.data.len() != header::BYTES {
            return Err(CommandError::InvalidHeader);
        }
        let parts = header::decode(self.data).ok_or(CommandError::CuckooHeader)?;
        let filter = CuckooFilter::from_parts(&parts, context.max_new_filter_bytes());
        *vacant = Some(filter.map_err(|error| match error {
            CuckooError::OutOfMemory => CommandError::InsufficientMemory,
            _ => CommandError::CuckooHeader,
        })?);
        Ok(())
    }

    fn load_data(&self, filter: &mut CuckooFilter) -> Option<()> {
        let end = u64::try_from(self.position).ok()?.checked_sub(1)?;
        let offset = end.checked_sub(self.data.len() as u64)?;
        if self.data.is_empty() {
            return None;
        }
        filter.load_chunk(offset, self.data).ok()
    }
}

/// `CF.LOADCHUNK key position data`
pub fn loadchunk(
    context: &Context,
    run: &mut Run<'_>,
    slot: &mut Slot<'_, CuckooFilter>,
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
