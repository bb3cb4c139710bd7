//! Latencies, to three significant digits.

use std::time::Duration;

/// The longest latency that is told from longer ones.
const LONGEST: Duration = Duration::from_secs(3600);

/// How often each latency occurred.
#[derive(Clone, Debug)]
pub(super) struct Histogram(hdrhistogram::Histogram<u64>);

impl Default for Histogram {
    #[expect(clippy::expect_used, reason = "the arguments are constants")]
    fn default() -> Self {
        let bounds = hdrhistogram::Histogram::new_with_bounds(1, nanos(LONGEST), 3);
        Histogram(bounds.expect("the bounds are in order"))
    }
}

fn nanos(latency: Duration) -> u64 {
    u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX)
}

impl Histogram {
    pub(super) fn record(&mut self, latency: Duration) {
        self.0.saturating_record(nanos(latency));
    }

    pub(super) fn merge(&mut self, other: &Histogram) {
        self.0 += &other.0;
    }

    /// The latency that this share of the recorded ones does not exceed; zero when nothing was
    /// recorded.
    pub(super) fn quantile(&self, share: f64) -> Duration {
        Duration::from_nanos(self.0.value_at_quantile(share))
    }

    pub(super) fn max(&self) -> Duration {
        Duration::from_nanos(self.0.max())
    }

    pub(super) fn mean(&self) -> Duration {
        Duration::from_secs_f64(self.0.mean() / 1e9)
    }
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
    fn figures_have_three_digits() {
        let mut histogram = of((1..=50_000).map(|micros| micros * 1000));
        histogram.merge(&of((50_001..=100_000).map(|micros| micros * 1000)));
        for (found, exact) in [
            (histogram.quantile(0.5), 0.05),
            (histogram.quantile(0.99), 0.099),
            (histogram.quantile(0.999), 0.0999),
            (histogram.max(), 0.1),
            (histogram.mean(), 0.05),
        ] {
            let found = found.as_secs_f64();
            assert!((found / exact - 1.0).abs() < 0.001, "{found} for {exact}");
        }
    }

    #[test]
    fn nothing_and_far_too_much_are_no_errors() {
        let empty = Histogram::default();
        assert_eq!(empty.quantile(0.99), Duration::ZERO);
        assert_eq!(empty.mean(), Duration::ZERO);
        assert!(of([u64::MAX]).max() >= LONGEST);
    }
}
