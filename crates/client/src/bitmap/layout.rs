//! The positions of an item's bits, in our own layout and in those of other programs.

use everbloom::hash::{HashPair, HashWidth, murmur64a};

use super::parameters::BitmapParameters;
use super::{java, python, redisson};

/// The seed of the hash that chooses an item's key: not one that the positions come from.
const KEY_SEED: u64 = 0x6b65_7920_6f66_2069;

/// How items become bits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Layout {
    Everbloom(BitmapParameters),
    /// murmur3 with the seeds 0, 1, ...
    Python {
        bits: u64,
        hashes: u32,
    },
    /// Three shifts of `String.hashCode()`.
    Java,
    /// HighwayHash-128, its halves added in turn.
    Redisson {
        bits: u64,
        hashes: u32,
    },
}

/// The bits of an item: all in one key.
pub(super) struct Place {
    pub(super) key: usize,
    pub(super) bits: Vec<u64>,
}

impl Layout {
    pub(super) fn place(&self, item: &[u8]) -> Place {
        let bits = match *self {
            Layout::Everbloom(parameters) => {
                let pair = HashPair::new(item, HashWidth::Bits64);
                let bits = pair.positions(parameters.hashes(), parameters.key_bits());
                return Place {
                    key: key_of(item, parameters.keys()),
                    bits: bits.collect(),
                };
            }
            Layout::Python { bits, hashes } => python::positions(item, hashes, bits),
            Layout::Java => java::positions(item),
            Layout::Redisson { bits, hashes } => redisson::positions(item, hashes, bits),
        };
        Place { key: 0, bits }
    }

    /// The bits that an item sets.
    pub(super) fn hashes(&self) -> u32 {
        match *self {
            Layout::Everbloom(parameters) => parameters.hashes(),
            Layout::Java => java::HASHES,
            Layout::Python { hashes, .. } | Layout::Redisson { hashes, .. } => hashes,
        }
    }

    /// The bits of each key.
    pub(super) fn key_bits(&self) -> u64 {
        match *self {
            Layout::Everbloom(parameters) => parameters.key_bits(),
            Layout::Java => java::BITS,
            Layout::Python { bits, .. } | Layout::Redisson { bits, .. } => bits,
        }
    }
}

/// The key of an item among this many: its hash as a fraction of 2^64, times the number of keys.
fn key_of(item: &[u8], keys: u32) -> usize {
    let hash = u128::from(murmur64a(item, KEY_SEED));
    usize::try_from((hash * u128::from(keys)) >> 64).unwrap_or(0)
}
