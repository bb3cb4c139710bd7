//! Testing for items in RedisBloom's bit layout, which spreads an item's bits over the whole array.

use core::ops::Range;

use super::shape::Shape;
use crate::bits::array::BitArray;
use crate::hash::valkey;
use crate::hash::{DoubleHash, Modulus};

/// How many bits of an item are tested before the first branch.
pub(crate) const RUN: u32 = 4;

/// The least size in bytes from which a bit array counts as far away.
const FAR: u64 = 4 << 20;

/// The bits of a layer, and what determines the positions of an item.
#[derive(Clone, Copy)]
pub(crate) struct ClassicBits<'a> {
    pub(crate) bits: &'a BitArray,
    pub(crate) hashes: u32,
    modulus: Modulus,
    /// Whether the positions are those of valkey-bloom.
    is_valkey: bool,
}

impl<'a> ClassicBits<'a> {
    #[inline]
    pub(crate) fn new(bits: &'a BitArray, shape: &Shape) -> ClassicBits<'a> {
        ClassicBits {
            bits,
            hashes: shape.size.hashes,
            modulus: shape.modulus,
            is_valkey: shape.valkey.is_some(),
        }
    }

    /// Whether it is too large for the processor's nearer caches, so that a prefetch pays.
    #[inline]
    pub(crate) fn is_far(self) -> bool {
        self.bits.len() >= FAR && !self.is_valkey
    }

    /// Whether all bits of the item are 1.
    #[inline]
    pub(crate) fn contains(&self, pair: DoubleHash) -> bool {
        self.contains_first(pair) && self.contains_rest(pair)
    }

    /// Whether the item's first bits, [`RUN`] of them, are 1.
    #[inline]
    pub(crate) fn contains_first(&self, pair: DoubleHash) -> bool {
        if self.is_valkey {
            return self.has_valkey(pair, 0..self.hashes.min(RUN));
        }
        if self.hashes < RUN {
            return self.bits.test_all(pair.reduced(self.hashes, self.modulus));
        }
        self.bits.test_all(self.run_of(pair).into_iter())
    }

    /// The item's first [`RUN`] positions, if it has so many and they are RedisBloom's.
    #[inline]
    pub(crate) fn first_run(self, pair: DoubleHash) -> Option<[u64; RUN as usize]> {
        let has_run = !self.is_valkey && self.hashes >= RUN;
        has_run.then(|| self.run_of(pair))
    }

    /// Whether the item's other bits are 1. All are tested, without a branch between them: in a
    /// filter that is not too full, few items come here that are not in it.
    #[inline]
    pub(crate) fn contains_rest(&self, pair: DoubleHash) -> bool {
        if self.is_valkey {
            return self.has_valkey(pair, RUN..self.hashes);
        }
        let rest = self.hashes.saturating_sub(RUN);
        self.bits
            .test_all(pair.skip(RUN).reduced(rest, self.modulus))
    }

    /// [`RUN`] positions from the pair's first on.
    #[inline]
    pub(crate) fn run_of(self, pair: DoubleHash) -> [u64; RUN as usize] {
        let (a, b) = (pair.a, pair.b);
        let x = [
            a,
            a.wrapping_add(b),
            a.wrapping_add(b << 1),
            a.wrapping_add(b << 1).wrapping_add(b),
        ];
        x.map(|x| self.modulus.reduce(x))
    }

    /// Prefetches the cache lines of the item's bits, at most `most` of them.
    #[inline]
    pub(crate) fn prefetch_item(self, pair: DoubleHash, most: u32) {
        if !self.is_valkey {
            let positions = pair.reduced(self.hashes.min(most), self.modulus);
            self.bits.prefetch_all(positions);
        }
    }

    /// Whether these of the item's bits are 1, by valkey-bloom's positions.
    fn has_valkey(self, pair: DoubleHash, mut range: Range<u32>) -> bool {
        range.all(|index| {
            let x = valkey::position(pair.a, pair.b, index);
            self.bits.test(self.modulus.reduce(x))
        })
    }

    /// Prefetches the cache lines of the item's other bits.
    #[inline]
    pub(crate) fn prefetch_rest(self, pair: DoubleHash) {
        let rest = self.hashes.saturating_sub(RUN);
        let positions = pair.skip(RUN).reduced(rest, self.modulus);
        self.bits.prefetch_all(positions);
    }
}
