//! MurmurHash3, with which other libraries hash their items.

use super::keyed::halves;

const MUL1: u64 = 0x87c3_7b91_1142_53d5;
const MUL2: u64 = 0x4cf5_ad43_2745_937f;

/// Austin Appleby's MurmurHash3 of 128 bits for 64-bit processors, `MurmurHash3_x64_128`, as its
/// two halves: the one that is written first, and the other. Reads are little-endian on every
/// platform.
///
/// ```
/// let (first, second) = everbloom::hash::murmur3_x64_128(b"hello", 0);
/// assert_eq!((first, second), (0xcbd8_a7b3_41bd_9b02, 0x5b1e_906a_48ae_1d19));
/// ```
#[must_use]
pub fn murmur3_x64_128(data: &[u8], seed: u32) -> (u64, u64) {
    let mut first = u64::from(seed);
    let mut second = u64::from(seed);
    let (blocks, rest) = data.as_chunks::<16>();
    for block in blocks {
        let (low, high) = halves(block);
        first = (first ^ mixed_low(low)).rotate_left(27);
        first = first.wrapping_add(second);
        first = first.wrapping_mul(5).wrapping_add(0x52dc_e729);
        second = (second ^ mixed_high(high)).rotate_left(31);
        second = second.wrapping_add(first);
        second = second.wrapping_mul(5).wrapping_add(0x3849_5ab5);
    }
    // Zeros behind the rest change nothing: a half of zeros is mixed to zero.
    let mut last = [0; 16];
    for (place, byte) in last.iter_mut().zip(rest) {
        *place = *byte;
    }
    let (low, high) = halves(&last);
    let len = data.len() as u64;
    first ^= mixed_low(low) ^ len;
    second ^= mixed_high(high) ^ len;

    first = first.wrapping_add(second);
    second = second.wrapping_add(first);
    first = finished(first);
    second = finished(second);
    first = first.wrapping_add(second);
    second = second.wrapping_add(first);
    (first, second)
}

fn mixed_low(half: u64) -> u64 {
    half.wrapping_mul(MUL1).rotate_left(31).wrapping_mul(MUL2)
}

fn mixed_high(half: u64) -> u64 {
    half.wrapping_mul(MUL2).rotate_left(33).wrapping_mul(MUL1)
}

fn finished(mut half: u64) -> u64 {
    half ^= half >> 33;
    half = half.wrapping_mul(0xff51_afd7_ed55_8ccd);
    half ^= half >> 33;
    half = half.wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    half ^ (half >> 33)
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::murmur3_x64_128;

    fn bytes((first, second): (u64, u64)) -> Vec<u8> {
        [first.to_le_bytes(), second.to_le_bytes()].concat()
    }

    /// The number that SMHasher, the author's test suite, gives for this function: keys of every
    /// length up to 255, each with a different seed, and the hash of all their hashes.
    #[test]
    fn it_is_the_authors() {
        let key: Vec<u8> = (0..=254).collect();
        let mut hashes = Vec::new();
        for len in 0..256_u32 {
            hashes.extend(bytes(murmur3_x64_128(&key[..len as usize], 256 - len)));
        }
        assert_eq!(
            bytes(murmur3_x64_128(&hashes, 0))[..4],
            0x6384_ba69_u32.to_le_bytes()
        );
    }

    #[test]
    fn published_examples() {
        // Guava's and Wikipedia's sentence, first half first.
        let sentence = b"The quick brown fox jumps over the lazy dog";
        assert_eq!(
            murmur3_x64_128(sentence, 0),
            (0xe34b_bc7b_bc07_1b6c, 0x7a43_3ca9_c49a_9347)
        );
        assert_eq!(murmur3_x64_128(b"", 0), (0, 0));
    }
}
