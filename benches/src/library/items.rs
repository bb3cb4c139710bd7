//! Makes each item from its number, so that fifty million items need not be kept.

/// The first number of absent items. Present items have the numbers from 0 on.
pub const ABSENT: u64 = 1 << 40;

/// A bijection (SplitMix64's finalizer), so that no two items are equal.
pub fn mix(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

/// Items of equal length, one behind the other.
pub struct Items {
    bytes: Vec<u8>,
    length: usize,
}

impl Items {
    /// The items with these numbers.
    pub fn new(numbers: impl Iterator<Item = u64>, length: usize) -> Self {
        let mut bytes = Vec::new();
        for number in numbers {
            for word in 0..length as u64 / 8 {
                let word = mix(number.wrapping_add(word.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
                bytes.extend_from_slice(&word.to_le_bytes());
            }
        }
        Self { bytes, length }
    }

    /// The slice of each item.
    pub fn slices(&self) -> Vec<&[u8]> {
        self.bytes.chunks_exact(self.length).collect()
    }
}
