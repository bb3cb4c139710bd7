//! BF.STATS: facts for which BF.INFO has no field. Clients of RedisBloom expect a fixed number of
//! fields in BF.INFO, so these facts need a command of their own.

use crate::context::LazyContext;
use crate::format::layout;
use crate::run::{Answers, Run, count, map};
use crate::slot::ReadSlot;
use everbloom::hash::Key;
use everbloom::host::{Generation, Layer, LayeredFilter, Window};
use everbloom_resp::Reply;

pub(crate) const STATS: &str = "bf.stats";

/// `BF.STATS key`
pub fn stats(
    context: &LazyContext<'_>,
    run: &mut Run<'_>,
    slot: ReadSlot<'_>,
    answers: &mut dyn Answers,
) {
    let request = run.next_args(STATS).exactly();
    let filter = request.and_then(|[_]| slot.required());
    answers.answer(filter.map(|filter| describe(filter, context.now_ms)));
}

fn describe(filter: &LayeredFilter, now: u64) -> Reply {
    let layers = filter.layers();
    // A host serves others, too: it does not read gigabytes for this.
    let sample = filter.sample();
    let entries = [
        ("layout", Reply::simple(layout::name(filter.layout()))),
        ("key", filter.key().map_or(Reply::Null, hex)),
        ("layers", count(layers.len() as u64)),
        ("bits", count(filter.stream_len().saturating_mul(8))),
        ("memory", count(filter.memory_usage() as u64)),
        ("items", count(filter.len_at(now))),
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
    let window = filter.window().map(|window| of_window(filter, window, now));
    map(entries.into_iter().chain(window.into_iter().flatten()))
}

/// What only a filter with a window has.
fn of_window(filter: &LayeredFilter, window: &Window, now: u64) -> [(&'static str, Reply); 3] {
    let of_generation = |(generation, items): (Generation, u64)| {
        // The clock says when a generation of seconds began. One of items has no age.
        let age = window.span.ticks();
        let age = age.map(|_| seconds(now.saturating_sub(generation.began)));
        map([("age", age.unwrap_or(Reply::Null)), ("items", count(items))])
    };
    let items = window.items(filter.layers().iter().map(Layer::len));
    let generations = items.map(of_generation).collect();
    let next = window.next_generation();
    let next = next.map(|end| seconds(end.saturating_sub(now)));
    [
        ("window", window.span.ticks().map_or(Reply::Null, seconds)),
        ("generations", Reply::Array(generations)),
        ("next-generation", next.unwrap_or(Reply::Null)),
    ]
}

/// Milliseconds as seconds.
fn seconds(milliseconds: u64) -> Reply {
    count(milliseconds / 1000)
}

fn hex(key: Key) -> Reply {
    let digits = key.to_bytes().map(|byte| format!("{byte:02x}"));
    Reply::bulk(digits.concat())
}

/// How many new items the newest layer still takes; null for a filter that does not grow.
fn items_until_next_layer(filter: &LayeredFilter) -> Reply {
    match filter.layers().last() {
        Some(newest) if !filter.is_fixed() => count(newest.capacity().saturating_sub(newest.len())),
        _ => Reply::Null,
    }
}
