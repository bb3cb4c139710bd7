//! CF.DEL and CF.COMPACT, and a batch of pipelined CF.DELs.
//!
//! RedisBloom declares CF.COMPACT readonly, although it changes the filter and is sent on. Here it
//! is a write.

use smallvec::SmallVec;

use super::insertion::GROUP;
use crate::args::Args;
use crate::context::Context;
use crate::error::CommandError;
use crate::outcome::{Effect, Outcome};
use crate::slot::Slot;
use everbloom::CuckooFilter;
use everbloom::host::Prepared;
use everbloom_resp::Reply;

pub(crate) const DEL: &str = "cf.del";
pub(crate) const COMPACT: &str = "cf.compact";

/// The filter, or the error when the key holds none, of whatever type it is.
fn filter<'s>(
    slot: &'s mut Slot<'_, CuckooFilter>,
    missing: CommandError,
) -> Result<&'s mut CuckooFilter, CommandError> {
    slot.filter().ok().flatten().ok_or(missing)
}

fn item(mut args: Args<'_>) -> Result<&[u8], CommandError> {
    args.next_bytes()?;
    let item = args.next_bytes()?;
    args.finish()?;
    Ok(item)
}

/// `CF.DEL key item`
pub fn del(_: &Context, args: &[&[u8]], slot: &mut Slot<'_, CuckooFilter>) -> Outcome {
    match item(Args::new(DEL, args)) {
        Ok(item) => Outcome::answered(filter(slot, CommandError::CuckooNotFound).map(|filter| {
            let found = filter.remove(item);
            (Reply::Boolean(found), effect(found))
        })),
        Err(error) => Outcome::bad_arguments(error),
    }
}

/// Executes `CF.DEL key item` for every item as one batch. `emit` gets one answer for each item, in
/// order, and `removed` each item that was removed, which a log must replay.
pub fn del_batch<'a>(
    items: &[&'a [u8]],
    slot: &mut Slot<'_, CuckooFilter>,
    mut emit: impl FnMut(Result<bool, CommandError>),
    mut removed: impl FnMut(&'a [u8]),
) {
    match filter(slot, CommandError::CuckooNotFound) {
        Ok(filter) => {
            for group in items.chunks(GROUP) {
                let ahead = group.iter().map(|item| filter.prepare(*item));
                let prepared: SmallVec<[Prepared; GROUP]> = ahead.collect();
                for (item, prepared) in group.iter().zip(prepared) {
                    let found = filter.remove_prepared(prepared);
                    if found {
                        removed(item);
                    }
                    emit(Ok(found));
                }
            }
        }
        Err(error) => items.iter().for_each(|_| emit(Err(error))),
    }
}

/// `CF.COMPACT key`
pub fn compact(_: &Context, args: &[&[u8]], slot: &mut Slot<'_, CuckooFilter>) -> Outcome {
    let mut args = Args::new(COMPACT, args);
    match args.next_bytes().and_then(|_| args.finish()) {
        Ok(()) => Outcome::answered(filter(slot, CommandError::CompactNotFound).map(|filter| {
            // Only a filter of several tables has items to move.
            let changes = filter.tables() > 1 || filter.removed() > 0;
            filter.compact();
            (Reply::OK, effect(changes))
        })),
        Err(error) => Outcome::bad_arguments(error),
    }
}

fn effect(changed: bool) -> Effect {
    match changed {
        true => Effect::Verbatim,
        false => Effect::None,
    }
}
