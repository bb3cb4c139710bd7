//! The hash values of an item, and its positions in the classic layout.

use super::modulus::Modulus;
use super::murmur::{SEED32, SEED64, murmur2_32, murmur64a_twice};

/// Which hash function a filter uses.
///
/// ```
/// use everbloom::hash::{DoubleHash, HashWidth};
/// let pair = DoubleHash::new(b"foo", HashWidth::Bits32);
/// assert_eq!((pair.a, pair.b), (0x23a2_56d0, 0x9fbc_0655));
/// assert_eq!(HashWidth::Bits32.bits(), 32);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HashWidth {
    /// MurmurHash64A: every filter made today.
    Bits64,
    /// MurmurHash2: filters that were made without the 64-bit option, long ago.
    Bits32,
}

impl HashWidth {
    /// 64 or 32.
    #[must_use]
    pub fn bits(self) -> u32 {
        match self {
            HashWidth::Bits64 => 64,
            HashWidth::Bits32 => 32,
        }
    }
}

/// The two hash values of an item, from which double hashing makes all others. They serve every
/// layer of a filter. [Example](Self::new).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DoubleHash {
    /// Classic: the first position before reduction. Blocked: what chooses the block.
    pub a: u64,
    /// Classic: the distance between positions before reduction. Blocked: what chooses the bits.
    pub b: u64,
}

impl DoubleHash {
    /// Hashes an item as the classic layout does; [`Key::hash`](super::Key::hash) is for the other.
    ///
    /// ```
    /// use everbloom::hash::{DoubleHash, HashWidth};
    /// let pair = DoubleHash::new(b"foo", HashWidth::Bits64);
    /// let positions: Vec<u64> = pair.positions(8, 1152).collect();
    /// assert_eq!(positions, [269, 847, 145, 723, 21, 599, 25, 475]);
    /// ```
    #[must_use]
    #[inline]
    pub fn new(item: &[u8], width: HashWidth) -> DoubleHash {
        match width {
            HashWidth::Bits64 => DoubleHash::seeded(item, width, SEED64),
            HashWidth::Bits32 => DoubleHash::seeded(item, width, u64::from(SEED32) << 32),
        }
    }

    /// The hash of bytes, the first time with this seed; the upper half of it is that of the 32-bit
    /// function.
    #[inline]
    pub(super) fn seeded(bytes: &[u8], width: HashWidth, seed: u64) -> DoubleHash {
        match width {
            HashWidth::Bits64 => {
                let (a, b) = murmur64a_twice(bytes, seed);
                DoubleHash { a, b }
            }
            HashWidth::Bits32 => {
                let a = murmur2_32(bytes, (seed >> 32) as u32);
                DoubleHash {
                    a: u64::from(a),
                    b: u64::from(murmur2_32(bytes, a)),
                }
            }
        }
    }

    /// The positions of the item in a classic bit array of `modulus` bits, `hashes` of them; none
    /// when the modulus is 0.
    ///
    /// This is for programs that keep their bits elsewhere, such as in a bitmap on a server.
    /// [Example](Self::new).
    pub fn positions(self, hashes: u32, modulus: u64) -> impl Iterator<Item = u64> + Clone {
        let count = if modulus == 0 { 0 } else { hashes };
        self.reduced(count, Modulus::new(modulus.max(1)))
    }

    /// The pair whose positions are those of this one from the `count`th on.
    #[inline]
    pub(crate) fn skip(self, count: u32) -> DoubleHash {
        DoubleHash {
            a: self.a.wrapping_add(self.b.wrapping_mul(u64::from(count))),
            b: self.b,
        }
    }

