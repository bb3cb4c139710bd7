//! CF.EXISTS, CF.MEXISTS and CF.COUNT.

use crate::answer::{self, answer};
use crate::args::Args;
use crate::context::Context;
use crate::error::CommandError;
use crate::slot::ReadSlot;
use everbloom::CuckooFilter;
use everbloom_resp::Reply;

pub(crate) const EXISTS: &str = "cf.exists";
pub(crate) const MEXISTS: &str = "cf.mexists";
pub(crate) const COUNT: &str = "cf.count";

/// The item of a command that names a key and an item.
fn item(mut args: Args<'_>) -> Result<&[u8], CommandError> {
    args.next_bytes()?;
    let item = args.next_bytes()?;
    args.finish()?;
    Ok(item)
}

fn items(mut args: Args<'_>) -> Result<&[&[u8]], CommandError> {
    args.next_bytes()?;
    args.next_rest()
}

/// `CF.EXISTS key item`
pub fn exists(_: &Context, args: &[&[u8]], slot: ReadSlot<'_, CuckooFilter>) -> Reply {
    let found = |item| slot.lenient().is_some_and(|filter| filter.contains(item));
    answer(item(Args::new(EXISTS, args)).map(|item| Reply::Boolean(found(item))))
}

/// `CF.MEXISTS key item [item ...]`
pub fn mexists(_: &Context, args: &[&[u8]], slot: ReadSlot<'_, CuckooFilter>) -> Reply {
    answer(items(Args::new(MEXISTS, args)).map(|items| {
        let mut found = Vec::with_capacity(items.len());
        exists_batch(items, slot, |one| found.push(one));
        Reply::Booleans(found)
    }))
}

/// Executes `CF.EXISTS key item` for every item as one batch; `emit` gets the answers in order.
/// A missing key and a key of another type hold no item.
pub fn exists_batch(items: &[&[u8]], slot: ReadSlot<'_, CuckooFilter>, mut emit: impl FnMut(bool)) {
    match slot.lenient() {
        Some(filter) => filter.contains_each(items.iter().copied(), emit),
        None => items.iter().for_each(|_| emit(false)),
    }
}

/// `CF.COUNT key item`
pub fn count(_: &Context, args: &[&[u8]], slot: ReadSlot<'_, CuckooFilter>) -> Reply {
    let count = |item| slot.lenient().map_or(0, |filter| filter.count(item));
    answer(item(Args::new(COUNT, args)).map(|item| answer::count(count(item))))
}
