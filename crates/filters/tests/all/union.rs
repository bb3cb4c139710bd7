//! Filters that grew, put together: nothing is lost, and the error rates add up at most.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use everbloom::host::{Layer, LayeredFilter};
use everbloom::redisbloom::{Check, Options};
use everbloom::{BloomFilter, Layout, ShrinkError, UnionError};
use everbloom_dev::Random;
use proptest::prelude::*;

const SEED: u64 = 7;

fn made(layout: Layout, capacity: u64, rate: f64) -> LayeredFilter {
    let builder = LayeredFilter::builder().layout(layout);
    let builder = builder.capacity(capacity).error_rate(rate);
    match layout {
        Layout::Blocked => builder.seed(SEED),
        Layout::Classic => builder,
    }
    .build()
    .unwrap()
}

fn piece(layout: Layout, capacity: u64, rate: f64) -> BloomFilter {
    let builder = BloomFilter::builder().layout(layout);
    let builder = builder.capacity(capacity).error_rate(rate);
    match layout {
        Layout::Blocked => builder.seed(SEED),
        Layout::Classic => builder,
    }
    .build()
    .unwrap()
}

fn layout() -> impl Strategy<Value = Layout> {
    prop_oneof![Just(Layout::Blocked), Just(Layout::Classic)]
}

/// The error rate when each layer has as many items as it is made for.
fn full_rate(filter: &LayeredFilter) -> f64 {
    filter.layers().iter().map(Layer::error_rate).sum()
}

/// What holds of any filter that is to be dumped, saved and added to.
fn check_whole(filter: &LayeredFilter) {
    let parts = filter.parts();
    assert_eq!(parts.validate(u64::MAX, Check::DumpHeader), Ok(()));
    assert!(LayeredFilter::from_bytes(&filter.to_bytes()).unwrap() == *filter);
    // The first layer says what rate was given; items go into the last.
    let later = filter.layers().iter().skip(1).map(Layer::capacity);
    assert!(later.is_sorted());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// Whatever each of them has, and however large it began.
    #[test]
    fn nothing_is_lost(
        layout in layout(),
        rate in prop_oneof![Just(0.01), Just(1e-6), 0.0001..0.2_f64],
        many in prop::collection::vec((1_u64..3000, 0_u32..20_000, 0_u32..20_000), 1..5),
        more in 0_u32..20_000,
    ) {
        let mut all = made(layout, 100, rate);
        let mut rates = full_rate(&all);
        for (capacity, start, items) in &many {
            let mut filter = made(layout, *capacity, rate);
            filter.extend(*start..start + items);
            rates += full_rate(&filter);
            all.union(&filter).unwrap();
        }
        for (_, start, items) in &many {
            prop_assert!((*start..start + items).all(|item| all.contains(&item)));
        }
        check_whole(&all);
        prop_assert!(full_rate(&all) <= rates * 1.000_001);
        prop_assert_eq!(all.error_rate(), made(layout, 100, rate).error_rate());

        // It goes on as any other: the newest layer is never more than full.
        all.extend(50_000..50_000 + more);
        prop_assert!((50_000..50_000 + more).all(|item| all.contains(&item)));
        let newest = all.layers().last().unwrap();
        prop_assert!(newest.len() <= newest.capacity() + newest.capacity() / 5 + 10);
        prop_assert!(full_rate(&all) <= rate * (many.len() + 1) as f64 * 1.000_001);
        check_whole(&all);
    }

    /// Pieces of fixed size, each as large as its items need.
    #[test]
    fn pieces_become_one(
        layout in layout(), counts in prop::collection::vec(1_u32..3000, 1..6),
    ) {
        let mut all: Option<LayeredFilter> = None;
        for (number, count) in (0_u32..).zip(&counts) {
            let mut piece = piece(layout, u64::from(*count), 0.001);
            piece.extend(number * 5000..number * 5000 + count);
            let piece = LayeredFilter::from(piece);
            match &mut all {
                None => all = Some(piece),
                Some(all) => {
                    all.union(&piece).unwrap();
                }
            }
        }
        let all = all.unwrap();
        for (number, count) in (0_u32..).zip(&counts) {
            let mut items = number * 5000..number * 5000 + count;
            prop_assert!(items.all(|item| all.contains(&item)));
        }
        check_whole(&all);
        prop_assert!(all.is_fixed());
        prop_assert!(full_rate(&all) <= 0.001 * counts.len() as f64 * 1.000_001);
    }

    #[test]
    fn the_same_items_take_no_more_room(
        layout in layout(), capacity in 1_u64..2000, count in 0_u32..10_000,
    ) {
        let mut filter = made(layout, capacity, 0.01);
        filter.extend(0..count / 2);
        let older = filter.clone();
        filter.extend(count / 2..count);
        let before = filter.clone();
        filter.union(&before).unwrap();
        let bits = |filter: &LayeredFilter| -> Vec<Vec<u8>> {
            filter.layers().iter().map(|layer| layer.as_bytes().into_owned()).collect()
        };
        prop_assert!(bits(&filter) == bits(&before));
        // A copy that was made earlier has nothing new.
        filter.union(&older).unwrap();
        prop_assert!(bits(&filter) == bits(&before));
    }
}

