//! The common parts of all kernels: the loops around a test, over the items of a group and over the
//! arrays of several layers, and the functions around `contains`, `insert` and `mask`.

use super::array::{Block, BlockArray};
use crate::hash::DoubleHash;

/// Whether one of the blocks that the hash value chooses passes the test, without a branch between
/// them. Inlined as [`select`] is.
#[inline(always)]
pub(super) fn any(arrays: &[&BlockArray], a: u64, test: impl Fn(&Block) -> bool) -> bool {
    let tests = arrays.iter().map(|array| test(array.block_of(a)));
    tests.fold(false, |any, found| any | found)
}

/// The items in the mask that pass the test, as bits. Inlined, so that the test is compiled for the
/// instructions of the caller.
#[inline(always)]
pub(super) fn select(
    pairs: &[DoubleHash; 32],
    mask: u32,
    mut test: impl FnMut(DoubleHash) -> bool,
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

/// The list of a kernel's functions, and those of them that all kernels have in common. The kernel
/// has `contained`, which [`contained!`] makes, and
///
/// - `contains`: whether all bits of an item are 1 in its block
/// - `insert`: sets all bits of an item in its block; whether one of them was 0
/// - `mask`: 64 bytes, a block in which the bits of an item are 1
///
/// The functions that set bits are generic over the most hashes of their items, one of the
/// [`TIERS`](super::functions::TIERS).
///
/// A macro, because the instructions are an attribute of each function.
macro_rules! functions {
    ($instructions:expr $(, $features:tt)?) => {
        /// The functions for items with at most so many hashes.
        const fn functions_of<const MAX: usize>() -> super::functions::Functions {
            super::functions::Functions {
                lanes: Lanes::of(0),
                instructions: $instructions,
                contains_item,
                contains,
                contained,
                insert_item: insert_item::<MAX>,
                insert: insert::<MAX>,
                insert_group: insert_group::<MAX>,
                #[cfg(target_has_atomic = "64")]
                contains_shared,
                #[cfg(target_has_atomic = "64")]
                mask_words: mask_words::<MAX>,
            }
        }

        $(#[target_feature(enable = $features)])?
        fn contains_item(bits: &BlockedBits, item: &[u8]) -> bool {
            match bits.key.hash_usual(item) {
                Some(pair) => contains(bits.array.block_of(pair.a), pair.b, bits.kernel.lanes()),
                None => contains_unusual(bits, item),
            }
        }

        #[inline(never)]
        $(#[target_feature(enable = $features)])?
        fn contains_unusual(bits: &BlockedBits, item: &[u8]) -> bool {
            let pair = bits.key.hash_unusual(item);
            contains(bits.array.block_of(pair.a), pair.b, bits.kernel.lanes())
        }

        $(#[target_feature(enable = $features)])?
        fn insert_item<const MAX: usize>(bits: &mut BlockedBits, item: &[u8]) -> bool {
            match bits.key.hash_usual(item) {
                Some(pair) => insert_pair::<MAX>(bits, pair),
                None => insert_unusual::<MAX>(bits, item),
            }
        }

        #[inline(never)]
        $(#[target_feature(enable = $features)])?
        fn insert_unusual<const MAX: usize>(bits: &mut BlockedBits, item: &[u8]) -> bool {
            insert_pair::<MAX>(bits, bits.key.hash_unusual(item))
        }

        #[inline]
        $(#[target_feature(enable = $features)])?
        fn insert_pair<const MAX: usize>(bits: &mut BlockedBits, pair: DoubleHash) -> bool {
            let lanes = bits.kernel.lanes();
            insert::<MAX>(bits.array.block_of_mut(pair.a), pair.b, lanes)
        }

        $(#[target_feature(enable = $features)])?
        fn insert_group<const MAX: usize>(
            bits: &mut BlockedBits,
            pairs: &[DoubleHash; 32],
            mask: u32,
        ) -> u32 {
            super::select::select(pairs, mask, |pair| insert_pair::<MAX>(bits, pair))
        }

        /// What is read of the block stays in registers, because the reads are inlined here.
        #[cfg(target_has_atomic = "64")]
        $(#[target_feature(enable = $features)])?
        fn contains_shared(words: &super::array::Words, b: u64, lanes: &Lanes) -> bool {
            contains(&Block::from_words(super::words::load(words)), b, lanes)
        }

        #[cfg(target_has_atomic = "64")]
        $(#[target_feature(enable = $features)])?
        fn mask_words<const MAX: usize>(b: u64, lanes: &Lanes) -> [u64; 8] {
            // SAFETY: the mask is 64 bytes, and any bytes are words.
            unsafe { core::mem::transmute(mask::<MAX>(b, lanes)) }
        }
    };
}

/// `contained` of a kernel that tests arrays one by one with its `contains`.
macro_rules! contained {
    ($($features:tt)?) => {
        $(#[target_feature(enable = $features)])?
        fn contained(
            arrays: &[&BlockArray],
            pairs: &[DoubleHash; 32],
            mask: u32,
            lanes: &Lanes,
        ) -> u32 {
            super::select::select(pairs, mask, |pair| {
                super::select::any(arrays, pair.a, |block| contains(block, pair.b, lanes))
            })
        }
    };
}

pub(super) use {contained, functions};
