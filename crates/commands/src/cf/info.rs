//! CF.INFO, CF.DEBUG and CF.STATS: what a filter is and how full it is.

use crate::context::LazyContext;
use crate::run::{Answers, Run, count, map};
use crate::slot::ReadSlot;
use everbloom::CuckooFilter;
use everbloom_resp::Reply;

pub(crate) const INFO: &str = "cf.info";
pub(crate) const DEBUG: &str = "cf.debug";
pub(crate) const STATS: &str = "cf.stats";

/// The bytes that RedisBloom counts for a filter, besides the slots, and for each table. `Size` is
/// this sum on every host, whatever the memory really is, because clients plan with it.
const FILTER_BYTES: u64 = 40;
const TABLE_BYTES: u64 = 16;

type Found<'a> = ReadSlot<'a, CuckooFilter>;

/// Answers a command that only names a key.
fn describe(
    name: &'static str,
    run: &mut Run<'_>,
    slot: Found<'_>,
    answers: &mut dyn Answers,
    reply: impl FnOnce(&CuckooFilter) -> Reply,
) {
    let request = run.next_args(name).exactly();
    answers.answer(request.and_then(|[_]| slot.required()).map(reply));
}

/// `CF.INFO key`
pub fn info(_: &LazyContext<'_>, run: &mut Run<'_>, slot: Found<'_>, answers: &mut dyn Answers) {
    describe(INFO, run, slot, answers, |filter| {
        let tables = filter.tables() as u64;
        let beside = TABLE_BYTES
            .saturating_mul(tables)
            .saturating_add(FILTER_BYTES);
        map([
            ("Size", count(filter.stream_len().saturating_add(beside))),
            ("Number of buckets", count(filter.buckets())),
            ("Number of filters", count(tables)),
            ("Number of items inserted", count(filter.len())),
            ("Number of items deleted", count(filter.removed())),
            ("Bucket size", count(filter.bucket_size().into())),
            ("Expansion rate", count(filter.expansion().into())),
            ("Max iterations", count(filter.max_kicks().into())),
        ])
    });
}

/// `CF.DEBUG key`
pub fn debug(_: &LazyContext<'_>, run: &mut Run<'_>, slot: Found<'_>, answers: &mut dyn Answers) {
    describe(DEBUG, run, slot, answers, |filter| {
        Reply::bulk(format!(
            "bktsize:{} buckets:{} items:{} deletes:{} filters:{} max_iterations:{} expansion:{}",
            filter.bucket_size(),
            filter.buckets(),
            filter.len(),
            filter.removed(),
            filter.tables(),
            filter.max_kicks(),
            filter.expansion(),
        ))
    });
}

/// `CF.STATS key`: facts for which CF.INFO has no field.
pub fn stats(_: &LazyContext<'_>, run: &mut Run<'_>, slot: Found<'_>, answers: &mut dyn Answers) {
    describe(STATS, run, slot, answers, |filter| {
        let stats = filter.stats();
        // RedisBloom's kind has the rate that its tables give when they are full.
        let asked = stats.error_rate.unwrap_or_else(|| filter.full_error_rate());
        map([
            ("tables", count(filter.tables() as u64)),
            ("slots", count(filter.slots())),
            ("memory", count(filter.memory_usage() as u64)),
            ("items", count(filter.len())),
            ("load", Reply::Double(stats.fill_ratio)),
            ("error-rate", Reply::Double(asked)),
            (
                "expected-error-rate",
                Reply::Double(stats.estimated_error_rate),
            ),
            (
                "items-until-next-table",
                filter.expected_until_growth().map_or(Reply::Null, count),
            ),
        ])
    });
}
