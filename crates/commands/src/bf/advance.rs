//! BF.ADVANCE: begins generations of a window. It is also how a log or a replica learns of a window
//! that the clock has moved. There, 0 generations mean that the window
//! [begins again](everbloom::host::LayeredFilter::begin_again) at that time.

use super::window::next_number;
use crate::args::Args;
use crate::context::LazyContext;
use crate::error::CommandError;
use crate::filter::Filter;
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
    fn parse(mut args: Args<'a>, context: &LazyContext<'_>) -> Result<Self, CommandError> {
        // A log may have 0, a client may not.
        let least = u64::from(context.clock().is_some());
        let key = args.next_bytes()?;
        let mut advance = Advance {
            key,
            count: 1,
            at: None,
        };
        if args.remaining() % 2 == 1 {
            let count = next_number(&mut args).filter(|count| *count >= least);
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

    /// Changes the filter, and records each change.
    fn execute(
        &self,
        context: &LazyContext<'_>,
        slot: &mut Slot<'_>,
        changes: &mut dyn Changes,
    ) -> Result<(), CommandError> {
        let filter = slot.filter()?.ok_or(CommandError::NotFound)?;
        filter.window().ok_or(CommandError::NoWindow)?;
        let clock = context.clock();
        let again = clock.or(self.at.filter(|_| self.count == 0));
        if let Some(now) = again
            && filter.begin_again(now)
        {
            self.note(0, now, changes);
        }
        if self.count == 0 {
            return Ok(());
        }
        let (count, at) = match (self.at, clock) {
            // A time ahead of the clock would keep the window from forgetting until then.
            (Some(at), clock) => (self.count, at.min(clock.unwrap_or(at))),
            (None, _) => {
                let now = context.now_ms;
                let ended = filter.window().map_or(0, |window| window.ended(now));
                // A log is read with signed numbers.
                let count = self.count.saturating_add(ended);
                (count.min(i64::MAX.unsigned_abs()), now)
            }
        };
        let allowed = context.max_filter_bytes.saturating_sub(filter.stream_len());
        // What a log says was done.
        let most = clock.map_or(u64::MAX, |_| context.free_bytes.min(allowed));
        let advanced = filter.advance_within(count, at, most);
        advanced.map_err(|_| match allowed < context.free_bytes {
            true => CommandError::InsufficientMemory,
            false => CommandError::OutOfMemory,
        })?;
        self.note(count, at, changes);
        Ok(())
    }

    fn note(&self, count: u64, at: u64, changes: &mut dyn Changes) {
        changes.replace(&[&Begun::new(count, at).command(self.key)]);
    }
}

/// Generations that have begun.
#[derive(Clone, Debug)]
pub struct Begun {
    /// How many they are, and when the newest began, as a command writes it.
    numbers: [String; 2],
}

impl Begun {
    pub(crate) fn new(count: u64, began: u64) -> Begun {
        let numbers = [count, began].map(|number| number.to_string());
        Begun { numbers }
    }

    /// The command by which a log or a replica follows.
    pub fn command<'a>(&'a self, key: &'a [u8]) -> [&'a [u8]; 5] {
        let [count, began] = self.numbers.each_ref().map(String::as_bytes);
        [b"BF.ADVANCE", key, count, b"AT", began]
    }
}

/// Drops the layers of a filter that are out of date by the clock, as the next item would. Does
/// nothing when there are none, or when there is no memory for a new generation.
pub fn forget(filter: &mut Filter, now: u64) -> Option<Begun> {
    filter.outdated_at().filter(|at| *at <= now)?;
    let Filter::Bloom(filter) = filter else {
        return None;
    };
    let (count, began) = filter.advance_to(now).ok()??;
    Some(Begun::new(count, began))
}

/// `BF.ADVANCE key [count] [AT milliseconds]`
pub fn advance(
    context: &LazyContext<'_>,
    run: &mut Run<'_>,
    slot: &mut Slot<'_>,
    answers: &mut dyn Answers,
    changes: &mut dyn Changes,
) {
    let advance = Advance::parse(run.next_args(ADVANCE), context);
    answers.answer(advance.and_then(|advance| {
        changes.touch();
        advance.execute(context, slot, changes)?;
        Ok(Reply::OK)
    }));
}
