//! BF.EXISTS and BF.MEXISTS.

use crate::context::Context;
use crate::run::{Answers, Run};
use crate::slot::ReadSlot;

pub(crate) const EXISTS: &str = "bf.exists";
pub(crate) const MEXISTS: &str = "bf.mexists";

/// `BF.EXISTS key item`
pub fn exists(context: &Context, run: &mut Run<'_>, slot: ReadSlot<'_>, answers: &mut dyn Answers) {
    match run.items(EXISTS) {
        Ok(items) => find(context, items, slot, answers),
        Err(error) => return run.refuse(error, answers),
    }
    run.take(run.len());
}

/// `BF.MEXISTS key item [item ...]`
pub fn mexists(
    context: &Context,
    run: &mut Run<'_>,
    slot: ReadSlot<'_>,
    answers: &mut dyn Answers,
) {
    let mut args = run.next_args(MEXISTS);
    match args.next_bytes().and_then(|_| args.next_rest()) {
        Ok(items) => {
            answers.array(items.len());
            find(context, items.iter().copied(), slot, answers);
        }
        Err(error) => answers.error(error),
    }
}

/// Answers whether each of these items is there. A missing key and a key of another type hold none.
fn find<'a>(
    context: &Context,
    items: impl Iterator<Item = &'a [u8]>,
    slot: ReadSlot<'_>,
    answers: &mut dyn Answers,
) {
    match slot.lenient() {
        Some(filter) => {
            filter.contains_each_at(items, context.now_ms, |found| answers.boolean(found))
        }
        None => items.for_each(|_| answers.boolean(false)),
    }
}
