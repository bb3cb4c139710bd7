//! BF.LOAD, with which valkey-bloom's logs make a filter. A filter that is made by it stays one of
//! valkey-bloom, and is dumped and logged in our own formats.

use crate::args::Args;
use crate::context::Context;
use crate::error::CommandError;
use crate::format::header;
use crate::format::value::valkey;
use crate::run::{Answers, Changes, Run};
use crate::slot::Slot;
use everbloom::ScalableBloomFilter;
use everbloom_resp::Reply;

pub(crate) const LOAD: &str = "bf.load";

fn load<'a>(
    mut args: Args<'a>,
    context: &Context,
    slot: &mut Slot<'_>,
) -> Result<&'a [u8], CommandError> {
    let (key, data) = (args.next_bytes()?, args.next_bytes()?);
    args.finish()?;
    let Slot::Vacant(value @ None) = slot else {
        return Err(CommandError::BusyKey);
    };
    if context.classic_only {
        return Err(CommandError::OursOnly(LOAD));
    }
    let filter = valkey::of_load(data, context.max_new_filter_bytes());
    **value = Some(filter.ok_or(CommandError::BadObject)?);
    Ok(key)
}

/// `BF.LOAD key data`
pub fn load_object(
    context: &Context,
    run: &mut Run<'_>,
    slot: &mut Slot<'_>,
    answers: &mut dyn Answers,
    changes: &mut dyn Changes,
) {
    let request = run.first();
    let loaded = load(run.next_args(LOAD), context, slot);
    answers.answer(loaded.map(|_| {
        changes.touch();
        changes.repeat(request);
        Reply::OK
    }));
}
