//! Adding items: the one path that ADD, MADD, INSERT and batches of pipelined ADDs share.

use super::Parameters;
use crate::context::Context;
use crate::error::CommandError;
use crate::format::header;
use crate::outcome::Effect;
use crate::slot::Slot;
use everbloom::sizing::Rounding;
use smallvec::SmallVec;

use everbloom::{InsertError, ScalableBloomFilter};
use std::ops::ControlFlow;

/// What an insertion changed, as far as the log needs it. The items borrow from its arguments.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Insertion<'a> {
    /// The SCANDUMP header of the empty filter, if the insertion created the filter.
    pub created: Option<Vec<u8>>,
    /// The items that were added, in order, without those that tested positive or were refused.
    pub added: SmallVec<[&'a [u8]; 8]>,
}

impl Insertion<'_> {
    /// Whether nothing changed.
    pub fn is_empty(&self) -> bool {
        self.created.is_none() && self.added.is_empty()
    }

    /// What a log must replay.
    pub fn effect(self, key: &[u8]) -> Effect {
        match self.created {
            Some(header) => Effect::created(key, header, &self.added),
            None => Effect::added(key, &self.added),
        }
    }

    /// The effect of a BF.ADD or BF.MADD with `tried` items. If all were added to an existing
    /// filter, it is the command itself.
    pub(crate) fn effect_of_add(self, key: &[u8], tried: usize) -> Effect {
        if self.created.is_none() && tried > 0 && self.added.len() == tried {
            Effect::Verbatim
        } else {
            self.effect(key)
        }
    }
}

/// What happens to the items that follow one that a full filter refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AfterFull {
    /// They are not tried: all items belong to one command.
    Stop,
    /// They are tried: every item is its own command.
    GoOn,
}

/// Adds `items` to the filter in `slot`. Makes the filter with `missing` if there is none. `emit`
/// gets the answer for each item. An error means that no item was tried.
pub(super) fn insert_items<'a>(
    context: &Context,
    missing: &Parameters,
    items: &[&'a [u8]],
    slot: &mut Slot<'_>,
    after_full: AfterFull,
    mut emit: impl FnMut(Result<bool, CommandError>),
) -> Result<Insertion<'a>, CommandError> {
    let (filter, created) = filter_or_new(context, missing, slot)?;
    // A filter that was made just now has used free memory, too.
    let had = if created.is_some() {
        0
    } else {
        filter.stream_len()
    };
    let mut added = SmallVec::with_capacity(items.len());
    let mut rest = items;
    while !rest.is_empty() {
        let stretch = at_most_one_growth(filter).min(rest.len());
        let (now, later) = rest.split_at(stretch);
        let has = filter.stream_len();
        let allowed = context.max_filter_bytes.saturating_sub(has);
        let free = context.free_bytes.saturating_sub(has.saturating_sub(had));
        let max_layer_bytes = allowed.min(free);
        let mut tried = now.iter();
        let mut stopped = false;
        filter.try_insert_each(now.iter().copied(), max_layer_bytes, |result| {
            let item = tried.next();
            if result == Ok(true) {
                added.extend(item.copied());
            }
            emit(result.map_err(CommandError::from));
            stopped = result == Err(InsertError::Full) && after_full == AfterFull::Stop;
            if stopped {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        });
        rest = if stopped { &[] } else { later };
    }
    Ok(Insertion { created, added })
}

/// How many items can be added while the filter gets at most one new layer. The limit for a new
/// layer must be computed again after each one.
fn at_most_one_growth(filter: &ScalableBloomFilter) -> usize {
    let Some(newest) = filter.layers().last().filter(|_| !filter.is_fixed()) else {
        return usize::MAX;
    };
    let room = newest.capacity().saturating_sub(newest.len());
    let next = match filter.options().rounding() {
        // The next layer may take few items although it has many bits. It takes at least one.
        Rounding::Log2 => 1,
        Rounding::Words | Rounding::PowerOfTwo => newest
            .capacity()
            .saturating_mul(filter.expansion().into())
            .max(1),
    };
    usize::try_from(room.saturating_add(next)).unwrap_or(usize::MAX)
}

/// The filter in the slot. If it had to be made, also its header.
fn filter_or_new<'s>(
    context: &Context,
    missing: &Parameters,
    slot: &'s mut Slot<'_>,
) -> Result<(&'s mut ScalableBloomFilter, Option<Vec<u8>>), CommandError> {
    match slot {
        Slot::OtherType => Err(CommandError::WrongType),
        Slot::Filter(filter) => Ok((filter, None)),
        Slot::Vacant(value) => match value {
            Some(filter) => Ok((filter, None)),
            None => {
                let filter = value.insert(missing.build(context)?);
                let header = header::encode(filter);
                Ok((filter, Some(header)))
            }
        },
    }
}
