//! Estimating the error rate of a large filter from some of its bits.
//!
//! Items are spread evenly over a layer, so blocks at even distances represent all of them. In the
//! blocked layout the error rate is a mean over the blocks: crowded blocks err most, and the mean
//! fill ratio alone would give too low a rate. So each sampled block is measured separately.

use crate::bits::array::count_ones;
use crate::bloom::layered::LayeredFilter;
use crate::bloom::window::MaybeWindow;
use crate::layer::Layer;
use crate::layer::layout::Layout;
use crate::math::{exp_m1, ln_1p, powf, saturating_sum, sqrt};
use crate::sizing::{BLOCK, LayerSize};

/// The most blocks of a filter that are read: one megabyte.
const MAX_SAMPLED_BLOCKS: u64 = 16_384;
const BLOCK_BITS: f64 = 8.0 * BLOCK as f64;

/// The reported error in standard errors: 99.7 % of all samples are closer to the true value.
const STANDARD_ERRORS: f64 = 3.0;

/// An estimate for a whole filter from some of its bits. [Example](LayeredFilter::sample).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// As [`Stats::fill_ratio`](crate::Stats::fill_ratio).
    pub fill_ratio: f64,
    /// As [`Stats::estimated_error_rate`](crate::Stats::estimated_error_rate).
    pub estimated_error_rate: f64,
    /// How far the estimated error rate may be from what all bits would give: three standard errors
    /// of the sample. 0 when all bits were read.
    pub error: f64,
}

impl<W: MaybeWindow> LayeredFilter<W> {
    /// The fill ratio and the error rate to expect now, from at most a megabyte of the bits. A
    /// smaller filter is read completely; of a larger one, blocks of 64 bytes at even distances.
    /// Takes the same time for all large filters.
    ///
    /// ```
    /// # use everbloom::host::LayeredFilter;
    /// let mut seen = LayeredFilter::builder().capacity(1_000_000).seed(7).build()?;
    /// seen.extend(0..500_000);
    /// let sample = seen.sample();
    /// let off = (sample.estimated_error_rate - seen.stats().estimated_error_rate).abs();
    /// assert!(sample.error > 0.0 && off <= sample.error);
    /// # Ok::<(), everbloom::BuildError>(())
    /// ```
    #[must_use]
    pub fn sample(&self) -> Sample {
        self.sample_blocks(MAX_SAMPLED_BLOCKS)
    }

    /// The same from at most this many blocks of 64 bytes, or from one block of each layer if those
    /// are more. Fewer blocks give a larger [error](Sample::error): 256 blocks of a full filter
    /// give the rate to about ten percent.
    #[must_use]
    pub fn sample_blocks(&self, most: u64) -> Sample {
        self.sample_counted(most).0
    }

    /// The sample, and how many blocks were read for it.
    fn sample_counted(&self, most: u64) -> (Sample, u64) {
        let all = saturating_sum(self.layers.iter().map(blocks));
        if all <= most {
            let stats = self.stats();
            let sample = Sample {
                fill_ratio: stats.fill_ratio,
                estimated_error_rate: stats.estimated_error_rate,
                error: 0.0,
            };
            return (sample, all);
        }
        let share = (most / self.layers.len() as u64).max(1);
        let (mut ones, mut bits, mut right, mut squares, mut read) = (0.0, 0.0, 0.0, 0.0, 0);
        for layer in &self.layers {
            let sample = sample_layer(layer, share);
            ones += sample.fill_ratio * layer.modulus() as f64;
            bits += layer.modulus() as f64;
            right += ln_1p(-sample.estimated_error_rate);
            squares += sample.error * sample.error;
            read += blocks(layer).min(share);
        }
        let sample = Sample {
            fill_ratio: ones / bits,
            // Not the negative: of an empty filter that is -0.
            estimated_error_rate: 0.0 - exp_m1(right),
            error: sqrt(squares),
        };
        (sample, read)
    }
}

fn blocks(layer: &Layer) -> u64 {
    layer.bytes().div_ceil(BLOCK as u64)
}

/// A layer measured by `share` of its blocks, or by all if it has no more.
fn sample_layer(layer: &Layer, share: u64) -> Sample {
    if blocks(layer) <= share {
        let fill = layer.fill();
        return Sample {
            fill_ratio: fill.ratio,
            estimated_error_rate: fill.error_rate,
            error: 0.0,
        };
    }
    let hashes = f64::from(layer.hashes());
    let bytes = layer.as_bytes();
    match layer.layout() {
        Layout::Classic => {
            // The bits at the end that no item can set are spread over the mean.
            let usable = layer.modulus() as f64 / layer.bits() as f64;
            let fills = Mean::of(&bytes, share, 1.0 / BLOCK_BITS, |fill| fill);
            let fill_ratio = (fills.mean / usable).min(1.0);
            let rate = |fill| LayerSize::rate_from_fill(fill, layer.modulus(), layer.hashes());
            let highest = (fill_ratio + fills.error).min(1.0);
            Sample {
                fill_ratio,
                estimated_error_rate: rate(fill_ratio),
                error: rate(highest) - rate(fill_ratio),
            }
        }
        Layout::Blocked => {
            let rate = |fill| powf(fill, hashes);
            let rates = Mean::of(&bytes, share, hashes / BLOCK_BITS, rate);
            Sample {
                fill_ratio: rates.mean_fill,
                estimated_error_rate: rates.mean,
                error: rates.error,
            }
        }
    }
}

