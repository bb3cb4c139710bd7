//! Bloom filters: bit for bit RedisBloom's, or one cache line an item.
//!
//! A Bloom filter remembers which items it has seen in about ten bits an item, whatever their
//! size. "Never seen" is certain; "seen" is wrong for a small part of the items, the error rate
//! that was asked for.
//!
//! ```
//! use everbloom::BloomFilter;
//!
//! let mut seen = BloomFilter::new(1_000_000, 0.001);
//! for url in ["https://a.example/", "https://b.example/", "https://a.example/"] {
//!     if seen.insert(url) {
//!         println!("fetch {url}");
//!     }
//! }
//! ```
//!
//! | use | when |
//! |---|---|
//! | [`BloomFilter`] | the number of items is known, roughly: smallest and fastest |
//! | [`ScalableBloomFilter`] | it is not: grows in layers; what a key of the `BF.*` commands holds |
//! | [`AtomicBloomFilter`] | it is, and several threads insert and look up at the same time |
//!
//! Anything byte-like is an [`Item`], and so are numbers, tuples, and with [`Hashed`] any other
//! [`Hash`](core::hash::Hash) value.
//!
//! The first two come in two layouts. [`Layout::Blocked`], the default, is this library's own: one
//! cache line an item, exact in its error rate also when grown, and safe from items crafted to
//! collide. [`Layout::Classic`] is RedisBloom's, bit for bit: several times slower, for a few per
//! cent fewer bits.
//!
//! - [`sizing`]: bits and hash count from capacity and error rate, and every inverse
//! - [`hash`]: the hash functions and bit positions, for programs that keep the bits elsewhere
//! - [`bytes`]: this library's own stable bytes
//! - [`redisbloom`]: for programs that exchange filters with RedisBloom
//! - [`host`]: for hosts of many filters, such as a server
//!
//! # Floors
//!
//! A file imports from its own floor and from lower ones, and no two files need each other. A
//! module stands for its children.
//!
//! ```text
//! floors
//! serde atomic
//! bytes
//! builder redisbloom host sets
//! fixed scalable
//! group
//! layer
//! blocked classic host::recording
//! shape layout redisbloom::options
//! error
//! sizing item
//! hash
//! bits math pages
//! ```
//!
//! # Features
//!
//! - `std` (default): logarithms from the platform, random keys, the processor's instructions found
//!   while it runs, huge pages for large filters. Without it the crate needs `alloc` only.
//! - `serde`: `Serialize` and `Deserialize` for both filters, as their stable bytes.
#![no_std]

extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

pub mod bytes;
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
mod error;
mod fixed;
mod group;
mod item;
mod layer;
mod layout;
mod math;
mod pages;
mod scalable;
#[cfg(feature = "serde")]
mod serde;
mod sets;
mod shape;

/// For the fuzzer: whether all ways to test blocks agree.
#[cfg(fuzzing)]
#[must_use]
pub fn kernels_agree(arrays: &[[u8; 128]], items: &[(u64, u64)], mask: u32, hashes: u32) -> bool {
    blocked::agreement::holds(arrays, items, mask, hashes)
}

#[cfg(target_has_atomic = "64")]
pub use atomic::AtomicBloomFilter;
pub use builder::{BloomBuilder, ScalableBuilder};
pub use bytes::BytesError;
pub use error::{BuildError, InsertError};
pub use fixed::BloomFilter;
pub use item::{Hashed, Item};
pub use layer::Layer;
pub use layout::Layout;
pub use scalable::ScalableBloomFilter;
pub use sets::{ShrinkError, UnionError};
