//! MurmurHash64A and MurmurHash2, which the classic layout is defined with.

const MUL64: u64 = 0xc6a4_a793_5bd1_e995;
const MUL32: u32 = 0x5bd1_e995;

/// The seed of the first 64-bit hash. [Example](murmur64a).
pub const SEED64: u64 = 0xc6a4_a793_5bd1_e995;
/// The seed of the first 32-bit hash.
pub(super) const SEED32: u32 = 0x9747_b28c;

/// MurmurHash64A with little-endian reads on every platform.
///
/// ```
/// assert_eq!(everbloom::hash::murmur64a(b"foo", everbloom::hash::SEED64), 0x822b_4f99_b121_f10d);
/// ```
#[must_use]
#[inline]
pub fn murmur64a(data: &[u8], seed: u64) -> u64 {
    let (groups, rest) = data.as_chunks::<8>();
    let tail = (!rest.is_empty()).then(|| tail(data, rest));
    finish(groups.iter().map(mix), tail, data.len(), seed)
}

/// [`murmur64a`], and [`murmur64a`] with that hash as the seed.
///
/// What depends on the bytes alone is computed once for both, if they are 8 to 23: that is what most
/// items are.
#[inline]
pub(super) fn murmur64a_twice(data: &[u8], seed: u64) -> (u64, u64) {
    let (groups, rest) = data.as_chunks::<8>();
    match groups {
        [one] => twice([mix(one)], data, rest, seed),
        [one, two] => twice([mix(one), mix(two)], data, rest, seed),
        _ => twice_of_any(data, seed),
    }
}

#[inline]
fn twice<const N: usize>(mixed: [u64; N], data: &[u8], rest: &[u8], seed: u64) -> (u64, u64) {
    let tail = (!rest.is_empty()).then(|| tail(data, rest));
    let first = finish(mixed.into_iter(), tail, data.len(), seed);
    (first, finish(mixed.into_iter(), tail, data.len(), first))
}

/// Not inlined, so that usual items have no registers to save.
#[inline(never)]
fn twice_of_any(data: &[u8], seed: u64) -> (u64, u64) {
    let first = murmur64a(data, seed);
    (first, murmur64a(data, first))
}

/// What a whole group is in the hash, whatever the seed.
#[inline]
fn mix(group: &[u8; 8]) -> u64 {
    let k = u64::from_le_bytes(*group).wrapping_mul(MUL64);
    (k ^ (k >> 47)).wrapping_mul(MUL64)
}

/// The hash of these groups and the tail, of so many bytes.
#[inline]
fn finish(mixed: impl Iterator<Item = u64>, tail: Option<u64>, len: usize, seed: u64) -> u64 {
    let start = seed ^ (len as u64).wrapping_mul(MUL64);
    let mut h = mixed.fold(start, |h, k| (h ^ k).wrapping_mul(MUL64));
    if let Some(tail) = tail {
        h = (h ^ tail).wrapping_mul(MUL64);
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
pub(super) fn murmur2_32(data: &[u8], seed: u32) -> u32 {
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{murmur2_32, murmur64a, murmur64a_twice};

    /// A byte at a time, as the definition says, not as fast as it goes.
    fn murmur64a_by_bytes(data: &[u8], seed: u64) -> u64 {
        const M: u64 = 0xc6a4_a793_5bd1_e995;
        let mut h = seed ^ (data.len() as u64).wrapping_mul(M);
        for group in data.chunks(8) {
            let mut k = 0;
            for (index, byte) in group.iter().enumerate() {
                k |= u64::from(*byte) << (8 * index);
            }
            if group.len() == 8 {
                k = k.wrapping_mul(M);
                k ^= k >> 47;
                k = k.wrapping_mul(M);
            }
            h = (h ^ k).wrapping_mul(M);
        }
        h ^= h >> 47;
        h = h.wrapping_mul(M);
        h ^ (h >> 47)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn murmur_is_that_of_the_definition(
            data in prop::collection::vec(any::<u8>(), 0..80), seed in any::<u64>(),
        ) {
            let first = murmur64a_by_bytes(&data, seed);
            prop_assert_eq!(murmur64a(&data, seed), first);
            let twice = (first, murmur64a_by_bytes(&data, first));
            prop_assert_eq!(murmur64a_twice(&data, seed), twice);
        }
    }

    #[test]
    fn murmur2_of_nothing_with_seed_0_is_0() {
        assert_eq!(murmur2_32(b"", 0), 0);
    }
}
