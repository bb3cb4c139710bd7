//! BF.RESERVE: an empty filter with chosen parameters.

use super::insertion::new_filter;
use super::{Parameters, window};
use crate::args::Args;
use crate::context::{Defaults, LazyContext};
use crate::error::CommandError;
use crate::format::{header, layout};
use crate::number::{self, NumberError};
use crate::run::{Answers, Changes, IgnoredWord, Run};
use crate::slot::Slot;
use everbloom::Layout;
use everbloom_resp::Reply;

pub(crate) const RESERVE: &str = "bf.reserve";

/// RedisBloom's options behind the capacity: EXPANSION, its number and NONSCALING.
const MOST_OPTIONS: usize = 3;

/// A request that was understood.
struct Reserve<'a> {
    key: &'a [u8],
    parameters: Parameters,
    /// The first word that says nothing.
    ignored: Option<&'a [u8]>,
}

fn parse<'a>(mut args: Args<'a>, defaults: &Defaults) -> Result<Reserve<'a>, CommandError> {
    let key = args.next_bytes()?;
    let error_rate = args.next_bytes()?;
    let capacity = args.next_bytes()?;
    let layout = args.rest_after_word(b"LAYOUT");
    let seed = args.rest_after_word(b"SEED");
    let mut more = [&layout, &seed].into_iter().flatten().count() * 2;
    let window = args.rest_after_word(b"WINDOW").map(|mut behind| {
        let words = behind.remaining();
        let window = window::parse(&mut behind);
        more += 1 + words - behind.remaining();
        window
    });
    if args.remaining() > MOST_OPTIONS + more {
        return Err(args.wrong_arity());
    }
    let error_rate = number::error_rate(error_rate)
        .map_err(|error| error.or(CommandError::ErrorRateSyntax, CommandError::ErrorRateRange))?;
    let capacity = capacity_of(capacity)?;
    let (expansion, non_scaling) = growth(&args, defaults)?;
    let parameters = Parameters {
        error_rate,
        capacity,
        expansion,
        non_scaling,
        layout: layout.map(layout_of).transpose()?,
        seed: seed.map(seed_of).transpose()?,
        valkey: None,
        window: window.transpose()?,
    };
    Ok(Reserve {
        key,
        parameters: parameters.check(defaults)?,
        ignored: ignored_word(args),
    })
}

/// The first word behind the capacity that says nothing.
fn ignored_word(mut args: Args<'_>) -> Option<&[u8]> {
    while let Some(word) = args.next_optional() {
        let is = |known: &[u8]| word.eq_ignore_ascii_case(known);
        if is(b"WINDOW") {
            // It was read without an error before.
            window::parse(&mut args).ok()?;
        } else if is(b"EXPANSION") || is(b"LAYOUT") || is(b"SEED") {
            args.next_optional()?;
        } else if !is(b"NONSCALING") {
            return Some(word);
        }
    }
    None
}

/// A capacity.
pub(super) fn capacity_of(text: &[u8]) -> Result<u64, CommandError> {
    number::capacity(text)
        .map_err(|error| error.or(CommandError::CapacitySyntax, CommandError::CapacityRange))
}

/// The expansion, and whether the filter is non-scaling.
///
/// RedisBloom looks for each option word among all arguments, the key and the numbers included. It
/// takes the first one it finds and ignores words that it does not know. Scripts rely on this.
fn growth(args: &Args<'_>, defaults: &Defaults) -> Result<(u32, bool), CommandError> {
    let non_scaling = args.after_word(b"NONSCALING").is_some() || defaults.expansion == 0;
    let Some(mut behind) = args.after_word(b"EXPANSION") else {
        return Ok((defaults.expansion, non_scaling));
    };
    let text = behind
        .next_optional()
        .ok_or(CommandError::ExpansionMissing)?;
    match number::expansion(text) {
        Err(NumberError::Syntax) => Err(CommandError::ExpansionSyntax),
        Ok(0) => Ok((0, true)),
        _ if non_scaling => Err(CommandError::NonScalingExpansion),
        Err(NumberError::Range) => Err(CommandError::ExpansionRange),
        Ok(expansion) => Ok((expansion, false)),
    }
}

/// The layout behind the word LAYOUT. RedisBloom knows neither this word nor SEED, so only the
/// arguments behind the capacity are searched for them. A key with such a name stays a key.
fn layout_of(mut behind: Args<'_>) -> Result<Layout, CommandError> {
    let word = behind.next_optional().ok_or(CommandError::LayoutMissing)?;
    layout::parse(word).ok_or(CommandError::BadLayout)
}

/// The number behind the word SEED.
fn seed_of(mut behind: Args<'_>) -> Result<u64, CommandError> {
    let text = behind.next_optional().ok_or(CommandError::SeedMissing)?;
    number::seed(text).map_err(|error| error.or(CommandError::SeedSyntax, CommandError::SeedRange))
}

/// `BF.RESERVE key error_rate capacity [EXPANSION expansion | NONSCALING]
/// [LAYOUT CLASSIC | BLOCKED] [SEED seed] [WINDOW SECONDS t | ITEMS [GENERATIONS g]]`
pub fn reserve(
    context: &LazyContext<'_>,
    run: &mut Run<'_>,
    slot: &mut Slot<'_>,
    answers: &mut dyn Answers,
    changes: &mut dyn Changes,
) {
    let parsed = parse(run.next_args(RESERVE), &context.defaults);
    let reserved = parsed.and_then(|reserve| {
        let Reserve {
            key,
            parameters,
            ignored,
        } = reserve;
        changes.touch();
        // The header says everything about the filter.
        let vacant = slot.vacant()?;
        let header = header::encode(vacant.insert(new_filter(&parameters, context)?));
        if let Some(word) = ignored {
            answers.ignores(IgnoredWord {
                command: RESERVE,
                word,
            });
        }
        changes.replace(&[&[b"BF.LOADCHUNK", key, b"1", &header]]);
        Ok(Reply::OK)
    });
    answers.answer(reserved);
}
