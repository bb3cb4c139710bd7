//! What commands share that make the filter of a key anew. RedisBloom has none of them.

use std::collections::HashSet;

use crate::context::LazyContext;
use crate::error::CommandError;
use crate::filter::{Family, Filter};
use crate::slot::ReadSlot;
use everbloom::UnionError;
use everbloom_resp::Reply;

/// The filter that the first key holds from now on, and the reply; or the reply that refuses.
pub type Replaced = Result<(Filter, Reply), Reply>;

/// Refuses a command that RedisBloom cannot follow.
pub(crate) fn allowed(
    context: &LazyContext<'_>,
    command: &'static str,
) -> Result<(), CommandError> {
    match context.classic_only {
        true => Err(CommandError::OursOnly(command)),
        false => Ok(()),
    }
}

/// The filter of the first key.
pub(crate) fn first<'f, F: Family>(slots: &[ReadSlot<'f, Filter>]) -> Result<&'f F, CommandError> {
    let slot = slots.first().copied().unwrap_or(ReadSlot::Missing);
    slot.of_family().required()
}

/// The filter that the result of a merge is made like: the destination, which is the first slot, or
/// the first source when there is no destination. All sources must be filters of the family.
pub(crate) fn made_like<'f, F: Family>(
    slots: &[ReadSlot<'f, Filter>],
) -> Result<&'f F, CommandError> {
    let sources = slots.get(1..).unwrap_or_default();
    for slot in sources {
        slot.of_family::<F>().required()?;
    }
    match slots.first() {
        None | Some(ReadSlot::Missing) => first(sources),
        Some(_) => first(slots),
    }
}

/// This filter and those of the slots, each once. One key has one filter, so filters at the same
/// address are one.
pub(crate) fn each_once<'f, F: Family>(
    first: &'f F,
    slots: &[ReadSlot<'f, Filter>],
) -> Result<Vec<&'f F>, CommandError> {
    let (mut known, mut once) = (HashSet::new(), Vec::new());
    let most = slots.len().saturating_add(1);
    let reserved = known.try_reserve(most).is_ok() && once.try_reserve_exact(most).is_ok();
    if !reserved {
        return Err(CommandError::OutOfMemory);
    }
    let filters = slots.iter().filter_map(|slot| slot.of_family().lenient());
    let named = [first].into_iter().chain(filters);
    once.extend(named.filter(|filter| known.insert(std::ptr::from_ref(*filter))));
    Ok(once)
}

/// The reply when two filters cannot be united.
pub(crate) fn differs(error: UnionError) -> Reply {
    match error {
        UnionError::OutOfMemory => CommandError::InsufficientMemory.into(),
        UnionError::Layout => Reply::error(
            "ERR the filters have different layouts: create them with the same LAYOUT, and blocked \
             ones also with the same SEED",
        ),
        UnionError::Key => {
            Reply::error("ERR the filters have different keys: create them with the same SEED")
        }
        error => Reply::error(format!("ERR {error}")),
    }
}
