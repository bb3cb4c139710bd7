//! What the number of ones says about an array of bits.

use core::iter;

use crate::math::{ln_1p, whole};
use crate::sizing::BlockedSize;
use crate::sizing::{LayerSize, textbook};

/// What the number of ones says about an array.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fill {
    /// The part of the bits that are 1.
    pub(crate) ratio: f64,
    /// The error rate to expect.
    pub(crate) error_rate: f64,
    /// How many different items were inserted; for a full array, the largest number that a fill
    /// ratio can show.
    pub(crate) items: u64,
}

impl Fill {
    /// For an array over which the bits of an item are spread.
    pub(crate) fn of_array(ones: u64, bits: u64, hashes: u32) -> Fill {
        let (bits, hashes) = (bits as f64, f64::from(hashes));
        let ratio = (ones as f64 / bits).min(1.0);
        let not_full = (ones as f64).min(bits - 1.0);
        Fill {
            ratio,
            error_rate: textbook::error_rate_from_fill(ratio, hashes),
            items: whole(textbook::items_from_ones(bits, hashes, not_full) + 0.5),
        }
    }

    /// For a layer in the classic layout.
    pub(crate) fn of_classic(ones: u64, bits: u64, hashes: u32) -> Fill {
        let fill = Fill::of_array(ones, bits, hashes);
        let error_rate = LayerSize::rate_from_fill(fill.ratio, bits, hashes);
        Fill { error_rate, ..fill }
    }

    /// For an array of blocks, from the number of ones in each. The error rate is the mean of the
    /// blocks' rates.
    pub(crate) fn of_blocks(ones_of_each: impl Iterator<Item = u64>, hashes: u32) -> Fill {
        // The number of blocks for each number of ones.
        let mut blocks = [0_u64; BlockedSize::BLOCK_BITS as usize + 1];
        for ones in ones_of_each {
            if let Some(count) = usize::try_from(ones)
                .ok()
                .and_then(|ones| blocks.get_mut(ones))
            {
                *count += 1;
            }
        }
        let times = usize::try_from(hashes).unwrap_or(usize::MAX);
        let (bits, hashes) = (f64::from(BlockedSize::BLOCK_BITS), f64::from(hashes));
        let (mut all, mut ones, mut rates, mut throws) = (0.0, 0.0, 0.0, 0.0);
        for (in_block, count) in (0_u32..).zip(blocks).filter(|(_, count)| *count > 0) {
            let (in_block, count) = (f64::from(in_block), count as f64);
            all += count;
            ones += count * in_block;
            // Only products, so that each machine finds the same: a size may follow from it.
            let rate = iter::repeat_n(in_block / bits, times).product::<f64>();
            rates += count * rate;
            // This many throws leave this many of 512 cells occupied on average.
            throws += count * ln_1p(-in_block.min(bits - 1.0) / bits) / ln_1p(-1.0 / bits);
        }
        Fill {
            ratio: ones / (all * bits),
            error_rate: rates / all,
            items: whole(throws / hashes + 0.5),
        }
    }
}
