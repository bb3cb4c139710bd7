//! CF.ADD and CF.ADDNX.

use super::insertion::{Which, begin, insert_items, replayed};
use crate::context::LazyContext;
use crate::error::CommandError;
use crate::insertion::Insertion;
use crate::run::{Answers, Changes, Run};
use crate::slot::Slot;
use everbloom::CuckooFilter;

pub(crate) const ADD: &str = "cf.add";
pub(crate) const ADDNX: &str = "cf.addnx";

/// `CF.ADD key item`, and CF.ADDNX, which adds only an item that is `ABSENT`.
pub fn add<const ABSENT: bool>(
    context: &LazyContext<'_>,
    run: &mut Run<'_>,
    slot: &mut Slot<'_, CuckooFilter>,
    answers: &mut dyn Answers,
    changes: &mut dyn Changes,
) {
    let command = match ABSENT {
        true => (ADDNX, Which::Absent),
        false => (ADD, Which::All),
    };
    let added = add_run(context, command, run, slot, answers, changes);
    added.unwrap_or_else(|error| run.refuse(error, answers));
}

fn add_run(
    context: &LazyContext<'_>,
    (name, which): (&'static str, Which),
    run: &mut Run<'_>,
    slot: &mut Slot<'_, CuckooFilter>,
    answers: &mut dyn Answers,
    changes: &mut dyn Changes,
) -> Result<(), CommandError> {
    let items = run.items(name)?;
    changes.touch();
    let mut added = Insertion::default();
    added.reserve(items.len())?;
    let filter = begin(context, &context.cuckoo, slot, &mut added)?;
    let emit = |result| match result {
        Ok(new) => answers.boolean(new),
        Err(error) => answers.error(error),
    };
    let answered = insert_items(context, filter, &mut added, items, (which, false), emit);
    let replayed = replayed(filter);
    match run.len() {
        1 => added.note_request(replayed, run, 1, changes),
        _ => added.note(replayed, run.key(), changes),
    }
    run.take(answered);
    Ok(())
}
