//! CF.SCANDUMP and CF.LOADCHUNK: a filter read and written in pieces.
//!
//! Position 0 asks for the header. From 1 on, position `p` stands for byte `p - 1` of the slots of
//! all tables, laid end to end. A piece ends with its table at the latest. CF.LOADCHUNK takes a
//! piece with the position that CF.SCANDUMP gave with it. That position stands for the byte behind
//! the piece.

use crate::args::Args;
use crate::context::LazyContext;
use crate::error::CommandError;
use crate::filter::{Filter, Parts};
use crate::format::header::cuckoo as header;
use crate::number;
use crate::piece::Piece;
use crate::run::{Answers, Changes, Run};
use crate::slot::{ReadSlot, Slot};
use everbloom::CuckooFilter;
use everbloom::redisbloom::CuckooError;
use everbloom_resp::Reply;

pub(crate) const SCANDUMP: &str = "cf.scandump";
pub(crate) const LOADCHUNK: &str = "cf.loadchunk";

/// The position that CF.SCANDUMP gives with a header.
const HEADER: i64 = 1;

/// One piece of the dump of a filter, and the position that belongs to it; `None` behind the last
/// one. A host that rewrites its log starts with position 0 and writes
/// `CF.LOADCHUNK key position piece` for each piece.
pub fn piece(filter: &CuckooFilter, position: u64) -> Option<(i64, Vec<u8>)> {
    let piece = piece_at(filter, i64::try_from(position).ok()?)?;
    piece.into_data(|offset, max| filter.stream_chunk(offset, max))
}

/// The piece that a position stands for; `None` behind the last.
fn piece_at(filter: &CuckooFilter, position: i64) -> Option<Piece> {
    let Some(offset) = u64::try_from(position).ok()?.checked_sub(1) else {
        return Some(Piece::header(HEADER, header::encode(&filter.parts())));
    };
    let chunk = |offset, max| filter.stream_chunk(offset, max);
    Piece::of_arrays(position, offset, chunk)
}

/// `CF.SCANDUMP key position`
pub fn scandump(request: &[&[u8]], slot: ReadSlot<'_, Filter>) -> Result<Piece, CommandError> {
    let [_, position] = Args::new(SCANDUMP, request).exactly()?;
    // The position is checked before the key.
    let position = number::integer(position).filter(|number| *number >= 0);
    let position = position.ok_or(CommandError::InvalidPosition)?;
    let filter = slot.of_family::<CuckooFilter>().required()?;
    // RedisBloom gives nothing of a filter without items, not even its header. Clients then read the
    // parameters from CF.INFO, which does not have all of those of a filter with an error rate.
    let is_shown = !filter.is_empty() || filter.key().is_some();
    let found = is_shown.then(|| piece_at(filter, position));
    Ok(found.flatten().unwrap_or_else(|| Piece::end(Reply::Null)))
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
        context: &LazyContext<'_>,
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
        context: &LazyContext<'_>,
        slot: &mut Slot<'_, CuckooFilter>,
    ) -> Result<(), CommandError> {
        let vacant = slot.vacant()?;
        if ![header::BYTES, header::KEYED_BYTES].contains(&self.data.len()) {
            return Err(CommandError::InvalidHeader);
        }
        let parts = header::decode(self.data).ok_or(CommandError::CuckooHeader)?;
        let kind = Parts::Cuckoo(parts).kind();
        if context.classic_only && kind.redisbloom_lacks() {
            return Err(CommandError::redisbloom_lacks(kind));
        }
        context.check_loaded(kind, parts.tables.into())?;
        let filter = CuckooFilter::from_parts(&parts, context.max_new_filter_bytes());
        *vacant = Some(filter.map_err(|error| match error {
            CuckooError::OutOfMemory => CommandError::InsufficientMemory,
            CuckooError::TooLarge { .. } => CommandError::CuckooTooLarge,
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
    context: &LazyContext<'_>,
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
