//! CF.RESERVE: an empty filter with chosen parameters.

use std::ops::RangeInclusive;

use super::{build, builder, refusal};
use crate::args::Args;
use crate::context::{CuckooDefaults, LazyContext};
use crate::error::CommandError;
use crate::format::header;
use crate::number;
use crate::run::{Answers, Changes, IgnoredWord, Run};
use crate::slot::Slot;
use everbloom::{CuckooBuilder, CuckooFilter};
use everbloom_resp::Reply;

pub(crate) const RESERVE: &str = "cf.reserve";

/// An option: its word, the range of its number, and the errors of a number that is none, and of
/// one out of range.
struct Choice<N> {
    word: &'static [u8],
    range: RangeInclusive<N>,
    syntax: CommandError,
    outside: CommandError,
}

const ITERATIONS: Choice<u16> = Choice {
    word: b"MAXITERATIONS",
    range: 1..=u16::MAX,
    syntax: CommandError::IterationsSyntax,
    outside: CommandError::IterationsRange,
};
const BUCKET_SIZE: Choice<u8> = Choice {
    word: b"BUCKETSIZE",
    range: 1..=u8::MAX,
    syntax: CommandError::BucketSizeSyntax,
    outside: CommandError::BucketSizeRange,
};
const EXPANSION: Choice<u16> = Choice {
    word: b"EXPANSION",
    range: 0..=CuckooFilter::MAX_EXPANSION,
    syntax: CommandError::CuckooExpansionSyntax,
    outside: CommandError::CuckooExpansionRange,
};

impl<N: TryFrom<i64> + PartialOrd> Choice<N> {
    /// The number behind the word; `default` when the word is not there.
    ///
    /// RedisBloom looks for each word among all arguments, the key and the numbers included. It
    /// takes the first one it finds and ignores words that it does not know.
    fn read(self, args: &Args<'_>, default: N) -> Result<N, CommandError> {
        let Some(mut behind) = args.after_word(self.word) else {
            return Ok(default);
        };
        // RedisBloom reads past its arguments when there is none behind the word.
        self.number(behind.next_optional().unwrap_or_default())
    }

    fn number(self, text: &[u8]) -> Result<N, CommandError> {
        number::within(text, &self.range).map_err(|error| error.or(self.syntax, self.outside))
    }
}

const ERROR_RATE: &[u8] = b"ERROR";
const SEED: &[u8] = b"SEED";

/// A request that was understood.
struct Reserve<'a> {
    key: &'a [u8],
    filter: CuckooBuilder,
    /// Whether the filter needs a key for its hash from the host.
    needs_key: bool,
    /// The first word that says nothing.
    ignored: Option<&'a [u8]>,
}

fn parse<'a>(mut args: Args<'a>, context: &LazyContext<'_>) -> Result<Reserve<'a>, CommandError> {
    if !args.remaining().is_multiple_of(2) {
        return Err(args.wrong_arity());
    }
    let (key, capacity) = (args.next_bytes()?, args.next_bytes()?);
    let options = args.clone().next_pairs()?;
    let is_error_rate = |[word, _]: &[&[u8]; 2]| word.eq_ignore_ascii_case(ERROR_RATE);
    // In a log, or from a primary, this is RedisBloom's command, which ignores the word.
    if context.clock().is_some() && options.iter().any(is_error_rate) {
        if context.classic_only {
            return Err(CommandError::RedisBloomCuckooOnly);
        }
        return keyed(key, capacity, options);
    }
    let capacity = number::integer(capacity).ok_or(CommandError::InsertCapacity)?;
    let defaults = &context.cuckoo;
    let max_iterations = ITERATIONS.read(&args, defaults.max_iterations)?;
    let bucket_size = BUCKET_SIZE.read(&args, defaults.bucket_size)?;
    let expansion = EXPANSION.read(&args, defaults.expansion)?;
    let range = 2 * u64::from(bucket_size)..=*number::CAPACITY.end();
    let capacity = u64::try_from(capacity).ok().filter(|it| range.contains(it));
    let parameters = CuckooDefaults {
        initial_size: capacity.ok_or(CommandError::CuckooCapacityRange)?,
        bucket_size,
        max_iterations,
        expansion,
        ..*defaults
    };
    let known = [ITERATIONS.word, BUCKET_SIZE.word, EXPANSION.word];
    let says_nothing =
        |pair: &&[&[u8]; 2]| !known.iter().any(|it| pair[0].eq_ignore_ascii_case(it));
    let ignored = options.iter().find(says_nothing);
    Ok(Reserve {
        key,
        filter: builder(&parameters),
        needs_key: false,
        ignored: ignored.map(|[word, _]| *word),
    })
}

