//! The keyed hash of the blocked layout.
//!
//! It is specific to this library and never changes: `docs/formats.md` defines it, with test
//! vectors. Its building block is the folded multiplication: the 128-bit product of two 64-bit
//! numbers, the upper half added to the lower one without carries. Each 16 bytes of an item are two
//! numbers. Each number is combined with a different secret, and the two results are multiplied. As
//! long as the key is unknown, the products of any two different pairs agree for about one key in
//! 2^62. The item's length and one more multiplication complete the hash.

use alloc::boxed::Box;
use core::fmt;
use core::mem::size_of;

use super::pair::DoubleHash;

/// Fractional binary digits of pi, 64 at a time: numbers with nothing up their sleeve. Those of the
/// first four secrets, and of the other four.
const PI: [[u64; 8]; 2] = [
    [
        0x243f_6a88_85a3_08d3,
        0x1319_8a2e_0370_7344,
        0xa409_3822_299f_31d0,
        0x082e_fa98_ec4e_6c89,
        0x4528_21e6_38d0_1377,
        0xbe54_66cf_34e9_0c6c,
        0xc0ac_29b7_c97c_50dd,
        0x3f84_d5b5_b547_0917,
    ],
    [
        0x9216_d5d9_8979_fb1b,
        0xd131_0ba6_98df_b5ac,
        0x2ffd_72db_d01a_dfb7,
        0xb8e1_afed_6a26_7e96,
        0xba7c_9045_f12c_7f99,
        0x24a1_9947_b391_6cf7,
        0x0801_f2e2_858e_fc16,
        0x6369_20d8_7157_4e69,
    ],
];

/// The key of a filter's hash, 128 bits. Filters with different keys have different hashes.
///
/// An attacker who knows the key of a filter can craft items that collide in it; without the key
/// that is not possible. Filters with the same key can be united.
///
/// ```
/// use everbloom::hash::Key;
/// let key = Key::from_seed(7);
/// assert_eq!(Key::from_bytes(key.to_bytes()), key);
/// assert_ne!(key.hash(b"foo"), Key::from_seed(8).hash(b"foo"));
/// assert_ne!(Key::random(), Key::random());
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

    /// The bytes from which [`from_bytes`](Self::from_bytes) makes this key.
    #[must_use]
    pub fn to_bytes(self) -> [u8; 16] {
        (u128::from(self.0[0]) | u128::from(self.0[1]) << 64).to_le_bytes()
    }

    /// The key of a seed: the first two numbers of SplitMix64 (Steele, Lea and Flood, "Fast
    /// splittable pseudorandom number generators", 2014) with the seed as its state. A seed makes a
    /// filter reproducible; it is not a secret.
    #[must_use]
    pub fn from_seed(seed: u64) -> Key {
        Key([0, 1].map(|index| split_mix(seed, index)))
    }

    /// An unpredictable key from the system's random numbers.
    ///
    /// It comes from the keys of the standard library's hash maps, through their SipHash: each call
    /// gives a new key, and a known key reveals nothing about the other keys.
    ///
    /// WebAssembly outside of WASI has no random numbers, so it lacks this function. There, make a key
    /// of 16 bytes of `crypto.getRandomValues`, by [`from_bytes`](Self::from_bytes).
    #[cfg(all(
        feature = "std",
        not(all(target_family = "wasm", target_os = "unknown"))
    ))]
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
    pub fn hash(self, item: &[u8]) -> DoubleHash {
        Secrets::new(self).hash(item)
    }
}

impl fmt::Debug for Key {
    /// Without the key: a log is read by more people than a filter.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(..)")
    }
}

/// A random key, if the system has random numbers. On `wasm32-unknown-unknown` those of the standard
/// library are constants.
pub(crate) fn random_key() -> Option<Key> {
    #[cfg(all(
        feature = "std",
        not(all(target_family = "wasm", target_os = "unknown"))
    ))]
    return Some(Key::random());
    #[cfg(not(all(
        feature = "std",
        not(all(target_family = "wasm", target_os = "unknown"))
    )))]
    None
}

