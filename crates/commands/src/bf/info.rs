//! BF.INFO and BF.CARD: what a filter is and how full it is.

use super::count;
use crate::args::Args;
use crate::context::Context;
use crate::error::CommandError;
use crate::run::{Answers, Run};
use crate::slot::ReadSlot;
use everbloom::{Layout, ScalableBloomFilter};
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

impl Field {
    /// Those of RedisBloom, which a reply without a word has.
    const THEIRS: [Self; 5] = [
        Self::Capacity,
        Self::Size,
        Self::Filters,
        Self::Items,
        Self::Expansion,
    ];

    /// Those that only valkey-bloom has.
    const VALKEYS: [Self; 3] = [Self::Error, Self::Tightening, Self::MaxScaledCapacity];

    fn word(self) -> &'static [u8] {
        match self {
            Self::Capacity => b"CAPACITY",
            Self::Size => b"SIZE",
            Self::Filters => b"FILTERS",
            Self::Items => b"ITEMS",
            Self::Expansion => b"EXPANSION",
            Self::Error => b"ERROR",
            Self::Tightening => b"TIGHTENING",
            Self::MaxScaledCapacity => b"MAXSCALEDCAPACITY",
        }
    }

    fn label(self) -> &'static str {
        match self {
            Self::Capacity => "Capacity",
            Self::Size => "Size",
            Self::Filters => "Number of filters",
            Self::Items => "Number of items inserted",
            Self::Expansion => "Expansion rate",
            Self::Error => "Error rate",
            Self::Tightening => "Tightening ratio",
            Self::MaxScaledCapacity => "Max scaled capacity",
        }
    }

    fn parse(text: &[u8]) -> Result<Self, CommandError> {
        Self::THEIRS
            .into_iter()
            .chain(Self::VALKEYS)
            .find(|field| field.word().eq_ignore_ascii_case(text))
            .ok_or(CommandError::InvalidInformation)
    }

    /// The value, if the filter has this field.
    fn value(self, filter: &ScalableBloomFilter, context: &Context) -> Option<Reply> {
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

    fn entry(self, filter: &ScalableBloomFilter, context: &Context) -> Option<(Reply, Reply)> {
        Some((Reply::simple(self.label()), self.value(filter, context)?))
    }
}

fn size(filter: &ScalableBloomFilter) -> u64 {
    let layers = filter
        .layers()
        .iter()
        .map(|layer| LAYER_BYTES.saturating_add(layer.bytes()));
    layers.fold(FILTER_BYTES, u64::saturating_add)
}

/// The items that a growing filter of valkey-bloom has room for in the end.
fn max_capacity(filter: &ScalableBloomFilter, max_bytes: u64) -> Option<u64> {
    let valkey = filter.valkey().filter(|_| !filter.is_fixed())?;
    let first = filter.layers().first()?.capacity();
    Some(valkey.max_capacity(first, filter.error_rate(), filter.expansion(), max_bytes))
}

fn reply(mut args: Args<'_>, context: &Context, slot: ReadSlot<'_>) -> Result<Reply, CommandError> {
    args.next_bytes()?;
    let word = args.next_optional();
    args.finish()?;
    // The key is checked before the word: RedisBloom answers `not found` even to a wrong word.
    let filter = slot.required()?;
    let Some(word) = word else {
        let entries = Field::THEIRS.iter();
        let entries = entries.filter_map(|field| field.entry(filter, context));
        return Ok(Reply::Map(entries.collect()));
    };
    let field = Field::parse(word)?;
    let entry = field.entry(filter, context);
    let (label, value) = entry.ok_or(CommandError::InvalidInformation)?;
    // Fields that only valkey-bloom has are bare values there.
    Ok(match context.protocol {
        _ if Field::VALKEYS.contains(&field) => value,
        Protocol::Resp2 => Reply::Array(vec![value]),
        Protocol::Resp3 => Reply::Map(vec![(label, value)]),
    })
}

/// `BF.INFO key [CAPACITY | SIZE | FILTERS | ITEMS | EXPANSION | ERROR | TIGHTENING |
/// MAXSCALEDCAPACITY]`
pub fn info(context: &Context, run: &mut Run<'_>, slot: ReadSlot<'_>, answers: &mut dyn Answers) {
    answers.answer(reply(run.next_args(INFO), context, slot));
}

/// `BF.CARD key`
pub fn card(context: &Context, run: &mut Run<'_>, slot: ReadSlot<'_>, answers: &mut dyn Answers) {
    let request = run.next_args(CARD).exactly();
    answers.answer(request.and_then(|[_]| match slot {
        ReadSlot::Missing => Ok(Reply::Integer(0)),
        ReadSlot::Held(filter) => Ok(count(filter.len_at(context.now_ms))),
        ReadSlot::OtherType => Err(CommandError::WrongType),
    }));
}
