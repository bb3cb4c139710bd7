//! Bloom filters: bit for bit RedisBloom's, or one cache line an item.
//!
//! A Bloom filter remembers which items it has seen in about ten bits an item, whatever their
//! size. "Never seen" is certain; "seen" is wrong for a small part of the items, the error rate
//! that was asked for.
//!
//! | use | when |
//! |---|---|
//! | [`BloomFilter`] | the number of items is known, roughly: smallest and fastest |
//! | [`ScalableBloomFilter`] | it is not: grows in layers |
//!
//! A [`ScalableBloomFilter`] is also what a key of the `BF.*` commands holds, and it loads and
//! writes RedisBloom's dumps.
//!
//! ```
//! use everbloom::BloomFilter;
//!
//! let mut seen = BloomFilter::builder().capacity(1_000_000).error_rate(0.001).build()?;
//! for url in ["https://a.example/", "https://b.example/", "https://a.example/"] {
//!     if seen.insert(url) {
//!         println!("fetch {url}");
//!     }
//! }
//! # Ok::<(), everbloom::BuildError>(())
//! ```
//!
//! Both come in two layouts. [`Layout::Classic`], the default, is RedisBloom's.
//! [`Layout::Blocked`] is this library's own: several times faster, exact in its error rate also
//! when grown, and safe from items crafted to collide, for a few per cent more bits.
//!
//! Items are anything byte-like: `&str`, `String`, `[u8; N]`, `Vec<u8>`; [`hashed`] makes an item
//! of any [`Hash`](core::hash::Hash) value.
//!
//! - [`sizing`]: bits and hash count from capacity and error rate, and every inverse
//! - [`dump`]: a filter as plain parts and chunks of bits, for RedisBloom's formats
//! - [`capture`]: a filter read in pieces, as it was at one moment, while it goes on changing
//! - [`host`]: for hosts of many filters: asking ahead for their memory, measuring by samples
//! - [`bytes`]: this library's own stable bytes; [`BloomView`] finds items in them
//! - [`hash`]: the hash functions and bit positions, for programs that keep the bits elsewhere
//!
//! # Floors
//!
//! A file imports from its own floor and from lower ones, and no two files need each other. A
//! module stands for its children.
//!
//! ```text
//! floors
//! serde
//! bytes
//! capture relocate
//! builder fixed dump host sample
//! scalable
//! group
//! layer
//! blocked classic recording
//! shape layout options
//! error
//! sizing item
//! hash
//! bits math
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
pub mod capture;
pub mod dump;
pub mod hash;
pub mod host;
pub mod sizing;

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
mod options;
mod recording;
mod relocate;
mod sample;
mod scalable;
#[cfg(feature = "serde")]
mod serde;
mod shape;

/// For the fuzzer: whether all ways to test blocks agree.
#[cfg(fuzzing)]
#[must_use]
pub fn kernels_agree(arrays: &[[u8; 128]], items: &[(u64, u64)], mask: u32, hashes: u32) -> bool {
    blocked::agreement::holds(arrays, items, mask, hashes)
}

pub use builder::ScalableBuilder;
#[cfg(feature = "std")]
pub use bytes::ReadError;
pub use bytes::{BloomView, BytesError};
pub use dump::{Check, ChunkError, FilterParts, LayerParts, PartsError};
pub use error::{BuildError, InsertError};
pub use fixed::{BloomBuilder, BloomFilter, UnionError};
pub use item::hashed;
pub use layer::Layer;
pub use layout::Layout;
pub use options::Options;
pub use scalable::ScalableBloomFilter;