/// Number `index`, from 0, of SplitMix64 with the seed as its state.
pub(crate) const fn split_mix(seed: u64, index: u64) -> u64 {
    let state = seed.wrapping_add(0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(index.wrapping_add(1)));
    let z = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Half of the secrets of a key: all that items of less than 32 bytes need.
type Half = [u64; 4];

/// The secrets of a key with these digits of pi.
fn half(Key([first, second]): Key, digits: &[u64; 8]) -> Half {
    let mut secrets = [0; 4];
    let (digits, _) = digits.as_chunks::<2>();
    for (secret, [p, q]) in secrets.iter_mut().zip(digits) {
        *secret = fold(first ^ p, second ^ q);
    }
    secrets
}

/// The eight secrets of a key, which hash items.
pub(crate) trait KeyedHash {
    /// The first four.
    fn first(&self) -> &Half;

    /// The other four.
    fn last(&self) -> Half;

    /// The two values of an item.
    #[inline]
    fn hash(&self, item: &[u8]) -> DoubleHash {
        match self.hash_usual(item) {
            Some(pair) => pair,
            None => self.hash_unusual(item),
        }
    }

    /// [`hash`](Self::hash), for items that are not usual.
    #[inline(never)]
    fn hash_unusual(&self, item: &[u8]) -> DoubleHash {
        self.finish(self.product_of(item), item.len() as u64)
    }

    /// The products of an item's numbers.
    #[inline]
    fn product_of(&self, item: &[u8]) -> u128 {
        let [s0, s1, ..] = *self.first();
        match short(item) {
            Some((first, last)) => product(first ^ s0, last ^ s1),
            None => self.product_of_many(item),
        }
    }

    /// [`hash`](Self::hash) for items of 8 to 16 bytes, and for no others.
    #[inline(always)]
    fn hash_usual(&self, item: &[u8]) -> Option<DoubleHash> {
        let [s0, s1, ..] = *self.first();
        if !(8..=16).contains(&item.len()) {
            return None;
        }
        let first = u64::from_le_bytes(*item.first_chunk()?);
        let last = u64::from_le_bytes(*item.last_chunk()?);
        Some(self.finish(product(first ^ s0, last ^ s1), item.len() as u64))
    }

    /// Two values from the products. The length enters here, because items of different lengths
    /// may have the same numbers.
    #[inline(always)]
    fn finish(&self, numbers: u128, len: u64) -> DoubleHash {
        let [_, _, s2, s3] = *self.first();
        let product = product(low(numbers) ^ len ^ s2, high(numbers) ^ s3);
        // The upper bits of each half of a product are not evenly spread, nor are the lower bits
        // of the lower half; each sum is of bits of which one is.
        DoubleHash {
            a: low(product) ^ high(product),
            b: low(product) ^ high(product).rotate_left(32),
        }
    }

    /// The products of more than 16 bytes.
    #[inline]
    fn product_of_many(&self, item: &[u8]) -> u128 {
        if item.len() > 64 {
            return self.product_of_long(item);
        }
        let [s0, s1, s2, s3] = *self.first();
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
        let [s4, s5, s6, s7] = self.last();
        sum.wrapping_add(pair(second, s4, s5))
            .wrapping_add(pair(next_to_last, s6, s7))
    }

    /// The products of more than 64 bytes: four independent lanes, so that multiplications overlap.
    #[inline(never)]
    fn product_of_long(&self, item: &[u8]) -> u128 {
        let ([s0, s1, s2, s3], [s4, s5, s6, s7]) = (*self.first(), self.last());
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

/// A key as the hash uses it: eight secrets.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Secrets {
    first: Half,
    last: Half,
}

impl Secrets {
    pub(crate) fn new(key: Key) -> Secrets {
        let [first, last] = PI.map(|digits| half(key, &digits));
        Secrets { first, last }
    }
}

impl KeyedHash for Secrets {
    #[inline(always)]
    fn first(&self) -> &Half {
        &self.first
    }

    #[inline(always)]
    fn last(&self) -> Half {
        self.last
    }
}

/// The key of a filter and its secrets. All layers of a filter share it.
///
/// A program may have a filter for each of a million users, of few bits each. Half of the secrets
/// is then computed for each item of 32 bytes or more.
pub(crate) struct FilterKey {
    key: Key,
    first: Half,
    last: Option<Box<Half>>,
}

impl FilterKey {
    /// `keeps_all` says whether it keeps all secrets.
    pub(crate) fn new(key: Key, keeps_all: bool) -> FilterKey {
        let [first, last] = &PI;
        FilterKey {
            key,
            first: half(key, first),
            last: keeps_all.then(|| Box::new(half(key, last))),
        }
    }

    pub(crate) fn key(&self) -> Key {
        self.key
    }

    /// Whether it keeps all secrets.
    #[inline]
    pub(crate) fn keeps_all(&self) -> bool {
        self.last.is_some()
    }

    /// All secrets.
    pub(crate) fn secrets(&self) -> Secrets {
        let [_, last] = &PI;
        Secrets {
            first: self.first,
            last: match &self.last {
                Some(last) => **last,
                None => half(self.key, last),
            },
        }
    }

    /// Bytes of memory, itself and the counters of an [`Arc`](alloc::sync::Arc) included.
    #[inline]
    pub(crate) fn memory(&self) -> usize {
        let last = if self.keeps_all() {
            size_of::<Half>()
        } else {
            0
        };
        2 * size_of::<usize>() + size_of::<FilterKey>() + last
    }

    /// The hash of at least 32 bytes.
    #[inline(never)]
    fn hash_long(&self, item: &[u8]) -> DoubleHash {
        let Some(last) = &self.last else {
            return self.hash_with_computed(item);
        };
        let halves = (&self.first, &**last);
        halves.finish(halves.product_of_many(item), item.len() as u64)
    }

    #[cold]
    #[inline(never)]
    fn hash_with_computed(&self, item: &[u8]) -> DoubleHash {
        let [_, last] = &PI;
        let halves = (&self.first, &half(self.key, last));
        halves.finish(halves.product_of_many(item), item.len() as u64)
    }
}

impl KeyedHash for FilterKey {
    #[inline(always)]
    fn first(&self) -> &Half {
        &self.first
    }

    fn last(&self) -> Half {
        self.secrets().last
    }

    #[inline(never)]
    fn hash_unusual(&self, item: &[u8]) -> DoubleHash {
        if item.len() >= 32 {
            return self.hash_long(item);
        }
        // The other half is not used.
        let halves = (&self.first, &self.first);
        halves.finish(halves.product_of(item), item.len() as u64)
    }
}

/// All secrets, in two places.
impl KeyedHash for (&Half, &Half) {
    #[inline(always)]
    fn first(&self) -> &Half {
        self.0
    }

    #[inline(always)]
    fn last(&self) -> Half {
        *self.1
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
pub(super) fn halves(bytes: &[u8; 16]) -> (u64, u64) {
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

#[cfg(test)]
mod tests {
    #![allow(clippy::cast_possible_truncation)]

    use alloc::collections::BTreeSet;
    use alloc::vec;
    use alloc::vec::Vec;

    use super::{FilterKey, Key, KeyedHash, Secrets};

    /// Computed by another implementation, in another language, from the text of docs/formats.md.
    #[test]
    fn values_never_change() {
        #[rustfmt::skip]
        let vectors: [(usize, u64, u64); 22] = [
            (0, 0x69da_9e47_2a5a_cf22, 0x63df_1e72_205f_4f17),
            (1, 0xb864_3333_51db_b0cd, 0xb261_b306_5bde_30f8),
            (2, 0xfa11_9fa5_c22e_09dd, 0xb976_7c20_8149_ea58),
            (3, 0x68a0_aeea_3718_0af6, 0xe5d4_66d4_ba6c_c2c8),
            (4, 0x8bf9_3443_6640_ae69, 0x560a_1f55_bbb3_857f),
            (7, 0xd391_1336_cfdf_da07, 0x68d5_2b4c_749b_e27d),
            (8, 0x3ca9_8e20_8cd4_1bc7, 0x962b_a8c3_2656_3d24),
            (9, 0xdd4e_b5b4_e842_93cf, 0x3f55_f800_0a59_de7b),
            (15, 0xb59f_d18e_5ba8_df97, 0x287f_a513_c648_ab0a),
            (16, 0xa0d5_4dd0_64f4_04a0, 0x1cf1_9562_d8d0_dc12),
            (17, 0x070a_3f4f_0e9a_c7c3, 0xf498_fe92_fd08_061e),
            (31, 0x7346_4883_7a52_fa1c, 0xd0a4_d9c4_d9b0_6b5b),
            (32, 0x8588_88b0_c609_9ac2, 0x2d6d_2af1_6eec_3883),
            (33, 0x97ee_960f_2579_469f, 0x2a62_b8eb_98f5_687b),
            (63, 0xe916_a94e_043d_ab9e, 0xc105_547f_2c2e_56af),
            (64, 0x135e_241e_2688_9729, 0x5269_1a6a_67bf_a95d),
            (65, 0x19e3_3273_cc02_c1ea, 0xc60f_4385_13ee_b01c),
            (127, 0x9dbb_2952_0d0b_399e, 0x1a82_2ffc_8a32_3f30),
            (128, 0x3996_178f_e0a4_d533, 0xab20_761f_7212_b4a3),
            (129, 0x2f8d_8387_0a3e_ead9, 0x5180_5964_7433_303a),
            (192, 0x3814_4762_d57c_ddc5, 0x7d0e_72da_9066_e87d),
            (1000, 0x98e4_9a5e_8415_1fec, 0xcfd8_4dc3_d329_c871),
        ];
        let key = Key::from_seed(0);
        let bytes = 0xafcd_1d7b_39a8_20e2_f465_b9a1_6a9e_786e_u128.to_be_bytes();
        assert_eq!(key.to_bytes(), bytes);
        assert_eq!(Key::from_bytes(bytes), key);
        for (len, a, b) in vectors {
            let item: Vec<u8> = (0..len).map(|i| (i * 7 % 256) as u8).collect();
            let pair = key.hash(&item);
            assert_eq!((pair.a, pair.b), (a, b), "{len} bytes");
            for keeps_all in [false, true] {
                let pair = FilterKey::new(key, keeps_all).hash(&item);
                assert_eq!(
                    (pair.a, pair.b),
                    (a, b),
                    "{len} bytes, all kept: {keeps_all}"
                );
            }
        }
    }

    fn numbers(seed: u64) -> impl Iterator<Item = u64> {
        (0..).map(move |index| super::split_mix(seed, index))
    }

    /// Each bit of an item changes each bit of both values for half of the items.
    #[test]
    fn avalanche() {
        const ITEMS: usize = 400;
        for len in [1, 3, 4, 8, 12, 16, 17, 32, 48, 64, 65, 150] {
            let mut source = numbers(len as u64);
            let mut changed = vec![[0_u32; 128]; len * 8];
            for key in 0..ITEMS {
                let secrets = Secrets::new(Key::from_seed(key as u64));
                let mut item: Vec<u8> =
                    source.by_ref().take(len).map(|n| (n >> 56) as u8).collect();
                let before = secrets.hash(&item);
                for (bit, changed) in changed.iter_mut().enumerate() {
                    item[bit / 8] ^= 1 << (bit % 8);
                    let after = secrets.hash(&item);
                    item[bit / 8] ^= 1 << (bit % 8);
                    let flips = u128::from(before.a ^ after.a) << 64;
                    let flips = flips | u128::from(before.b ^ after.b);
                    for (place, count) in changed.iter_mut().enumerate() {
                        *count += (flips >> place & 1) as u32;
                    }
                }
            }
            // Six standard deviations of a fair coin.
            let most = 6.0 * (ITEMS as f64).sqrt() / 2.0;
            for (bit, changed) in changed.iter().enumerate() {
                for (place, count) in changed.iter().enumerate() {
                    let off = (f64::from(*count) - ITEMS as f64 / 2.0).abs();
                    assert!(
                        off < most,
                        "{len} bytes: bit {bit} of the item, bit {place}: {count}"
                    );
                }
            }
        }
    }

    /// Typical items, which differ little, all in one set: no value occurs twice.
    #[test]
    fn no_collisions() {
        let secrets = Secrets::new(Key::from_seed(1));
        let (mut firsts, mut seconds) = (BTreeSet::new(), BTreeSet::new());
        let mut count = 0_usize;
        let mut add = |item: &[u8]| {
            let pair = secrets.hash(item);
            firsts.insert(pair.a);
            seconds.insert(pair.b);
            count += 1;
        };
        for number in 0..30_000_u32 {
            add(&number.to_le_bytes());
            add(&u64::from(number).to_be_bytes());
            add(&[number.to_le_bytes(), [0; 4], [0; 4], number.to_be_bytes()].concat());
        }
        for len in 0..2000 {
            // The empty item is in it, and eight zeros are the number 0 above.
            if len != 4 && len != 8 && len != 16 {
                add(&vec![0; len]);
            }
        }
        for place in 0..200 {
            for bit in 0..8 {
                let mut item = vec![0; 200];
                item[place] = 1 << bit;
                add(&item);
            }
        }
        // The same two halves, swapped, and the same 16 bytes elsewhere.
        for place in (0..320).step_by(16) {
            let mut item = vec![7; 320];
            item[place..place + 16].fill(1);
            add(&item);
        }
        assert_eq!(firsts.len(), count);
        assert_eq!(seconds.len(), count);
    }

    /// Bits that a filter uses together are spread evenly together: the top of `a` with the top of
    /// either half of `b`, and the tops of both halves.
    #[test]
    fn the_values_are_independent() {
        const ITEMS: u64 = 1 << 20;
        for len in [4, 8, 16, 40] {
            let secrets = Secrets::new(Key::from_seed(len));
            let mut cells = vec![[0_u32; 5]; 1 << 12];
            for number in 0..ITEMS {
                let mut item = vec![0; len as usize];
                item[..4].copy_from_slice(&(number as u32).to_le_bytes());
                let pair = secrets.hash(&item);
                let [a, low, high] = [pair.a >> 58, pair.b >> 26 & 63, pair.b >> 58];
                // Upper and lower bits of the halves, as odd multipliers carry them upwards.
                let joint = [
                    a << 6 | low,
                    a << 6 | high,
                    low << 6 | high,
                    a << 6 | pair.b & 63,
                    (pair.b & 63) << 6 | pair.b >> 32 & 63,
                ];
                for (which, cell) in joint.into_iter().enumerate() {
                    cells[cell as usize][which] += 1;
                }
            }
            let expected = ITEMS as f64 / cells.len() as f64;
            for which in 0..5 {
                let square = |cell: &[u32; 5]| (f64::from(cell[which]) - expected).powi(2);
                let chi: f64 = cells.iter().map(square).sum::<f64>() / expected;
                let freedom = cells.len() as f64 - 1.0;
                let off = (chi - freedom) / (2.0 * freedom).sqrt();
                assert!(
                    off.abs() < 5.0,
                    "{len} bytes, pair {which}: {off} standard deviations"
                );
            }
        }
    }

    #[test]
    #[cfg(feature = "std")]
    fn random_keys_differ() {
        let keys: BTreeSet<[u8; 16]> = (0..1000).map(|_| Key::random().to_bytes()).collect();
        assert_eq!(keys.len(), 1000);
        let both: BTreeSet<bool> = keys.iter().map(|key| key[..8] == key[8..]).collect();
        assert_eq!(both, BTreeSet::from([false]));
    }
}
