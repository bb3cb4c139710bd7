//! What the fill of the blocks tells. Blocks are given by how many of their bits are 1.

use crate::math::{ln_1p, powf, whole};
use crate::sizing::blocked::BLOCK_BITS;

/// The error rate to expect: the mean over the blocks of what an item that is not there meets.
pub(super) fn error_rate(blocks: impl ExactSizeIterator<Item = u32>, hashes: u32) -> f64 {
    let count = blocks.len() as f64;
    let rate = |ones: u32| powf(f64::from(ones) / f64::from(BLOCK_BITS), f64::from(hashes));
    blocks.map(rate).sum::<f64>() / count
}

/// How many different items were inserted; a full block counts as many as a fill can tell.
pub(super) fn len(blocks: impl Iterator<Item = u32>, hashes: u32) -> u64 {
    let bits = f64::from(BLOCK_BITS);
    // So many throws leave so many of 512 cells occupied on average.
    let throws = |ones: u32| ln_1p(-f64::from(ones).min(bits - 1.0) / bits) / ln_1p(-1.0 / bits);
    whole(blocks.map(throws).sum::<f64>() / f64::from(hashes) + 0.5)
}
