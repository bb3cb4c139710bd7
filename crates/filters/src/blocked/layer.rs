//! One layer of the blocked layout: blocks and what they were made for.

use core::fmt;
use core::mem::size_of;

use super::array::{BLOCK, Block, BlockArray};
use super::portable::Lanes;
use super::{ItemTest, Kernel};
use crate::classic::BuildError;
use crate::hash::{HashPair, Key, Secrets};
use crate::math::{ln_1p, powf, whole};
use crate::sizing::blocked::{BLOCK_BITS, BlockedSize};

/// From how many bytes on asking for blocks ahead of time pays: more than the nearest caches hold.
const FAR: usize = 2 << 20;

/// One bit array of a filter in the blocked layout: fixed in size, made for a capacity and an error
/// rate.
///
/// ```
/// use everbloom::{Layout, ScalableBloomFilter};
/// let filter = ScalableBloomFilter::builder().layout(Layout::Blocked).fixed().build()?;
/// let layer = filter.layers()[0].as_blocked().unwrap();
/// assert_eq!((layer.bits(), layer.hashes(), layer.error_rate()), (1024, 6, 0.01));
/// # Ok::<(), everbloom::BuildError>(())
/// ```
#[derive(Clone)]
pub struct BlockedLayer {
    array: BlockArray,
    items: u64,
    capacity: u64,
    error_rate: f64,
    lanes: &'static Lanes,
    kernel: Kernel,
    item_test: ItemTest,
    key: Key,
    secrets: Secrets,
}

impl BlockedLayer {
    /// An empty layer. The size is one that [`BlockedSize`] gives, or that passed the gate.
    pub(crate) fn new(
        size: &BlockedSize,
        key: Key,
        max_bytes: u64,
    ) -> Result<BlockedLayer, BuildError> {
        let bytes = size.bytes;
        if bytes > max_bytes {
            return Err(BuildError::TooLarge { bytes });
        }
        let lanes = Lanes::new(size.hashes).ok_or(BuildError::Unsizable)?;
        if bytes == 0 || !bytes.is_multiple_of(BLOCK as u64) {
            return Err(BuildError::Unsizable);
        }
        let kernel = Kernel::detect();
        let array = BlockArray::zeroed(bytes).map_err(|_| BuildError::OutOfMemory { bytes })?;
        Ok(BlockedLayer {
            array,
            items: 0,
            capacity: size.capacity,
            error_rate: size.error_rate,
            lanes,
            kernel,
            item_test: kernel.item_test(size.hashes),
            key,
            secrets: Secrets::new(key),
        })
    }

