//! Filters that become smaller: what they keep, and what they refuse.
#![allow(clippy::unwrap_used)]

use everbloom::host::LayeredFilter;
use everbloom::sizing::BlockedSize;
use everbloom::{BloomFilter, BuildError, ScalableBloomFilter, ShrinkError};
use proptest::prelude::*;

const BLOCK: u64 = BlockedSize::BLOCK_BITS as u64;

fn fixed(capacity: u64, rate: f64, seed: u64) -> BloomFilter {
    let builder = BloomFilter::builder().capacity(capacity).error_rate(rate);
    builder.seed(seed).build().unwrap()
}

fn growing(capacity: u64, rate: f64, seed: u64) -> ScalableBloomFilter {
    let builder = ScalableBloomFilter::builder().capacity(capacity);
    builder.error_rate(rate).seed(seed).build().unwrap()
}

/// A filter of this many blocks at the least, with a bit more, and its capacity.
fn with_blocks(blocks: u64, seed: u64) -> BloomFilter {
    let capacity = BlockedSize::max_capacity(blocks * BLOCK, 0.01);
    let filter = fixed(capacity, 0.01, seed);
    assert_eq!(filter.bits(), blocks * BLOCK);
    filter
}

/// That it would not become smaller, which is no failure of a chain.
fn is_small(error: ShrinkError) -> bool {
    matches!(error, ShrinkError::NotSmaller(_) | ShrinkError::Smallest)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// Whatever the sizes, several steps make the filter that one step makes, or neither does.
    #[test]
    fn a_chain_of_shrinks_equals_one(
        capacity in 1..60_000_u64, full in 0..110_u64, rate in prop_oneof![Just(0.01), Just(1e-4)],
        mut steps in prop::collection::vec(0..=100_u64, 1..14), seed: u64, grows: bool,
    ) {
        let items = capacity * full * full / 10_000;
        let filter: LayeredFilter = match grows {
            true => growing(capacity, rate, seed).into(),
            false => fixed(capacity, rate, seed).into(),
        };
        let mut chain = filter;
        chain.extend(0..items);
        let mut once = chain.clone();
        steps.sort_unstable_by(|one, other| other.cmp(one));
        let room = chain.capacity() - chain.len().min(chain.capacity());
        let target = |step: &u64| chain.len().max(1) + room * step / 100;
        let targets: Vec<u64> = steps.iter().map(target).collect();
        for target in &targets {
            let before = chain.clone();
            match chain.shrink_to(*target) {
                Ok(rate) => {
                    prop_assert!(chain.stats().bits < before.stats().bits);
                    prop_assert!(rate <= chain.error_rate());
                    prop_assert!((*target..=before.capacity()).contains(&chain.capacity()));
                }
                Err(error) => {
                    prop_assert!(is_small(error), "{error}");
                    prop_assert!(chain == before);
                }
            }
            prop_assert_eq!(chain.error_rate(), before.error_rate());
            prop_assert_eq!(chain.len(), before.len());
        }
        let last = *targets.last().unwrap();
        if let Err(error) = once.shrink_to(last) {
            prop_assert!(is_small(error), "{error}");
        }
        prop_assert!(once == chain);
        prop_assert!((0..items).all(|item| chain.contains(&item)));
        prop_assert!(LayeredFilter::from_bytes(&chain.to_bytes()).unwrap() == chain);
    }

    /// What the error says is true: there is a smaller size for that capacity, and none for more.
    #[test]
    fn the_capacity_of_an_error_is_the_largest_for_a_smaller_size(
        capacity in 100..60_000_u64, full in 0..100_u64, grows: bool, seed: u64,
    ) {
        let items = capacity * full / 100;
        let mut filter: LayeredFilter = match grows {
            true => growing(capacity, 0.01, seed).into(),
            false => fixed(capacity, 0.01, seed).into(),
        };
        filter.extend(0..items);
        let before = filter.clone();
        match filter.shrink_to(u64::MAX) {
            Err(ShrinkError::NotSmaller(most)) => {
                let more = filter.shrink_to(most + 1);
                prop_assert_eq!(more, Err(ShrinkError::NotSmaller(most)));
                prop_assert!(filter == before);
                filter.shrink_to(most).unwrap();
                prop_assert_eq!(filter.capacity(), most);
                prop_assert!(filter.stats().bits < before.stats().bits);
            }
            error => {
                prop_assert_eq!(error, Err(ShrinkError::Smallest));
                let least = filter.len().max(1);
                prop_assert_eq!(filter.shrink_to(least), Err(ShrinkError::Smallest));
                prop_assert!(filter == before);
            }
        }
    }
}

