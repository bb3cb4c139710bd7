//! The positions of an item's bits, in our own layout and in those of other programs.

use everbloom::hash::{DoubleHash, HashWidth, murmur64a};

use super::{java, python, redisson};

/// The seed of the hash that chooses an item's key: not one that the positions come from.
const KEY_SEED: u64 = 0x6b65_7920_6f66_2069;

/// How items become bits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Layout {
    pub(super) rule: Rule,
    /// The bits of each key.
    pub(super) bits: u64,
    /// The bits that an item sets.
    pub(super) hashes: u32,
}

/// Where the bits of an item are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Rule {
    Everbloom,
    /// murmur3 with the seeds 0, 1, ...
    Python,
    /// Three shifts of `String.hashCode()`.
    Java,
    /// HighwayHash-128, its halves added in turn.
    Redisson,
}

impl Layout {
    /// The bits of an item, all in one key.
    pub(super) fn positions(&self, item: &[u8]) -> Vec<u64> {
        match self.rule {
            Rule::Everbloom => {
                let pair = DoubleHash::new(item, HashWidth::Bits64);
                pair.positions(self.hashes, self.bits).collect()
            }
            Rule::Python => python::positions(item, self.hashes, self.bits),
            Rule::Java => java::positions(item),
            Rule::Redisson => redisson::positions(item, self.hashes, self.bits),
        }
    }
}

/// The key of an item among this many: its hash as a fraction of 2^64, times the number of keys.
pub(super) fn key_of(item: &[u8], keys: usize) -> usize {
    let hash = u128::from(murmur64a(item, KEY_SEED));
    usize::try_from((hash * keys as u128) >> 64).unwrap_or(0)
}
