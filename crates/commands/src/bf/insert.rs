//! BF.INSERT: adds items, and makes the filter with chosen parameters if it is missing.

use std::ops::RangeInclusive;

use super::add::insert_all;
use super::{Parameters, window};
use crate::args::Args;
use crate::context::LazyContext;
use crate::error::CommandError;
use crate::format::layout;
use crate::insertion::Insertion;
use crate::number::{self, CAPACITY, EXPANSION, VALKEY_CAPACITY, VALKEY_EXPANSION};
use crate::run::{Answers, Changes, Run};
use crate::slot::Slot;
use everbloom::redisbloom::ValkeyBloom;

pub(crate) const INSERT: &str = "bf.insert";

#[derive(Debug)]
struct Insert<'a> {
    key: &'a [u8],
    /// The parameters of the filter if it must be made.
    parameters: Parameters,
    create: bool,
    valkey: Valkey,
    /// The error of a number that only valkey-bloom's filters may have.
    beyond: Option<CommandError>,
    items: &'a [&'a [u8]],
}

/// What only valkey-bloom's BF.INSERT has. With any of it, the new filter is as valkey-bloom's.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Valkey {
    seed: Option<[u8; 32]>,
    tightening: Option<f64>,
    scale_to: Option<u64>,
}

impl Valkey {
    /// The usual tightening ratio of valkey-bloom.
    const TIGHTENING: f64 = 0.5;

    fn is_given(&self) -> bool {
        *self != Valkey::default()
    }

    /// The filter's parameters, if it can grow as far as it must.
    fn check(
        &self,
        parameters: &Parameters,
        context: &LazyContext<'_>,
    ) -> Result<Option<ValkeyBloom>, CommandError> {
        if !self.is_given() {
            return Ok(None);
        }
        let valkey = ValkeyBloom {
            seed: self.seed.unwrap_or(ValkeyBloom::FIXED_SEED),
            tightening: self.tightening.unwrap_or(Self::TIGHTENING),
        };
        let Some(wanted) = self.scale_to else {
            return Ok(Some(valkey));
        };
        if parameters.non_scaling || parameters.expansion == 0 {
            return Err(CommandError::ScaleToFixed);
        }
        let Parameters {
            capacity,
            error_rate,
            expansion,
            ..
        } = *parameters;
        let reached = |bytes| valkey.max_capacity(capacity, error_rate, expansion, bytes);
        if reached(u64::MAX) < wanted {
            return Err(CommandError::ScaleTo);
        }
        if reached(context.max_filter_bytes) < wanted {
            return Err(CommandError::ScaleToMemory);
        }
        Ok(Some(valkey))
    }
}

impl<'a> Insert<'a> {
    fn parse(mut args: Args<'a>, context: &LazyContext<'_>) -> Result<Self, CommandError> {
        let mut insert = Insert {
            key: args.next_bytes()?,
            parameters: Parameters::from(context.defaults),
            create: true,
            valkey: Valkey::default(),
            beyond: None,
            items: &[],
        };
        loop {
            let word = match args.next_optional() {
                // valkey-bloom replicates BF.RESERVE as a BF.INSERT without items.
                None if insert.valkey.is_given() => break,
                None => return Err(insert.beyond.unwrap_or(args.wrong_arity())),
                // ITEMS.
                Some([b'i' | b'I', ..]) => break,
                Some(word) => word,
            };
            let taken = insert.take(word, &mut args);
            taken.map_err(|error| insert.beyond.unwrap_or(error))?;
        }
        insert.items = match (insert.valkey.is_given(), insert.beyond) {
            (true, _) => args.rest(),
            (false, Some(error)) => return Err(error),
            (false, None) => args.next_rest()?,
        };
        let parameters = &mut insert.parameters;
        parameters.valkey = insert.valkey.check(parameters, context)?;
        parameters.check(&context.defaults)?;
        Ok(insert)
    }

