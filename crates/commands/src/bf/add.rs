//! BF.ADD and BF.MADD.

use super::Parameters;
use super::insertion::{Owner, filter_or_new, insert_items};
use crate::context::Context;
use crate::error::CommandError;
use crate::insertion::Insertion;
use crate::run::{Answers, Changes, Run};
use crate::slot::Slot;
use everbloom::ScalableBloomFilter;

pub(crate) const ADD: &str = "bf.add";
pub(crate) const MADD: &str = "bf.madd";

const CREATE: &[u8] = b"BF.LOADCHUNK";

/// `BF.ADD key item`
pub fn add(
    context: &Context,
    run: &mut Run<'_>,
    slot: &mut Slot<'_>,
    answers: &mut dyn Answers,
    changes: &mut dyn Changes,
) {
    let items = match run.items(ADD) {
        Ok(items) => items,
        Err(error) => return run.refuse(error, answers),
    };
    changes.touch();
    let (filter, header) = match filter_or_new(context, &context.defaults.into(), slot) {
        Ok(found) => found,
        Err(error) => return run.refuse(error, answers),
    };
    let head = [b"BF.MADD", run.key()];
    let mut added = Insertion::new(CREATE, header, &head, items.len());
    let emit = |result| match result {
        Ok(new) => answers.boolean(new),
        Err(error) => answers.error(error),
    };
    let owner = Owner::RequestEach;
    let answered = insert_items(context, filter, &mut added, items, owner, emit);
    match run.len() {
        1 => added.note_request(run, 1, changes),
        _ => added.note(changes),
    }
    run.take(answered);
}

/// `BF.MADD key item [item ...]`
pub fn madd(
    context: &Context,
    run: &mut Run<'_>,
    slot: &mut Slot<'_>,
    answers: &mut dyn Answers,
    changes: &mut dyn Changes,
) {
    let request = *run;
    let mut args = run.next_args(MADD);
    let items = args.next_bytes().and_then(|_| args.next_rest());
    let added = items.and_then(|items| {
        changes.touch();
        let missing = context.defaults.into();
        let added = insert_all(context, &missing, request.key(), items, slot, answers)?;
        added.note_request(&request, items.len(), changes);
        Ok(())
    });
    if let Err(error) = added {
        answers.error(error);
    }
}

/// Adds the items of one request and answers with an array. After an error, nothing was answered.
pub(super) fn insert_all<'a>(
    context: &Context,
    missing: &Parameters,
    key: &'a [u8],
    items: &[&'a [u8]],
    slot: &mut Slot<'_>,
    answers: &mut dyn Answers,
) -> Result<Insertion<'a>, CommandError> {
    let (filter, header) = filter_or_new(context, missing, slot)?;
    let mut added = Insertion::new(CREATE, header, &[b"BF.MADD", key], items.len());
    let owner = Owner::OneRequest;
    let (each, may_end) = (items.iter().copied(), may_end_early(filter, items.len()));
    let element = |answers: &mut dyn Answers, result| match result {
        Ok(new) => answers.boolean(new),
        Err(error) => answers.element_error(error),
    };
    if may_end {
        let mut results = Vec::with_capacity(items.len());
        let emit = |result| results.push(result);
        insert_items(context, filter, &mut added, each, owner, emit);
        answers.array(results.len());
        for result in results {
            element(answers, result);
        }
    } else {
        answers.array(items.len());
        let emit = |result| element(answers, result);
        insert_items(context, filter, &mut added, each, owner, emit);
    }
    Ok(added)
}

/// Whether the array of answers may be shorter than the items: it ends with the first item that a
/// full filter refuses.
fn may_end_early(filter: &ScalableBloomFilter, items: usize) -> bool {
    // Only the newest layer takes items. Older ones of a loaded filter may say that they have room.
    let newest = filter.layers().last();
    let room = newest.map_or(0, |layer| layer.capacity().saturating_sub(layer.len()));
    // A window may begin a generation, which may have less room.
    filter.is_fixed() && (room < items as u64 || filter.window().is_some())
}
