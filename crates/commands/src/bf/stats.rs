//! BF.STATS: facts for which BF.INFO has no field. Clients of RedisBloom expect a fixed number of
//! fields in BF.INFO, so these facts need a command of their own.

use super::count;
use crate::args::Args;
use crate::context::Context;
use crate::error::CommandError;
use crate::format::layout;
use crate::run::{Answers, Run};
use crate::slot::ReadSlot;
use everbloom::ScalableBloomFilter;
use everbloom::hash::Key;
use everbloom_resp::Reply;

pub(crate) const STATS: &str = "bf.stats";

/// `BF.STATS key`
pub fn stats(_: &Context, run: &mut Run<'_>, slot: ReadSlot<'_>, answers: &mut dyn Answers) {
    let parsed = parse(run.next_args(STATS));
    answers.answer(parsed.and_then(|()| slot.required()).map(describe))
}

fn parse(mut args: Args<'_>) -> Result<(), CommandError> {
    args.next_bytes()?;
    args.finish()
}

fn describe(filter: &ScalableBloomFilter) -> Reply {
    let layers = filter.layers();
    // A host serves others, too: it does not read gigabytes for this.
    let sample = filter.sample();
    let entries = [
        ("layout", Reply::simple(layout::name(filter.layout()))),
        ("key", filter.key().map_or(Reply::Null, hex)),
        ("layers", count(layers.len() as u64)),
        ("bits", count(filter.stream_len().saturating_mul(8))),
        ("memory", count(filter.memory_usage() as u64)),
        ("items", count(filter.len())),
        ("capacity", count(filter.capacity())),
        ("fill-ratio", Reply::Double(sample.fill_ratio)),
        ("error-rate", Reply::Double(filter.error_rate())),
        (
            "expected-error-rate",
            Reply::Double(sample.estimated_error_rate),
        ),
        ("items-until-next-layer", items_until_next_layer(filter)),
        ("sampling-error", Reply::Double(sample.error)),
    ];
    let entry = |(label, value)| (Reply::simple(label), value);
    Reply::Map(entries.into_iter().map(entry).collect())
}

fn hex(key: Key) -> Reply {
    let digits = key.to_bytes().map(|byte| format!("{byte:02x}"));
    Reply::bulk(digits.concat())
}

/// How many new items the newest layer still takes; null for a filter that does not grow.
fn items_until_next_layer(filter: &ScalableBloomFilter) -> Reply {
    match filter.layers().last() {
        Some(newest) if !filter.is_fixed() => count(newest.capacity().saturating_sub(newest.len())),
        _ => Reply::Null,
    }
}