    #[inline]
    pub(crate) fn reduced(
        self,
        hashes: u32,
        modulus: Modulus,
    ) -> impl Iterator<Item = u64> + Clone {
        let mut x = self.a;
        (0..hashes).map(move |_| {
            let position = modulus.reduce(x);
            x = x.wrapping_add(self.b);
            position
        })
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use proptest::prelude::*;

    use super::super::modulus::tests::{modulus, value};
    use super::{DoubleHash, HashWidth};

    /// The definition of a position, word for word.
    fn position_by_division(pair: DoubleHash, index: u32, modulus: u64) -> u64 {
        pair.a.wrapping_add(u64::from(index).wrapping_mul(pair.b)) % modulus
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn positions_are_those_of_the_definition(
            a in value(), b in value(), m in modulus(), hashes in 0_u32..100, skip in 0_u32..100,
        ) {
            let pair = DoubleHash { a, b };
            let expected: Vec<u64> =
                (skip..skip + hashes).map(|i| position_by_division(pair, i, m)).collect();
            prop_assert_eq!(pair.skip(skip).positions(hashes, m).collect::<Vec<_>>(), expected);
        }
    }

    #[test]
    fn no_modulus_no_positions() {
        assert_eq!(DoubleHash { a: 1, b: 2 }.positions(8, 0).count(), 0);
    }

    /// Items, hash values and positions in a filter of 1152 bits, read from RedisBloom.
    #[test]
    fn worked_examples_64() {
        let sixteen: Vec<u8> = (0..16).collect();
        let fox = "The quick brown fox jumps over the lazy dog".as_bytes();
        #[rustfmt::skip]
        let examples: [(&[u8], u64, u64, [u64; 8]); 10] = [
            (b"", 0x1ab1_1ea5_a7b2_c56e, 0xbbdd_cb5a_b56d_d547,
                [366, 1077, 764, 451, 138, 849, 536, 223]),
            (b"a", 0x4292_cee2_27b9_150a, 0x7e9b_5270_31f5_0c11,
                [1034, 539, 172, 829, 462, 1119, 752, 257]),
            (b"foo", 0x822b_4f99_b121_f10d, 0x9d63_d52a_557f_61c2,
                [269, 847, 145, 723, 21, 599, 25, 475]),
            (b"bar", 0x6a83_86c4_3972_96e3, 0x7d8d_2247_5d9c_cdf0,
                [611, 851, 67, 307, 675, 915, 131, 371]),
            (b"hello", 0x5ba5_b8a5_9803_e699, 0xa7d4_51d5_88a0_c2a4,
                [537, 957, 97, 517, 809, 77, 497, 789]),
            (b"12345678", 0x700b_ea34_3394_41c4, 0x94cc_ce09_94c5_c064,
                [68, 680, 12, 624, 1108, 568, 1052, 512]),
            (b"item:1000", 0xa85a_9e21_d381_9cde, 0xbeeb_5117_17f6_ddfc,
                [990, 730, 470, 82, 974, 714, 454, 66]),
            (&[0, 1, 2, 255], 0xdd78_3e1f_e06d_80f0, 0x8c7a_62bc_a056_5a2d,
                [880, 29, 202, 503, 804, 977, 126, 299]),
            (fox, 0xc7a6_16a2_8f4a_74d6, 0xfab0_7743_84f7_4e2a,
                [214, 640, 1066, 340, 766, 40, 466, 892]),
            (&sixteen, 0xbcbf_40e3_8fa5_a449, 0x20c3_ce28_49f0_1bde,
                [969, 423, 1029, 611, 65, 671, 125, 731]),
        ];
        for (item, a, b, positions) in examples {
            let pair = DoubleHash::new(item, HashWidth::Bits64);
            assert_eq!(pair, DoubleHash { a, b }, "{item:?}");
            assert_eq!(
                pair.positions(8, 1152).collect::<Vec<_>>(),
                positions,
                "{item:?}"
            );
        }
    }

    #[test]
    fn worked_examples_32() {
        let examples: [(&[u8], u64, u64); 5] = [
            (b"", 0x106e_08d9, 0x456d_9087),
            (b"a", 0xa2d0_b27c, 0x2e36_e8b4),
            (b"foo", 0x23a2_56d0, 0x9fbc_0655),
            (b"12345678", 0x1430_ce0e, 0x72bf_120f),
            (b"item:1000", 0x15b7_9431, 0x4e5f_dd5e),
        ];
        for (item, a, b) in examples {
            assert_eq!(
                DoubleHash::new(item, HashWidth::Bits32),
                DoubleHash { a, b },
                "{item:?}"
            );
        }
    }
}
