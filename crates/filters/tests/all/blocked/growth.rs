//! How large each further layer is, what the whole chain takes, and that old chains go on.

use super::*;
use crate::common::grown_by_18;

use everbloom::ScalableBloomFilter;
use everbloom::sizing::{LayerSize, Rounding};

fn capacities(filter: &LayeredFilter) -> Vec<u64> {
    filter
        .layers()
        .iter()
        .map(|layer| layer.capacity())
        .collect()
}

#[test]
fn a_layer_has_the_capacity_of_the_last_one_times_the_expansion() {
    for layout in [Layout::Classic, Layout::Blocked] {
        for (first, expansion, layers) in [
            (1, 2, 8),
            (7, 3, 6),
            (100, 1, 9),
            (100, 2, 7),
            (100, 4, 5),
            (100, 18, 3),
            (100, 30, 3),
            (3000, 2, 4),
            (BlockedSize::LARGE - 1, 2, 2),
            (BlockedSize::LARGE, 2, 2),
        ] {
            let builder = LayeredFilter::builder().layout(layout).capacity(first);
            let mut filter = builder.expansion(expansion).build().unwrap();
            let mut numbers = 0_u64..;
            while filter.layers().len() < layers {
                filter.extend(numbers.by_ref().take(100));
            }
            let powers = 0..u32::try_from(layers).unwrap();
            let wanted: Vec<u64> = powers
                .map(|number| first * u64::from(expansion).pow(number))
                .collect();
            assert_eq!(
                capacities(&filter)[..layers],
                wanted,
                "{layout:?} {expansion}"
            );
        }
    }
}

/// As many as a key grows by in years of small steps.
#[test]
fn equal_layers_never_run_out_of_error_rate() {
    for (rate, layers) in [(0.1, 2000), (1e-3, 2000), (1e-9, 150)] {
        let builder = LayeredFilter::builder().layout(Layout::Blocked).capacity(1);
        let builder = builder.error_rate(rate).expansion(1).seed(1);
        let mut filter = builder.build().unwrap();
        let mut item = 0_u64;
        while filter.layers().len() < layers {
            filter.try_insert(&item).unwrap();
            item += 1;
        }
        let rates: Vec<f64> = filter.layers().iter().map(|it| it.error_rate()).collect();
        // The first takes an eighth of the rate, the second a ninth of what is left.
        assert_eq!(rates[0], rate / 8.0);
        assert!((rates[1] / (rate * 7.0 / 8.0 / 9.0) - 1.0).abs() < 1e-9);
        assert!(rates.iter().sum::<f64>() < rate);
        assert!((0..item).all(|item| filter.contains(&item)));
    }
}

#[test]
fn a_filter_of_the_library_doubles() {
    let mut filter = ScalableBloomFilter::new(100, 0.01);
    filter.extend(0..6000);
    assert_eq!(capacities(&filter.into()), [100, 200, 400, 800, 1600, 3200]);
}

/// Bits of both layouts for n items, from 101 on, up to ten million.
#[test]
fn growth_takes_few_bits_more_than_in_the_classic_layout() {
    for (rate, most) in [(0.01, 1.42), (0.001, 1.6)] {
        let mut classic = LayerSize::first(100, rate).unwrap();
        let mut blocked = BlockedSize::first(100, rate).unwrap();
        let (mut bits, mut left, mut items) = ([0, 0], rate, 0);
        while items < 10_000_000 {
            bits[0] += classic.bits();
            bits[1] += blocked.bits();
            left -= blocked.error_rate;
            assert!(left > 0.0 && classic.capacity == blocked.capacity);
            let ratio = bits[1] as f64 / bits[0] as f64;
            assert!(items == 0 || ratio <= most, "{ratio} from {items} items on");
            items += blocked.capacity;
            classic = classic.next(2, Rounding::Words).unwrap();
            blocked = blocked.next(2, left).unwrap();
        }
    }
}

/// Layers of one hash count are tested together. At 1 % eight hashes are the fastest.
#[test]
fn small_layers_keep_their_hash_count() {
    for (rate, hashes) in [(0.01, 8), (0.001, 11), (0.0001, 13)] {
        let (mut layer, mut left) = (BlockedSize::first(100, rate).unwrap(), rate);
        while layer.capacity < BlockedSize::LARGE {
            assert_eq!(layer.hashes, hashes, "{layer:?}");
            left -= layer.error_rate;
            layer = layer.next(2, left).unwrap();
        }
    }
}

/// Each of twenty filters, grown to where its newest layer is full or nearly empty.
#[test]
fn twenty_grown_filters_keep_their_rate() {
    for seed in 0..20 {
        let (rate, items) = (
            [0.01, 0.001][seed % 2],
            [6300, 6500, 25_500, 40_000][seed / 5],
        );
        let builder = LayeredFilter::builder().error_rate(rate).seed(seed as u64);
        let mut filter = builder.build().unwrap();
        filter.extend((0..items).map(u64::to_le_bytes));
        assert!(filter.layers().len() >= 6);
        let replies = filter.contains_all(&probes(400_000));
        let blocks = filter.layers().iter().map(|layer| layer.bits() / 512).sum();
        check_rate(
            &replies,
            rate,
            blocks,
            &format!("seed {seed}, {items} items"),
        );
        assert!(filter.rate_to_come() <= rate);
    }
}

/// Small layers once grew by 18, whatever the expansion was.
#[test]
fn a_filter_whose_layers_grew_faster_goes_on_growing() {
    let mut loaded = grown_by_18(100, 0.01, 0..1900);
    assert_eq!(capacities(&loaded), [100, 1800]);
    loaded.extend(1900..20_000);
    assert_eq!(capacities(&loaded), [100, 1800, 3600, 7200, 14_400]);
    assert!((0..20_000).all(|number| loaded.contains(&number)));
    assert!(loaded.rate_to_come() <= 0.01);
    let replies = loaded.contains_all(&probes(400_000));
    let blocks = loaded.layers().iter().map(|layer| layer.bits() / 512).sum();
    check_rate(&replies, 0.01, blocks, "an old chain");
}
