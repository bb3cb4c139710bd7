//! BF.EXISTS and BF.MEXISTS, and a batch of pipelined BF.EXISTS.

use super::answer;
use crate::args::Args;
use crate::context::Context;
use crate::error::CommandError;
use crate::slot::ReadSlot;
use everbloom_resp::Reply;

pub(crate) const EXISTS: &str = "bf.exists";
pub(crate) const MEXISTS: &str = "bf.mexists";

struct Exists<'a> {
    item: &'a [u8],
}

struct Mexists<'a> {
    items: &'a [&'a [u8]],
}

impl<'a> Exists<'a> {
    fn parse(mut args: Args<'a>) -> Result<Self, CommandError> {
        args.next_bytes()?;
        let exists = Self {
            item: args.next_bytes()?,
        };
        args.finish()?;
        Ok(exists)
    }

    fn execute(&self, slot: ReadSlot<'_>) -> Reply {
        Reply::Boolean(
            slot.lenient()
                .is_some_and(|filter| filter.contains(self.item)),
        )
    }
}

impl<'a> Mexists<'a> {
    fn parse(mut args: Args<'a>) -> Result<Self, CommandError> {
        args.next_bytes()?;
        Ok(Self {
            items: args.next_rest()?,
        })
    }

    fn execute(&self, slot: ReadSlot<'_>) -> Reply {
        let mut found = Vec::with_capacity(self.items.len());
        exists_batch(self.items, slot, |one| found.push(one));
        Reply::Booleans(found)
    }
}

/// `BF.EXISTS key item`
pub fn exists(_: &Context, args: &[&[u8]], slot: ReadSlot<'_>) -> Reply {
    answer(Exists::parse(Args::new(EXISTS, args)).map(|exists| exists.execute(slot)))
}

/// `BF.MEXISTS key item [item ...]`
pub fn mexists(_: &Context, args: &[&[u8]], slot: ReadSlot<'_>) -> Reply {
    answer(Mexists::parse(Args::new(MEXISTS, args)).map(|mexists| mexists.execute(slot)))
}

/// Executes `BF.EXISTS key item` for every item as one batch; `emit` gets the answers in order.
/// A missing key and a key of another type hold no item.
pub fn exists_batch(items: &[&[u8]], slot: ReadSlot<'_>, mut emit: impl FnMut(bool)) {
    match slot.lenient() {
        Some(filter) => filter.contains_each(items.iter().copied(), emit),
        None => items.iter().for_each(|_| emit(false)),
    }
}
