//! BF.CLEAR, BF.MERGE and BF.SHRINK: commands that make a Bloom filter anew. RedisBloom has none of them.

use super::reserve::capacity_of;
use crate::args::Args;
use crate::context::LazyContext;
use crate::error::CommandError;
use crate::filter::Filter;
use crate::format::g;
use crate::limits::MAX_LOADED_LAYERS;
use crate::replace::{Replaced, allowed, differs, each_once, first, made_like};
use crate::slot::ReadSlot;
use everbloom::ShrinkError;
use everbloom::host::LayeredFilter;
use everbloom_resp::Reply;

pub(crate) const CLEAR: &str = "bf.clear";
pub(crate) const MERGE: &str = "bf.merge";
pub(crate) const SHRINK: &str = "bf.shrink";

/// `BF.CLEAR key`
pub fn clear(context: &LazyContext<'_>, _: &[&[u8]], slots: &[ReadSlot<'_, Filter>]) -> Replaced {
    allowed(context, CLEAR)?;
    let filter: &LayeredFilter = first(slots)?;
    let empty = filter.empty_like().map_err(CommandError::from)?;
    Ok((empty.into(), Reply::OK))
}

/// `BF.MERGE destination source [source ...]`
///
/// A destination that does not exist is made like the first source. A source that is named several
/// times, and the destination among the sources, is merged once.
pub fn merge(context: &LazyContext<'_>, _: &[&[u8]], slots: &[ReadSlot<'_, Filter>]) -> Replaced {
    allowed(context, MERGE)?;
    let first: &LayeredFilter = made_like(slots)?;
    let filters = each_once(first, slots)?;
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
    Ok((merged.into(), Reply::OK))
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
pub fn shrink(
    context: &LazyContext<'_>,
    request: &[&[u8]],
    slots: &[ReadSlot<'_, Filter>],
) -> Replaced {
    allowed(context, SHRINK)?;
    let [_, capacity] = Args::new(SHRINK, request).exactly()?;
    let capacity = capacity_of(capacity)?;
    let filter: &LayeredFilter = first(slots)?;
    let shrunk = filter.shrunk_to(capacity);
    let (filter, expected) = shrunk.map_err(|error| match error {
        ShrinkError::Build(error) => CommandError::from(error).into(),
        error => Reply::error(format!("ERR {error}")),
    })?;
    Ok((filter.into(), Reply::Double(expected)))
}