    /// Reads an option that begins with this word. The first letters decide; only words that
    /// RedisBloom does not have must be complete. TIGHTENING and VALIDATESCALETO are valkey-bloom's.
    fn take(&mut self, word: &[u8], args: &mut Args<'_>) -> Result<(), CommandError> {
        let parameters = &mut self.parameters;
        let is = |whole: &[u8]| word.eq_ignore_ascii_case(whole);
        match [0, 1, 2].map(|at| word.get(at).map_or(0, u8::to_ascii_lowercase)) {
            [b'c', ..] => {
                let (text, ranges) = (args.next_bytes()?, [&CAPACITY, &VALKEY_CAPACITY]);
                let error = CommandError::InsertCapacity;
                parameters.capacity = wide(&mut self.beyond, text, ranges, error)?;
            }
            [b'e', b'r', _] => {
                let rate = number::error_rate(args.next_bytes()?);
                parameters.error_rate = rate.map_err(|_| CommandError::InsertErrorRate)?;
            }
            [b'e', ..] => {
                let (text, ranges) = (args.next_bytes()?, [&EXPANSION, &VALKEY_EXPANSION]);
                let error = CommandError::InsertExpansion;
                parameters.expansion = wide(&mut self.beyond, text, ranges, error)?;
            }
            [b'n', _, b'c'] => self.create = false,
            [b'n', ..] => parameters.non_scaling = true,
            _ if is(b"LAYOUT") => {
                let layout = layout::parse(args.next_bytes()?);
                parameters.layout = Some(layout.ok_or(CommandError::InsertLayout)?);
            }
            _ if is(b"SEED") => {
                let text = args.next_bytes()?;
                match text.try_into() {
                    Ok(seed) => self.valkey.seed = Some(seed),
                    Err(_) => {
                        let seed = number::seed(text);
                        parameters.seed = Some(seed.map_err(|_| CommandError::InsertSeed)?);
                    }
                }
            }
            _ if is(b"TIGHTENING") => {
                let ratio = number::error_rate(args.next_bytes()?);
                self.valkey.tightening = Some(ratio.map_err(|_| CommandError::Tightening)?);
            }
            _ if is(b"VALIDATESCALETO") => {
                let capacity = number::within(args.next_bytes()?, &VALKEY_CAPACITY);
                self.valkey.scale_to = Some(capacity.map_err(|_| CommandError::InsertCapacity)?);
            }
            _ if is(b"WINDOW") => parameters.window = Some(window::parse(args)?),
            _ => return Err(CommandError::UnknownArgument),
        }
        Ok(())
    }
}

/// A number within RedisBloom's range, or else within valkey-bloom's.
fn wide<N: TryFrom<i64> + PartialOrd>(
    beyond: &mut Option<CommandError>,
    text: &[u8],
    [redisbloom, valkey]: [&RangeInclusive<N>; 2],
    error: CommandError,
) -> Result<N, CommandError> {
    number::within(text, redisbloom).or_else(|_| {
        beyond.get_or_insert(error);
        number::within(text, valkey).map_err(|_| error)
    })
}

/// `BF.INSERT key [CAPACITY n] [ERROR rate] [EXPANSION n] [NOCREATE] [NONSCALING]
/// [LAYOUT CLASSIC | BLOCKED] [SEED seed] [WINDOW SECONDS t | ITEMS [GENERATIONS g]]
/// [TIGHTENING ratio] [VALIDATESCALETO n] ITEMS item ...`
pub fn insert(
    context: &LazyContext<'_>,
    run: &mut Run<'_>,
    slot: &mut Slot<'_>,
    answers: &mut dyn Answers,
    changes: &mut dyn Changes,
) {
    let parsed = Insert::parse(run.next_args(INSERT), context);
    let inserted = parsed.and_then(|insert| {
        changes.touch();
        if slot.filter()?.is_none() && !insert.create {
            return Err(CommandError::NotFound);
        }
        let (mut added, missing) = (Insertion::default(), || insert.parameters);
        let replayed = insert_all(context, missing, insert.items, slot, &mut added, answers)?;
        added.note(replayed, insert.key, changes);
        Ok(())
    });
    inserted.unwrap_or_else(|error| answers.error(error));
}
