//! The contents of a filter and its error rate.

use crate::math::{exp_m1, ln_1p, powf, whole};
use crate::sizing::blocked::BLOCK_BITS;
use crate::sizing::{LayerSize, textbook};

/// The parameters, contents and current error rate of a filter. Every kind of filter has a method
/// `stats`.
///
/// ```
/// use everbloom::{AtomicBloomFilter, BloomFilter, CuckooFilter, ScalableBloomFilter};
///
/// let mut seen = BloomFilter::builder().capacity(1000).error_rate(0.01).seed(7).build()?;
/// seen.extend(0..1000);
/// let stats = seen.stats();
/// assert_eq!(stats.items, seen.len());
/// assert_eq!((stats.capacity, stats.error_rate), (Some(1000), Some(0.01)));
/// assert_eq!((stats.bits, stats.bytes(), stats.hashes), (10_240, 1280, 6));
/// assert!((10.0..11.0).contains(&stats.bits_per_item()));
/// assert!((900..1100).contains(&stats.estimated_items));
/// assert!((0.4..0.5).contains(&stats.fill_ratio));
/// assert!((0.005..0.02).contains(&stats.estimated_error_rate));
///
/// // The atomic filter counts no items.
/// let stats = AtomicBloomFilter::try_from(seen)?.stats();
/// assert_eq!(stats.items, stats.estimated_items);
///
/// // Of several layers it tells the sum; the hashes are those of the newest.
/// let seen: ScalableBloomFilter = (0..1000).collect();
/// assert_eq!(seen.stats().hashes, seen.layers().last().unwrap().hashes());
///
/// // A cuckoo filter is made for no rate. Its capacity are its slots.
/// let stats = CuckooFilter::new(1024).stats();
/// assert_eq!((stats.capacity, stats.error_rate), (Some(1024), None));
/// # Ok::<(), everbloom::BuildError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Stats {
    /// The number of items inserted, without those that a lookup found already; an estimate where
    /// the filter keeps no count.
    pub items: u64,
    /// How many different items were inserted, estimated from the bits that are 1.
    pub estimated_items: u64,
    /// The number of items the filter was made for, if it is known.
    pub capacity: Option<u64>,
    /// Bits of all layers or tables.
    pub bits: u64,
    /// Bits set by an item, in the newest layer; of a cuckoo filter the buckets it may be in.
    pub hashes: u32,
    /// The part of the bits that are 1, or of the slots that are in use.
    pub fill_ratio: f64,
    /// The error rate given at creation, if there was one and it is known.
    pub error_rate: Option<f64>,
    /// The error rate to expect now, from the bits that are 1.
    ///
    /// With several layers it is the probability that any of them errs. It assumes that the
    /// positions of an item are independent. In the classic layout they are not, and small layers
    /// err more often: `examples/rates.rs` measures how much.
    pub estimated_error_rate: f64,
}

impl Stats {
    /// The statistics of these layers, oldest first, each with the number of bits that an item may
    /// set.
    pub(crate) fn of_layers(
        items: u64,
        error_rate: f64,
        layers: impl IntoIterator<Item = (LayerSize, u64, Fill)>,
    ) -> Stats {
        let (mut estimated_items, mut capacity, mut bits, mut hashes) = (0_u64, 0_u64, 0_u64, 0);
        let (mut all, mut ones, mut right) = (0.0, 0.0, 0.0);
        for (size, usable, fill) in layers {
            estimated_items = estimated_items.saturating_add(fill.items);
            capacity = capacity.saturating_add(size.capacity);
            bits = bits.saturating_add(size.bits());
            hashes = size.hashes;
            all += usable as f64;
            ones += fill.ratio * usable as f64;
            right += ln_1p(-fill.error_rate);
        }
        Stats {
            items,
            estimated_items,
            capacity: Some(capacity),
            bits,
            hashes,
            fill_ratio: ones / all,
            error_rate: Some(error_rate),
            // Not the negative: of an empty filter that is -0.
            estimated_error_rate: 0.0 - exp_m1(right),
        }
    }

    /// Of an array of bits with so many ones, where nothing else is known.
    pub(crate) fn of_array(ones: u64, bits: u64, hashes: u32) -> Stats {
        let fill = Fill::of_array(ones, bits, hashes);
        Stats {
            items: fill.items,
            estimated_items: fill.items,
            capacity: None,
            bits,
            hashes,
            fill_ratio: fill.ratio,
            error_rate: None,
            estimated_error_rate: fill.error_rate,
        }
    }

    /// Bytes of all layers or tables.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bits.div_ceil(8)
    }

    /// Bits for each item that was inserted; infinite when none was.
    #[must_use]
    pub fn bits_per_item(&self) -> f64 {
        self.bits as f64 / self.items as f64
    }
}

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

    /// For an array of blocks, from the number of ones in each. The error rate is the mean of the
    /// blocks' rates.
    pub(crate) fn of_blocks(ones_of_each: impl Iterator<Item = u64>, hashes: u32) -> Fill {
        // The number of blocks for each number of ones.
        let mut blocks = [0_u64; BLOCK_BITS as usize + 1];
        for ones in ones_of_each {
            if let Some(count) = usize::try_from(ones)
                .ok()
                .and_then(|ones| blocks.get_mut(ones))
            {
                *count += 1;
            }
        }
        let (bits, hashes) = (f64::from(BLOCK_BITS), f64::from(hashes));
        let (mut all, mut ones, mut rates, mut throws) = (0.0, 0.0, 0.0, 0.0);
        for (in_block, count) in (0_u32..).zip(blocks).filter(|(_, count)| *count > 0) {
            let (in_block, count) = (f64::from(in_block), count as f64);
            all += count;
            ones += count * in_block;
            rates += count * powf(in_block / bits, hashes);
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
