//! The layout of the recipe in Python: `mmh3.hash(item, seed) % bits` for the seeds 0, 1, ...
//!
//! `mmh3.hash` is MurmurHash3_x86_32 as a signed number, and Python's `%` gives a number with the
//! sign of the divisor, so none is negative.

pub(super) fn positions(item: &[u8], hashes: u32, bits: u64) -> Vec<u64> {
    let position = |seed| {
        let hash = murmur3_x86_32(item, seed).cast_signed();
        i64::from(hash)
            .rem_euclid(bits.cast_signed())
            .cast_unsigned()
    };
    (0..hashes).map(position).collect()
}

/// Austin Appleby's MurmurHash3_x86_32.
fn murmur3_x86_32(item: &[u8], seed: u32) -> u32 {
    fn mixed(group: u32) -> u32 {
        group
            .wrapping_mul(0xcc9e_2d51)
            .rotate_left(15)
            .wrapping_mul(0x1b87_3593)
    }
    let (groups, rest) = item.as_chunks::<4>();
    let mut hash = seed;
    for group in groups {
        hash ^= mixed(u32::from_le_bytes(*group));
        hash = hash
            .rotate_left(13)
            .wrapping_mul(5)
            .wrapping_add(0xe654_6b64);
    }
    // Without a rest this mixes 0, which is 0.
    let rest = rest
        .iter()
        .rev()
        .fold(0, |rest, byte| rest << 8 | u32::from(*byte));
    hash ^= mixed(rest);
    // The length modulo 2^32, as the original counts it.
    hash ^= u32::try_from(item.len() & 0xffff_ffff).unwrap_or(0);
    hash = (hash ^ hash >> 16).wrapping_mul(0x85eb_ca6b);
    hash = (hash ^ hash >> 13).wrapping_mul(0xc2b2_ae35);
    hash ^ hash >> 16
}
