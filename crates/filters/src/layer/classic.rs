//! The bits in the classic layout, which spreads those of an item over the whole array: at
//! RedisBloom's positions or at valkey-bloom's.

use alloc::boxed::Box;

use super::shape::Shape;
use super::valkey::ValkeyBits;
use crate::bits::array::BitArray;
use crate::hash::item::Item;
use crate::hash::valkey::ValkeyBloom;
use crate::hash::{DoubleHash, HashWidth, Modulus};

/// How many bits of an item are tested before the first branch.
pub(crate) const RUN: u32 = 4;

/// The least size in bytes from which a bit array counts as far away.
const FAR: u64 = 4 << 20;

/// The bits of a layer. Those of valkey-bloom are in a box, because few filters are, and so that
/// they do not make the others larger.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ClassicArray {
    RedisBloom(BitArray),
    Valkey(Box<ValkeyBits>),
}

impl ClassicArray {
    /// Those of valkey-bloom, if that is given.
    pub(crate) fn new(array: BitArray, valkey: Option<ValkeyBloom>) -> ClassicArray {
        match valkey {
            None => ClassicArray::RedisBloom(array),
            Some(valkey) => ClassicArray::Valkey(Box::new(ValkeyBits { array, valkey })),
        }
    }

    #[inline]
    pub(crate) fn array(&self) -> &BitArray {
        match self {
            ClassicArray::RedisBloom(array) => array,
            ClassicArray::Valkey(bits) => &bits.array,
        }
    }

    pub(crate) fn array_mut(&mut self) -> &mut BitArray {
        match self {
            ClassicArray::RedisBloom(array) => array,
            ClassicArray::Valkey(bits) => &mut bits.array,
        }
    }

    /// Bytes of memory beside itself.
    pub(crate) fn memory(&self) -> usize {
        match self {
            ClassicArray::RedisBloom(array) => array.memory(),
            ClassicArray::Valkey(bits) => size_of::<ValkeyBits>() + bits.array.memory(),
        }
    }

    /// Hashes an item; `width` is that of RedisBloom's hash.
    #[inline]
    pub(crate) fn hash(&self, item: &(impl Item + ?Sized), width: HashWidth) -> DoubleHash {
        match self {
            ClassicArray::RedisBloom(_) => item.hash_with(&width),
            ClassicArray::Valkey(bits) => item.hash_with(&bits.valkey),
        }
    }

    /// Whether all bits of the item are 1, for which RedisBloom's hash has 64 bits.
    #[inline]
    pub(crate) fn contains_item(&self, item: &[u8], shape: &Shape) -> bool {
        match self {
            ClassicArray::RedisBloom(array) => ClassicBits::new(array, shape).contains_item(item),
            ClassicArray::Valkey(bits) => bits.contains_item(item, shape),
        }
    }

    /// Whether all bits of the hashed item are 1.
    #[inline]
    pub(crate) fn contains(&self, shape: &Shape, pair: DoubleHash) -> bool {
        match self {
            ClassicArray::RedisBloom(array) => ClassicBits::new(array, shape).contains(pair),
            ClassicArray::Valkey(bits) => bits.contains(shape, pair),
        }
    }

    /// Makes all bits of the hashed item 1; whether one of them was 0.
    #[inline]
    pub(crate) fn insert(&mut self, shape: &Shape, pair: DoubleHash) -> bool {
        match self {
            ClassicArray::RedisBloom(array) => array.set_all(shape.positions(pair)),
            ClassicArray::Valkey(bits) => bits.insert(shape, pair),
        }
    }

    /// The same for an item that is likely to be there: then nothing is written.
    #[inline]
    pub(crate) fn insert_unless_known(&mut self, shape: &Shape, pair: DoubleHash) -> bool {
        match self {
            ClassicArray::RedisBloom(array) => set_unless_all(array, shape, pair),
            ClassicArray::Valkey(bits) => bits.insert(shape, pair),
        }
    }

