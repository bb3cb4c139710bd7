//! The bits of a layer in the blocked layout.

use alloc::sync::Arc;
use core::fmt;

use super::array::BlockArray;
use super::functions::{BlockedBits, Kernel};
use crate::bits::array::count_ones;
use crate::bits::fill::Fill;
use crate::bits::memory::prefetch;
use crate::error::BuildError;
use crate::hash::{DoubleHash, FilterKey, Key, KeyedHash};
use crate::sizing::BlockedSize;

/// From how many bytes on a prefetch pays: more than the nearest caches hold.
const FAR: usize = 2 << 20;

/// The bytes of bits beside which all secrets of a key are little.
const MANY: u64 = 256;

impl BlockedBits {
    /// All bits 0, with a key of its own.
    pub(crate) fn new(size: &BlockedSize, key: Key) -> Result<BlockedBits, BuildError> {
        BlockedBits::zeroed(size, || Arc::new(FilterKey::new(key, size.bytes >= MANY)))
    }

    /// All bits 0, of another size and with the same key.
    pub(crate) fn like(&self, size: &BlockedSize) -> Result<BlockedBits, BuildError> {
        if size.bytes >= MANY && !self.key.keeps_all() {
            return BlockedBits::new(size, self.key.key());
        }
        BlockedBits::zeroed(size, || Arc::clone(&self.key))
    }

    fn zeroed(
        size: &BlockedSize,
        key: impl FnOnce() -> Arc<FilterKey>,
    ) -> Result<BlockedBits, BuildError> {
        let bytes = size.bytes;
        let kernel = Kernel::new(size.hashes).ok_or(BuildError::Unsizable)?;
        if bytes == 0 || !bytes.is_multiple_of(u64::from(BlockedSize::BLOCK_BITS / 8)) {
            return Err(BuildError::Unsizable);
        }
        let array = BlockArray::zeroed(bytes).map_err(|_| BuildError::OutOfMemory { bytes })?;
        Ok(BlockedBits {
            array,
            key: key(),
            kernel,
        })
    }

    /// Prefetches what of the key hashes most items.
    #[inline]
    pub(crate) fn prefetch_key(&self) {
        let [first, .., last] = self.key.first();
        prefetch((&raw const *first).cast());
        prefetch((&raw const *last).cast());
    }

    /// Bytes of memory beside itself and the key.
    #[inline]
    pub(crate) fn memory(&self) -> usize {
        self.array.memory_usage()
    }

    /// What the number of ones says.
    pub(crate) fn fill(&self) -> Fill {
        let blocks = self.array.blocks().iter();
        Fill::of_blocks(blocks.map(|block| count_ones(&block.0)), self.hashes())
    }

    pub(super) fn hashes(&self) -> u32 {
        self.kernel.lanes().hashes
    }

    /// Whether a prefetch pays in a filter of so many layers, which share the nearest caches.
    #[inline]
    pub(crate) fn is_far(&self, layers: usize) -> bool {
        self.array.bytes().saturating_mul(layers) >= FAR
    }

    /// Whether all bits of the item are 1.
    #[inline]
    pub(crate) fn contains_item(&self, item: &[u8]) -> bool {
        self.kernel.contains_item(self, item)
    }

    /// Whether all bits of the hashed item are 1.
    #[inline]
    pub(crate) fn contains(&self, pair: DoubleHash) -> bool {
        let block = self.array.block_of(pair.a);
        self.kernel.contains(block, pair.b)
    }

    /// Makes all bits of the item 1; whether one of them was 0.
    #[inline]
    pub(crate) fn insert_item(&mut self, item: &[u8]) -> bool {
        self.kernel.insert_item(self, item)
    }

    /// Makes all bits of the hashed item 1; whether one of them was 0.
    #[inline]
    pub(crate) fn insert(&mut self, pair: DoubleHash) -> bool {
        let kernel = self.kernel;
        kernel.insert(self.array.block_of_mut(pair.a), pair.b)
    }

    /// [`insert`](Self::insert) for those of the items in the mask, in order; which of them are
    /// new.
    #[inline]
    pub(crate) fn insert_group(&mut self, pairs: &[DoubleHash; 32], mask: u32) -> u32 {
        self.kernel.insert_group(self, pairs, mask)
    }

    /// Calls `note` with each byte that [`insert`](Self::insert) would change.
    pub(crate) fn note_insert(&self, pair: DoubleHash, mut note: impl FnMut(u64)) {
        let start = self.array.offset_of(pair.a);
        for position in self.kernel.lanes().positions(pair.b) {
            let byte = start + (position / 8) as usize;
            let old = self.array.as_bytes().get(byte);
            let old = old.copied().unwrap_or_default();
            if old >> (position % 8) & 1 == 0 {
                note(byte as u64);
            }
        }
    }