/// Each filter is filled up to its new capacity. With an even number of blocks, and with an odd one.
#[test]
fn filters_that_shrank_keep_their_rate_when_they_are_full() {
    for blocks in [1280, 1001, 1023, 1025, 1536] {
        let (mut wrong, mut asked, mut rate) = (0_u64, 0_u64, 0.0);
        for seed in 0..20 {
            let mut filter = with_blocks(blocks, seed);
            filter.extend((0..4000_u64).map(|number| (seed, number)));
            filter.shrink_to(8000 + 500 * (seed % 4)).unwrap();
            assert!(filter.bits() * 2 <= blocks.next_power_of_two() * BLOCK);
            let room = 4000..filter.capacity();
            filter.extend(room.map(|number| (seed, number)));
            let others = (1_000_000..1_100_000_u64).map(|number| (seed, number));
            filter.contains_each(others, |found| wrong += u64::from(found));
            asked += 100_000;
            rate = filter.error_rate();
        }
        let expected = asked as f64 * rate;
        assert!(
            wrong as f64 <= expected + 4.0 * expected.sqrt(),
            "{blocks}: {wrong} of {asked}"
        );
    }
}

#[test]
fn thirteen_shrinks_in_a_row_keep_the_rate() {
    let mut filter = fixed(1_000_000, 0.01, 3);
    filter.extend(0..20_000_u32);
    let mut once = filter.clone();
    for step in (0..13).rev() {
        let capacity = 20_000 + 20_000 * step;
        if let Err(error) = filter.shrink_to(capacity) {
            assert!(is_small(error), "{error}");
        }
    }
    once.shrink_to(20_000).unwrap();
    assert!(filter == once);
    let mut wrong = 0;
    filter.contains_each(1_000_000..1_100_000_u32, |found| wrong += u32::from(found));
    assert!(wrong <= 1000 + 126, "{wrong} of 100000");
    assert!(filter.bits() * 20 < fixed(1_000_000, 0.01, 3).bits());
}

/// The first layer's share of the error rate is another one below that capacity.
#[test]
fn a_chain_to_below_the_least_large_capacity_equals_one_shrink() {
    for capacity in [3_000_000, 4_100_000] {
        let mut chain = growing(capacity, 0.01, 7);
        chain.extend(0..30_000_u32);
        let whole = chain.clone();
        for target in [
            2_900_000,
            1_100_000,
            BlockedSize::LARGE,
            1_000_000,
            700_000,
            90_000,
        ] {
            let mut once = whole.clone();
            let results = [&mut chain, &mut once].map(|filter| filter.shrink_to(target));
            assert!(
                results.iter().flat_map(|it| it.err()).all(is_small),
                "{results:?}"
            );
            assert!(chain == once, "{target}");
            assert_eq!(chain.error_rate(), 0.01);
        }
        assert!(chain.capacity() < 200_000);
    }
}

