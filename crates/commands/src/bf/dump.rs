//! BF.SCANDUMP and BF.LOADCHUNK: a filter read and written in pieces.
//!
//! Iterator 0 asks for the header. From 1 on, iterator `i` stands for byte `i - 1` of the bit
//! arrays of all layers, laid end to end. Layers that a window has dropped are counted, so an
//! iterator stands for the same byte after a generation has ended. A piece ends with its layer at
//! the latest. BF.LOADCHUNK takes a piece with the iterator that BF.SCANDUMP gave with it. That
//! iterator stands for the byte behind the piece.

use crate::args::Args;
use crate::context::LazyContext;
use crate::error::CommandError;
use crate::filter::{Filter, FilterKind};
use crate::format::header;
use crate::number;
use crate::piece::Piece;
use crate::run::{Answers, Changes, Run};
use crate::slot::{ReadSlot, Slot};
use everbloom::host::LayeredFilter;
use everbloom::redisbloom::{ChunkError, FilterParts, PartsError};
use everbloom_resp::Reply;

pub(crate) const SCANDUMP: &str = "bf.scandump";
pub(crate) const LOADCHUNK: &str = "bf.loadchunk";

/// One piece of the dump of a filter, and the iterator that BF.LOADCHUNK takes with it; `None`
/// behind the last. The same iterator is the one of the next piece. A host that rewrites its log
/// starts with iterator 0 and writes `BF.LOADCHUNK key iterator piece` for each piece.
pub fn piece(filter: &LayeredFilter, iterator: i64) -> Option<(i64, Vec<u8>)> {
    let piece = piece_at(filter, iterator).ok()??;
    piece.into_data(|offset, max| filter.stream_chunk(offset, max))
}

/// The piece that an iterator stands for; `None` behind the last.
fn piece_at(filter: &LayeredFilter, iterator: i64) -> Result<Option<Piece>, CommandError> {
    let start = filter.stream_start();
    let Ok(number) = u64::try_from(iterator) else {
        return Ok(None);
    };
    // Iterators from 1 on are 1 more than the number of a byte.
    let Some(number) = number.checked_sub(1) else {
        let next = i64::try_from(start).ok().and_then(|it| it.checked_add(1));
        return Ok(next.map(|next| Piece::header(next, header::encode(filter))));
    };
    let offset = number
        .checked_sub(start)
        .ok_or(CommandError::DumpOutdated)?;
    let chunk = |offset, max| filter.stream_chunk(offset, max);
    let piece = Piece::of_arrays(iterator, offset, chunk);
    // Once the count of dropped bytes has begun at 0 again, earlier iterators lie beyond the end.
    if piece.is_none() && filter.window().is_some() && offset > filter.stream_len() {
        return Err(CommandError::DumpOutdated);
    }
    Ok(piece)
}

/// `BF.SCANDUMP key iterator`
pub fn scandump(request: &[&[u8]], slot: ReadSlot<'_, Filter>) -> Result<Piece, CommandError> {
    let [_, iterator] = Args::new(SCANDUMP, request).exactly()?;
    // The key is checked before the iterator, as in RedisBloom.
    let filter = slot.of_family::<LayeredFilter>().required()?;
    let iterator = number::integer(iterator).ok_or(CommandError::ScanIterator)?;
    let piece = piece_at(filter, iterator)?;
    Ok(piece.unwrap_or_else(|| Piece::end(Reply::Bulk(Vec::new()))))
}

#[derive(Debug)]
struct LoadChunk<'a> {
    iterator: i64,
    data: &'a [u8],
}

impl<'a> LoadChunk<'a> {
    fn parse(args: Args<'a>) -> Result<Self, CommandError> {
        let [_, iterator, data] = args.exactly()?;
        let iterator = number::integer(iterator).ok_or(CommandError::LoadIterator)?;
        Ok(Self { iterator, data })
    }

    fn load_header(&self, context: &LazyContext<'_>) -> Result<LayeredFilter, CommandError> {
        let parts = header::decode(self.data);
        let start = parts.as_ref().map_or(0, FilterParts::stream_start);
        if u64::try_from(self.iterator).ok() != start.checked_add(1) {
            return Err(CommandError::NotFound);
        }
        let parts = parts.ok_or(CommandError::BadData)?;
        // Filters in the blocked layout have a key. RedisBloom has neither them nor valkey-bloom's.
        if context.classic_only && (parts.key.is_some() || parts.valkey.is_some()) {
            return Err(CommandError::ClassicOnly);
        }
        let kind = FilterKind::Bloom(parts.layout());
        context.check_loaded(kind, parts.layers.len())?;
        LayeredFilter::from_parts(&parts, context.max_new_filter_bytes()).map_err(|error| {
            match error {
                PartsError::OutOfMemory => CommandError::InsufficientMemory,
                PartsError::TooLarge { .. } => CommandError::TooLarge,
                _ => CommandError::BadData,
            }
        })
    }

    fn load_data(&self, filter: &mut LayeredFilter) -> Result<(), CommandError> {
        let end = u64::try_from(self.iterator).map_err(|_| CommandError::BadData)?;
        let len = u64::try_from(self.data.len()).map_err(|_| CommandError::BadData)?;
        if end == 0 || end < len {
            return Err(CommandError::BadData);
        }
        // Iterators start at 1, so a piece as long as its iterator would start before byte 0.
        let offset = (end - len)
            .checked_sub(1)
            .and_then(|number| number.checked_sub(filter.stream_start()))
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
    context: &LazyContext<'_>,
    run: &mut Run<'_>,
    slot: &mut Slot<'_>,
    answers: &mut dyn Answers,
    changes: &mut dyn Changes,
) {
    let request = run.first();
    let load = LoadChunk::parse(run.next_args(LOADCHUNK));
    answers.answer(load.and_then(|load| {
        changes.touch();
        let (filter, is_new) = slot.filter_or_new(|| load.load_header(context))?;
        if !is_new {
            load.load_data(filter)?;
        }
        changes.repeat(request);
        Ok(Reply::OK)
    }));
}
