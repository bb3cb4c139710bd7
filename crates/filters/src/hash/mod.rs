//! The two hash values of an item, and the bit positions they give.
//!
//! In the classic layout an item is hashed twice, the second time with the first value as the seed,
//! and the positions are `(a + i * b) mod 2^64 mod m` for `i = 0, 1, ...` (double hashing: Kirsch
//! and Mitzenmacher, "Less hashing, same performance", 2006). The functions are Austin Appleby's
//! MurmurHash64A and, for filters of early RedisBloom versions, his 32-bit MurmurHash2. The blocked
//! layout uses this library's keyed hash, see [`Key`].
//!
//! [`murmur3_x64_128`] is the hash of [Guava's filters](crate::guava).

mod hasher;
pub(crate) mod item;
pub(crate) mod item_hash;
mod keyed;
mod modulus;
mod murmur;
mod murmur3;
mod pair;
mod sip;
pub(crate) mod valkey;

pub use hasher::ItemHasher;
#[cfg(test)]
pub(crate) use hasher::sealed;
pub(crate) use hasher::{CuckooHash, Hasher, ItemKind};
pub use keyed::Key;
pub(crate) use keyed::{FilterKey, KeyedHash, Secrets, random_key, split_mix};
pub(crate) use modulus::Modulus;
pub use murmur::{SEED64, murmur64a};
pub use murmur3::murmur3_x64_128;
pub use pair::{DoubleHash, HashWidth};
pub(crate) use sip::sip13;
