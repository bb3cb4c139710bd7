//! BF.ADD and BF.MADD.

use super::Parameters;
use super::insertion::{Owner, filter_or_new, insert_items};
use crate::context::LazyContext;
use crate::error::CommandError;
use crate::insertion::{Insertion, Replayed, reserve};
use crate::run::{Answers, Changes, Run};
use crate::slot::Slot;
use everbloom::host::LayeredFilter;

pub(crate) const ADD: &str = "bf.add";
pub(crate) const MADD: &str = "bf.madd";

/// How a log replays an insertion.
const REPLAYED: Replayed = Replayed {
    create: b"BF.LOADCHUNK",
    add: b"BF.MADD",
    before_items: &[],
    repeats: true,
};

/// The same for a window that replicas follow. One with an older version refuses the header of a
/// window. Then it must refuse the items, too: `BF.ADD` would make a filter that never forgets.
const REPLAYED_IF_THERE: Replayed = Replayed {
    add: b"BF.INSERT",
    before_items: &[b"NOCREATE", b"ITEMS"],
    repeats: false,
    ..REPLAYED
};

/// How the insertions into a filter are replayed.
#[inline]
fn replayed(context: &LazyContext<'_>, filter: &LayeredFilter) -> &'static Replayed {
    match filter.window().is_some() && context.has_replicas {
        true => &REPLAYED_IF_THERE,
        false => &REPLAYED,
    }
}

/// `BF.ADD key item`
pub fn add(
    context: &LazyContext<'_>,
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
    let mut added = Insertion::default();
    let missing = || context.defaults.into();
    let begun = added.reserve(items.len());
    let filter = match begun.and_then(|()| filter_or_new(context, missing, slot, &mut added)) {
        Ok(filter) => filter,
        Err(error) => return run.refuse(error, answers),
    };
    let emit = |result| match result {
        Ok(new) => answers.boolean(new),
        Err(error) => answers.error(error),
    };
    let (owner, replayed) = (Owner::RequestEach, replayed(context, filter));
    let answered = insert_items(context, filter, &mut added, items, owner, emit);
    match run.len() {
        1 => added.note_request(replayed, run, 1, changes),
        _ => added.note(replayed, run.key(), changes),
    }
    run.take(answered);
}

/// `BF.MADD key item [item ...]`
pub fn madd(
    context: &LazyContext<'_>,
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
        let (mut added, missing) = (Insertion::default(), || context.defaults.into());
        let replayed = insert_all(context, missing, items, slot, &mut added, answers)?;
        added.note_request(replayed, &request, items.len(), changes);
        Ok(())
    });
    if let Err(error) = added {
        answers.error(error);
    }
}

/// Adds the items of one request and answers with an array. Returns how that is replayed. After an
/// error, nothing was answered.
pub(super) fn insert_all<'a>(
    context: &LazyContext<'_>,
    missing: impl FnOnce() -> Parameters,
    items: &[&'a [u8]],
    slot: &mut Slot<'_>,
    added: &mut Insertion<'a>,
    answers: &mut dyn Answers,
) -> Result<&'static Replayed, CommandError> {
    added.reserve(items.len())?;
    // A new filter may be a fixed one.
    let may_end = slot.filter()?;
    let may_end = may_end.is_none_or(|filter| may_end_early(filter, items.len()));
    let mut results = Vec::new();
    if may_end {
        reserve(&mut results, items.len())?;
    }
    let filter = filter_or_new(context, missing, slot, added)?;
    let (owner, replayed) = (Owner::OneRequest, replayed(context, filter));
    let each = items.iter().copied();
    let element = |answers: &mut dyn Answers, result| match result {
        Ok(new) => answers.boolean(new),
        Err(error) => answers.element_error(error),
    };
    if may_end {
        let emit = |result| results.push(result);
        insert_items(context, filter, added, each, owner, emit);
        answers.array(results.len());
        for result in results {
            element(answers, result);
        }
    } else {
        answers.array(items.len());
        let emit = |result| element(answers, result);
        insert_items(context, filter, added, each, owner, emit);
    }
    Ok(replayed)
}

/// Whether the array of answers may be shorter than the items: it ends with the first item that a
/// full filter refuses.
fn may_end_early(filter: &LayeredFilter, items: usize) -> bool {
    // Only the newest layer takes items. Older ones of a loaded filter may say that they have room.
    let newest = filter.layers().last();
    let room = newest.map_or(0, |layer| layer.capacity().saturating_sub(layer.len()));
    // A window may begin a generation, which may have less room.
    filter.is_fixed() && (room < items as u64 || filter.window().is_some())
}
