//! Adding items: what ADD, MADD and INSERT share.

use super::Parameters;
use crate::context::LazyContext;
use crate::error::CommandError;
use crate::format::header;
use crate::insertion::Insertion;
use crate::slot::Slot;
use everbloom::sizing::Rounding;

use everbloom::InsertError;
use everbloom::host::{Inserted, LayeredFilter};
use std::ops::ControlFlow;

/// Whether the items belong to one request or to one each. This decides which items are not tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    /// One request has all items. Items after one that a full filter refused are not tried.
    OneRequest,
    /// Each item is a request of its own. Items after a growth are left to the next call, which
    /// knows how much memory is free then.
    RequestEach,
}

/// Adds `items` to a filter that [`filter_or_new`] gave; `insertion` gets those that are new, and
/// `emit` the answer for each. Returns how many were answered.
#[inline]
pub(super) fn insert_items<'a>(
    context: &LazyContext<'_>,
    filter: &mut LayeredFilter,
    insertion: &mut Insertion<'a>,
    items: impl ExactSizeIterator<Item = &'a [u8]> + Clone,
    owner: Owner,
    mut emit: impl FnMut(Result<bool, CommandError>),
) -> usize {
    let len = items.len();
    if filter.window().is_none() && room(filter) >= len as u64 {
        // The filter does not grow, so it needs no limits.
        let mut tried = items.clone();
        filter.try_insert_each(items, 0, |result| {
            emit(answer(result, tried.next(), insertion));
            ControlFlow::Continue(())
        });
        return len;
    }
    insert_and_grow(context, filter, insertion, items, owner, emit)
}

/// The answer for an item, which is noted if it was added.
#[inline]
fn answer<'a>(
    result: Result<Inserted, InsertError>,
    item: Option<&'a [u8]>,
    insertion: &mut Insertion<'a>,
) -> Result<bool, CommandError> {
    if let (Ok(Inserted::New | Inserted::Renewed), Some(item)) = (result, item) {
        insertion.push(item);
    }
    let is_new = result.map(|inserted| inserted == Inserted::New);
    is_new.map_err(CommandError::from)
}

/// [`insert_items`] for a filter that may begin a generation or get layers.
#[inline(never)]
fn insert_and_grow<'a>(
    context: &LazyContext<'_>,
    filter: &mut LayeredFilter,
    insertion: &mut Insertion<'a>,
    items: impl ExactSizeIterator<Item = &'a [u8]> + Clone,
    owner: Owner,
    mut emit: impl FnMut(Result<bool, CommandError>),
) -> usize {
    let began_with = filter.stream_len();
    let clock = context.clock();
    match clock.map_or(Ok(None), |now| filter.advance_to(now)) {
        Ok(Some((count, began))) => insertion.advance(count, began),
        Ok(None) => {}
        // An item that entered an outdated generation would be forgotten too early.
        Err(error) => {
            let answered = items.len();
            items.for_each(|_| emit(Err(error.into())));
            return answered;
        }
    }
    // A filter that was made just now has used free memory, too.
    let had = if insertion.is_creation() {
        0
    } else {
        began_with
    };
    let (mut rest, mut answered) = (items, 0);
    while rest.len() > 0 {
        let stretch = at_most_one_growth(filter).min(rest.len());
        let now = rest.clone().take(stretch);
        let has = filter.stream_len();
        let allowed = context.max_filter_bytes.saturating_sub(has);
        let free = context.free_bytes.saturating_sub(has.saturating_sub(had));
        let mut tried = now.clone();
        let mut stopped = false;
        filter.try_insert_each(now, allowed.min(free), |result| {
            answered += 1;
            stopped = result == Err(InsertError::Full) && owner == Owner::OneRequest;
            emit(answer(result, tried.next(), insertion));
            match stopped {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        });
        let has_grown = filter.stream_len() > had;
        if stopped || owner == Owner::RequestEach && has_grown {
            break;
        }
        rest.nth(stretch - 1);
    }
    answered
}

/// How many items the newest layer takes before it is full.
#[inline]
fn room(filter: &LayeredFilter) -> u64 {
    let newest = filter.layers().last();
    newest.map_or(0, |layer| layer.capacity().saturating_sub(layer.len()))
}

/// How many items can be added while the filter gets at most one new layer. The limit for a new
/// layer must be computed again after each one.
fn at_most_one_growth(filter: &LayeredFilter) -> usize {
    let Some(newest) = filter.layers().last().filter(|_| !filter.is_fixed()) else {
        return usize::MAX;
    };
    let next = match filter.options().rounding() {
        // The next layer may take few items although it has many bits. It takes at least one.
        Rounding::Log2 => 1,
        // It may be of another generation, and smaller.
        _ if filter.window().is_some() => 1,
        Rounding::Words | Rounding::PowerOfTwo => newest
            .capacity()
            .saturating_mul(filter.expansion().into())
            .max(1),
    };
    usize::try_from(room(filter).saturating_add(next)).unwrap_or(usize::MAX)
}

/// The filter in the slot. If it had to be made, `insertion` gets its header.
#[inline]
pub(super) fn filter_or_new<'s>(
    context: &LazyContext<'_>,
    missing: impl FnOnce() -> Parameters,
    slot: &'s mut Slot<'_>,
    insertion: &mut Insertion<'_>,
) -> Result<&'s mut LayeredFilter, CommandError> {
    let (filter, is_new) = slot.filter_or_new(|| new_filter(&missing(), context))?;
    if is_new {
        insertion.create(header::encode(filter));
    }
    Ok(filter)
}

/// A filter with these parameters. A window becomes as large as all of its generations together,
/// also with no more items than it is made for. So all of them must be within the limit. Otherwise
/// its dump could not be loaded again.
pub(super) fn new_filter(
    parameters: &Parameters,
    context: &LazyContext<'_>,
) -> Result<LayeredFilter, CommandError> {
    let filter = parameters.build(context)?;
    let generations = filter
        .window()
        .map(|window| u64::from(window.generations) + 1);
    let planned = generations.map(|generations| filter.stream_len().saturating_mul(generations));
    if planned.is_some_and(|bytes| bytes > context.max_filter_bytes) {
        return Err(CommandError::InsufficientMemory);
    }
    Ok(filter)
}
