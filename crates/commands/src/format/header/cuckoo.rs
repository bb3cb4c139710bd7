//! The header of a cuckoo filter, RedisBloom's.
//!
//! It is little-endian and packed, 38 bytes:
//!
//! ```text
//!  0       8         16        24       32          34         36          38
//!  +-------+---------+---------+--------+-----------+----------+-----------+
//!  | items | buckets | deleted | tables |bucket size|iterations| expansion |
//!  |  u64  |   u64   |   u64   |  u64   |    u16    |   u16    |    u16    |
//!  +-------+---------+---------+--------+-----------+----------+-----------+
//! ```
//!
//! The buckets are those of the first table.

use everbloom::redisbloom::CuckooParts;

use crate::format::fields::Fields;

/// The length of a header.
pub const BYTES: usize = 38;

/// The header of a filter given as parts.
pub fn encode(parts: &CuckooParts) -> Vec<u8> {
    let mut out = Vec::with_capacity(BYTES);
    let Ok(()) = describe(&mut out, &mut { *parts });
    out
}

/// The parts that a header describes. `None` when it has another length, or a number that no filter
/// has.
pub fn decode(header: &[u8]) -> Option<CuckooParts> {
    let (mut rest, mut parts) = (header, CuckooParts::default());
    describe(&mut rest, &mut parts).ok()?;
    rest.is_empty().then_some(parts)
}

fn describe<F: Fields>(fields: &mut F, parts: &mut CuckooParts) -> Result<(), F::Error> {
    fields.number("items", 8, &mut parts.items)?;
    fields.number("buckets", 8, &mut parts.buckets)?;
    fields.number("deleted", 8, &mut parts.removed)?;
    fields.number("tables", 8, &mut parts.tables)?;
    fields.number("bucket size", 2, &mut parts.bucket_size)?;
    fields.number("iterations", 2, &mut parts.max_kicks)?;
    fields.number("expansion", 2, &mut parts.expansion)
}
