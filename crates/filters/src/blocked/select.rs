//! The loops around a test: over the items of a group, and over the arrays of several layers.

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
pub(super) fn select(pairs: &[HashPair; 32], mask: u32, test: impl Fn(HashPair) -> bool) -> u32 {
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
