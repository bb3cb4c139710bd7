//! Adding items: what ADD, ADDNX, INSERT and INSERTNX share.

use smallvec::SmallVec;

use super::{build, builder};
use crate::context::{CuckooDefaults, LazyContext};
use crate::error::CommandError;
use crate::format::header;
use crate::insertion::{Insertion, Replayed};
use crate::limits;
use crate::slot::Slot;
use everbloom::host::Prepared;
use everbloom::{CuckooFilter, InsertError};

/// Which items are added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Which {
    /// All items, once more each.
    All,
    /// Items that are not found.
    Absent,
}

/// How a log replays an insertion.
static REPLAYED: Replayed = Replayed {
    create: b"CF.LOADCHUNK",
    add: b"CF.INSERT",
    before_items: &[b"ITEMS"],
    repeats: true,
};

/// The same for a filter that the reader may have refused, because its version does not know such
/// filters: a replica, or an older program on this log. It must not make another one for the items.
static REPLAYED_IF_THERE: Replayed = Replayed {
    before_items: &[b"NOCREATE", b"ITEMS"],
    repeats: false,
    ..REPLAYED
};

/// How a log replays an insertion into this filter.
pub(super) fn replayed(filter: &CuckooFilter) -> &'static Replayed {
    match filter.key().is_some() {
        true => &REPLAYED_IF_THERE,
        false => &REPLAYED,
    }
}

/// The filter in the slot. If it is created, with `missing`, `insertion` gets its header.
///
/// A filter that has as many tables as it may have is refused. RedisBloom asks this once for a
/// request, also when there are free slots. So a request of many items may pass it.
pub(super) fn begin<'s>(
    context: &LazyContext<'_>,
    missing: &CuckooDefaults,
    slot: &'s mut Slot<'_, CuckooFilter>,
    insertion: &mut Insertion<'_>,
) -> Result<&'s mut CuckooFilter, CommandError> {
    let tables = slot.filter()?.map_or(1, |filter| filter.tables());
    if u32::try_from(tables).is_ok_and(|tables| tables >= context.cuckoo.max_expansions) {
        return Err(CommandError::MaxExpansions);
    }
    let (filter, is_new) = slot.filter_or_new(|| build(builder(missing), context))?;
    if is_new {
        insertion.create(header::cuckoo::encode(&filter.parts()));
    }
    Ok(filter)
}

/// Adds `items` to a filter that [`begin`] gave; `insertion` gets those that were added, and `emit`
/// the answer for each. After a growth, `goes_on` says whether the rest is tried. Returns how many
/// were answered.
pub(super) fn insert_items<'a>(
    context: &LazyContext<'_>,
    filter: &mut CuckooFilter,
    insertion: &mut Insertion<'a>,
    mut items: impl Iterator<Item = &'a [u8]>,
    (which, goes_on): (Which, bool),
    mut emit: impl FnMut(Result<bool, CommandError>),
) -> usize {
    // A filter that was made just now has used free memory, too.
    let had = match insertion.is_creation() {
        true => 0,
        false => filter.table_bytes(),
    };
    let mut tables = filter.tables();
    let mut limit = allowed(context, filter, had);
    let mut answered = 0;
    loop {
        let group = items.by_ref().take(limits::GROUP.get());
        let group: SmallVec<[(&[u8], Prepared); limits::MAX_GROUP]> =
            group.map(|item| (item, filter.prepare(item))).collect();
        if group.is_empty() {
            return answered;
        }
        for (item, prepared) in group {
            let result = match which {
                Which::All => filter.try_insert_prepared(prepared, limit).map(|()| true),
                Which::Absent => filter.try_insert_prepared_if_absent(prepared, limit),
            };
            if result == Ok(true) {
                insertion.push(item);
            }
            answered += 1;
            emit(result.map_err(|error| refusal(filter, error)));
            if filter.tables() > tables {
                if !goes_on {
                    return answered;
                }
                tables = filter.tables();
                limit = allowed(context, filter, had);
            }
        }
    }
}

/// The bytes that a new table of the filter may take, when it had so many before the request.
fn allowed(context: &LazyContext<'_>, filter: &CuckooFilter, had: u64) -> u64 {
    // With more tables, no client could restore a dump of it.
    if filter.tables() >= context.most_tables() {
        return 0;
    }
    let has = filter.table_bytes();
    let allowed = context.max_filter_bytes.saturating_sub(has);
    let used = has.saturating_sub(had);
    allowed.min(context.free_bytes.saturating_sub(used))
}

fn refusal(filter: &CuckooFilter, error: InsertError) -> CommandError {
    match error {
        InsertError::Full => CommandError::CuckooFull,
        InsertError::Copies => CommandError::CuckooCopies,
        InsertError::CannotGrow
            if filter.key().is_some() && filter.expected_until_growth().is_none() =>
        {
            CommandError::CuckooWidths
        }
        InsertError::CannotGrow | InsertError::OutOfMemory { .. } => CommandError::CuckooCannotGrow,
    }
}