/// The mean of what was measured at the sampled blocks.
struct Mean {
    mean: f64,
    mean_fill: f64,
    error: f64,
}

impl Mean {
    /// Measures `share` of the blocks by their fill. An item more adds `item` to it.
    fn of(bytes: &[u8], share: u64, item: f64, measure: impl Fn(f64) -> f64) -> Mean {
        let (blocks, _) = bytes.as_chunks::<BLOCK>();
        let (mut fills, mut sum, mut squares, mut fullest) = (0.0, 0.0, 0.0, 0.0_f64);
        for block in positions(blocks.len(), share).filter_map(|at| blocks.get(at)) {
            let fill = count_ones(block) as f64 / BLOCK_BITS;
            let measured = measure(fill);
            fills += fill;
            fullest = fullest.max(fill);
            sum += measured;
            squares += measured * measured;
        }
        let count = share as f64;
        let mean = sum / count;
        // Adds a block with one item more than the fullest sampled one. Crowded blocks are rare and
        // matter much, so the filter may have one that the sample missed.
        let unseen = (measure((fullest + item).min(1.0)) - mean).max(0.0);
        let variance = (squares / count - mean * mean).max(0.0) + unseen * unseen / count;
        let rest = (1.0 - count / blocks.len() as f64).max(0.0);
        Mean {
            mean,
            mean_fill: fills / count,
            error: STANDARD_ERRORS * sqrt(variance / count * rest),
        }
    }
}

/// `share` of the numbers below `len`, at even distances.
fn positions(len: usize, share: u64) -> impl Iterator<Item = usize> {
    let middle = move |number: u64| {
        let twice = u128::from(2 * number + 1) * len as u128;
        usize::try_from(twice / u128::from(2 * share)).unwrap_or(usize::MAX)
    };
    (0..share).map(middle)
}

#[cfg(test)]
mod tests {
    use super::{MAX_SAMPLED_BLOCKS, Sample};
    use crate::Layout;
    use crate::host::LayeredFilter;

    fn filter(layout: Layout, capacity: u64, rate: f64, items: u64) -> LayeredFilter {
        let builder = LayeredFilter::builder().capacity(capacity).error_rate(rate);
        let builder = match layout {
            Layout::Classic => builder.layout(layout),
            Layout::Blocked => builder.layout(Layout::Blocked).seed(1),
        };
        let mut filter = builder.build().unwrap();
        for item in 0..items {
            filter.insert(&item.to_le_bytes());
        }
        filter
    }

    #[test]
    fn a_small_filter_is_read_whole() {
        for layout in [Layout::Classic, Layout::Blocked] {
            let filter = filter(layout, 1000, 0.01, 5000);
            let whole = Sample {
                fill_ratio: filter.stats().fill_ratio,
                estimated_error_rate: filter.stats().estimated_error_rate,
                error: 0.0,
            };
            assert_eq!(filter.sample(), whole);
        }
    }

    #[test]
    fn a_sample_is_within_its_named_error() {
        for layout in [Layout::Classic, Layout::Blocked] {
            for (capacity, rate) in [(1_000_000, 0.01), (900_000, 0.0001)] {
                for tenths in [0, 2, 10, 20] {
                    let filter = filter(layout, capacity, rate, capacity / 10 * tenths);
                    let (sample, read) = filter.sample_counted(MAX_SAMPLED_BLOCKS);
                    let exact = filter.stats().estimated_error_rate;
                    let off = (sample.estimated_error_rate - exact).abs();
                    let case = (layout, capacity, rate, tenths, sample, exact);
                    assert!(sample.error > 0.0 && off <= sample.error, "{case:?}");
                    let fill = filter.stats().fill_ratio;
                    assert!((sample.fill_ratio - fill).abs() <= 0.01 * fill, "{case:?}");
                    if tenths >= 10 {
                        assert!(sample.error < 0.15 * exact, "{case:?}");
                    }
                    assert!(read <= MAX_SAMPLED_BLOCKS, "{case:?}");
                }
            }
        }
    }

    /// One item somewhere in a large filter: the sample misses it, and its error allows for that.
    #[test]
    fn an_almost_empty_filter_is_not_said_to_be_empty_for_sure() {
        for layout in [Layout::Classic, Layout::Blocked] {
            let filter = filter(layout, 2_000_000, 0.01, 1);
            let sample = filter.sample();
            let off = (sample.estimated_error_rate - filter.stats().estimated_error_rate).abs();
            assert!(sample.error > 0.0 && off <= sample.error, "{sample:?}");
        }
    }

    /// However large it is, and however many layers it has.
    #[test]
    fn a_large_filter_costs_no_more_than_a_megabyte() {
        let huge = filter(Layout::Blocked, 30_000_000, 0.001, 0);
        assert_eq!(
            huge.sample_counted(MAX_SAMPLED_BLOCKS).1,
            MAX_SAMPLED_BLOCKS
        );
        for layout in [Layout::Classic, Layout::Blocked] {
            let grown = filter(layout, 20_000, 0.001, 1_500_000);
            assert!(grown.layers().len() > 1);
            let (sample, read) = grown.sample_counted(MAX_SAMPLED_BLOCKS);
            assert!(
                read > MAX_SAMPLED_BLOCKS / 2 && read <= MAX_SAMPLED_BLOCKS,
                "{read}"
            );
            let exact = grown.stats().estimated_error_rate;
            let off = (sample.estimated_error_rate - exact).abs();
            assert!(off <= sample.error, "{sample:?} {exact}");
        }
    }
}
