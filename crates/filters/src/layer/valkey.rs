//! The bits of a layer of valkey-bloom: in the classic layout, at positions of their own.

use super::shape::Shape;
use crate::bits::array::BitArray;
use crate::hash::DoubleHash;
use crate::hash::item::Item;
use crate::hash::valkey::ValkeyBloom;

/// The bits, and what only a filter of valkey-bloom has.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ValkeyBits {
    pub(crate) array: BitArray,
    pub(crate) valkey: ValkeyBloom,
}

/// Not inlined, so that the functions of RedisBloom's have no registers to save for these.
impl ValkeyBits {
    /// Whether all bits of the item are 1.
    #[cold]
    #[inline(never)]
    pub(crate) fn contains_item(&self, item: &[u8], shape: &Shape) -> bool {
        self.contains(shape, item.hash_with(&self.valkey))
    }

    /// Whether all bits of the hashed item are 1.
    #[cold]
    #[inline(never)]
    pub(crate) fn contains(&self, shape: &Shape, pair: DoubleHash) -> bool {
        let mut positions = shape.valkey_positions(pair);
        positions.all(|position| self.array.test(position))
    }

    /// Makes all bits of the hashed item 1; whether one of them was 0.
    #[cold]
    #[inline(never)]
    pub(crate) fn insert(&mut self, shape: &Shape, pair: DoubleHash) -> bool {
        self.array.set_all(shape.valkey_positions(pair))
    }
}