    /// Bits of the same parameters and key, with these blocks, which are as many.
    #[cfg(target_has_atomic = "64")]
    pub(super) fn with_array(&self, array: BlockArray) -> BlockedBits {
        BlockedBits {
            array,
            key: Arc::clone(&self.key),
            kernel: self.kernel,
        }
    }
}

impl PartialEq for BlockedBits {
    fn eq(&self, other: &BlockedBits) -> bool {
        self.key.key() == other.key.key() && self.array == other.array
    }
}

impl fmt::Debug for BlockedBits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}, tested by {:?}", self.array, self.kernel)
    }
}

/// The most layers that are tested together.
pub(super) const TOGETHER: usize = 8;

/// The items in the mask that are in any of the layers, as bits; the last layer is tested first.
/// Layers with the same number of hashes are tested together.
pub(crate) fn contained<'a>(
    layers: impl DoubleEndedIterator<Item = &'a BlockedBits>,
    pairs: &[DoubleHash; 32],
    mask: u32,
) -> u32 {
    let mut found = 0;
    let mut layers = layers.rev().peekable();
    while let Some(newest) = layers.next() {
        let mut arrays = [&newest.array; TOGETHER];
        let mut count = 1;
        for slot in arrays.iter_mut().skip(1) {
            let alike = layers.next_if(|layer| layer.hashes() == newest.hashes());
            let Some(layer) = alike else {
                break;
            };
            *slot = &layer.array;
            count += 1;
        }
        let arrays = arrays.get(..count).unwrap_or_default();
        found |= newest.kernel.contained(arrays, pairs, mask & !found);
        if found == mask {
            break;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use alloc::format;
    use alloc::vec::Vec;

    use proptest::prelude::*;

    use super::{BlockedBits, Kernel, contained};
    use crate::hash::{DoubleHash, Key, KeyedHash};
    use crate::sizing::BlockedSize;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(500))]

        /// Layers that each kernel fills have the same bits, and the same items were new.
        #[test]
        fn layers_are_filled_alike_by_every_kernel(
            hashes in 2_u32..33, blocks in 1_u64..20, count in 0_usize..300, seed in any::<u64>(),
        ) {
            let size = BlockedSize::from_bits(blocks * 512, hashes, Some(1)).unwrap();
            let empty = BlockedBits::new(&size, Key::from_seed(seed)).unwrap();
            let mut all = Vec::new();
            for kernel in Kernel::all(hashes) {
                let mut layer = empty.clone();
                layer.kernel = kernel;
                // Items of all lengths, each twice.
                let byte = |number: usize| number.to_le_bytes()[0] / 2;
                let item = |number: usize| alloc::vec![byte(number); number / 2 % 70];
                let new: Vec<bool> =
                    (0..count).map(|number| layer.insert_item(&item(number))).collect();
                all.push((layer.array.as_bytes().to_vec(), new));
            }
            prop_assert!(all.windows(2).all(|two| two[0] == two[1]));
        }

        /// Whole layers, and with items that are there.
        #[test]
        fn layers_answer_alike_with_every_kernel(
            hashes in 2_u32..33, blocks in 1_u64..20, count in 0_u32..300, seed in any::<u64>(),
        ) {
            let size = BlockedSize::from_bits(blocks * 512, hashes, Some(1)).unwrap();
            let mut layer = BlockedBits::new(&size, Key::from_seed(seed)).unwrap();
            for number in 0..count {
                layer.insert(layer.key.hash(&number.to_le_bytes()));
            }
            let items: Vec<Vec<u8>> = (0..2 * count)
                .map(|number| match number % 3 {
                    0 => number.to_le_bytes().to_vec(),
                    1 => u64::from(number).to_le_bytes().to_vec(),
                    _ => format!("an item of more than sixteen bytes: {number}").into_bytes(),
                })
                .collect();
            let mut answers = Vec::new();
            for kernel in Kernel::all(hashes) {
                layer.kernel = kernel;
                let single: Vec<bool> =
                    items.iter().map(|item| layer.contains_item(item)).collect();
                let hashed: Vec<bool> =
                    items.iter().map(|item| layer.contains(layer.key.hash(item))).collect();
                let mut together = Vec::new();
                for group in items.chunks(32) {
                    let mut pairs = [DoubleHash::default(); 32];
                    for (pair, item) in pairs.iter_mut().zip(group) {
                        *pair = layer.key.hash(item);
                    }
                    let found = contained([&layer].into_iter(), &pairs, u32::MAX);
                    together.extend((0..group.len()).map(|index| found >> index & 1 == 1));
                }
                answers.extend([single, hashed, together]);
            }
            for number in (0..count).step_by(3) {
                prop_assert!(answers[0][number as usize]);
            }
            prop_assert!(answers.windows(2).all(|two| two[0] == two[1]));
        }
    }
}