/// A filter with a chosen error rate. RedisBloom has none, so no word needs to be ignored here.
fn keyed<'a>(
    key: &'a [u8],
    capacity: &[u8],
    options: &[[&[u8]; 2]],
) -> Result<Reserve<'a>, CommandError> {
    let (syntax, range) = (CommandError::InsertCapacity, CommandError::CapacityRange);
    let capacity = number::capacity(capacity).map_err(|error| error.or(syntax, range))?;
    let (mut rate, mut seed, mut expansion) = (None, None, None);
    for [word, text] in options {
        let is = |known: &[u8]| word.eq_ignore_ascii_case(known);
        if is(ERROR_RATE) && rate.is_none() {
            let found = number::error_rate(text);
            let (syntax, range) = (
                CommandError::CuckooErrorRateSyntax,
                CommandError::CuckooErrorRateRange,
            );
            rate = Some(found.map_err(|error| error.or(syntax, range))?);
        } else if is(SEED) && seed.is_none() {
            let (syntax, range) = (CommandError::SeedSyntax, CommandError::SeedRange);
            seed = Some(number::seed(text).map_err(|error| error.or(syntax, range))?);
        } else if is(EXPANSION.word) && expansion.is_none() {
            expansion = Some(EXPANSION.number(text)?);
        } else {
            return Err(CommandError::CuckooErrorRateOptions);
        }
    }
    let mut filter = CuckooFilter::builder().capacity(capacity);
    if let Some(rate) = rate {
        filter = filter.error_rate(rate);
    }
    if let Some(expansion) = expansion {
        filter = filter.expansion(expansion);
    }
    // A missing seed is replaced when it is known that the filter is made.
    filter = filter.seed(seed.unwrap_or_default());
    filter.parts().map_err(refusal)?;
    Ok(Reserve {
        key,
        filter,
        needs_key: seed.is_none(),
        ignored: None,
    })
}

/// `CF.RESERVE key capacity [BUCKETSIZE n] [MAXITERATIONS n] [EXPANSION n]`, or
/// `CF.RESERVE key capacity ERROR rate [SEED n] [EXPANSION n]`
pub fn reserve(
    context: &LazyContext<'_>,
    run: &mut Run<'_>,
    slot: &mut Slot<'_, CuckooFilter>,
    answers: &mut dyn Answers,
    changes: &mut dyn Changes,
) {
    let parsed = parse(run.next_args(RESERVE), context);
    let reserved = parsed.and_then(|reserve| {
        let Reserve {
            key,
            mut filter,
            needs_key,
            ignored,
        } = reserve;
        changes.touch();
        let vacant = slot.vacant()?;
        if needs_key {
            filter = filter.key(context.keys.0());
        }
        let filter = vacant.insert(build(filter, context)?);
        if let Some(word) = ignored {
            answers.ignores(IgnoredWord {
                command: RESERVE,
                word,
            });
        }
        // The header says everything about the filter.
        let header = header::cuckoo::encode(&filter.parts());
        changes.replace(&[&[b"CF.LOADCHUNK", key, b"1", &header]]);
        Ok(Reply::OK)
    });
    answers.answer(reserved);
}
