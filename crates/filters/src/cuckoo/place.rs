//! The place of an item: its fingerprint, and the two buckets that may hold it.

use crate::hash::DoubleHash;

/// The number of fingerprints: a byte without 0, which is an empty slot.
pub(super) const FINGERPRINTS: u64 = 255;

/// The multiplier of a fingerprint. It separates the buckets of similar fingerprints.
const SPREAD: u64 = 0x5bd1_e995;

/// A fingerprint, and the value that determines one of its two buckets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// The first bucket before reduction.
    pub(super) hash: u64,
    /// From 1 to 255. In a filter with a chosen error rate any number: each table makes a
    /// fingerprint of its own width from it.
    pub(super) fingerprint: u64,
}

impl Place {
    /// The place of a hashed item.
    #[inline]
    pub(crate) fn of(item: DoubleHash) -> Place {
        Place {
            hash: item.a,
            fingerprint: item.a % FINGERPRINTS + 1,
        }
    }

    /// The place of an item that was hashed with a key.
    #[inline]
    pub(crate) fn of_keyed(item: DoubleHash) -> Place {
        Place {
            hash: item.a,
            fingerprint: item.b,
        }
    }

    /// Both buckets before reduction.
    #[inline]
    pub(super) fn buckets(self) -> [u64; 2] {
        [self.hash, other(self.hash, self.fingerprint)]
    }
}

/// The other bucket of a fingerprint that is in this one. With a power of two of buckets it leads
/// from each of the two to the other.
#[inline]
pub(super) fn other(bucket: u64, fingerprint: u64) -> u64 {
    bucket ^ fingerprint.wrapping_mul(SPREAD)
}

#[cfg(test)]
mod tests {
    use super::Place;
    use crate::hash::{CuckooHash, sealed::Scheme};

    #[test]
    fn places_are_those_of_the_reference() {
        let long: alloc::vec::Vec<u8> = (0..16).collect();
        let examples: [(&[u8], u64, u64, [u64; 2]); 10] = [
            (b"", 0, 1, [0, 5]),
            (b"a", 0x0717_17d2_d36b_6b11, 196, [1, 5]),
            (b"foo", 0xcdde_3835_8fd2_5b01, 217, [1, 4]),
            (b"bar", 0xf37f_63fa_1473_3b7e, 20, [6, 2]),
            (b"hello", 0x1e68_d17c_457b_f117, 159, [7, 4]),
            (b"12345678", 0x758f_67d1_62b2_d202, 41, [2, 7]),
            (b"item:1000", 0x2d66_bbb7_2cf1_7d1d, 192, [5, 5]),
            (b"\x00\x01\x02\xff", 0x308a_5cff_2254_6862, 89, [2, 7]),
            (
                b"The quick brown fox jumps over the lazy dog",
                0x5589_ca33_042a_861b,
                173,
                [3, 2],
            ),
            (&long, 0xe670_9e19_2441_a2f3, 12, [3, 7]),
        ];
        for (item, hash, fingerprint, buckets) in examples {
            let place = Place::of(CuckooHash.bytes(item, None));
            assert_eq!((place.hash, place.fingerprint), (hash, fingerprint));
            assert_eq!(place.buckets().map(|bucket| bucket % 8), buckets);
        }
    }
}
