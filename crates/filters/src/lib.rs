//! Bloom filters, bit for bit RedisBloom's.
#![no_std]

extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

mod bits;
mod classic;
pub mod dump;
pub mod hash;
mod math;
mod scalable;
pub mod sizing;

pub use classic::{BuildError, ClassicLayer};
pub use dump::{Check, ChunkError, FilterParts, LayerParts, PartsError};
pub use scalable::{GrowthLimit, InsertError, Options, ScalableBloomFilter, ScalableBuilder};
