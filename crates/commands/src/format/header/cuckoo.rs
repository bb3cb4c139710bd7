//! The header of a cuckoo filter: RedisBloom's, and ours for filters with a chosen error rate.
//!
//! RedisBloom's is little-endian and packed, 38 bytes:
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
//!
//! Ours has the same fields between the [first 16 bytes](super) of headers of ours and what only
//! such filters have, 80 bytes together. The length tells the two apart, whatever the bytes are.
//!
//! ```text
//!  0            12      14      16                    54     70           78      79     80
//!  +------------+-------+-------+---------------------+------+------------+-------+------+
//!  | "everbloom"|version|layout | the 38 bytes of the | key  | error rate | width | step |
//!  | 0d 0a 1a   |u16: 1 |u16: 3 | header above        | 16 B |    f64     |  u8   |  u8  |
//!  +------------+-------+-------+---------------------+------+------------+-------+------+
//! ```

use everbloom::redisbloom::CuckooParts;

use super::{KEYED_CUCKOO, MAGIC};
use crate::format::fields::{Fields, keyed, no_keyed};

/// The length of a header of RedisBloom's.
pub const BYTES: usize = 38;
/// The length of one of ours.
pub const KEYED_BYTES: usize = 80;

/// The header of a filter given as parts.
pub fn encode(parts: &CuckooParts) -> Vec<u8> {
    let mut out = Vec::with_capacity(KEYED_BYTES);
    if parts.keyed.is_some() {
        out.extend_from_slice(&MAGIC);
        out.extend_from_slice(&KEYED_CUCKOO);
    }
    let Ok(()) = describe(&mut out, &mut { *parts });
    out
}

/// The parts that a header describes. `None` when it has another length, or a number that no filter
/// has, or when it is one of ours for other filters or of another version.
pub fn decode(header: &[u8]) -> Option<CuckooParts> {
    let (mut rest, mut parts) = (header, CuckooParts::default());
    if header.len() == KEYED_BYTES {
        let behind = header.strip_prefix(&MAGIC)?;
        rest = behind.strip_prefix(&KEYED_CUCKOO)?;
        parts.keyed = Some(no_keyed());
    }
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
    fields.number("expansion", 2, &mut parts.expansion)?;
    match &mut parts.keyed {
        Some(parts) => keyed(fields, parts),
        None => Ok(()),
    }
}
