//! CF.ADD and CF.ADDNX, and a batch of pipelined CF.ADDs.

use std::iter;
use std::ops::ControlFlow;

use super::insertion::{
    self, Insertion, Which, allowed, check_tables, insert_items, insert_one_by_one,
};
use crate::args::Args;
use crate::context::Context;
use crate::error::CommandError;
use crate::outcome::{Effect, Outcome};
use crate::slot::Slot;
use everbloom::CuckooFilter;
use everbloom_resp::Reply;

pub(crate) const ADD: &str = "cf.add";
pub(crate) const ADDNX: &str = "cf.addnx";

#[derive(Debug)]
struct Add<'a> {
    key: &'a [u8],
    item: &'a [u8],
    which: Which,
}

impl<'a> Add<'a> {
    fn parse(mut args: Args<'a>, which: Which) -> Result<Self, CommandError> {
        let add = Self {
            key: args.next_bytes()?,
            item: args.next_bytes()?,
            which,
        };
        args.finish()?;
        Ok(add)
    }

    /// Adds to a filter that is there, as most calls do: no list of items, nothing to create.
    fn insert(
        &self,
        context: &Context,
        filter: &mut CuckooFilter,
    ) -> Result<(Reply, Effect), CommandError> {
        check_tables(context, filter.tables())?;
        let mut result = Ok(false);
        let (item, absent) = (iter::once(self.item), self.which == Which::Absent);
        filter.insert_each(item, absent, allowed(context, filter, 0), |added| {
            result = added;
            ControlFlow::Continue(())
        });
        let added = result.map_err(insertion::refusal)?;
        let effect = match added {
            true => Effect::Verbatim,
            false => Effect::None,
        };
        Ok((Reply::Boolean(added), effect))
    }

    fn execute(
        &self,
        context: &Context,
        slot: &mut Slot<'_, CuckooFilter>,
    ) -> Result<(Reply, Effect), CommandError> {
        if let Slot::Filter(filter) = slot {
            return self.insert(context, filter);
        }
        let missing = context.cuckoo.into();
        let mut reply = Reply::Boolean(false);
        let emit = |result: Result<bool, CommandError>| {
            reply = result.map_or_else(Reply::from, Reply::Boolean);
        };
        let change = insert_items(context, &missing, &[self.item], self.which, slot, emit)?;
        Ok((reply, change.effect(self.key)))
    }
}

/// `CF.ADD key item`
pub fn add(context: &Context, args: &[&[u8]], slot: &mut Slot<'_, CuckooFilter>) -> Outcome {
    run(Add::parse(Args::new(ADD, args), Which::All), context, slot)
}

/// `CF.ADDNX key item`
pub fn addnx(context: &Context, args: &[&[u8]], slot: &mut Slot<'_, CuckooFilter>) -> Outcome {
    run(
        Add::parse(Args::new(ADDNX, args), Which::Absent),
        context,
        slot,
    )
}

fn run(
    add: Result<Add<'_>, CommandError>,
    context: &Context,
    slot: &mut Slot<'_, CuckooFilter>,
) -> Outcome {
    match add {
        Ok(add) => Outcome::answered(add.execute(context, slot)),
        Err(error) => Outcome::bad_arguments(error),
    }
}

/// Executes `CF.ADD key item` for every item as one batch. `emit` gets one answer for each item, in
/// order. The answers are the same as for one command after the other.
///
/// Errors of the key (another type, no memory for a new filter) are every item's answer. All
/// commands of the batch count as modifications for WATCH.
pub fn add_batch<'a>(
    context: &Context,
    items: &[&'a [u8]],
    slot: &mut Slot<'_, CuckooFilter>,
    mut emit: impl FnMut(Result<bool, CommandError>),
) -> Insertion<'a> {
    insert_one_by_one(context, items, slot, &mut emit).unwrap_or_else(|error| {
        items.iter().for_each(|_| emit(Err(error)));
        Insertion::default()
    })
}
