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
//! - [`host`]: for hosts of many filters, such as a server
//!
//! # Features
//!
//! - `std` (default): logarithms from the platform, random keys, the processor's instructions found
//!   while it runs, huge pages for large filters.
//! - `libm`: what the crate needs beside `alloc` where there is no `std`, with
//!   `default-features = false`.
//! - `serde`: `Serialize` and `Deserialize` for both filters, as their stable bytes.
#![no_std]

extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

pub mod bytes;
pub mod dcso;
pub mod guava;
pub mod hash;
pub mod host;
pub mod redisbloom;
pub mod sizing;

#[cfg(target_has_atomic = "64")]
mod atomic;
mod bits;
mod blocked;
mod builder;
mod classic;
mod cuckoo;
mod error;
mod fixed;
mod group;
mod hasher;
mod huge;
mod item;
mod layer;
mod layout;
#[doc(hidden)]
pub mod limits;
mod math;
mod pages;
mod scalable;
#[cfg(feature = "serde")]
mod serde;
mod sets;
mod shape;
mod stats;
mod union;
mod valkey;
mod window;
mod windowed;

/// For the fuzzer: whether all ways to test blocks agree.
#[cfg(fuzzing)]
#[must_use]
pub fn kernels_agree(arrays: &[[u8; 128]], items: &[(u64, u64)], mask: u32, hashes: u32) -> bool {
    blocked::tests::kernels_agree(arrays, items, mask, hashes)
}

#[cfg(target_has_atomic = "64")]
pub use atomic::AtomicBloomFilter;
pub use builder::{BloomBuilder, CuckooBuilder, ScalableBuilder};
#[cfg(feature = "std")]
pub use bytes::ReadError;
pub use bytes::{BloomView, BytesError};
pub use cuckoo::CuckooFilter;
pub use error::{BuildError, CuckooError, InsertError};
pub use fixed::BloomFilter;
pub use hasher::FilterHasher;
pub use item::{Hashed, Item};
pub use layer::Layer;
pub use layout::Layout;
pub use scalable::{Inserted, ScalableBloomFilter};
pub use sets::{ShrinkError, UnionError};
pub use stats::Stats;
pub use window::{Generation, MAX_GENERATIONS, Span, Window};
pub use windowed::WindowedBloomFilter;
