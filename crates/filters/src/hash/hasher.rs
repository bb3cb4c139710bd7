//! The hash functions for the items of a filter, in either layout.

use super::keyed::{FilterKey, KeyedHash, Secrets};
use super::murmur::murmur64a;
use super::pair::{DoubleHash, HashWidth};
use crate::hash::valkey::ValkeyBloom;

/// Hashes the items of a filter.
#[derive(Clone, Copy)]
pub(crate) enum Hasher {
    Classic(HashWidth),
    Valkey(ValkeyBloom),
    Blocked(Secrets),
}

/// The kind of an item that is not bytes. It enters the hash, so that no such item equals an item
/// of bytes. A length of bytes never has the highest bit.
#[derive(Clone, Copy, Debug)]
pub enum ItemKind {
    /// A whole number of at least 0.
    Number = 0x80,
    /// A whole number below 0.
    Negative = 0x81,
    /// A tuple, so far.
    Tuple = 0x82,
    /// The writes of a `Hash` implementation so far.
    Stream = 0x83,
}

impl ItemKind {
    /// The kind where the highest byte of a length is.
    #[inline]
    pub(super) fn tag(self) -> u64 {
        (self as u64) << 56
    }
}

/// The hash of a filter, as an [`Item`](crate::Item) sees it. It only hashes items.
///
/// An item of your own type passes this to the items it consists of. Other crates cannot implement
/// the trait.
pub trait ItemHasher: sealed::Scheme {}

impl ItemHasher for HashWidth {}
impl ItemHasher for ValkeyBloom {}
impl ItemHasher for Secrets {}
impl ItemHasher for FilterKey {}
impl ItemHasher for CuckooHash {}

/// The hash of cuckoo filters: one value, the other is 0.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CuckooHash;

pub(crate) mod sealed {
    use super::{DoubleHash, ItemKind};

    /// How one layout hashes.
    pub trait Scheme {
        /// The hash of an item that is bytes; or of two or four numbers, little-endian, that are an
        /// item of this kind.
        fn bytes(&self, bytes: &[u8], kind: Option<ItemKind>) -> DoubleHash;

        /// The hash of everything hashed into `self` so far and of a further part.
        #[inline]
        fn chain(&self, so_far: DoubleHash, part: DoubleHash, kind: ItemKind) -> DoubleHash {
            let mut numbers = [0; 32];
            let parts = [so_far.a, so_far.b, part.a, part.b];
            let (places, _) = numbers.as_chunks_mut::<8>();
            for (place, part) in places.iter_mut().zip(parts) {
                *place = part.to_le_bytes();
            }
            self.bytes(&numbers, Some(kind))
        }
    }
}

impl sealed::Scheme for HashWidth {
    #[inline]
    fn bytes(&self, bytes: &[u8], kind: Option<ItemKind>) -> DoubleHash {
        match kind {
            None => DoubleHash::new(bytes, *self),
            Some(kind) => DoubleHash::seeded(bytes, *self, kind.tag()),
        }
    }
}

impl sealed::Scheme for ValkeyBloom {
    #[inline]
    fn bytes(&self, bytes: &[u8], kind: Option<ItemKind>) -> DoubleHash {
        let [a, b] = self.hash(kind.map_or(bytes.len() as u64, ItemKind::tag), bytes);
        DoubleHash { a, b }
    }
}

impl sealed::Scheme for Secrets {
    #[inline]
    fn bytes(&self, bytes: &[u8], kind: Option<ItemKind>) -> DoubleHash {
        keyed(self, bytes, kind)
    }
}

impl sealed::Scheme for FilterKey {
    #[inline]
    fn bytes(&self, bytes: &[u8], kind: Option<ItemKind>) -> DoubleHash {
        keyed(self, bytes, kind)
    }
}

/// The keyed hash of bytes, or of numbers that are an item of this kind.
#[inline]
fn keyed(hash: &impl KeyedHash, bytes: &[u8], kind: Option<ItemKind>) -> DoubleHash {
    match kind {
        None => hash.hash(bytes),
        Some(kind) => hash.finish(hash.product_of(bytes), kind.tag()),
    }
}

impl sealed::Scheme for CuckooHash {
    #[inline]
    fn bytes(&self, bytes: &[u8], kind: Option<ItemKind>) -> DoubleHash {
        let a = murmur64a(bytes, kind.map_or(0, ItemKind::tag));
        DoubleHash { a, b: 0 }
    }
}