/// Three machines, each with its part: each errs as rarely as asked, and all together three times
/// as often.
#[test]
fn error_rates_add_up() {
    for layout in [Layout::Blocked, Layout::Classic] {
        let mut all = made(layout, 1000, 0.01).empty_like().unwrap();
        let mut measured = 0.0;
        let errors = |filter: &LayeredFilter| {
            let mut found = 0;
            filter.contains_each(1_000_000..1_100_000_u32, |is| found += u32::from(is));
            f64::from(found) / 100_000.0
        };
        for machine in 0..3_u32 {
            let mut part = all.empty_like().unwrap();
            part.extend(machine * 100_000..machine * 100_000 + 19_000);
            measured += errors(&part);
            all.union(&part).unwrap();
        }
        let rate = errors(&all);
        assert!((rate - measured).abs() < 0.004, "{rate} {measured}");
        let expected = all.stats().estimated_error_rate;
        assert!((rate - expected).abs() < 0.004, "{rate} {expected}");
    }
}

/// Though its layers have taken more of the error rate than was asked for.
#[test]
fn a_union_of_many_goes_on_growing() {
    for layout in [Layout::Blocked, Layout::Classic] {
        let mut all = made(layout, 100, 0.01);
        for part in 0..20_u32 {
            let mut filter = all.empty_like().unwrap();
            filter.extend(part * 100..part * 100 + 100);
            all.union(&filter).unwrap();
        }
        assert!(all.layers().len() > 10);
        let full = full_rate(&all);
        all.extend(10_000..11_000);
        assert!((10_000..11_000).all(|item| all.contains(&item)));
        let newest = all.layers().last().unwrap();
        assert!(newest.capacity() > 100 && newest.len() <= newest.capacity());
        assert!(full_rate(&all) < full + 0.01);
        check_whole(&all);
    }
}

/// Two that are half full are as one that is full: no larger, and within the rate.
#[test]
fn layers_with_room_are_united() {
    for layout in [Layout::Blocked, Layout::Classic] {
        let mut one = made(layout, 10_000, 0.01);
        let mut other = one.empty_like().unwrap();
        one.extend(0..5000);
        other.extend(4000..9900);
        one.union(&other).unwrap();
        assert_eq!(one.layers().len(), 1);
        assert!(one.len().abs_diff(9900) < 200, "{}", one.len());
        assert!(one.stats().estimated_error_rate < 0.01);
    }
}

#[test]
fn what_cannot_be_united_stays() {
    let mut filter = made(Layout::Blocked, 100, 0.01);
    filter.insert("a");
    let before = filter.clone();
    let other_key = LayeredFilter::builder().capacity(100).build();
    let fixed = piece(Layout::Blocked, 100, 0.01).into();
    for (other, error) in [
        (made(Layout::Classic, 100, 0.01), UnionError::Layout),
        (other_key.unwrap(), UnionError::Key),
        (fixed, UnionError::Growth),
    ] {
        assert_eq!(filter.union(&other), Err(error));
        assert!(filter == before);
    }
    let mut classic = made(Layout::Classic, 100, 0.01);
    let mut parts = classic.parts();
    parts.options = Options::NO_ROUND;
    let narrow = LayeredFilter::from_parts(&parts, 1 << 20).unwrap();
    assert_eq!(classic.union(&narrow), Err(UnionError::Hash));
}

/// The destination keeps the rate that it was given, and says what rate to expect.
#[test]
fn filters_of_other_rates_are_united() {
    for layout in [Layout::Blocked, Layout::Classic] {
        let mut all = made(layout, 1000, 0.08);
        for day in 0..7_u32 {
            let mut filter = made(layout, 1000, 0.01);
            filter.extend(day * 900..day * 900 + 900);
            all.union(&filter).unwrap();
        }
        let expected = all.rate_to_come();
        assert!(expected > 0.001 && expected <= 0.08, "{expected}");
        assert_eq!(all.error_rate(), 0.08);
        assert!((0..6300).all(|item| all.contains(&item)));
        let wrong = (10_000..110_000).filter(|item| all.contains(item)).count();
        assert!(
            (wrong as f64) < 100_000.0 * expected * 1.3,
            "{wrong} {expected}"
        );
        all.extend(20_000..30_000);
        assert!((20_000..30_000).all(|item| all.contains(&item)));
        check_whole(&all);
    }
}

