//! The settings of cuckoo filters.

use std::fmt::Display;
use std::ops::RangeInclusive;

use everbloom::CuckooFilter;
use everbloom_commands::number;

use super::row::{Parameter, put};
use super::text::refused;

pub(super) const BUCKET_SIZE: Parameter = Parameter::new(
    "cf-bucket-size",
    "Slots per bucket of filters that CF.ADD creates. More slots fill better and err more.",
    (
        |s| s.cf.bucket_size.to_string(),
        |s, text| {
            // A table has at least two buckets.
            let most = u8::try_from(s.cf.initial_size / 2).unwrap_or(u8::MAX);
            let value = ranged("cf-bucket-size", text, 1..=most);
            put(&mut s.cf.bucket_size, value)
        },
    ),
)
.alias("bf.cf-bucket-size");

pub(super) const INITIAL_SIZE: Parameter = Parameter::new(
    "cf-initial-size",
    "Minimum number of slots of these filters.",
    (
        |s| s.cf.initial_size.to_string(),
        |s, text| {
            let range = 2 * u64::from(s.cf.bucket_size)..=*number::CAPACITY.end();
            put(
                &mut s.cf.initial_size,
                ranged("cf-initial-size", text, range),
            )
        },
    ),
)
.alias("bf.cf-initial-size");

pub(super) const MAX_ITERATIONS: Parameter = Parameter::new(
    "cf-max-iterations",
    "Maximum number of items moved to make room for one.",
    (
        |s| s.cf.max_iterations.to_string(),
        |s, text| {
            let value = ranged("cf-max-iterations", text, 1..=u16::MAX);
            put(&mut s.cf.max_iterations, value)
        },
    ),
)
.alias("bf.cf-max-iterations");

pub(super) const EXPANSION_FACTOR: Parameter = Parameter::new(
    "cf-expansion-factor",
    "How many times larger each further table of these filters is. 0 disables growth.",
    (
        |s| s.cf.expansion.to_string(),
        |s, text| {
            let range = 0..=CuckooFilter::MAX_EXPANSION;
            put(
                &mut s.cf.expansion,
                ranged("cf-expansion-factor", text, range),
            )
        },
    ),
)
.alias("bf.cf-expansion-factor");

pub(super) const MAX_EXPANSIONS: Parameter = Parameter::new(
    "cf-max-expansions",
    "Maximum number of tables of a cuckoo filter.",
    (
        |s| s.cf.max_expansions.to_string(),
        |s, text| {
            let value = ranged("cf-max-expansions", text, 1..=1 << 16);
            put(&mut s.cf.max_expansions, value)
        },
    ),
)
.alias("bf.cf-max-expansions");

fn ranged<N>(name: &str, text: &str, range: RangeInclusive<N>) -> Result<N, String>
where
    N: TryFrom<i64> + PartialOrd + Display,
{
    number::within(text.as_bytes(), &range).map_err(|error| {
        let range = format!("[{}, {}]", range.start(), range.end());
        refused(error, name, &range)
    })
}
