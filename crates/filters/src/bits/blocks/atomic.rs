//! The bits of a filter in the blocked layout while several threads change them.

use alloc::alloc::{Layout, handle_alloc_error};
use core::sync::atomic::{AtomicU64, Ordering};

use super::array::{BlockArray, Words};
use super::functions::BlockedBits;
use super::words;
use crate::bits::fill::Fill;
use crate::bits::memory::AllocError;
use crate::hash::{DoubleHash, FilterKey};

/// The bits of a filter, which change through a shared reference.
///
/// The unsafe code below is sound for this reason: the bits inside are private, and through a
/// shared reference this module accesses their blocks only as atomic words. Code that uses them as
/// [`BlockedBits`] has exclusive access.
#[derive(Debug)]
pub(crate) struct AtomicBits(BlockedBits);

impl From<BlockedBits> for AtomicBits {
    fn from(bits: BlockedBits) -> AtomicBits {
        AtomicBits(bits)
    }
}

impl From<AtomicBits> for BlockedBits {
    fn from(bits: AtomicBits) -> BlockedBits {
        bits.0
    }
}

impl AtomicBits {
    /// The key of the hash, and its hash function.
    #[inline]
    pub(crate) fn key(&self) -> &FilterKey {
        &self.0.key
    }

    /// Bytes of memory beside the struct itself.
    pub(crate) fn memory(&self) -> usize {
        self.0.memory() + self.0.key.memory()
    }

    /// Prefetches the item's block, if that pays.
    #[inline]
    pub(crate) fn prefetch(&self, pair: DoubleHash) {
        if self.0.is_far(1) {
            self.0.array.prefetch(pair.a);
        }
    }

    /// Whether all bits of the hashed item are 1.
    #[inline]
    pub(crate) fn contains(&self, pair: DoubleHash) -> bool {
        self.0.kernel.contains_shared(self.words_of(pair), pair.b)
    }

    /// Makes all bits of the hashed item 1; whether one of them was 0.
    #[inline]
    pub(crate) fn insert(&self, pair: DoubleHash) -> bool {
        let mask = self.0.kernel.mask_words(pair.b);
        words::insert(self.words_of(pair), &mask)
    }

    /// What the number of ones says.
    pub(crate) fn fill(&self) -> Fill {
        let ones = |word: &AtomicU64| u64::from(word.load(Ordering::Relaxed).count_ones());
        let blocks = self.words().iter();
        Fill::of_blocks(
            blocks.map(|words| words.iter().map(ones).sum()),
            self.0.hashes(),
        )
    }

    /// Makes all bits 0. A large array gives its memory back, if another one can be had.
    pub(crate) fn clear(&mut self) {
        match BlockArray::zeroed(self.0.array.bytes() as u64) {
            Ok(empty) => self.0 = self.0.with_array(empty),
            Err(AllocError) => self.0.array.as_bytes_mut().fill(0),
        }
    }

    #[inline]
    fn words_of(&self, pair: DoubleHash) -> &Words {
        // SAFETY: no block is borrowed, as said above.
        unsafe { self.0.array.words_of(pair.a) }
    }

    fn words(&self) -> &[Words] {
        // SAFETY: as above.
        unsafe { self.0.array.words() }
    }
}

impl Clone for AtomicBits {
    /// A copy of the bits. It may or may not include bits that are set meanwhile.
    fn clone(&self) -> AtomicBits {
        let bytes = self.0.array.bytes();
        let Ok(array) = BlockArray::zeroed(bytes as u64) else {
            handle_alloc_error(Layout::array::<u8>(bytes).unwrap_or(Layout::new::<u8>()));
        };
        let copy = AtomicBits(self.0.with_array(array));
        let pairs = copy.words().as_flattened().iter();
        for (to, from) in pairs.zip(self.words().as_flattened()) {
            let word = from.load(Ordering::Relaxed);
            // Memory that was never written stays so.
            if word != 0 {
                to.store(word, Ordering::Relaxed);
            }
        }
        copy
    }
}
