//! The state of a filter after more items are added, by the formulas that sized it, up to the point
//! where it grows or is full.

use everbloom::Layout;
use everbloom::redisbloom::{CuckooParts, LayerParts};
use everbloom::sizing::{BlockedSize, LayerSize, textbook};
use everbloom_commands::filter::{FilterKind, Parts};

/// About how many points make a curve.
const POINTS: u64 = 100;
/// With more layers than this, their steps are too small to be seen.
const MOST_STEPS: usize = 100;

/// The expected fill ratio and error rate for growing numbers of items.
pub fn curve(parts: &Parts) -> Vec<(u64, f64, f64)> {
    let layers = layers(parts);
    let ends = layers.iter().scan(0_u64, |sum, layer| {
        *sum = sum.saturating_add(layer.most);
        Some(*sum)
    });
    let ends: Vec<u64> = ends.collect();
    let last = ends.last().map_or(1, |end| *end.max(&1));
    let even = (0..=POINTS).map(|n| last / POINTS * n + last % POINTS * n / POINTS);
    // Where a layer begins, there is a step.
    let steps = ends.iter().filter(|_| ends.len() <= MOST_STEPS);
    let steps = steps.flat_map(|end| [*end, end.saturating_add(1)]);
    let mut items: Vec<u64> = even.chain(steps).filter(|it| *it <= last).collect();
    items.sort_unstable();
    let mut climb = Climb::new(&layers);
    let point = |items| {
        let (fill, rate) = climb.to(items);
        (items, fill, rate)
    };
    items.into_iter().map(point).collect()
}

/// A layer or a table.
struct Layer {
    kind: FilterKind,
    /// Bits, or slots.
    size: u64,
    /// Bits that an item sets, or slots of a bucket.
    hashes: u32,
    /// Its capacity in items.
    most: u64,
    /// How many different fingerprints a table may have.
    fingerprints: f64,
}

impl Layer {
    /// The fill ratio and the error rate with this many items.
    #[expect(clippy::cast_precision_loss, reason = "for a picture")]
    fn state(&self, items: u64) -> (f64, f64) {
        let (size, hashes) = (self.size as f64, f64::from(self.hashes));
        let fill = textbook::fill_ratio(size, hashes, items as f64);
        match self.kind {
            FilterKind::Bloom(Layout::Classic) | FilterKind::Valkey => (
                fill,
                LayerSize::rate_from_fill(fill, self.size, self.hashes),
            ),
            FilterKind::Bloom(Layout::Blocked) => {
                (fill, BlockedSize::rate_of(self.size, self.hashes, items))
            }
            FilterKind::Cuckoo | FilterKind::KeyedCuckoo => {
                // The same as in `CuckooFilter::stats`.
                let load = items as f64 / size;
                let right = 1.0 - 1.0 / self.fingerprints;
                (load, 1.0 - right.powf(2.0 * hashes * load))
            }
        }
    }
}

/// A filter to which more and more items are added.
struct Climb<'l> {
    /// The layers that are not full yet.
    layers: &'l [Layer],
    /// The items of the full layers, their set bits, their total bits, and the probability that
    /// none of them errs.
    items: u64,
    ones: f64,
    size: f64,
    right: f64,
}

#[expect(clippy::cast_precision_loss, reason = "for a picture")]
impl<'l> Climb<'l> {
    fn new(layers: &'l [Layer]) -> Self {
        Climb {
            layers,
            items: 0,
            ones: 0.0,
            size: 0.0,
            right: 1.0,
        }
    }

    /// The fill ratio and the error rate with this many items, no fewer than before.
    fn to(&mut self, items: u64) -> (f64, f64) {
        while let [layer, rest @ ..] = self.layers
            && !rest.is_empty()
            && items.saturating_sub(self.items) > layer.most
        {
            let (fill, rate) = layer.state(layer.most);
            self.items += layer.most;
            self.ones += fill * layer.size as f64;
            self.size += layer.size as f64;
            self.right *= 1.0 - rate;
            self.layers = rest;
        }
        let Some(layer) = self.layers.first() else {
            return (0.0, 0.0);
        };
        let more = items.saturating_sub(self.items);
        let (fill, rate) = layer.state(more.min(layer.most));
        let size = layer.size as f64;
        let fill = (self.ones + fill * size) / (self.size + size);
        (fill, 1.0 - self.right * (1.0 - rate))
    }
}

