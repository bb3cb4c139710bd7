//! BF.LOAD, with which valkey-bloom's logs make a filter. A filter that is made by it stays one of
//! valkey-bloom, and is dumped and logged in our own formats.

use crate::args::Args;
use crate::context::LazyContext;
use crate::error::CommandError;
use crate::filter::FilterKind;
use crate::format::value::valkey;
use crate::run::{Answers, Changes, Run};
use crate::slot::Slot;
use everbloom_resp::Reply;

pub(crate) const LOAD: &str = "bf.load";

fn load(
    args: Args<'_>,
    context: &LazyContext<'_>,
    slot: &mut Slot<'_>,
) -> Result<Reply, CommandError> {
    let [_, data] = args.exactly()?;
    let Slot::Vacant(value @ None) = slot else {
        return Err(CommandError::BusyKey);
    };
    if context.classic_only {
        return Err(CommandError::OursOnly(LOAD));
    }
    let filter = valkey::of_load(data, context.max_new_filter_bytes());
    let filter = filter.ok_or(CommandError::BadObject)?;
    context.check_loaded(FilterKind::Valkey, filter.layers().len())?;
    **value = Some(filter);
    Ok(Reply::OK)
}

/// `BF.LOAD key data`
pub fn load_object(
    context: &LazyContext<'_>,
    run: &mut Run<'_>,
    slot: &mut Slot<'_>,
    answers: &mut dyn Answers,
    changes: &mut dyn Changes,
) {
    let request = run.first();
    let args = run.next_args(LOAD);
    changes.touch();
    let loaded = load(args, context, slot);
    answers.answer(loaded.inspect(|_| changes.repeat(request)));
}
