//! Counts latencies in buckets, as HdrHistogram does. Each power of two is cut into 64 equal parts.
//! So every value is known to 1/64 of itself, and a histogram takes a few kilobytes.

use std::time::Duration;

/// The number of parts of a power of two, as an exponent of two.
const PART_BITS: u32 = 6;
const PARTS: u64 = 1 << PART_BITS;

/// How often each latency occurred.
#[derive(Clone, Debug, Default)]
pub(super) struct Histogram {
    buckets: Vec<u64>,
    count: u64,
    sum: u128,
    max: u64,
}

impl Histogram {
    pub(super) fn record(&mut self, latency: Duration) {
        let nanos = u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX);
        let bucket = bucket_of(nanos);
        if bucket >= self.buckets.len() {
            self.buckets.resize(bucket + 1, 0);
        }
        if let Some(times) = self.buckets.get_mut(bucket) {
            *times += 1;
        }
        self.count += 1;
        self.sum += u128::from(nanos);
        self.max = self.max.max(nanos);
    }

    pub(super) fn merge(&mut self, other: &Histogram) {
        if self.buckets.len() < other.buckets.len() {
            self.buckets.resize(other.buckets.len(), 0);
        }
        for (mine, theirs) in self.buckets.iter_mut().zip(&other.buckets) {
            *mine += theirs;
        }
        self.count += other.count;
        self.sum += other.sum;
        self.max = self.max.max(other.max);
    }

    /// The latency that this share of the recorded latencies does not exceed. It is rounded up to
    /// the end of its bucket. Zero when nothing was recorded.
    pub(super) fn quantile(&self, share: f64) -> Duration {
        let mut seen = 0;
        for (bucket, times) in self.buckets.iter().enumerate() {
            seen += times;
            if seen > 0 && seen as f64 >= share * self.count as f64 {
                return Duration::from_nanos(last_of(bucket).min(self.max));
            }
        }
        Duration::from_nanos(self.max)
    }

    pub(super) fn max(&self) -> Duration {
        Duration::from_nanos(self.max)
    }

    pub(super) fn mean(&self) -> Duration {
        let mean = self.sum.checked_div(u128::from(self.count)).unwrap_or(0);
        Duration::from_nanos(u64::try_from(mean).unwrap_or(u64::MAX))
    }
}

/// The bucket of a value. Each value below 2 * PARTS has its own bucket. Above, the exponent and
/// the highest PART_BITS + 1 bits choose the bucket.
fn bucket_of(value: u64) -> usize {
    let shift = (u64::BITS - value.leading_zeros()).saturating_sub(PART_BITS + 1);
    let bucket = u64::from(shift) * PARTS + (value >> shift);
    // The bucket is at most 57 * 64 + 127.
    usize::try_from(bucket).unwrap_or(usize::MAX)
}

/// The largest value of a bucket.
fn last_of(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    let shift = (bucket / PARTS).saturating_sub(1);
    let first = bucket - shift * PARTS;
    (first << shift) + ((1 << shift) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(nanos: impl IntoIterator<Item = u64>) -> Histogram {
        let mut histogram = Histogram::default();
        for value in nanos {
            histogram.record(Duration::from_nanos(value));
        }
        histogram
    }

    #[test]
    fn buckets_cover_all_values_in_order_and_to_one_part_in_64() {
        let mut previous = None;
        for exponent in 0..64 {
            let middle = 1_u64 << exponent;
            for value in [middle - 1, middle, middle + 1, middle + middle / 2] {
                let bucket = bucket_of(value);
                let last = last_of(bucket);
                assert!(last >= value && last - value <= value / 64, "{value}");
                assert!(bucket_of(last) == bucket && bucket < 58 * 64 + 128);
                if let Some(after) = last.checked_add(1) {
                    assert_eq!(bucket_of(after), bucket + 1, "{value}");
                }
                assert!(previous <= Some((value, bucket)) || value <= 2);
                previous = Some((value, bucket));
            }
        }
        assert_eq!(last_of(bucket_of(u64::MAX)), u64::MAX);
    }

    #[test]
    fn quantiles() {
        let histogram = of(1..=100_000);
        for (share, exact) in [(0.5, 50_000.0), (0.99, 99_000.0), (0.999, 99_900.0)] {
            let found = histogram.quantile(share).as_nanos() as f64;
            assert!(
                (exact..=exact * 65.0 / 64.0).contains(&found),
                "{share}: {found}"
            );
        }
        assert_eq!(histogram.quantile(1.0).as_nanos(), 100_000);
        assert_eq!(histogram.max().as_nanos(), 100_000);
        assert_eq!(histogram.mean().as_nanos(), 50_000);
    }

    #[test]
    fn small_values_are_exact() {
        let histogram = of([0, 5, 5, 127]);
        assert_eq!(histogram.quantile(0.0).as_nanos(), 0);
        assert_eq!(histogram.quantile(0.5).as_nanos(), 5);
        assert_eq!(histogram.quantile(1.0).as_nanos(), 127);
    }

    #[test]
    fn nothing_recorded() {
        let empty = Histogram::default();
        assert_eq!(empty.quantile(0.99), Duration::ZERO);
        assert_eq!(empty.mean(), Duration::ZERO);
    }

    #[test]
    fn merged_is_as_recorded_together() {
        let mut merged = of([1, 1_000_000]);
        merged.merge(&of([7, 1 << 40]));
        let together = of([1, 1_000_000, 7, 1 << 40]);
        assert_eq!(merged.buckets, together.buckets);
        assert_eq!(
            (merged.count, merged.sum, merged.max),
            (4, together.sum, 1 << 40)
        );
    }
}
