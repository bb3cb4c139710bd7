//! CF.EXISTS, CF.MEXISTS and CF.COUNT.

use crate::context::LazyContext;
use crate::run::{self, Answers, Run};
use crate::slot::ReadSlot;
use everbloom::CuckooFilter;

pub(crate) const EXISTS: &str = "cf.exists";
pub(crate) const MEXISTS: &str = "cf.mexists";
pub(crate) const COUNT: &str = "cf.count";

type Found<'a> = ReadSlot<'a, CuckooFilter>;

/// `CF.EXISTS key item`
pub fn exists(_: &LazyContext<'_>, run: &mut Run<'_>, slot: Found<'_>, answers: &mut dyn Answers) {
    match run.items(EXISTS) {
        Ok(items) => find(items, slot, answers),
        Err(error) => return run.refuse(error, answers),
    }
    run.take(run.len());
}

/// `CF.MEXISTS key item [item ...]`
pub fn mexists(_: &LazyContext<'_>, run: &mut Run<'_>, slot: Found<'_>, answers: &mut dyn Answers) {
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
fn find<'a>(items: impl Iterator<Item = &'a [u8]>, slot: Found<'_>, answers: &mut dyn Answers) {
    match slot.lenient() {
        Some(filter) => filter.contains_each(items, |found| answers.boolean(found)),
        None => items.for_each(|_| answers.boolean(false)),
    }
}

/// `CF.COUNT key item`
pub fn count(_: &LazyContext<'_>, run: &mut Run<'_>, slot: Found<'_>, answers: &mut dyn Answers) {
    let request = run.next_args(COUNT).exactly();
    let count = |item| slot.lenient().map_or(0, |filter| filter.count(item));
    answers.answer(request.map(|[_, item]| run::count(count(item))));
}
