//! CF.DEL and CF.COMPACT.
//!
//! RedisBloom declares CF.COMPACT readonly, although it changes the filter and is sent on. Here it
//! is a write.

use smallvec::SmallVec;

use crate::context::LazyContext;
use crate::error::CommandError;
use crate::limits;
use crate::run::{Answers, Changes, Run};
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

/// `CF.DEL key item`
pub fn del(
    _: &LazyContext<'_>,
    run: &mut Run<'_>,
    slot: &mut Slot<'_, CuckooFilter>,
    answers: &mut dyn Answers,
    changes: &mut dyn Changes,
) {
    let removed = remove(run, slot, answers, changes);
    removed.unwrap_or_else(|error| run.refuse(error, answers));
}

fn remove(
    run: &mut Run<'_>,
    slot: &mut Slot<'_, CuckooFilter>,
    answers: &mut dyn Answers,
    changes: &mut dyn Changes,
) -> Result<(), CommandError> {
    let requests = run.requests::<3>(DEL)?;
    changes.touch();
    let filter = filter(slot, CommandError::CuckooNotFound)?;
    for group in requests.chunks(limits::GROUP.get()) {
        let ahead = group.iter().map(|[_, _, item]| filter.prepare(*item));
        let prepared: SmallVec<[Prepared; limits::MAX_GROUP]> = ahead.collect();
        for (request, prepared) in group.iter().zip(prepared) {
            let found = filter.remove_prepared(prepared);
            if found {
                changes.repeat(request);
            }
            answers.boolean(found);
        }
    }
    run.take(requests.len());
    Ok(())
}

/// `CF.COMPACT key`
pub fn compact(
    _: &LazyContext<'_>,
    run: &mut Run<'_>,
    slot: &mut Slot<'_, CuckooFilter>,
    answers: &mut dyn Answers,
    changes: &mut dyn Changes,
) {
    let request = run.first();
    let args = run.next_args(COMPACT).exactly();
    answers.answer(args.and_then(|[_]| {
        changes.touch();
        let filter = filter(slot, CommandError::CompactNotFound)?;
        // Only a filter of several tables has items to move.
        if filter.tables() > 1 || filter.removed() > 0 {
            changes.repeat(request);
        }
        filter.compact();
        Ok(Reply::OK)
    }));
}