    /// Length of the bit array in bytes, a multiple of 64.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.as_bytes().len() as u64
    }

    /// Length of the bit array in bits.
    #[must_use]
    pub fn bits(&self) -> u64 {
        self.bytes() * 8
    }

    /// Items added so far.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.items
    }

    /// Whether nothing was added yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.items == 0
    }

    /// Items it is made for.
    #[must_use]
    pub fn capacity(&self) -> u64 {
        self.capacity
    }

    /// The error rate it is made for.
    #[must_use]
    pub fn error_rate(&self) -> f64 {
        self.error_rate
    }

    /// Bits set by an item, all in one block.
    #[must_use]
    pub fn hashes(&self) -> u32 {
        self.lanes.hashes
    }

    /// The key of the hash.
    #[must_use]
    pub fn key(&self) -> Key {
        self.key
    }

    /// The blocks end to end, 64 bytes each: position `p` of a block is bit `p % 8`, least
    /// significant first, of its byte `p / 8`.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        self.array.as_bytes()
    }

    /// The part of the bits that are 1. Takes time linear in the length.
    #[must_use]
    pub fn fill_ratio(&self) -> f64 {
        let ones: f64 = self.array.blocks().iter().map(ones).sum();
        ones / self.bits() as f64
    }

    /// The error rate to expect now, from the bits that are 1: the mean over the blocks of what an
    /// item that is not there meets. Takes time linear in the length.
    #[must_use]
    pub fn estimated_error_rate(&self) -> f64 {
        let blocks = self.array.blocks();
        let hashes = f64::from(self.hashes());
        let rate = |block| powf(ones(block) / f64::from(BLOCK_BITS), hashes);
        blocks.iter().map(rate).sum::<f64>() / blocks.len() as f64
    }

    /// How many different items were inserted, estimated from the bits that are 1, block by block;
    /// a full block counts as many as a fill can tell. Takes time linear in the length.
    #[must_use]
    pub fn estimated_len(&self) -> u64 {
        let bits = f64::from(BLOCK_BITS);
        // So many throws leave so many of 512 cells occupied on average.
        let throws = |block| ln_1p(-ones(block).min(bits - 1.0) / bits) / ln_1p(-1.0 / bits);
        let throws: f64 = self.array.blocks().iter().map(throws).sum();
        whole(throws / f64::from(self.hashes()) + 0.5)
    }

    /// What it occupies in memory, in bytes.
    #[must_use]
    pub fn memory_usage(&self) -> usize {
        size_of::<Self>() + self.array.memory_usage()
    }

    pub(crate) fn size(&self) -> BlockedSize {
        BlockedSize {
            capacity: self.capacity,
            error_rate: self.error_rate,
            hashes: self.hashes(),
            bytes: self.bytes(),
        }
    }

    pub(crate) fn as_bytes_mut(&mut self) -> &mut [u8] {
        self.array.as_bytes_mut()
    }

    pub(crate) fn set_len(&mut self, items: u64) {
        self.items = items;
    }

    /// Hashes an item as its key says.
    #[inline]
    pub(crate) fn hash(&self, item: &[u8]) -> HashPair {
        self.secrets.hash(item)
    }

    /// What hashes items as its key says.
    #[inline]
    pub(crate) fn secrets(&self) -> Secrets {
        self.secrets
    }

    /// Whether asking for blocks ahead of time pays.
    #[inline]
    pub(crate) fn is_far(&self) -> bool {
        self.as_bytes().len() >= FAR
    }

    /// Hashes an item of a usual length.
    #[inline(always)]
    pub(super) fn hash_usual(&self, item: &[u8]) -> Option<HashPair> {
        self.secrets.hash_usual(item)
    }

    /// What a kernel tests in, and with.
    #[inline(always)]
    /// The bits, for who moves them.
    pub(crate) fn array_mut(&mut self) -> &mut BlockArray {
        &mut self.array
    }

    pub(super) fn parts_to_test(&self) -> (&BlockArray, &Lanes) {
        (&self.array, self.lanes)
    }

    /// Whether all bits of the item are 1.
    #[inline]
    pub(crate) fn contains_item(&self, item: &[u8]) -> bool {
        self.item_test.contains(self, item)
    }

    /// Whether all bits of the hashed item are 1.
    #[inline]
    pub(crate) fn contains(&self, pair: HashPair) -> bool {
        self.kernel.contains_pair(self, pair)
    }

    #[cfg(test)]
    pub(super) fn set_kernel(&mut self, kernel: Kernel) {
        self.kernel = kernel;
        self.item_test = kernel.item_test(self.hashes());
    }

    /// How it is tested.
    #[inline]
    pub(super) fn kernel(&self) -> Kernel {
        self.kernel
    }

    /// Asks for the item's block.
    #[inline]
    pub(crate) fn prefetch(&self, pair: HashPair) {
        self.array.prefetch(pair.a);
    }

    /// Sets the item's bits.
    #[inline]
    pub(crate) fn insert_uncounted(&mut self, pair: HashPair) {
        self.lanes.insert(self.array.block_of_mut(pair.a), pair.b);
    }

    /// Sets the item's bits and counts it.
    #[inline]
    pub(crate) fn insert(&mut self, pair: HashPair) {
        self.insert_uncounted(pair);
        self.items = self.items.saturating_add(1);
    }

    /// Calls `note` with each byte that [`insert`](Self::insert) would change, and what it is now.
    pub(crate) fn note_insert(&self, pair: HashPair, mut note: impl FnMut(u64, u8)) {
        let start = self.array.index_of(pair.a) * BLOCK;
        for position in self.lanes.positions(pair.b) {
            let byte = start + (position / 8) as usize;
            let old = self.as_bytes().get(byte).copied().unwrap_or_default();
            if old >> (position % 8) & 1 == 0 {
                note(byte as u64, old);
            }
        }
    }
}

/// How many bits of the block are 1.
fn ones(block: &Block) -> f64 {
    let (words, _) = block.0.as_chunks::<8>();
    let ones = words
        .iter()
        .map(|word| u64::from_le_bytes(*word).count_ones());
    f64::from(ones.sum::<u32>())
}

impl PartialEq for BlockedLayer {
    fn eq(&self, other: &BlockedLayer) -> bool {
        self.size() == other.size()
            && self.items == other.items
            && self.key == other.key
            && self.array == other.array
    }
}

impl fmt::Debug for BlockedLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BlockedLayer")
            .field("array", &self.array)
            .field("items", &self.items)
            .field("capacity", &self.capacity)
            .field("error_rate", &self.error_rate)
            .field("hashes", &self.hashes())
            .field("kernel", &self.kernel)
            .finish_non_exhaustive()
    }
}
