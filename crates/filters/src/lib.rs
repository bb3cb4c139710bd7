#![doc = include_str!("../README.md")]
//!
//! # Modules
//!
//! - [`sizing`]: bits and hash count from capacity and error rate, and every inverse
//! - [`hash`]: the hash functions and bit positions, for programs that keep the bits elsewhere
//! - [`bytes`]: this library's own stable bytes; [`BloomView`] finds items in them
//! - [`redisbloom`]: for programs that exchange filters with RedisBloom
//! - [`guava`]: finds items in filters that Guava, in Java, wrote
//! - [`dcso`]: finds items in filters of DCSO's tool, such as CIRCL's hashlookup, and makes them
//! - [`host`]: for hosts of many filters, such as a server; without a promise for later versions
//!
//! # Features
//!
//! - `std` (default): logarithms from the platform, random keys, the processor's instructions found
//!   while it runs, huge pages for large filters. WebAssembly outside of WASI has no random numbers:
//!   there, filters of the blocked layout and cuckoo filters with an error rate need a key or a seed,
//!   as without `std`.
//! - `libm`: what the crate needs beside `alloc` where there is no `std`, with
//!   `default-features = false`.
//! - `serde`: `Serialize` and `Deserialize` for `BloomFilter`, `ScalableBloomFilter`,
//!   `WindowedBloomFilter` and `CuckooFilter`: as their stable bytes, and as base64 in formats that
//!   people read, such as JSON.
#![no_std]

extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

// Its macro is for all.
#[macro_use]
mod error;

mod bits;
mod bloom;
mod cuckoo;
mod formats;
pub mod hash;
pub mod host;
mod layer;
#[doc(hidden)]
pub mod limits;
mod list;
mod math;
pub mod sizing;

/// For the fuzzer: whether all ways to test blocks agree.
#[cfg(fuzzing)]
#[must_use]
pub fn kernels_agree(arrays: &[[u8; 128]], items: &[(u64, u64)], mask: u32, hashes: u32) -> bool {
    bits::blocks::tests::kernels_agree(arrays, items, mask, hashes)
}

#[cfg(target_has_atomic = "64")]
pub use bloom::atomic::AtomicBloomFilter;
pub use bloom::builder::{BloomBuilder, ScalableBuilder, WindowedBuilder};
pub use bloom::fixed::BloomFilter;
pub use bloom::scalable::ScalableBloomFilter;
pub use bloom::sets::UnionError;
pub use bloom::shrink::ShrinkError;
pub use bloom::stats::Stats;
pub use bloom::window::Span;
pub use bloom::windowed::WindowedBloomFilter;
pub use cuckoo::CuckooFilter;
pub use cuckoo::builder::CuckooBuilder;
pub use error::{BuildError, InsertError};
pub use formats::bytes::view::BloomView;
pub use formats::{bytes, dcso, guava, redisbloom};
pub use hash::item::{Hashed, Item};
pub use hash::item_hash::ItemHash;
pub use layer::layout::Layout;
