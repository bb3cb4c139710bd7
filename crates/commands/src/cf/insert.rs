//! CF.INSERT and CF.INSERTNX: add items, and make the filter with a capacity if it is missing.

use super::insertion::{Which, begin, insert_items, replayed};
use crate::args::Args;
use crate::context::{CuckooDefaults, LazyContext};
use crate::error::CommandError;
use crate::insertion::Insertion;
use crate::number;
use crate::run::{Answers, Changes, Run};
use crate::slot::Slot;
use everbloom::CuckooFilter;
use everbloom_resp::Protocol;

pub(crate) const INSERT: &str = "cf.insert";
pub(crate) const INSERTNX: &str = "cf.insertnx";

/// The answer for an item that was not added for lack of room.
const NO_ROOM: i64 = -1;

#[derive(Debug)]
struct Insert<'a> {
    key: &'a [u8],
    /// The parameters of the filter if it must be made.
    parameters: CuckooDefaults,
    create: bool,
    items: &'a [&'a [u8]],
}

impl<'a> Insert<'a> {
    fn parse(mut args: Args<'a>, defaults: &CuckooDefaults) -> Result<Self, CommandError> {
        let key = args.next_bytes()?;
        let mut parameters = *defaults;
        let mut create = true;
        loop {
            // The first letter decides.
            match args.next_bytes()?.first().map(u8::to_ascii_lowercase) {
                Some(b'i') => break,
                Some(b'n') => create = false,
                Some(b'c') => {
                    let range = 2 * u64::from(defaults.bucket_size)..=*number::CAPACITY.end();
                    let capacity = number::within(args.next_bytes()?, &range);
                    let range = CommandError::CuckooInsertCapacityRange;
                    parameters.initial_size =
                        capacity.map_err(|error| error.or(CommandError::InsertCapacity, range))?;
                }
                _ => return Err(CommandError::UnknownArgument),
            }
        }
        Ok(Self {
            key,
            parameters,
            create,
            items: args.next_rest()?,
        })
    }
}

/// `CF.INSERT key [CAPACITY n] [NOCREATE] ITEMS item ...`, and CF.INSERTNX, which adds only items
/// that are `ABSENT`.
pub fn insert<const ABSENT: bool>(
    context: &LazyContext<'_>,
    run: &mut Run<'_>,
    slot: &mut Slot<'_, CuckooFilter>,
    answers: &mut dyn Answers,
    changes: &mut dyn Changes,
) {
    let (name, which) = match ABSENT {
        true => (INSERTNX, Which::Absent),
        false => (INSERT, Which::All),
    };
    let parsed = Insert::parse(run.next_args(name), &context.cuckoo);
    let inserted = parsed.and_then(|insert| {
        changes.touch();
        if slot.filter()?.is_none() && !insert.create {
            return Err(CommandError::NotFound);
        }
        let (items, missing) = (insert.items, &insert.parameters);
        let mut added = Insertion::default();
        added.reserve(items.len())?;
        let filter = begin(context, missing, slot, &mut added)?;
        answers.array(items.len());
        let as_booleans = which == Which::All && context.protocol == Protocol::Resp3;
        let emit = |result: Result<bool, _>| {
            if let Err(error) = result {
                answers.stands_for(error);
            }
            match as_booleans {
                true => answers.boolean(result == Ok(true)),
                false => answers.integer(result.map_or(NO_ROOM, i64::from)),
            }
        };
        let items = items.iter().copied();
        insert_items(context, filter, &mut added, items, (which, true), emit);
        added.note(replayed(filter), insert.key, changes);
        Ok(())
    });
    inserted.unwrap_or_else(|error| answers.error(error));
}
