//! How many new records the filter took for known ones.

use everbloom::Layout;
use everbloom::host::LayeredFilter;
use everbloom::sizing::{BlockedSize, textbook};

/// After how much growth to compute the rate again: a 64th.
const STEP: u64 = 64;

/// The new records that are to be expected lost, summed up while the filter fills.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Loss {
    /// New records that were found to be new.
    found: f64,
    /// New records that were not.
    lost: f64,
    /// The error rate when the filter had `items`.
    rate: f64,
    items: u64,
}

impl Loss {
    /// Notes that the filter found `count` records new.
    pub(super) fn add(&mut self, count: usize, filter: &LayeredFilter) {
        let items = filter.len();
        // A filter with a window has fewer items when it has forgotten some.
        if items > self.items + self.items / STEP || items < self.items {
            self.rate = error_rate(filter);
            self.items = items;
        }
        let found = count as f64;
        self.found += found;
        // For each that is found new, so many are not.
        self.lost += found * self.rate / (1.0 - self.rate).max(f64::MIN_POSITIVE);
    }

    pub(super) fn records(self) -> f64 {
        self.lost
    }

    /// The part of all new records.
    pub(super) fn share(self) -> f64 {
        self.lost / (self.lost + self.found).max(1.0)
    }
}

/// The error rate of a filter as its counts tell it, in time that does not depend on its size.
fn error_rate(filter: &LayeredFilter) -> f64 {
    let right = filter.layers().iter().map(|layer| {
        let (bits, hashes, items) = (layer.bits(), layer.hashes(), layer.len());
        1.0 - match layer.layout() {
            Layout::Blocked => BlockedSize::rate_of(bits, hashes, items),
            Layout::Classic => textbook::error_rate(bits as f64, f64::from(hashes), items as f64),
        }
    });
    1.0 - right.product::<f64>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loss_is_what_a_set_says() {
        let builder = LayeredFilter::builder().capacity(10_000).error_rate(0.01);
        let mut filter = builder.fixed().seed(1).build().unwrap();
        let (mut loss, mut missing) = (Loss::default(), 0);
        for batch in 0..200 {
            let items = batch * 100..(batch + 1) * 100;
            let mut new = Vec::new();
            filter.contains_each(items.clone(), |found| new.push(!found));
            let count = new.iter().filter(|new| **new).count();
            missing += 100 - count;
            loss.add(count, &filter);
            filter.extend(items);
        }
        let missing = missing as f64;
        assert!(
            (loss.records() - missing).abs() < 4.0 * missing.sqrt(),
            "{loss:?} {missing}"
        );
        assert!(missing > 200.0, "twice as full as it should be: {missing}");
        assert!(
            (loss.share() - loss.records() / 20_000.0).abs() < 0.001,
            "{loss:?}"
        );
    }

    /// Over many small filters with keys of their own, some of which grow, as many are lost as
    /// expected: within four standard errors, and the step in which the rate is computed.
    #[test]
    fn the_loss_is_right_on_average() {
        for (capacity, items, rate, filters) in [(1000, 1000, 0.01, 400), (1000, 4000, 0.01, 100)] {
            let (mut expected, mut missing) = (0.0, 0.0);
            for seed in 0..filters {
                let builder = LayeredFilter::builder().capacity(capacity);
                let mut filter = builder.error_rate(rate).seed(seed).build().unwrap();
                let mut loss = Loss::default();
                for batch in 0..items / 10 {
                    let batch = batch * 10..(batch + 1) * 10;
                    let mut count = 0;
                    filter.contains_each(batch.clone(), |found| count += usize::from(!found));
                    missing += (10 - count) as f64;
                    loss.add(count, &filter);
                    filter.extend(batch);
                }
                expected += loss.records();
            }
            let off = (missing - expected).abs();
            let allowed = 4.0 * expected.sqrt() + expected / STEP as f64;
            assert!(
                off < allowed,
                "{capacity} {items}: {missing} lost, {expected} expected"
            );
        }
    }
}
