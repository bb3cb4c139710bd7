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

use crate::format::take::take;

/// The length of a header.
pub const BYTES: usize = 38;

/// The header of a filter given as parts.
pub fn encode(parts: &CuckooParts) -> Vec<u8> {
    let mut out = Vec::with_capacity(BYTES);
    for number in [
        parts.items,
        parts.buckets,
        parts.removed,
        parts.tables.into(),
    ] {
        out.extend_from_slice(&number.to_le_bytes());
    }
    for number in [parts.bucket_size.into(), parts.max_kicks, parts.expansion] {
        out.extend_from_slice(&number.to_le_bytes());
    }
    out
}

/// The parts that a header describes. `None` when it has another length, or a number that no filter
/// has.
pub fn decode(header: &[u8]) -> Option<CuckooParts> {
    let mut rest = header;
    let parts = CuckooParts {
        items: take(&mut rest).map(u64::from_le_bytes)?,
        buckets: take(&mut rest).map(u64::from_le_bytes)?,
        removed: take(&mut rest).map(u64::from_le_bytes)?,
        tables: take(&mut rest).map(u64::from_le_bytes)?.try_into().ok()?,
        bucket_size: take(&mut rest).map(u16::from_le_bytes)?.try_into().ok()?,
        max_kicks: take(&mut rest).map(u16::from_le_bytes)?,
        expansion: take(&mut rest).map(u16::from_le_bytes)?,
    };
    rest.is_empty().then_some(parts)
}
