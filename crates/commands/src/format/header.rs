//! The header of a SCANDUMP stream, of either layout.
//!
//! `classic` and `blocked` know how the numbers lie. Whether they describe a filter is for
//! [`ScalableBloomFilter::from_parts`] to say.
//!
//! No header of one layout is one of the other: where RedisBloom's has its layer count, the first
//! bytes of the blocked one say 436 million, which would make a header of 23 GB.

mod blocked;
mod classic;

use everbloom::{FilterParts, ScalableBloomFilter};

/// The header of a filter.
pub fn encode(filter: &ScalableBloomFilter) -> Vec<u8> {
    encode_parts(&filter.parts())
}

/// The header of a filter given as parts.
pub fn encode_parts(parts: &FilterParts) -> Vec<u8> {
    match parts.key {
        None => classic::encode(parts),
        Some(key) => blocked::encode(parts, key),
    }
}

/// The parts that a header names, or nothing when its length is not what its layer count says, or
/// it is of a version that is not known.
pub fn decode(header: &[u8]) -> Option<FilterParts> {
    match header.strip_prefix(&blocked::MAGIC) {
        Some(rest) => blocked::decode(rest),
        None => classic::decode(header),
    }
}

fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (first, tail) = rest.split_first_chunk()?;
    *rest = tail;
    Some(*first)
}