#[test]
fn a_growing_filter_is_made_smaller() {
    let mut filter = made(Layout::Blocked, 1_000_000, 0.01);
    filter.extend(0..20_000_u32);
    let large = filter.memory_usage();
    assert_eq!(
        filter.shrink_to(19_000),
        Err(ShrinkError::Capacity(filter.len()))
    );
    let expected = filter.shrink_to(30_000).unwrap();
    assert!(expected <= 0.01, "{expected}");
    assert!(filter.memory_usage() * 25 < large);
    let first = filter.capacity();
    assert!((30_000..45_000).contains(&first), "{first}");
    assert_eq!(filter.error_rate(), 0.01);
    assert!((0..20_000).all(|item| filter.contains(&item)));
    // It grows again, and only its newest layer can be made smaller.
    filter.extend(100_000..130_000_u32);
    let (newest, older) = filter.layers().split_last().unwrap();
    let older: u64 = older.iter().map(Layer::capacity).sum();
    assert!(older >= first);
    let least = older + newest.len();
    for capacity in [1, older, least - 1] {
        let needed = Err(ShrinkError::Capacity(least));
        assert_eq!(filter.shrink_to(capacity), needed);
    }
    let most = match filter.shrink_to(u64::MAX) {
        Err(ShrinkError::NotSmaller(most)) => most,
        other => unreachable!("{other:?}"),
    };
    filter.shrink_to(least).unwrap();
    assert!((least..=most).contains(&filter.capacity()));
    assert_eq!(filter.error_rate(), 0.01);
    assert!(
        (0..20_000)
            .chain(100_000..130_000)
            .all(|item| filter.contains(&item))
    );
    let wrong = (1_000_000..1_100_000_u32)
        .filter(|item| filter.contains(item))
        .count();
    assert!(wrong < 1300, "{wrong}");
    check_whole(&filter);
    let mut classic = made(Layout::Classic, 1000, 0.01);
    assert_eq!(classic.shrink_to(100), Err(ShrinkError::Layout));
}

/// A filter of full layers of one size, each with other bits.
fn with_equal_layers(layers: u64) -> LayeredFilter {
    let mut parts = made(Layout::Blocked, 100, 0.01).parts();
    parts.layers[0].items = 1 << 20;
    parts.items = layers << 20;
    parts.layers = vec![parts.layers[0]; layers as usize];
    let mut filter = LayeredFilter::from_parts(&parts, 1 << 20).unwrap();
    for layer in 0..layers as usize {
        let mut random = Random(layer as u64);
        let bytes = (0..parts.layers[0].bytes).map(|_| random.number() as u8);
        let bytes: Vec<u8> = bytes.collect();
        filter.load_layer(layer, 0, &bytes).unwrap();
    }
    filter
}

/// A layer is tried with the last 16 of its size: with all, a merge of filters that have many
/// equal layers would take time quadratic in their number.
#[test]
fn a_layer_is_united_with_one_of_the_last_of_its_size() {
    for (layers, united) in [(16, 16), (17, 18)] {
        let mut all = with_equal_layers(layers);
        // The first layer has all bits of the other filter.
        all.union(&with_equal_layers(1)).unwrap();
        assert_eq!(all.layers().len(), united);
    }
}

/// Counts from outside may be wrong. Bits that are there are united whatever the counts say.
#[test]
fn wrong_counts_lose_nothing() {
    let mut filter = made(Layout::Classic, 100, 0.01);
    filter.extend(0..80);
    let mut parts = filter.parts();
    for items in [0, u64::MAX] {
        parts.layers[0].items = items;
        parts.items = items;
        let mut odd = LayeredFilter::from_parts(&parts, 1 << 20).unwrap();
        odd.load_chunk(0, &filter.layers()[0].as_bytes()).unwrap();
        let mut all = filter.empty_like().unwrap();
        all.extend(1000..1080);
        all.union(&odd).unwrap();
        all.union(&odd).unwrap();
        assert!((0..80).chain(1000..1080).all(|item| all.contains(&item)));
        check_whole(&all);
    }
}
