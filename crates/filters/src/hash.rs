//! The two hash values of an item in the classic layout, and the bit positions they give.
//!
//! An item is hashed twice, the second time with the first value as the seed, and the positions
//! are `(a + i * b) mod 2^64 mod m` for `i = 0, 1, ...` (double hashing: Kirsch and Mitzenmacher,
//! "Less hashing, same performance", 2006). The functions are Austin Appleby's MurmurHash64A and,
//! for filters of early RedisBloom versions, his 32-bit MurmurHash2.

const MUL64: u64 = 0xc6a4_a793_5bd1_e995;
const MUL32: u32 = 0x5bd1_e995;

/// The seed of the first 64-bit hash.
pub const SEED64: u64 = 0xc6a4_a793_5bd1_e995;
/// The seed of the first 32-bit hash.
pub const SEED32: u32 = 0x9747_b28c;

/// MurmurHash64A with little-endian reads on every platform.
///
/// ```
/// assert_eq!(everbloom::hash::murmur64a(b"foo", everbloom::hash::SEED64), 0x822b_4f99_b121_f10d);
/// ```
#[must_use]
#[inline]
pub fn murmur64a(data: &[u8], seed: u64) -> u64 {
    let mut h = seed ^ (data.len() as u64).wrapping_mul(MUL64);
    let (groups, rest) = data.as_chunks::<8>();
    for group in groups {
        let mut k = u64::from_le_bytes(*group).wrapping_mul(MUL64);
        k ^= k >> 47;
        h = (h ^ k.wrapping_mul(MUL64)).wrapping_mul(MUL64);
    }
    if !rest.is_empty() {
        h = (h ^ tail(data, rest)).wrapping_mul(MUL64);
    }
    h ^= h >> 47;
    h = h.wrapping_mul(MUL64);
    h ^ (h >> 47)
}

/// The 1 to 7 bytes after the last whole group, read little-endian.
#[inline]
fn tail(data: &[u8], rest: &[u8]) -> u64 {
    // One load that overlaps the previous group is cheaper than assembling the bytes.
    if let Some(last) = data.last_chunk::<8>() {
        return u64::from_le_bytes(*last) >> (64 - 8 * rest.len());
    }
    let (mut value, mut shift, mut rest) = (0, 0, rest);
    if let Some((four, more)) = rest.split_first_chunk::<4>() {
        (value, shift, rest) = (u64::from(u32::from_le_bytes(*four)), 32, more);
    }
    for &byte in rest {
        value |= u64::from(byte) << shift;
        shift += 8;
    }
    value
}

/// The 32-bit MurmurHash2 of filters without the 64-bit option.
///
/// The length enters modulo 2^32.
#[must_use]
pub fn murmur2_32(data: &[u8], seed: u32) -> u32 {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the hash is defined on the low 32 bits"
    )]
    let mut h = seed ^ data.len() as u32;
    let (groups, rest) = data.as_chunks::<4>();
    for group in groups {
        let mut k = u32::from_le_bytes(*group).wrapping_mul(MUL32);
        k ^= k >> 24;
        h = h.wrapping_mul(MUL32) ^ k.wrapping_mul(MUL32);
    }
    if !rest.is_empty() {
        let tail = rest
            .iter()
            .rev()
            .fold(0, |value, &byte| value << 8 | u32::from(byte));
        h = (h ^ tail).wrapping_mul(MUL32);
    }
    h ^= h >> 13;
    h = h.wrapping_mul(MUL32);
    h ^ (h >> 15)
}

/// Which hash function a filter uses.
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

/// The two hash values of an item; they serve every layer of a filter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HashPair {
    /// The first position before reduction.
    pub a: u64,
    /// The distance between positions before reduction.
    pub b: u64,
}

impl HashPair {
    /// Hashes an item.
    ///
    /// ```
    /// use everbloom::hash::{HashPair, HashWidth};
    /// let pair = HashPair::new(b"foo", HashWidth::Bits64);
    /// assert_eq!(pair.positions(8, 1152).collect::<Vec<_>>(), [269, 847, 145, 723, 21, 599, 25, 475]);
    /// ```
    #[must_use]
    #[inline]
    pub fn new(item: &[u8], width: HashWidth) -> HashPair {
        match width {
            HashWidth::Bits64 => {
                let a = murmur64a(item, SEED64);
                HashPair {
                    a,
                    b: murmur64a(item, a),
                }
            }
            HashWidth::Bits32 => {
                let a = murmur2_32(item, SEED32);
                HashPair {
                    a: u64::from(a),
                    b: u64::from(murmur2_32(item, a)),
                }
            }
        }
    }

    /// The positions of the item in a bit array of `modulus` bits, `hashes` of them; none when the
    /// modulus is 0.
    ///
    /// This is for programs that keep their bits elsewhere, such as in a bitmap on a server.
    pub fn positions(self, hashes: u32, modulus: u64) -> impl Iterator<Item = u64> + Clone {
        let count = if modulus == 0 { 0 } else { hashes };
        self.reduced(count, Modulus::new(modulus.max(1)))
    }

    /// The pair whose positions are those of this one from the `count`th on.
    #[inline]
    pub(crate) fn skip(self, count: u32) -> HashPair {
        HashPair {
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

/// A modulus with its reciprocal, so that a reduction costs two multiplications and no division.
///
/// With `M = floor((2^64 - 1) / m)` the estimate `floor(x * M / 2^64)` of `x / m` is right or one
/// too small for every 64-bit `x` and every `m > 0`, because `x / m - x * M / 2^64 =
/// x * (2^64 - m * M) / (m * 2^64) <= x / 2^64 < 1`; one conditional subtraction repairs it.
/// (Granlund and Montgomery, "Division by invariant integers using multiplication", 1994.)
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Modulus {
    modulus: u64,
    reciprocal: u64,
}

impl Modulus {
    /// `modulus` is not 0.
    pub(crate) fn new(modulus: u64) -> Modulus {
        Modulus {
            modulus,
            reciprocal: u64::MAX / modulus,
        }
    }

    /// The modulus itself.
    #[inline]
    pub(crate) fn get(self) -> u64 {
        self.modulus
    }

    /// `x mod modulus`.
    #[inline]
    pub(crate) fn reduce(self, x: u64) -> u64 {
        let quotient = ((u128::from(x) * u128::from(self.reciprocal)) >> 64) as u64;
        let rest = x.wrapping_sub(quotient.wrapping_mul(self.modulus));
        if rest >= self.modulus {
            rest - self.modulus
        } else {
            rest
        }
    }
}
