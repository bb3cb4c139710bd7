//! The header of a SCANDUMP stream: RedisBloom's, and ours for filters that RedisBloom lacks.
//!
//! `classic` and `ours` know where each number lies. [`ScalableBloomFilter::from_parts`] decides
//! whether the numbers describe a filter.
//!
//! A header of ours is never taken for one of RedisBloom's. Where the classic header has its layer
//! count, ours has bytes that mean 436 million, so the header would have to be 23 GB long.

mod classic;
pub mod cuckoo;
mod ours;

use everbloom::ScalableBloomFilter;
use everbloom::redisbloom::FilterParts;

/// The header of a filter.
pub fn encode(filter: &ScalableBloomFilter) -> Vec<u8> {
    encode_parts(&filter.parts())
}

/// The header of a filter given as parts.
pub fn encode_parts(parts: &FilterParts) -> Vec<u8> {
    match (parts.key, parts.valkey) {
        (None, None) => classic::encode(parts),
        _ => ours::encode(parts),
    }
}

/// The parts that a header describes. `None` when its length does not match its layer count, or
/// when its version or layout is not known.
pub fn decode(header: &[u8]) -> Option<FilterParts> {
    match header.strip_prefix(&ours::MAGIC) {
        Some(rest) => ours::decode(rest),
        None => classic::decode(header),
    }
}
