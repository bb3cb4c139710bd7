//! CF.INSERT and CF.INSERTNX: add items, and make the filter with a capacity if it is missing.

use super::Parameters;
use super::insertion::{Which, insert_items};
use crate::args::Args;
use crate::context::{Context, CuckooDefaults};
use crate::error::CommandError;
use crate::number::{self, NumberError};
use crate::outcome::{Effect, Outcome};
use crate::slot::Slot;
use everbloom::CuckooFilter;
use everbloom_resp::{Protocol, Reply};

pub(crate) const INSERT: &str = "cf.insert";
pub(crate) const INSERTNX: &str = "cf.insertnx";

/// The answer for an item that was not added for lack of room.
const NO_ROOM: i64 = -1;

#[derive(Debug)]
struct Insert<'a> {
    key: &'a [u8],
    /// The parameters of the filter if it must be made.
    parameters: Parameters,
    create: bool,
    items: &'a [&'a [u8]],
    which: Which,
}

impl<'a> Insert<'a> {
    fn parse(
        mut args: Args<'a>,
        defaults: &CuckooDefaults,
        which: Which,
    ) -> Result<Self, CommandError> {
        let key = args.next_bytes()?;
        let mut parameters = Parameters::from(*defaults);
        let mut create = true;
        loop {
            // The first letter decides.
            match args.next_bytes()?.first().map(u8::to_ascii_lowercase) {
                Some(b'i') => break,
                Some(b'n') => create = false,
                Some(b'c') => {
                    let range = 2 * u64::from(defaults.bucket_size)..=*number::CAPACITY.end();
                    let capacity = number::within(args.next_bytes()?, &range);
                    parameters.capacity = capacity.map_err(|error| match error {
                        NumberError::Syntax => CommandError::InsertCapacity,
                        NumberError::Range => CommandError::CuckooInsertCapacityRange,
                    })?;
                }
                _ => return Err(CommandError::UnknownArgument),
            }
        }
        Ok(Self {
            key,
            parameters,
            create,
            items: args.next_rest()?,
            which,
        })
    }

    fn execute(
        &self,
        context: &Context,
        slot: &mut Slot<'_, CuckooFilter>,
    ) -> Result<(Reply, Effect), CommandError> {
        if slot.filter()?.is_none() && !self.create {
            return Err(CommandError::NotFound);
        }
        let mut answers = Vec::with_capacity(self.items.len());
        let emit = |answer| answers.push(answer);
        let change = insert_items(
            context,
            &self.parameters,
            self.items,
            self.which,
            slot,
            emit,
        )?;
        let replies = match (self.which, context.protocol) {
            (Which::All, Protocol::Resp3) => {
                Reply::Booleans(answers.into_iter().map(|it| it == Ok(true)).collect())
            }
            _ => {
                let number = |it: Result<bool, _>| Reply::Integer(it.map_or(NO_ROOM, i64::from));
                Reply::Array(answers.into_iter().map(number).collect())
            }
        };
        Ok((replies, change.effect(self.key)))
    }
}

/// `CF.INSERT key [CAPACITY n] [NOCREATE] ITEMS item ...`
pub fn insert(context: &Context, args: &[&[u8]], slot: &mut Slot<'_, CuckooFilter>) -> Outcome {
    run(Args::new(INSERT, args), Which::All, context, slot)
}

/// `CF.INSERTNX key [CAPACITY n] [NOCREATE] ITEMS item ...`
pub fn insertnx(context: &Context, args: &[&[u8]], slot: &mut Slot<'_, CuckooFilter>) -> Outcome {
    run(Args::new(INSERTNX, args), Which::Absent, context, slot)
}

fn run(
    args: Args<'_>,
    which: Which,
    context: &Context,
    slot: &mut Slot<'_, CuckooFilter>,
) -> Outcome {
    match Insert::parse(args, &context.cuckoo, which) {
        Ok(insert) => Outcome::answered(insert.execute(context, slot)),
        Err(error) => Outcome::bad_arguments(error),
    }
}
