//! The keyed hash of the blocked layout.
//!
//! It is this library's own, so that it never changes: `docs/formats.md` defines it, with test
//! vectors. Its building block is the folded multiplication: the 128-bit product of two 64-bit
//! numbers, the upper half added to the lower one without carries. Each 16 bytes of an item are two
//! numbers, each made unknown with a secret of its own, and multiplied. For two different pairs
//! the products agree for about one key in 2^62, whoever chose them, as long as the key is unknown;
//! an item's length and a second multiplication, once for each of the two values, do the rest.

use core::fmt;

use super::HashPair;

/// Fractional binary digits of pi, 64 at a time: numbers with nothing up their sleeve.
const PI: [u64; 16] = [
    0x243f_6a88_85a3_08d3,
    0x1319_8a2e_0370_7344,
    0xa409_3822_299f_31d0,
    0x082e_fa98_ec4e_6c89,
    0x4528_21e6_38d0_1377,
    0xbe54_66cf_34e9_0c6c,
    0xc0ac_29b7_c97c_50dd,
    0x3f84_d5b5_b547_0917,
    0x9216_d5d9_8979_fb1b,
    0xd131_0ba6_98df_b5ac,
    0x2ffd_72db_d01a_dfb7,
    0xb8e1_afed_6a26_7e96,
    0xba7c_9045_f12c_7f99,
    0x24a1_9947_b391_6cf7,
    0x0801_f2e2_858e_fc16,
    0x6369_20d8_7157_4e69,
];

/// What makes the hash of one filter unlike that of any other: 128 bits.
///
/// Whoever knows the key of a filter can craft items that it takes for known ones; whoever does not
/// cannot. Filters with the same key can be united.
///
/// ```
/// use everbloom::hash::Key;
/// let key = Key::from_seed(7);
/// assert_eq!(Key::from_bytes(key.to_bytes()), key);
/// assert_ne!(key.hash(b"foo"), Key::from_seed(8).hash(b"foo"));
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Key([u64; 2]);

impl Key {
    /// The key of these bytes: two numbers, little-endian.
    #[must_use]
    pub fn from_bytes(bytes: [u8; 16]) -> Key {
        let key = u128::from_le_bytes(bytes);
        Key([low(key), high(key)])
    }

    /// The bytes that [`from_bytes`](Self::from_bytes) makes this key of.
    #[must_use]
    pub fn to_bytes(self) -> [u8; 16] {
        (u128::from(self.0[0]) | u128::from(self.0[1]) << 64).to_le_bytes()
    }

    /// The key that a seed stands for: the first two numbers of SplitMix64 (Steele, Lea and Flood,
    /// "Fast splittable pseudorandom number generators", 2014) with the seed as its state. A seed
    /// makes a filter reproducible, and no secret.
    #[must_use]
    pub fn from_seed(seed: u64) -> Key {
        const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
        let first = seed.wrapping_add(STEP);
        Key([first, first.wrapping_add(STEP)].map(split_mix))
    }

    /// A key that nobody can guess, from the system's random numbers.
    ///
    /// It comes from the keys of the standard library's hash maps, through their SipHash: each call
    /// gives another key, and one that becomes known tells nothing about the others.
    #[cfg(feature = "std")]
    #[must_use]
    pub fn random() -> Key {
        use std::hash::{BuildHasher, RandomState};
        let state = RandomState::new();
        Key([state.hash_one(0_u64), state.hash_one(1_u64)])
    }

    /// The two values of an item: `a` chooses the block, `b` the bits in it.
    ///
    /// This hashes one item; a filter prepares its key once.
    #[must_use]
    pub fn hash(self, item: &[u8]) -> HashPair {
        Secrets::new(self).hash(item)
    }
}

impl fmt::Debug for Key {
    /// Without the key: a log is read by more people than a filter.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(..)")
    }
}

