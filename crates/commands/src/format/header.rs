//! The header of a SCANDUMP stream, of either layout.
//!
//! `classic` and `blocked` know where each number lies. [`ScalableBloomFilter::from_parts`] decides
//! whether the numbers describe a filter.
//!
//! A blocked header is never taken for a classic one. Where the classic header has its layer count,
//! the blocked one has bytes that mean 436 million, so the header would have to be 23 GB long.

mod blocked;
mod classic;
pub mod cuckoo;
mod take;

use everbloom::ScalableBloomFilter;
use everbloom::redisbloom::FilterParts;

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

/// The parts that a header describes. `None` when its length does not match its layer count, or
/// when its version or layout is not known.
pub fn decode(header: &[u8]) -> Option<FilterParts> {
    match header.strip_prefix(&blocked::MAGIC) {
        Some(rest) => blocked::decode(rest),
        None => classic::decode(header),
    }
}
