//! BF.INFO and BF.CARD: what a filter is and how full it is.

use super::count;
use crate::args::Args;
use crate::context::LazyContext;
use crate::error::CommandError;
use crate::run::{Answers, Run};
use crate::slot::ReadSlot;
use everbloom::Layout;
use everbloom::host::LayeredFilter;
use everbloom_resp::{Protocol, Reply};

pub(crate) const INFO: &str = "bf.info";
pub(crate) const CARD: &str = "bf.card";

/// The bytes that RedisBloom counts for a filter, besides the bit arrays, and for each layer.
/// `Size` is this sum on every host, whatever the memory really is, because clients plan with it.
const FILTER_BYTES: u64 = 32;
const LAYER_BYTES: u64 = 64;

/// One line of BF.INFO.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Field {
    Capacity,
    Size,
    Filters,
    Items,
    Expansion,
    Error,
    Tightening,
    MaxScaledCapacity,
}

use Field::*;

/// The fields with the words that ask for them and their labels. The last three only valkey-bloom
/// has. A reply without a word has all others.
const FIELDS: [(Field, &str, &str); 8] = [
    (Capacity, "CAPACITY", "Capacity"),
    (Size, "SIZE", "Size"),
    (Filters, "FILTERS", "Number of filters"),
    (Items, "ITEMS", "Number of items inserted"),
    (Expansion, "EXPANSION", "Expansion rate"),
    (Error, "ERROR", "Error rate"),
    (Tightening, "TIGHTENING", "Tightening ratio"),
    (
        MaxScaledCapacity,
        "MAXSCALEDCAPACITY",
        "Max scaled capacity",
    ),
];

impl Field {
    fn is_of_valkey(self) -> bool {
        matches!(self, Error | Tightening | MaxScaledCapacity)
    }

    /// The value, if the filter has this field.
    fn value(self, filter: &LayeredFilter, context: &LazyContext<'_>) -> Option<Reply> {
        Some(match self {
            Self::Capacity => count(filter.capacity()),
            Self::Size => count(size(filter)),
            Self::Filters => count(filter.layers().len().try_into().unwrap_or(u64::MAX)),
            Self::Items => count(filter.len_at(context.now_ms)),
            Self::Expansion if filter.is_fixed() => Reply::Null,
            Self::Expansion => Reply::Integer(filter.expansion().into()),
            Self::Error => Reply::Double(filter.error_rate()),
            Self::Tightening if filter.is_fixed() || filter.layout() == Layout::Blocked => {
                return None;
            }
            Self::Tightening => Reply::Double(filter.valkey().map_or(0.5, |it| it.tightening)),
            Self::MaxScaledCapacity => count(max_capacity(filter, context.max_filter_bytes)?),
        })
    }
}

fn size(filter: &LayeredFilter) -> u64 {
    let layers = filter
        .layers()
        .iter()
        .map(|layer| LAYER_BYTES.saturating_add(layer.bytes()));
    layers.fold(FILTER_BYTES, u64::saturating_add)
}

/// The items that a growing filter of valkey-bloom has room for in the end.
fn max_capacity(filter: &LayeredFilter, max_bytes: u64) -> Option<u64> {
    let valkey = filter.valkey().filter(|_| !filter.is_fixed())?;
    let first = filter.layers().first()?.capacity();
    Some(valkey.max_capacity(first, filter.error_rate(), filter.expansion(), max_bytes))
}

fn reply(
    mut args: Args<'_>,
    context: &LazyContext<'_>,
    slot: ReadSlot<'_>,
) -> Result<Reply, CommandError> {
    args.next_bytes()?;
    let word = args.next_optional();
    args.finish()?;
    // The key is checked before the word: RedisBloom answers `not found` even to a wrong word.
    let filter = slot.required()?;
    let Some(word) = word else {
        let fields = FIELDS.iter().filter(|(field, ..)| !field.is_of_valkey());
        let entries = fields.filter_map(|(field, _, label)| {
            Some((Reply::simple(*label), field.value(filter, context)?))
        });
        return Ok(Reply::Map(entries.collect()));
    };
    let mut fields = FIELDS.iter();
    let found = fields.find(|(_, name, _)| name.as_bytes().eq_ignore_ascii_case(word));
    let (field, _, label) = found.ok_or(CommandError::InvalidInformation)?;
    let value = field.value(filter, context);
    let value = value.ok_or(CommandError::InvalidInformation)?;
    // Fields that only valkey-bloom has are bare values there.
    Ok(match context.protocol {
        _ if field.is_of_valkey() => value,
        Protocol::Resp2 => Reply::Array(vec![value]),
        Protocol::Resp3 => Reply::Map(vec![(Reply::simple(*label), value)]),
    })
}

/// `BF.INFO key [CAPACITY | SIZE | FILTERS | ITEMS | EXPANSION | ERROR | TIGHTENING |
/// MAXSCALEDCAPACITY]`
pub fn info(
    context: &LazyContext<'_>,
    run: &mut Run<'_>,
    slot: ReadSlot<'_>,
    answers: &mut dyn Answers,
) {
    answers.answer(reply(run.next_args(INFO), context, slot));
}

/// `BF.CARD key`
pub fn card(
    context: &LazyContext<'_>,
    run: &mut Run<'_>,
    slot: ReadSlot<'_>,
    answers: &mut dyn Answers,
) {
    let request = run.next_args(CARD).exactly();
    answers.answer(request.and_then(|[_]| match slot {
        ReadSlot::Missing => Ok(Reply::Integer(0)),
        ReadSlot::Held(filter) => Ok(count(filter.len_at(context.now_ms))),
        ReadSlot::OtherType => Err(CommandError::WrongType),
    }));
}
