//! CF.RESERVE: an empty filter with chosen parameters.

use std::ops::RangeInclusive;

use super::build;
use crate::args::Args;
use crate::context::{CuckooDefaults, LazyContext};
use crate::error::CommandError;
use crate::format::header;
use crate::number;
use crate::run::{Answers, Changes, IgnoredWord, Run};
use crate::slot::Slot;
use everbloom::CuckooFilter;
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
        let text = behind.next_optional().unwrap_or_default();
        number::within(text, &self.range).map_err(|error| error.or(self.syntax, self.outside))
    }
}

/// A request that was understood.
struct Reserve<'a> {
    key: &'a [u8],
    parameters: CuckooDefaults,
    /// The first word that says nothing.
    ignored: Option<&'a [u8]>,
}

fn parse<'a>(mut args: Args<'a>, defaults: &CuckooDefaults) -> Result<Reserve<'a>, CommandError> {
    if !args.remaining().is_multiple_of(2) {
        return Err(args.wrong_arity());
    }
    let (key, capacity) = (args.next_bytes()?, args.next_bytes()?);
    let capacity = number::integer(capacity).ok_or(CommandError::InsertCapacity)?;
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
    let ignored = args.next_pairs()?.iter().find(says_nothing);
    Ok(Reserve {
        key,
        parameters,
        ignored: ignored.map(|[word, _]| *word),
    })
}

/// `CF.RESERVE key capacity [BUCKETSIZE n] [MAXITERATIONS n] [EXPANSION n]`
pub fn reserve(
    context: &LazyContext<'_>,
    run: &mut Run<'_>,
    slot: &mut Slot<'_, CuckooFilter>,
    answers: &mut dyn Answers,
    changes: &mut dyn Changes,
) {
    let parsed = parse(run.next_args(RESERVE), &context.cuckoo);
    let reserved = parsed.and_then(|reserve| {
        let Reserve {
            key,
            parameters,
            ignored,
        } = reserve;
        changes.touch();
        let filter = slot.vacant()?.insert(build(&parameters, context)?);
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
