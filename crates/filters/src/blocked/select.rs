//! The loops around a test: over the items of a group, and over the arrays of several layers. And
//! what is around the insert of a hashed item.

use super::array::{Block, BlockArray};
use crate::hash::HashPair;

/// Whether one of the blocks that the hash value chooses passes the test, without a branch between
/// them. Inlined as [`select`] is.
#[inline(always)]
pub(super) fn any(arrays: &[&BlockArray], a: u64, test: impl Fn(&Block) -> bool) -> bool {
    let tests = arrays.iter().map(|array| test(array.block_of(a)));
    tests.fold(false, |any, found| any | found)
}

/// Those of the items in the mask that pass the test. Inlined, so that the test is compiled for the
/// instructions of the caller.
#[inline(always)]
pub(super) fn select(
    pairs: &[HashPair; 32],
    mask: u32,
    mut test: impl FnMut(HashPair) -> bool,
) -> u32 {
    let mut found = 0;
    if mask == u32::MAX {
        for (index, &pair) in pairs.iter().enumerate() {
            found |= u32::from(test(pair)) << index;
        }
        return found;
    }
    let mut rest = mask;
    while rest != 0 {
        let index = rest.trailing_zeros();
        rest &= rest - 1;
        if let Some(&pair) = pairs.get(index as usize) {
            found |= u32::from(test(pair)) << index;
        }
    }
    found
}

/// What a kernel's inserts have in common: an item, a hashed item, and those of a group that are in
/// the mask. Each says what was new. And what the atomic filter needs, whose blocks are words that
/// threads share. The kernel has `contains`, `insert`, `mask`, and these instructions.
macro_rules! inserts {
    ($features:tt) => {
        /// Inserts an item; whether it is new.
        #[target_feature(enable = $features)]
        pub(super) fn insert_item(blocks: &mut Blocks, item: &[u8]) -> bool {
            match blocks.hash_usual(item) {
                Some(pair) => insert_pair(blocks, pair),
                None => insert_unusual(blocks, item),
            }
        }

        #[inline(never)]
        #[target_feature(enable = $features)]
        fn insert_unusual(blocks: &mut Blocks, item: &[u8]) -> bool {
            insert_pair(blocks, blocks.hash(item))
        }

        /// Inserts a hashed item; whether it is new.
        #[inline]
        #[target_feature(enable = $features)]
        pub(super) fn insert_pair(blocks: &mut Blocks, pair: HashPair) -> bool {
            let lanes = blocks.lanes;
            insert(blocks.block_of_mut(pair), pair.b, lanes)
        }

        /// Inserts those of the items in the mask, in order; which of them are new.
        #[target_feature(enable = $features)]
        pub(super) fn insert_group(blocks: &mut Blocks, pairs: &[HashPair; 32], mask: u32) -> u32 {
            select(pairs, mask, |pair| insert_pair(blocks, pair))
        }

        /// Whether the item's bits are 1 in a block that threads share. What is read of it stays in
        /// registers, because the reads are inlined here.
        #[target_feature(enable = $features)]
        pub(super) fn are_in(words: &super::array::Words, b: u64, lanes: &Lanes) -> bool {
            contains(&Block::from_words(super::words::load(words)), b, lanes)
        }

        /// The words of a block in which the item's bits are 1, as they lie in memory.
        #[target_feature(enable = $features)]
        pub(super) fn mask_words(b: u64, lanes: &Lanes) -> [u64; 8] {
            // SAFETY: the mask is vectors of 64 bytes in all, and any bytes are words.
            unsafe { core::mem::transmute(mask(b, lanes)) }
        }
    };
}

#[cfg(any(
    target_arch = "x86_64",
    all(target_arch = "aarch64", target_feature = "neon")
))]
pub(super) use inserts;
