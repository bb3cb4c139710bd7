//! BF.ADVANCE: begins generations of a window. It is also how a log or a replica learns of a window
//! that the clock has moved.

use super::window::next_number;
use crate::args::Args;
use crate::context::Context;
use crate::error::CommandError;
use crate::run::{Answers, Changes, Run};
use crate::slot::Slot;
use everbloom_resp::Reply;

pub(crate) const ADVANCE: &str = "bf.advance";

struct Advance<'a> {
    key: &'a [u8],
    count: u64,
    /// When the newest generation begins; now if nothing is said.
    at: Option<u64>,
}

impl<'a> Advance<'a> {
    fn parse(mut args: Args<'a>) -> Result<Self, CommandError> {
        let key = args.next_bytes()?;
        let mut advance = Advance {
            key,
            count: 1,
            at: None,
        };
        if args.remaining() % 2 == 1 {
            let count = next_number(&mut args).filter(|count| *count > 0);
            advance.count = count.ok_or(CommandError::AdvanceCount)?;
        }
        if let Some(word) = args.next_optional() {
            if !word.eq_ignore_ascii_case(b"AT") {
                return Err(CommandError::AdvanceTime);
            }
            let time = next_number(&mut args);
            advance.at = Some(time.ok_or(CommandError::AdvanceTime)?);
        }
        args.finish()?;
        Ok(advance)
    }

    /// Returns how many generations began, and when the newest did.
    fn execute(&self, context: &Context, slot: &mut Slot<'_>) -> Result<[u64; 2], CommandError> {
        let filter = slot.filter()?.ok_or(CommandError::NotFound)?;
        let window = filter.window().ok_or(CommandError::NoWindow)?;
        let (count, at) = match self.at {
            Some(at) => (self.count, at),
            None => {
                let ended = window.ended(context.now_ms);
                (self.count.saturating_add(ended), context.now_ms)
            }
        };
        filter.advance(count, at)?;
        Ok([count, at])
    }
}

/// `BF.ADVANCE key [count] [AT milliseconds]`
pub fn advance(
    context: &Context,
    run: &mut Run<'_>,
    slot: &mut Slot<'_>,
    answers: &mut dyn Answers,
    changes: &mut dyn Changes,
) {
    let advance = Advance::parse(run.next_args(ADVANCE));
    answers.answer(advance.and_then(|advance| {
        changes.touch();
        let numbers = advance.execute(context, slot)?.map(|it| it.to_string());
        let [count, at] = numbers.each_ref().map(String::as_bytes);
        changes.replace(&[&[b"BF.ADVANCE", advance.key, count, b"AT", at]]);
        Ok(Reply::OK)
    }));
}