    /// Prefetches the cache lines of the item's bits, at most `most` of them.
    #[inline]
    pub(crate) fn prefetch(&self, shape: &Shape, pair: DoubleHash, most: u32) {
        if let ClassicArray::RedisBloom(array) = self {
            ClassicBits::new(array, shape).prefetch_item(pair, most);
        }
    }

    /// Calls `note` with each byte that [`insert`](Self::insert) would change.
    pub(crate) fn note_insert(&self, shape: &Shape, pair: DoubleHash, mut note: impl FnMut(u64)) {
        let note_zero = |position| {
            if !self.array().test(position) {
                note(position / 8);
            }
        };
        match self {
            ClassicArray::RedisBloom(_) => shape.positions(pair).for_each(note_zero),
            ClassicArray::Valkey(_) => shape.valkey_positions(pair).for_each(note_zero),
        }
    }
}

/// Makes all bits of the item 1, at RedisBloom's positions; whether one of them was 0. Nothing is
/// written if all are 1.
#[inline]
fn set_unless_all(bits: &mut BitArray, shape: &Shape, pair: DoubleHash) -> bool {
    let layer = ClassicBits::new(bits, shape);
    let Some(first) = layer.first_run(pair) else {
        return !layer.contains(pair) && bits.set_all(shape.positions(pair));
    };
    let rest = pair
        .skip(RUN)
        .reduced(shape.size.hashes - RUN, shape.modulus);
    bits.set_unless_all(first, rest)
}

/// The bits of a layer of RedisBloom, and what determines the positions of an item.
#[derive(Clone, Copy)]
pub(crate) struct ClassicBits<'a> {
    pub(crate) bits: &'a BitArray,
    pub(crate) hashes: u32,
    modulus: Modulus,
}

impl<'a> ClassicBits<'a> {
    #[inline]
    pub(crate) fn new(bits: &'a BitArray, shape: &Shape) -> ClassicBits<'a> {
        ClassicBits {
            bits,
            hashes: shape.size.hashes,
            modulus: shape.modulus,
        }
    }

    /// Whether it is too large for the processor's nearer caches, so that a prefetch pays.
    #[inline]
    pub(crate) fn is_far(self) -> bool {
        self.bits.len() >= FAR
    }

    /// Whether all bits of the item are 1, which is hashed to 64 bits. Not inlined, so that a lookup
    /// in the blocked layout has no registers to save.
    #[inline(never)]
    fn contains_item(self, item: &[u8]) -> bool {
        self.contains(DoubleHash::new(item, HashWidth::Bits64))
    }

    /// Whether all bits of the hashed item are 1.
    #[inline]
    pub(crate) fn contains(&self, pair: DoubleHash) -> bool {
        self.contains_first(pair) && self.contains_rest(pair)
    }

    /// Whether the item's first bits, [`RUN`] of them, are 1.
    #[inline]
    pub(crate) fn contains_first(&self, pair: DoubleHash) -> bool {
        if self.hashes < RUN {
            return self.bits.test_all(pair.reduced(self.hashes, self.modulus));
        }
        self.bits.test_all(self.run_of(pair).into_iter())
    }

    /// The item's first [`RUN`] positions, if it has so many.
    #[inline]
    pub(crate) fn first_run(self, pair: DoubleHash) -> Option<[u64; RUN as usize]> {
        (self.hashes >= RUN).then(|| self.run_of(pair))
    }

    /// Whether the item's other bits are 1. All are tested, without a branch between them: in a
    /// filter that is not too full, few items come here that are not in it.
    #[inline]
    pub(crate) fn contains_rest(&self, pair: DoubleHash) -> bool {
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
        let positions = pair.reduced(self.hashes.min(most), self.modulus);
        self.bits.prefetch_all(positions);
    }

    /// Prefetches the cache lines of the item's other bits.
    #[inline]
    pub(crate) fn prefetch_rest(self, pair: DoubleHash) {
        let rest = self.hashes.saturating_sub(RUN);
        let positions = pair.skip(RUN).reduced(rest, self.modulus);
        self.bits.prefetch_all(positions);
    }
}
