//! BF.ADD and BF.MADD, and a batch of pipelined BF.ADDs.

use std::iter;
use std::ops::ControlFlow;

use super::Parameters;
use super::insertion::{AfterFull, Insertion, insert_items};
use crate::args::Args;
use crate::context::Context;
use crate::error::CommandError;
use crate::outcome::{Effect, Outcome};
use crate::slot::Slot;
use everbloom::ScalableBloomFilter;
use everbloom_resp::Reply;

pub(crate) const ADD: &str = "bf.add";
pub(crate) const MADD: &str = "bf.madd";

#[derive(Debug)]
struct Add<'a> {
    key: &'a [u8],
    item: &'a [u8],
}

#[derive(Debug)]
struct Madd<'a> {
    key: &'a [u8],
    items: &'a [&'a [u8]],
}

impl<'a> Add<'a> {
    fn parse(mut args: Args<'a>) -> Result<Self, CommandError> {
        let add = Self {
            key: args.next_bytes()?,
            item: args.next_bytes()?,
        };
        args.finish()?;
        Ok(add)
    }
}

impl<'a> Madd<'a> {
    fn parse(mut args: Args<'a>) -> Result<Self, CommandError> {
        Ok(Self {
            key: args.next_bytes()?,
            items: args.next_rest()?,
        })
    }
}

/// `BF.ADD key item`
pub fn add(context: &Context, args: &[&[u8]], slot: &mut Slot<'_>) -> Outcome {
    match Add::parse(Args::new(ADD, args)) {
        Ok(add) => match slot {
            Slot::Filter(filter) => add.insert(context, filter),
            _ => Outcome::answered(add.execute(context, slot)),
        },
        Err(error) => Outcome::bad_arguments(error),
    }
}

impl Add<'_> {
    /// Adds to a filter that is there, as most calls do: no list of items, nothing to create.
    fn insert(&self, context: &Context, filter: &mut ScalableBloomFilter) -> Outcome {
        let allowed = context
            .max_filter_bytes
            .saturating_sub(filter.stream_len())
            .min(context.free_bytes);
        let mut result = Ok(false);
        filter.try_insert_each(iter::once(self.item), allowed, |new| {
            result = new;
            ControlFlow::Continue(())
        });
        match result {
            Ok(true) => Outcome::verbatim(Reply::Boolean(true)),
            Ok(false) => Outcome::answered(Ok((Reply::Boolean(false), Effect::None))),
            Err(error) => Outcome::answered(Err(error.into())),
        }
    }

    fn execute(
        &self,
        context: &Context,
        slot: &mut Slot<'_>,
    ) -> Result<(Reply, Effect), CommandError> {
        let mut reply = Reply::Boolean(false);
        let change = insert_items(
            context,
            &context.defaults.into(),
            &[self.item],
            slot,
            AfterFull::Stop,
            |result| reply = item_reply(result),
        )?;
        Ok((reply, change.effect_of_add(self.key, 1)))
    }
}

/// `BF.MADD key item [item ...]`
pub fn madd(context: &Context, args: &[&[u8]], slot: &mut Slot<'_>) -> Outcome {
    match Madd::parse(Args::new(MADD, args)) {
        Ok(madd) => Outcome::answered(madd.execute(context, slot)),
        Err(error) => Outcome::bad_arguments(error),
    }
}

impl Madd<'_> {
    fn execute(
        &self,
        context: &Context,
        slot: &mut Slot<'_>,
    ) -> Result<(Reply, Effect), CommandError> {
        let (replies, change) = insert_all(context, &context.defaults.into(), self.items, slot)?;
        Ok((replies, change.effect_of_add(self.key, self.items.len())))
    }
}

/// Executes `BF.ADD key item` for every item as one batch. `emit` gets one answer for each item, in
/// order. The answers are the same as for one command after the other.
///
/// Errors of the key (another type, no memory for a new filter) are every item's answer. All
/// commands of the batch count as modifications for WATCH.
pub fn add_batch<'a>(
    context: &Context,
    items: &[&'a [u8]],
    slot: &mut Slot<'_>,
    mut emit: impl FnMut(Result<bool, CommandError>),
) -> Insertion<'a> {
    let missing = Parameters::from(context.defaults);
    insert_items(context, &missing, items, slot, AfterFull::GoOn, &mut emit).unwrap_or_else(
        |error| {
            items.iter().for_each(|_| emit(Err(error)));
            Insertion::default()
        },
    )
}

/// Adds the items of one command and collects the answers.
pub(super) fn insert_all<'a>(
    context: &Context,
    missing: &Parameters,
    items: &[&'a [u8]],
    slot: &mut Slot<'_>,
) -> Result<(Reply, Insertion<'a>), CommandError> {
    let mut answers = Reply::Booleans(Vec::with_capacity(items.len()));
    let change = insert_items(context, missing, items, slot, AfterFull::Stop, |result| {
        push(&mut answers, result);
    })?;
    Ok((answers, change))
}

/// Adds an answer to a list. The list holds only booleans until the first error.
#[inline]
fn push(answers: &mut Reply, result: Result<bool, CommandError>) {
    match (answers, result) {
        (Reply::Booleans(values), Ok(new)) => values.push(new),
        (answers, result) => push_reply(answers, item_reply(result)),
    }
}

#[cold]
fn push_reply(answers: &mut Reply, reply: Reply) {
    let before = std::mem::replace(answers, Reply::Null);
    let mut replies = before.into_elements().unwrap_or_default();
    replies.push(reply);
    *answers = Reply::Array(replies);
}

fn item_reply(result: Result<bool, CommandError>) -> Reply {
    result.map_or_else(Reply::from, Reply::Boolean)
}
