//! How threads share the words of a block, without a lock.
//!
//! The words are generic, so that a model can try every interleaving of threads. The test
//! `atomic_model` includes this file for that.
//!
//! All accesses are relaxed. The guarantees of the protocol follow only from the order of the
//! changes of each word, which relaxed accesses keep:
//!
//! - A bit that is 1 stays 1, because nothing but an OR changes a shared word. So an item whose
//!   bits were all seen is never missing later.
//! - Of all ORs that set a bit, the first one in the order of its word finds it 0, and no other one
//!   does. An insert is told "new" when it was the first for one of its bits. When several threads
//!   insert the same item, each bit that was still 0 has such a first one: if that is not one of
//!   these threads, it inserted another item with the same bit, and came before them.
//!
//! A stronger order would also publish what other threads did before their inserts. A filter does
//! not promise that.

/// A word that threads share.
pub(crate) trait Word {
    /// The current value of the word.
    fn load(&self) -> u64;

    /// Makes bits 1 in one step; what the word was before.
    fn fetch_or(&self, bits: u64) -> u64;
}

#[cfg(target_has_atomic = "64")]
impl Word for core::sync::atomic::AtomicU64 {
    #[inline]
    fn load(&self) -> u64 {
        self.load(core::sync::atomic::Ordering::Relaxed)
    }

    #[inline]
    fn fetch_or(&self, bits: u64) -> u64 {
        self.fetch_or(bits, core::sync::atomic::Ordering::Relaxed)
    }
}

/// The current words, for a lookup. They are read one after the other, and other threads may change
/// them meanwhile; but a bit that was 1 before is read as 1.
#[inline]
pub(crate) fn load<const N: usize>(words: &[impl Word; N]) -> [u64; N] {
    words.each_ref().map(Word::load)
}

/// Makes all bits of the mask 1; whether one of them was 0.
///
/// A word that has its bits is not written: its cache line may stay with every core that reads it.
/// The words that lack a bit are found without a branch, because a processor cannot predict it.
#[inline]
#[expect(
    clippy::indexing_slicing,
    reason = "the number of a word is below that of all words"
)]
pub(crate) fn insert<const N: usize>(words: &[impl Word; N], mask: &[u64; N]) -> bool {
    let pairs = words.iter().zip(mask).enumerate();
    let mut lacking = pairs.fold(0_u32, |lacking, (index, (word, mask))| {
        lacking | u32::from(mask & !word.load() != 0) << index
    });
    let mut set = 0;
    while lacking != 0 {
        let index = lacking.trailing_zeros() as usize % N;
        lacking &= lacking - 1;
        // Another thread may have been faster since the load.
        set |= mask[index] & !words[index].fetch_or(mask[index]);
    }
    set != 0
}