fn split_mix(state: u64) -> u64 {
    let z = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A key as the hash uses it: eight secrets.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Secrets([u64; 8]);

impl Secrets {
    pub(crate) fn new(Key([first, second]): Key) -> Secrets {
        let mut secrets = [0; 8];
        let (digits, _) = PI.as_chunks::<2>();
        for (secret, [p, q]) in secrets.iter_mut().zip(digits) {
            *secret = fold(first ^ p, second ^ q);
        }
        Secrets(secrets)
    }

    /// The two values of an item.
    #[inline]
    pub(crate) fn hash(&self, item: &[u8]) -> HashPair {
        let [s0, s1, ..] = self.0;
        let product = match short(item) {
            Some((first, last)) => product(first ^ s0, last ^ s1),
            None => self.product_of_many(item),
        };
        self.finish(product, item.len() as u64)
    }

    /// Two values from the products, each by a multiplication of its own. The length enters here,
    /// because items of different lengths may have the same numbers.
    #[inline]
    fn finish(&self, product: u128, len: u64) -> HashPair {
        let [_, _, s2, s3, s4, s5, ..] = self.0;
        let (x, y) = (low(product) ^ len, high(product));
        HashPair {
            a: fold(x ^ s2, y ^ s3),
            b: fold(x ^ s4, y ^ s5),
        }
    }

    /// For more than 16 bytes.
    #[inline]
    fn product_of_many(&self, item: &[u8]) -> u128 {
        if item.len() > 64 {
            return self.product_of_long(item);
        }
        let [s0, s1, s2, s3, s4, s5, s6, s7] = self.0;
        let (Some(first), Some(last)) = (item.first_chunk(), item.last_chunk()) else {
            return 0;
        };
        let sum = pair(first, s0, s1).wrapping_add(pair(last, s2, s3));
        let (Some(first), Some(last)) = (item.first_chunk::<32>(), item.last_chunk::<32>()) else {
            return sum;
        };
        let ([_, second], _) = first.as_chunks::<16>() else {
            return sum;
        };
        let ([next_to_last, _], _) = last.as_chunks::<16>() else {
            return sum;
        };
        sum.wrapping_add(pair(second, s4, s5))
            .wrapping_add(pair(next_to_last, s6, s7))
    }

    /// For more than 64 bytes: four independent lanes, so that multiplications overlap.
    #[inline(never)]
    fn product_of_long(&self, item: &[u8]) -> u128 {
        let [s0, s1, s2, s3, s4, s5, s6, s7] = self.0;
        let mut lanes = [s1, s3, s5, s7];
        let (stripes, _) = item.as_chunks::<64>();
        // All but the last 1 to 64 bytes.
        for stripe in stripes.iter().take((item.len() - 1) / 64) {
            let (numbers, _) = stripe.as_chunks::<16>();
            for ((lane, number), secret) in lanes.iter_mut().zip(numbers).zip([s0, s2, s4, s6]) {
                let (first, second) = halves(number);
                *lane = fold(first ^ secret, second ^ *lane);
            }
        }
        let last = item.last_chunk::<64>();
        let tail = last.map_or(0, |last| self.product_of_many(last));
        let [a, b, c, d] = lanes;
        tail.wrapping_add(product(a, b)).wrapping_add(product(c, d))
    }
}

/// The two numbers of an item of at most 16 bytes.
#[inline]
fn short(item: &[u8]) -> Option<(u64, u64)> {
    if item.len() > 16 {
        return None;
    }
    if let (Some(first), Some(last)) = (item.first_chunk(), item.last_chunk()) {
        return Some((u64::from_le_bytes(*first), u64::from_le_bytes(*last)));
    }
    if let (Some(first), Some(last)) = (item.first_chunk(), item.last_chunk()) {
        let numbers = (u32::from_le_bytes(*first), u32::from_le_bytes(*last));
        return Some((numbers.0.into(), numbers.1.into()));
    }
    // The first byte, the middle one and the last are all there are.
    let middle = item.get(item.len() / 2).copied().unwrap_or(0);
    let byte = |byte: Option<&u8>| u64::from(byte.copied().unwrap_or(0));
    let ends = byte(item.first()) | byte(item.last()) << 16;
    Some((ends | u64::from(middle) << 8, 0))
}

#[inline]
fn halves(bytes: &[u8; 16]) -> (u64, u64) {
    let number = u128::from_le_bytes(*bytes);
    (low(number), high(number))
}

#[inline]
fn pair(bytes: &[u8; 16], first_secret: u64, second_secret: u64) -> u128 {
    let (first, second) = halves(bytes);
    product(first ^ first_secret, second ^ second_secret)
}

#[inline]
fn product(x: u64, y: u64) -> u128 {
    u128::from(x) * u128::from(y)
}

/// The folded multiplication.
#[inline]
fn fold(x: u64, y: u64) -> u64 {
    let product = product(x, y);
    low(product) ^ high(product)
}

#[inline]
#[expect(
    clippy::cast_possible_truncation,
    reason = "the lower half is asked for"
)]
fn low(x: u128) -> u64 {
    x as u64
}

#[inline]
fn high(x: u128) -> u64 {
    (x >> 64) as u64
}
