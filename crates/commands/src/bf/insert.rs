//! BF.INSERT: adds items, and makes the filter with chosen parameters if it is missing.

use super::add::insert_all;
use super::{Parameters, window};
use crate::args::Args;
use crate::context::{Context, Defaults};
use crate::error::CommandError;
use crate::format::layout;
use crate::number;
use crate::run::{Answers, Changes, Run};
use crate::slot::Slot;

pub(crate) const INSERT: &str = "bf.insert";

#[derive(Debug)]
struct Insert<'a> {
    key: &'a [u8],
    /// The parameters of the filter if it must be made.
    parameters: Parameters,
    create: bool,
    items: &'a [&'a [u8]],
}

/// An option word. The first letters decide; only LAYOUT, SEED and WINDOW, which RedisBloom does
/// not have, must be complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Word {
    Items,
    Capacity,
    Error,
    Expansion,
    NoCreate,
    NonScaling,
    Layout,
    Seed,
    Window,
}

impl Word {
    fn parse(text: &[u8]) -> Option<Self> {
        let letter = |at: usize| text.get(at).map(u8::to_ascii_lowercase);
        match (letter(0)?, letter(1), letter(2)) {
            (b'i', _, _) => Some(Self::Items),
            (b'c', _, _) => Some(Self::Capacity),
            (b'e', Some(b'r'), _) => Some(Self::Error),
            (b'e', _, _) => Some(Self::Expansion),
            (b'n', _, Some(b'c')) => Some(Self::NoCreate),
            (b'n', _, _) => Some(Self::NonScaling),
            _ if text.eq_ignore_ascii_case(b"LAYOUT") => Some(Self::Layout),
            _ if text.eq_ignore_ascii_case(b"SEED") => Some(Self::Seed),
            _ if text.eq_ignore_ascii_case(b"WINDOW") => Some(Self::Window),
            _ => None,
        }
    }
}

impl<'a> Insert<'a> {
    fn parse(mut args: Args<'a>, defaults: &Defaults) -> Result<Self, CommandError> {
        let key = args.next_bytes()?;
        let mut parameters = Parameters::from(*defaults);
        let mut create = true;
        loop {
            let word = Word::parse(args.next_bytes()?).ok_or(CommandError::UnknownArgument)?;
            match word {
                Word::Items => break,
                Word::NoCreate => create = false,
                Word::NonScaling => parameters.non_scaling = true,
                Word::Capacity => {
                    parameters.capacity = number::capacity(args.next_bytes()?)
                        .map_err(|_| CommandError::InsertCapacity)?;
                }
                Word::Error => {
                    parameters.error_rate = number::error_rate(args.next_bytes()?)
                        .map_err(|_| CommandError::InsertErrorRate)?;
                }
                Word::Expansion => {
                    parameters.expansion = number::expansion(args.next_bytes()?)
                        .map_err(|_| CommandError::InsertExpansion)?;
                }
                Word::Layout => {
                    let layout = layout::parse(args.next_bytes()?);
                    parameters.layout = Some(layout.ok_or(CommandError::InsertLayout)?);
                }
                Word::Seed => {
                    let seed = number::seed(args.next_bytes()?);
                    parameters.seed = Some(seed.map_err(|_| CommandError::InsertSeed)?);
                }
                Word::Window => parameters.window = Some(window::parse(&mut args)?),
            }
        }
        let items = args.next_rest()?;
        Ok(Self {
            key,
            parameters: parameters.check(defaults)?,
            create,
            items,
        })
    }

    fn execute(
        &self,
        context: &Context,
        slot: &mut Slot<'_>,
        answers: &mut dyn Answers,
        changes: &mut dyn Changes,
    ) -> Result<(), CommandError> {
        changes.touch();
        if slot.filter()?.is_none() && !self.create {
            return Err(CommandError::NotFound);
        }
        let Insert {
            parameters,
            key,
            items,
            ..
        } = self;
        insert_all(context, parameters, key, items, slot, answers)?.note(changes);
        Ok(())
    }
}

/// `BF.INSERT key [CAPACITY n] [ERROR rate] [EXPANSION n] [NOCREATE] [NONSCALING]
/// [LAYOUT CLASSIC | BLOCKED] [SEED seed] [WINDOW SECONDS t | ITEMS [GENERATIONS g]]
/// ITEMS item ...`
pub fn insert(
    context: &Context,
    run: &mut Run<'_>,
    slot: &mut Slot<'_>,
    answers: &mut dyn Answers,
    changes: &mut dyn Changes,
) {
    let insert = Insert::parse(run.next_args(INSERT), &context.defaults);
    let inserted = insert.and_then(|insert| insert.execute(context, slot, answers, changes));
    inserted.unwrap_or_else(|error| answers.error(error));
}
