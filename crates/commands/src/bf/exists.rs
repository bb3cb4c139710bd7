//! BF.EXISTS and BF.MEXISTS.

use crate::context::Context;
use crate::run::{Answers, Run};
use crate::slot::ReadSlot;

pub(crate) const EXISTS: &str = "bf.exists";
pub(crate) const MEXISTS: &str = "bf.mexists";

/// `BF.EXISTS key item`
pub fn exists(_: &Context, run: &mut Run<'_>, slot: ReadSlot<'_>, answers: &mut dyn Answers) {
    match run.items(EXISTS) {
        Ok(items) => find(items, slot, answers),
        Err(error) => return run.refuse(error, answers),
    }
    run.take(run.len());
}

/// `BF.MEXISTS key item [item ...]`
pub fn mexists(_: &Context, run: &mut Run<'_>, slot: ReadSlot<'_>, answers: &mut dyn Answers) {
    let mut args = run.next_args(MEXISTS);
    match args.next_bytes().and_then(|_| args.next_rest()) {
        Ok(items) => {
            answers.array(items.len());
            find(items.iter().copied(), slot, answers);
        }
        Err(error) => answers.error(error),
    }
}

/// Answers whether each of these items is there. A missing key and a key of another type hold none.
fn find<'a>(items: impl Iterator<Item = &'a [u8]>, slot: ReadSlot<'_>, answers: &mut dyn Answers) {
    match slot.lenient() {
        Some(filter) => filter.contains_each(items, |found| answers.boolean(found)),
        None => items.for_each(|_| answers.boolean(false)),
    }
}
