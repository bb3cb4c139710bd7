//! Adding items: the one path that ADD, ADDNX, INSERT, INSERTNX and batches of them share.

use std::ops::ControlFlow;

use smallvec::SmallVec;

use super::Parameters;
use crate::context::Context;
use crate::error::CommandError;
use crate::format::header;
use crate::outcome::Effect;
use crate::slot::Slot;
use everbloom::host::Prepared;
use everbloom::{CuckooFilter, InsertError};

/// Which items are added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Which {
    /// All, once more each.
    All,
    /// Those that do not seem to be there.
    Absent,
}

/// What an insertion changed, as far as the log needs it. The items borrow from its arguments.
#[derive(Debug, Default)]
pub struct Insertion<'a> {
    /// The header of the empty filter, if the insertion created the filter.
    pub created: Option<Vec<u8>>,
    /// The items that were added, in order.
    pub added: SmallVec<[&'a [u8]; 8]>,
}

impl Insertion<'_> {
    /// What a log must replay.
    pub fn effect(self, key: &[u8]) -> Effect {
        Effect::of_cuckoo(key, self.created, &self.added)
    }
}

/// The bytes that new tables of the filter may take, when it has used `used` of the free ones.
pub(super) fn allowed(context: &Context, filter: &CuckooFilter, used: u64) -> u64 {
    let allowed = context
        .max_filter_bytes
        .saturating_sub(filter.table_bytes());
    allowed.min(context.free_bytes.saturating_sub(used))
}

/// Refuses to add to a filter that has as many tables as it may have. RedisBloom asks this once for
/// a command, also when there are free slots.
pub(super) fn check_tables(context: &Context, tables: usize) -> Result<(), CommandError> {
    match u32::try_from(tables) {
        Ok(tables) if tables < context.cuckoo.max_expansions => Ok(()),
        _ => Err(CommandError::MaxExpansions),
    }
}

/// Adds `items` to the filter in `slot`. Makes the filter with `missing` if there is none. `emit`
/// gets the answer for each item. An error means that no item was tried, and nothing was made.
pub(super) fn insert_items<'a>(
    context: &Context,
    missing: &Parameters,
    items: &[&'a [u8]],
    which: Which,
    slot: &mut Slot<'_, CuckooFilter>,
    mut emit: impl FnMut(Result<bool, CommandError>),
) -> Result<Insertion<'a>, CommandError> {
    check_tables(context, slot.filter()?.map_or(1, |filter| filter.tables()))?;
    let (filter, created) = filter_or_new(context, missing, slot)?;
    // A filter that was made just now has used free memory, too.
    let used = created.as_ref().map_or(0, |_| filter.table_bytes());
    let limit = allowed(context, filter, used);
    let (mut tried, mut added) = (items.iter(), SmallVec::with_capacity(items.len()));
    let absent = which == Which::Absent;
    filter.insert_each(items.iter().copied(), absent, limit, |result| {
        let item = tried.next();
        if result == Ok(true) {
            added.extend(item.copied());
        }
        emit(result.map_err(refusal));
        ControlFlow::Continue(())
    });
    Ok(Insertion { created, added })
}

/// How many items of a batch are hashed, and their memory asked for, before the first is tried.
pub(super) const GROUP: usize = 32;

/// Adds every item by a command of its own, so that the tables are counted before each.
pub(super) fn insert_one_by_one<'a>(
    context: &Context,
    items: &[&'a [u8]],
    slot: &mut Slot<'_, CuckooFilter>,
    mut emit: impl FnMut(Result<bool, CommandError>),
) -> Result<Insertion<'a>, CommandError> {
    check_tables(context, slot.filter()?.map_or(1, |filter| filter.tables()))?;
    let (filter, created) = filter_or_new(context, &context.cuckoo.into(), slot)?;
    let had = created.as_ref().map_or(filter.table_bytes(), |_| 0);
    let mut added = SmallVec::with_capacity(items.len());
    let (mut tables, mut limit) = (0, 0);
    for group in items.chunks(GROUP) {
        let ahead = group.iter().map(|item| filter.prepare(*item));
        let prepared: SmallVec<[Prepared; GROUP]> = ahead.collect();
        for (item, prepared) in group.iter().zip(prepared) {
            if filter.tables() != tables {
                tables = filter.tables();
                limit = allowed(context, filter, filter.table_bytes().saturating_sub(had));
            }
            let result = check_tables(context, tables);
            let insert = |()| filter.try_insert_prepared(prepared, limit).map_err(refusal);
            let result = result.and_then(insert);
            if result.is_ok() {
                added.push(*item);
            }
            emit(result.map(|()| true));
        }
    }
    Ok(Insertion { created, added })
}

pub(super) fn refusal(error: InsertError) -> CommandError {
    match error {
        InsertError::Full => CommandError::CuckooFull,
        InsertError::CannotGrow => CommandError::CuckooCannotGrow,
    }
}

/// The filter in the slot. If it had to be made, also its header.
fn filter_or_new<'s>(
    context: &Context,
    missing: &Parameters,
    slot: &'s mut Slot<'_, CuckooFilter>,
) -> Result<(&'s mut CuckooFilter, Option<Vec<u8>>), CommandError> {
    match slot {
        Slot::OtherType => Err(CommandError::WrongType),
        Slot::Filter(filter) => Ok((filter, None)),
        Slot::Vacant(value) => match value {
            Some(filter) => Ok((filter, None)),
            None => {
                let filter = value.insert(missing.build(context)?);
                let header = header::cuckoo::encode(&filter.parts());
                Ok((filter, Some(header)))
            }
        },
    }
}