/// A table by its number.
fn table(parts: &CuckooParts, number: u16) -> Option<Layer> {
    let (buckets, _) = parts.table(number)?;
    let (most, fingerprints) = parts.table_capacity(number)?;
    Some(Layer {
        kind: Parts::Cuckoo(*parts).kind(),
        size: buckets.checked_mul(parts.bucket_size.into())?,
        hashes: parts.bucket_size.into(),
        most,
        fingerprints: fingerprints as f64,
    })
}

fn layers(parts: &Parts) -> Vec<Layer> {
    let kind = parts.kind();
    let parts = match parts {
        Parts::Bloom(parts) => parts,
        Parts::Cuckoo(parts) => {
            // Items go into the newest layer first. For the totals the order does not matter.
            return (0..parts.tables)
                .filter_map(|number| table(parts, number))
                .collect();
        }
    };
    let layer = |it: &LayerParts| Layer {
        kind,
        fingerprints: 1.0,
        size: match it.log2_bits {
            0 => it.bits,
            power => 1_u64.checked_shl(power.into()).unwrap_or(it.bits),
        },
        hashes: it.hashes,
        most: it.items,
    };
    let mut layers: Vec<Layer> = parts.layers.iter().map(layer).collect();
    // The older layers take no further items.
    if let (Some(last), Some(newest)) = (layers.last_mut(), parts.layers.last()) {
        last.most = newest.items.max(newest.capacity);
    }
    layers
}

#[cfg(test)]
mod tests {
    use everbloom::CuckooFilter;
    use everbloom::host::LayeredFilter;

    use super::*;

    /// The curve drawn before a layer's items were added agrees with the state after them.
    #[test]
    fn a_curve_comes_true() {
        for layout in [Layout::Classic, Layout::Blocked] {
            let builder = LayeredFilter::builder().capacity(20_000);
            let builder = builder.error_rate(0.02).layout(layout);
            let mut filter = match layout {
                Layout::Classic => builder.build(),
                Layout::Blocked => builder.seed(5).build(),
            }
            .unwrap();
            let mut before = Vec::new();
            for items in 0..90_000_u64 {
                filter.insert(&items);
                if before.len() < filter.layers().len() {
                    let parts = Parts::Bloom(filter.parts());
                    assert!(curve(&parts).is_sorted_by_key(|point| point.0));
                    before.push(layers(&parts));
                }
                if items % 10_000 == 9_999 {
                    let (fill, rate) = Climb::new(before.last().unwrap()).to(filter.len());
                    let off = (fill / filter.stats().fill_ratio - 1.0).abs();
                    assert!(off < 0.02, "{fill} {filter:?}");
                    let off = (rate / filter.stats().estimated_error_rate - 1.0).abs();
                    assert!(off < 0.1, "{rate} {filter:?}");
                }
            }
            assert!(before.len() > 1);
        }
    }

    #[test]
    fn a_curve_of_a_cuckoo_filter_goes_through_what_it_is_now() {
        let keyed = CuckooFilter::builder().capacity(1000).error_rate(0.001);
        for mut filter in [CuckooFilter::new(1000), keyed.seed(7).build().unwrap()] {
            for item in 0..500 {
                filter.insert(&item).unwrap();
            }
            let layers = layers(&Parts::Cuckoo(filter.parts()));
            let (fill, rate) = Climb::new(&layers).to(500);
            assert_eq!(fill, filter.stats().fill_ratio);
            assert!((rate - filter.stats().estimated_error_rate).abs() < 1e-12);
        }
    }

    /// Also when all tables are full.
    #[test]
    fn a_curve_of_a_chosen_error_rate_ends_below_it() {
        let keyed = CuckooFilter::builder().capacity(1000).error_rate(0.001);
        let mut filter = keyed.seed(7).build().unwrap();
        while filter.tables() < 3 {
            filter.insert(&filter.len()).unwrap();
        }
        let curve = curve(&Parts::Cuckoo(filter.parts()));
        let (items, _, rate) = *curve.last().unwrap();
        assert_eq!(items, filter.capacity());
        assert!(
            (rate / filter.full_error_rate() - 1.0).abs() < 1e-9,
            "{rate}"
        );
        assert!(rate <= 0.001, "{rate}");
    }

    /// A header from outside may claim very many.
    #[test]
    fn a_curve_of_very_many_layers_is_soon_made_and_short() {
        let mut parts = LayeredFilter::builder().build().unwrap().parts();
        let layer = parts.layers[0];
        parts.layers = vec![layer; 1_000_000];
        let curve = curve(&Parts::Bloom(parts));
        assert!(curve.len() <= 101, "{}", curve.len());
    }
}
