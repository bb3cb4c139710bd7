//! BF.CLEAR, BF.MERGE and BF.SHRINK: commands that make a filter anew. RedisBloom has none of them.

use std::collections::HashSet;

use super::reserve::capacity_of;
use crate::args::Args;
use crate::context::LazyContext;
use crate::error::CommandError;
use crate::format::g;
use crate::limits::MAX_LOADED_LAYERS;
use crate::slot::ReadSlot;
use everbloom::host::LayeredFilter;
use everbloom::{ShrinkError, UnionError};
use everbloom_resp::Reply;

pub(crate) const CLEAR: &str = "bf.clear";
pub(crate) const MERGE: &str = "bf.merge";
pub(crate) const SHRINK: &str = "bf.shrink";

/// The filter that the first key holds from now on, and the reply; or the reply that refuses.
pub type Replaced = Result<(LayeredFilter, Reply), Reply>;

/// `BF.CLEAR key`
pub fn clear(context: &LazyContext<'_>, _: &[&[u8]], slots: &[ReadSlot<'_>]) -> Replaced {
    allowed(context, CLEAR)?;
    let empty = first(slots)?.empty_like().map_err(CommandError::from)?;
    Ok((empty, Reply::OK))
}

/// `BF.MERGE destination source [source ...]`
///
/// A destination that does not exist is made like the first source. A source that is named several
/// times, and the destination among the sources, is merged once.
pub fn merge(context: &LazyContext<'_>, _: &[&[u8]], slots: &[ReadSlot<'_>]) -> Replaced {
    allowed(context, MERGE)?;
    let (destination, sources) = slots.split_first().ok_or(CommandError::NotFound)?;
    for slot in sources {
        slot.required()?;
    }
    let first = match destination {
        ReadSlot::Missing => sources.first().copied().unwrap_or(ReadSlot::Missing),
        slot => *slot,
    };
    let first = first.required()?;
    let filters = each_once(first, sources)?;
    let bytes = filters.iter().map(|filter| filter.stream_len());
    let bytes = bytes.fold(0_u64, u64::saturating_add);
    if bytes > context.max_new_filter_bytes() {
        return Err(CommandError::InsufficientMemory.into());
    }
    if let Some(now) = context.clock() {
        check_clock(filters.iter().copied(), now)?;
    }
    let mut merged = first.empty_like().map_err(CommandError::from)?;
    for source in filters {
        merged.union(source).map_err(differs)?;
        if merged.layers().len() > MAX_LOADED_LAYERS && context.clock().is_some() {
            return Err(CommandError::TooManyMergedLayers.into());
        }
    }
    let (expected, asked) = (merged.rate_to_come(), first.error_rate());
    // What a log says was merged once.
    if expected > asked && context.clock().is_some() {
        return Err(Reply::error(format!(
            "ERR the error rate would be {}, more than {}: merge into a filter that was made for \
             the higher rate",
            g::format(expected),
            g::format(asked)
        )));
    }
    Ok((merged, Reply::OK))
}

/// This filter and those of the slots, each once. One key has one filter, so filters at the same
/// address are one.
fn each_once<'f>(
    first: &'f LayeredFilter,
    slots: &[ReadSlot<'f>],
) -> Result<Vec<&'f LayeredFilter>, CommandError> {
    let (mut known, mut once) = (HashSet::new(), Vec::new());
    let most = slots.len().saturating_add(1);
    let reserved = known.try_reserve(most).is_ok() && once.try_reserve_exact(most).is_ok();
    if !reserved {
        return Err(CommandError::OutOfMemory);
    }
    let named = [first]
        .into_iter()
        .chain(slots.iter().filter_map(|slot| slot.lenient()));
    once.extend(named.filter(|filter| known.insert(std::ptr::from_ref(*filter))));
    Ok(once)
}

/// Refuses windows that a merge cannot unite yet.
///
/// A log repeats the command without a clock, so no window may begin again here. For the same
/// reason, a merge ages every window to the newest generation of all, which may begin up to a
/// generation later than now. A window that drops layers by that before its clock would drop them
/// may lose items that were added within the window. Those must be found.
fn check_clock<'f>(
    mut filters: impl Iterator<Item = &'f LayeredFilter> + Clone,
    now: u64,
) -> Result<(), Reply> {
    let windows = filters.clone().filter_map(|filter| filter.window());
    if windows.clone().any(|window| window.is_ahead_of(now)) {
        return Err(CommandError::WindowAhead.into());
    }
    let newest = windows.filter_map(|window| window.kept.last());
    let newest = newest.map(|generation| generation.began).max().unwrap_or(0);
    let kept = |filter: &LayeredFilter, at| filter.layers_at(at).len();
    if filters.any(|filter| kept(filter, newest) < kept(filter, now)) {
        let seconds = newest.saturating_sub(now).div_ceil(1000);
        return Err(Reply::error(format!(
            "ERR a window lies ahead of the clock: merge again in {seconds} seconds"
        )));
    }
    Ok(())
}

/// `BF.SHRINK key capacity`
pub fn shrink(context: &LazyContext<'_>, request: &[&[u8]], slots: &[ReadSlot<'_>]) -> Replaced {
    allowed(context, SHRINK)?;
    let [_, capacity] = Args::new(SHRINK, request).exactly()?;
    let capacity = capacity_of(capacity)?;
    let shrunk = first(slots)?.shrunk_to(capacity);
    let (filter, expected) = shrunk.map_err(|error| match error {
        ShrinkError::Build(error) => CommandError::from(error).into(),
        error => Reply::error(format!("ERR {error}")),
    })?;
    Ok((filter, Reply::Double(expected)))
}

/// Refuses a command that RedisBloom cannot follow.
fn allowed(context: &LazyContext<'_>, command: &'static str) -> Result<(), CommandError> {
    match context.classic_only {
        true => Err(CommandError::OursOnly(command)),
        false => Ok(()),
    }
}

/// The filter of the first key.
fn first<'f>(slots: &[ReadSlot<'f>]) -> Result<&'f LayeredFilter, CommandError> {
    slots
        .first()
        .copied()
        .unwrap_or(ReadSlot::Missing)
        .required()
}

/// The reply when two filters cannot be united.
fn differs(error: UnionError) -> Reply {
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
