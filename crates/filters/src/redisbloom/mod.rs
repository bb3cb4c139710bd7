//! For programs that exchange filters with RedisBloom: dumps, and the option bits kept with them.
//!
//! A filter comes apart into plain named parts and chunks of bits, and back. This is the one gate
//! for filters from outside: every loader (a dump, an RDB file,
//! [`from_bytes`](crate::ScalableBloomFilter::from_bytes)) ends in
//! [`from_parts`](crate::ScalableBloomFilter::from_parts), which checks all parts before it
//! allocates anything.

mod filter;
pub(crate) mod options;
mod parts;

pub use options::Options;
pub use parts::{Check, ChunkError, FilterParts, LayerParts, PartsError};
