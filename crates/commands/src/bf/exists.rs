//! BF.EXISTS and BF.MEXISTS.

use crate::context::LazyContext;
use crate::run::{Answers, Run};
use crate::slot::ReadSlot;

pub(crate) const EXISTS: &str = "bf.exists";
pub(crate) const MEXISTS: &str = "bf.mexists";

/// `BF.EXISTS key item`
pub fn exists(
    context: &LazyContext<'_>,
    run: &mut Run<'_>,
    slot: ReadSlot<'_>,
    answers: &mut dyn Answers,
) {
    match run.items(EXISTS) {
        Ok(items) => find(context, items, slot, answers),
        Err(error) => return run.refuse(error, answers),
    }
    run.take(run.len());
}

/// `BF.MEXISTS key item [item ...]`
pub fn mexists(
    context: &LazyContext<'_>,
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
    context: &LazyContext<'_>,
    items: impl Iterator<Item = &'a [u8]>,
    slot: ReadSlot<'_>,
    answers: &mut dyn Answers,
) {
    match slot.lenient() {
        Some(filter) => {
            // Without a window the time does not matter.
            let now = filter.window().map_or(0, |_| context.now_ms);
            filter.contains_each_at(items, now, |found| answers.boolean(found))
        }
        None => items.for_each(|_| answers.boolean(false)),
    }
}