#[test]
fn a_filter_that_would_not_become_smaller_says_so() {
    // An even number of blocks is halved. The items that there are may lie less evenly than most.
    let mut filter = with_blocks(40, 1);
    let half = BlockedSize::max_capacity(20 * BLOCK, 0.01) - 20;
    filter.extend(0..100);
    let before = filter.clone();
    for capacity in [u64::MAX, filter.capacity(), half + 100] {
        let refused = filter.shrink_to(capacity);
        assert!(
            matches!(refused, Err(ShrinkError::NotSmaller(most)) if most >= half),
            "{refused:?}"
        );
        assert!(filter == before);
    }
    filter.shrink_to(half).unwrap();
    let mut direct = with_blocks(20, 1);
    direct.extend(0..100);
    assert!(filter.as_bytes() == direct.as_bytes());

    // Blocks of an odd number go into two, which takes the room of the items twice.
    let mut filter = with_blocks(33, 1);
    filter.extend(0..400);
    let room = BlockedSize::max_capacity(32 * BLOCK, 0.01) - 400;
    let most = match filter.shrink_to(u64::MAX) {
        Err(ShrinkError::NotSmaller(most)) => most,
        other => unreachable!("{other:?}"),
    };
    assert!((room - 100..room + 100).contains(&most), "{most} {room}");
    let mut full = with_blocks(33, 1);
    full.extend(0..1200);
    assert_eq!(full.shrink_to(1200), Err(ShrinkError::Smallest));
    let mut one = with_blocks(1, 1);
    assert_eq!(one.shrink_to(1), Err(ShrinkError::Smallest));

    // No size is for more items than the one before.
    let mut filter = with_blocks(1025, 1);
    let capacity = filter.capacity();
    filter.shrink_to(capacity).unwrap();
    assert_eq!((filter.capacity(), filter.bits()), (capacity, 1024 * BLOCK));
}

#[test]
fn no_filter_shrinks_below_its_items() {
    let mut filter = fixed(100_000, 0.01, 1);
    filter.extend(0..40_000);
    let before = filter.clone();
    let needed = ShrinkError::Capacity(filter.len());
    assert_eq!(filter.shrink_to(10), Err(needed));
    assert_eq!(filter.shrink_to(0), Err(BuildError::Capacity.into()));
    assert!(filter == before);
    // One that holds more than it is made for.
    let mut full = fixed(10, 0.01, 1);
    full.extend(0..200);
    assert_eq!(full.shrink_to(10), Err(ShrinkError::Capacity(full.len())));
    assert_eq!(full.shrink_to(full.len()), Err(ShrinkError::Smallest));
}

/// From a large first layer to a small one: the share of the error rate is another one.
#[test]
fn a_filter_that_shrank_grows_on_and_keeps_its_rate() {
    for (capacity, target) in [(3_000_000, 2000), (3_000_000, 1_400_000), (50_000, 2000)] {
        let mut filter = growing(capacity, 0.01, 5);
        filter.extend(0..2000_u32);
        filter.shrink_to(target).unwrap();
        assert_eq!(filter.error_rate(), 0.01);
        let bytes = filter.to_bytes();
        let mut filter = ScalableBloomFilter::from_bytes(&bytes).unwrap();
        let items = 0..u32::try_from(filter.capacity()).unwrap() * 3;
        filter.extend(items.clone());
        assert!(filter.stats().estimated_error_rate < 0.01);
        let mut missing = 0;
        filter.contains_each(items, |found| missing += u32::from(!found));
        assert_eq!(missing, 0);
        let mut wrong = 0;
        let others = 4_000_000_000..4_000_100_000_u32;
        filter.contains_each(others, |found| wrong += u32::from(found));
        assert!(wrong <= 1000 + 126, "{wrong} of 100000");
        // Only the newest layer becomes smaller.
        let least = match filter.shrink_to(1) {
            Err(ShrinkError::Capacity(least)) => least,
            other => unreachable!("{other:?}"),
        };
        assert!(least > filter.len() / 2);
    }
}

/// Bits that no counted item explains take room, too: those that an intersection leaves.
#[test]
fn bits_count_more_than_items() {
    let mut one = fixed(100_000, 0.01, 1);
    let mut other = one.empty_like().unwrap();
    one.extend(0..60_000);
    other.extend(100_000..160_000);
    one.intersect(&other).unwrap();
    assert!(one.len() < 2000);
    let mut smaller = one.clone();
    smaller.shrink_to(one.len()).unwrap();
    assert!(smaller.bits() * 8 > one.bits(), "{}", smaller.bits());
    let rate = smaller.estimated_error_rate();
    assert!(rate <= 0.01, "{rate}");
}
