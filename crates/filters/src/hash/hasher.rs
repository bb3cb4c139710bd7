//! The hash functions for the items of a filter, in either layout.

use super::keyed::Secrets;
use super::murmur::murmur64a;
use super::pair::{HashPair, HashWidth};
use crate::valkey::ValkeyBloom;

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
pub enum Kind {
    /// A whole number of at least 0.
    Number = 0x80,
    /// A whole number below 0.
    Negative = 0x81,
    /// A tuple, so far.
    Tuple = 0x82,
    /// The writes of a `Hash` implementation so far.
    Stream = 0x83,
}

impl Kind {
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
impl ItemHasher for CuckooHash {}

/// The hash of cuckoo filters: one value, the other is 0.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CuckooHash;

pub(crate) mod sealed {
    use super::{HashPair, Kind};

    /// How one layout hashes.
    pub trait Scheme {
        /// The hash of an item that is bytes.
        fn bytes(&self, item: &[u8]) -> HashPair;

        /// The hash of two or four numbers, little-endian, that are not an item of bytes.
        fn tagged<const N: usize>(&self, numbers: &[u8; N], kind: Kind) -> HashPair;

        /// The hash of everything hashed into `self` so far and of a further part.
        #[inline]
        fn chain(&self, so_far: HashPair, part: HashPair, kind: Kind) -> HashPair {
            let mut numbers = [0; 32];
            let parts = [so_far.a, so_far.b, part.a, part.b];
            let (places, _) = numbers.as_chunks_mut::<8>();
            for (place, part) in places.iter_mut().zip(parts) {
                *place = part.to_le_bytes();
            }
            self.tagged(&numbers, kind)
        }
    }
}

impl sealed::Scheme for HashWidth {
    #[inline]
    fn bytes(&self, item: &[u8]) -> HashPair {
        HashPair::new(item, *self)
    }

    #[inline]
    fn tagged<const N: usize>(&self, numbers: &[u8; N], kind: Kind) -> HashPair {
        HashPair::seeded(numbers, *self, kind.tag())
    }
}

impl sealed::Scheme for ValkeyBloom {
    #[inline]
    fn bytes(&self, item: &[u8]) -> HashPair {
        let [a, b] = self.hash(item.len() as u64, item);
        HashPair { a, b }
    }

    #[inline]
    fn tagged<const N: usize>(&self, numbers: &[u8; N], kind: Kind) -> HashPair {
        let [a, b] = self.hash(kind.tag(), numbers);
        HashPair { a, b }
    }
}

impl sealed::Scheme for Secrets {
    #[inline]
    fn bytes(&self, item: &[u8]) -> HashPair {
        self.hash(item)
    }

    #[inline]
    fn tagged<const N: usize>(&self, numbers: &[u8; N], kind: Kind) -> HashPair {
        self.hash_tagged(numbers, kind.tag())
    }
}

impl sealed::Scheme for CuckooHash {
    #[inline]
    fn bytes(&self, item: &[u8]) -> HashPair {
        let a = murmur64a(item, 0);
        HashPair { a, b: 0 }
    }

    #[inline]
    fn tagged<const N: usize>(&self, numbers: &[u8; N], kind: Kind) -> HashPair {
        let a = murmur64a(numbers, kind.tag());
        HashPair { a, b: 0 }
    }
}
