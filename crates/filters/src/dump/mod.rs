//! A filter as plain named parts, and back: the one gate for filters from outside.
//!
//! Every loader (a dump, an RDB file, [`from_bytes`](crate::ScalableBloomFilter::from_bytes)) ends
//! in [`from_parts`](crate::ScalableBloomFilter::from_parts), which checks all parts before it
//! allocates anything.

mod filter;
mod parts;

pub use parts::{Check, ChunkError, FilterParts, LayerParts, PartsError};
