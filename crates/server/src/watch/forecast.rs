//! What a filter comes to as items are added, by the formulas by which it was sized: up to the
//! point where it grows or is full.

use everbloom::Layout;
use everbloom::redisbloom::LayerParts;
use everbloom::sizing::{blocked, textbook};
use everbloom_commands::filter::{Kind, Parts};

/// About so many points make a curve.
const POINTS: u64 = 100;

/// For growing numbers of items, each with the fill ratio and the error rate to expect.
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
    let steps = ends.iter().flat_map(|end| [*end, end.saturating_add(1)]);
    let mut items: Vec<u64> = even.chain(steps).filter(|it| *it <= last).collect();
    items.sort_unstable();
    let point = |items| {
        let (fill, rate) = state(&layers, items);
        (items, fill, rate)
    };
    items.into_iter().map(point).collect()
}

/// A layer or a table.
struct Layer {
    kind: Kind,
    /// Bits, or slots.
    size: u64,
    /// Bits that an item sets, or slots of a bucket.
    hashes: u32,
    /// Items that it takes.
    most: u64,
}

impl Layer {
    /// The fill ratio and the error rate with so many items.
    #[expect(clippy::cast_precision_loss, reason = "for a picture")]
    fn state(&self, items: u64) -> (f64, f64) {
        let (size, hashes) = (self.size as f64, f64::from(self.hashes));
        let fill = textbook::fill_ratio(size, hashes, items as f64);
        match self.kind {
            Kind::Bloom(Layout::Classic) => (fill, fill.powf(hashes)),
            Kind::Bloom(Layout::Blocked) => {
                (fill, blocked::error_rate(self.size, self.hashes, items))
            }
            Kind::Cuckoo => {
                // As `CuckooFilter::estimated_error_rate` has it.
                let load = items as f64 / size;
                (load, 1.0 - (254.0_f64 / 255.0).powf(2.0 * hashes * load))
            }
        }
    }
}

/// The fill ratio and the error rate of a filter that has grown to so many items.
#[expect(clippy::cast_precision_loss, reason = "for a picture")]
fn state(layers: &[Layer], mut items: u64) -> (f64, f64) {
    let (mut ones, mut size, mut right) = (0.0, 0.0, 1.0);
    for layer in layers {
        let (fill, rate) = layer.state(items.min(layer.most));
        ones += fill * layer.size as f64;
        size += layer.size as f64;
        right *= 1.0 - rate;
        if items <= layer.most {
            break;
        }
        items -= layer.most;
    }
    (ones / size, 1.0 - right)
}

fn layers(parts: &Parts) -> Vec<Layer> {
    let kind = parts.kind();
    let parts = match parts {
        Parts::Bloom(parts) => parts,
        Parts::Cuckoo(parts) => {
            let slots = (0..parts.tables).filter_map(|number| parts.table(number));
            // Items go into the newest first. For the whole it comes to the same.
            let table = |(_, slots)| Layer {
                kind,
                size: slots,
                hashes: parts.bucket_size.into(),
                most: slots,
            };
            return slots.map(table).collect();
        }
    };
    let layer = |it: &LayerParts| Layer {
        kind,
        size: match it.log2_bits {
            0 => it.bits,
            power => 1_u64.checked_shl(power.into()).unwrap_or(it.bits),
        },
        hashes: it.hashes,
        most: it.items,
    };
    let mut layers: Vec<Layer> = parts.layers.iter().map(layer).collect();
    // The older ones take no further items.
    if let (Some(last), Some(newest)) = (layers.last_mut(), parts.layers.last()) {
        last.most = newest.items.max(newest.capacity);
    }
    layers
}

#[cfg(test)]
mod tests {
    use everbloom::{CuckooFilter, ScalableBloomFilter};

    use super::*;

    /// The curve that was drawn before the items of a layer came says what they come to.
    #[test]
    fn a_curve_comes_true() {
        for layout in [Layout::Classic, Layout::Blocked] {
            let builder = ScalableBloomFilter::builder().capacity(20_000);
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
                    let (fill, rate) = state(before.last().unwrap(), filter.len());
                    let off = (fill / filter.fill_ratio() - 1.0).abs();
                    assert!(off < 0.02, "{fill} {filter:?}");
                    let off = (rate / filter.estimated_error_rate() - 1.0).abs();
                    assert!(off < 0.1, "{rate} {filter:?}");
                }
            }
            assert!(before.len() > 1);
        }
    }

    #[test]
    fn a_curve_of_a_cuckoo_filter_goes_through_what_it_is_now() {
        let mut filter = CuckooFilter::new(1000);
        for item in 0..500 {
            filter.insert(&item).unwrap();
        }
        let (fill, rate) = state(&layers(&Parts::Cuckoo(filter.parts())), 500);
        assert_eq!(fill, filter.load());
        assert!((rate - filter.estimated_error_rate()).abs() < 1e-12);
    }
}
