//! The contents of a filter and its error rate.

use crate::bits::fill::Fill;
use crate::math::{exp_m1, ln_1p};
use crate::sizing::LayerSize;

/// The parameters, contents and current error rate of a filter. Every kind of filter has a method
/// `stats`; that of a window tells of all generations that are kept.
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
/// let mut seen = ScalableBloomFilter::builder().capacity(100).error_rate(0.01).build()?;
/// seen.extend(0..1000);
/// assert_eq!((seen.stats().capacity, seen.stats().hashes), (Some(1500), 8));
///
/// // A cuckoo filter is made for no rate. Its capacity are its slots.
/// let stats = CuckooFilter::builder().slots(1024).build().unwrap().stats();
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
    /// With several layers it is the probability that any of them errs. Small layers of the classic
    /// layout err more often than their size tells, and this rate
    /// [includes that](crate::sizing::LayerSize::rate_from_fill).
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

    /// The statistics of a bit array of which only the number of ones is known.
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
