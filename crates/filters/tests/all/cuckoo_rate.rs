//! Cuckoo filters with a chosen error rate.

use std::collections::HashMap;
use std::ops::ControlFlow;

use everbloom::hash::Key;
use everbloom::redisbloom::{CuckooError, KeyedParts};
use everbloom::{CuckooFilter, InsertError, UnionError};
use proptest::prelude::*;

fn filter(capacity: u64, rate: f64, expansion: u16, seed: u64) -> CuckooFilter {
    let builder = CuckooFilter::builder().capacity(capacity).error_rate(rate);
    builder.expansion(expansion).seed(seed).build().unwrap()
}

/// The bytes of all tables, one after the other.
fn slots(filter: &CuckooFilter) -> Vec<u8> {
    let mut out = Vec::new();
    while let Some(chunk) = filter.stream_chunk(out.len() as u64, 1000) {
        out.extend_from_slice(&chunk);
    }
    out
}

/// The share of other items that are found, and its standard deviation at this rate.
fn measured(filter: &CuckooFilter, rate: f64, probes: u64) -> (f64, f64) {
    let errors = (1 << 40..(1 << 40) + probes).filter(|item| filter.contains(item));
    let share = errors.count() as f64 / probes as f64;
    (share, (rate / probes as f64).sqrt())
}

#[test]
fn a_filter_takes_its_capacity_at_the_rate_that_was_asked_for() {
    for rate in [0.5, 0.1, 0.03, 0.01, 0.001, 0.0001] {
        for capacity in [100, 10_000, 300_000] {
            let mut filter = filter(capacity, rate, 2, capacity);
            for item in 0..capacity {
                filter.insert(&item).unwrap();
            }
            assert_eq!(filter.tables(), 1, "{rate} {capacity}");
            assert!((0..capacity).all(|item| filter.contains(&item)));
            let (share, deviation) = measured(&filter, rate, 1_000_000);
            assert!(share < rate + 4.0 * deviation, "{rate} {capacity}: {share}");
            let expected = filter.stats().estimated_error_rate;
            assert!(expected <= rate && filter.full_error_rate() <= rate);
            if capacity == 100 {
                // The rates of small filters are spread.
                continue;
            }
            assert!(
                (share - expected).abs() < 4.0 * deviation,
                "{share} {expected}"
            );
        }
    }
}

#[test]
fn ten_growths_keep_the_rate() {
    for (rate, expansion) in [(0.1, 1), (0.01, 1), (0.01, 2), (0.001, 1), (0.0001, 2)] {
        let mut filter = filter(500, rate, expansion, 3);
        let mut items = 0_u64;
        while filter.tables() < 11 {
            filter.insert(&items).unwrap();
            items += 1;
        }
        // Nearly until the next growth.
        for _ in 1..filter.expected_until_growth().unwrap() {
            filter.insert(&items).unwrap();
            items += 1;
        }
        assert_eq!(filter.tables(), 11, "{rate} {expansion}");
        assert!((0..items).all(|item| filter.contains(&item)));
        let (share, deviation) = measured(&filter, rate, 1_000_000);
        assert!(
            share < rate + 4.0 * deviation,
            "{rate} {expansion}: {share}"
        );
        assert!(filter.full_error_rate() <= rate);
    }
}

#[test]
fn no_filter_grows_before_its_capacity() {
    for (capacity, runs) in [
        (1, 10_000),
        (7, 10_000),
        (50, 2000),
        (300, 1000),
        (5000, 100),
    ] {
        for seed in 0..runs {
            let mut filter = filter(capacity, 0.01, 0, seed);
            for item in 0..capacity {
                assert_eq!(filter.insert(&item), Ok(()), "{capacity} seed {seed}");
            }
        }
    }
}

#[test]
fn an_item_is_found_as_often_as_it_was_inserted() {
    let mut filter = filter(1000, 0.001, 2, 1);
    let mut copies = 0;
    // A table holds 8 copies, and one of which an eighth is in use is followed by another.
    for others in [0..0, 0..600, 600..2000] {
        others.for_each(|item| filter.insert(&item).unwrap());
        while filter.insert("a").is_ok() {
            copies += 1;
        }
    }
    assert_eq!(
        (filter.count("a"), filter.count("b"), filter.tables()),
        (copies, 0, 3)
    );
    assert_eq!(copies, 24);
    for left in (0..copies).rev() {
        assert!(filter.remove("a"));
        assert_eq!(filter.count("a"), left);
    }
    assert!(!filter.remove("a"));
    assert!((0..2000).all(|item| filter.contains(&item)));
    (0..2000).for_each(|item| assert!(filter.remove(&item)));
    assert_eq!((filter.len(), filter.used(), filter.tables()), (0, 0, 1));
}

/// Copies alone would double the memory eight at a time.
#[test]
fn copies_of_few_items_do_not_make_a_filter_grow() {
    for (capacity, expansion, tables) in [(1, 2, 3), (1000, 2, 1), (1000, 32768, 1)] {
        let mut filter = filter(capacity, 0.01, expansion, 1);
        let mut copies = 0;
        for _ in 0..200 {
            let before = filter.clone();
            match filter.insert("a") {
                Ok(()) => copies += 1,
                Err(error) => {
                    assert_eq!(error, InsertError::Copies);
                    assert!(filter == before);
                }
            }
        }
        assert_eq!((copies, filter.tables()), (8 * tables as u64, tables));
        assert_eq!(filter.insert_if_absent("a"), Ok(false));
        // Other items are taken.
        assert_eq!(filter.insert("b"), Ok(()));
        for left in (0..copies).rev() {
            assert!(filter.remove("a"));
            assert_eq!(filter.count("a"), left);
        }
        assert!(!filter.remove("a") && filter.contains("b"));
    }
    // An eighth of a table pays for the next one.
    let mut filter = filter(1000, 0.01, 2, 1);
    let mut items = 0_u64;
    while filter.slots() < 1 << 20 {
        let copies = (0..20).take_while(|_| filter.insert(&items).is_ok());
        assert!(copies.count() >= 1, "{items}");
        items += 1;
        let (slots, used) = (filter.slots(), filter.used());
        assert!(filter.tables() == 1 || slots < 32 * used, "{slots} {used}");
    }
    assert!((0..items).all(|item| filter.contains(&item)));
}

#[test]
fn no_filter_takes_more_than_its_tables_allow() {
    for (capacity, seed) in [(1, 50), (10, 50), (100, 50), (3000, 5)] {
        for seed in 0..seed {
            let mut filter = filter(capacity, 0.01, 0, seed);
            let refused = (0..).find_map(|item| filter.insert(&item).err());
            assert_eq!(refused, Some(InsertError::Full));
            assert!((capacity..=filter.capacity()).contains(&filter.len()));
        }
    }
}

#[test]
fn a_filter_without_growth_is_full_at_its_capacity() {
    let mut filter = filter(1000, 0.001, 0, 1);
    let capacity = filter.capacity();
    for item in 0..capacity {
        filter.insert(&item).unwrap();
    }
    let before = filter.clone();
    assert_eq!(filter.insert(&capacity), Err(InsertError::Full));
    assert!(filter == before);
}

#[test]
fn another_key_is_another_filter() {
    let (mut one, mut two) = (filter(100, 0.01, 2, 1), filter(100, 0.01, 2, 2));
    one.insert("a").unwrap();
    two.insert("a").unwrap();
    assert!(slots(&one) != slots(&two) && one != two);
    let random = CuckooFilter::builder().capacity(100).error_rate(0.01);
    assert!(random.build().unwrap() != random.build().unwrap());
}

#[derive(Clone, Debug)]
enum Step {
    Insert(u16),
    InsertIfAbsent(u16),
    Remove(u16),
    Compact,
    Reload,
    Stream,
    Capture,
    Unite(Vec<u16>),
}

fn step() -> impl Strategy<Value = Step> {
    let item = 0..400_u16;
    prop_oneof![
        20 => item.clone().prop_map(Step::Insert),
        4 => item.clone().prop_map(Step::InsertIfAbsent),
        12 => item.prop_map(Step::Remove),
        1 => Just(Step::Compact),
        1 => Just(Step::Reload),
        1 => Just(Step::Stream),
        1 => Just(Step::Capture),
        1 => prop::collection::vec(0..400_u16, 0..40).prop_map(Step::Unite),
    ]
}

/// Reads the next piece; false when there is none.
fn read_on(
    filter: &mut CuckooFilter,
    (captured, _, at): &mut (CuckooFilter, CuckooFilter, u64),
) -> bool {
    let mut piece = Vec::new();
    if !filter.capture_next(1, &mut piece) {
        filter.capture_mut().end(1);
        return false;
    }
    captured.load_chunk(*at, &piece).unwrap();
    *at += piece.len() as u64;
    true
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// Nothing that was inserted and not removed is missed, and no count is below the true one.
    #[test]
    fn it_holds_what_a_multiset_holds(
        capacity in 1..100_u64, rate in prop::sample::select(vec![0.5, 0.02, 0.001, 1e-6, 1e-9]),
        expansion in 1..4_u16, seed in any::<u64>(),
        steps in prop::collection::vec(step(), 1..1500),
    ) {
        let mut filter = filter(capacity, rate, expansion, seed);
        let mut counts = HashMap::<u16, u64>::new();
        let mut total = 0;
        // A filter that is read while it changes, and what it was when the reading began.
        let mut reading: Option<(CuckooFilter, CuckooFilter, u64)> = None;
        for step in steps {
            if let Some(captured) = &mut reading
                && !read_on(&mut filter, captured)
            {
                prop_assert!(captured.0 == captured.1);
                reading = None;
            }
            match step {
                Step::Insert(item) => {
                    if let Err(error) = filter.insert(&item) {
                        if error == InsertError::Copies {
                            prop_assert!(filter.count(&item) > 0);
                            continue;
                        }
                        // The next table would need more than 56 bits a fingerprint.
                        prop_assert_eq!(error, InsertError::CannotGrow);
                        prop_assert_eq!(filter.parts().table(filter.tables() as u16), None);
                        continue;
                    }
                    *counts.entry(item).or_default() += 1;
                    total += 1;
                }
                Step::InsertIfAbsent(item) => {
                    let was_absent = !filter.contains(&item);
                    let Ok(is_inserted) = filter.insert_if_absent(&item) else {
                        prop_assert_eq!(filter.parts().table(filter.tables() as u16), None);
                        continue;
                    };
                    prop_assert_eq!(is_inserted, was_absent);
                    if was_absent {
                        *counts.entry(item).or_default() += 1;
                        total += 1;
                    }
                }
                Step::Remove(item) => {
                    // Only what was inserted: a stranger could take another item with it.
                    if let Some(count) = counts.get_mut(&item).filter(|count| **count > 0) {
                        prop_assert!(filter.remove(&item));
                        *count -= 1;
                        total -= 1;
                    }
                }
                Step::Compact => filter.compact(),
                Step::Reload => {
                    let again = CuckooFilter::from_bytes(&filter.to_bytes()).unwrap();
                    prop_assert!(again == filter);
                    if reading.is_none() {
                        filter = again;
                    }
                }
                Step::Stream => {
                    let parts = filter.parts();
                    let mut copy = CuckooFilter::from_parts(&parts, u64::MAX).unwrap();
                    let mut at = 0;
                    while let Some(chunk) = filter.stream_chunk(at, 7) {
                        copy.load_chunk(at, &chunk).unwrap();
                        at += chunk.len() as u64;
                    }
                    prop_assert_eq!(at, filter.stream_len());
                    prop_assert_eq!(copy.used(), filter.used());
                    // The one that is read stays.
                    if reading.is_none() {
                        filter = copy;
                    }
                }
                Step::Capture => if reading.is_none() {
                    filter.begin_capture(1, 0..filter.stream_len());
                    let captured = CuckooFilter::from_parts(&filter.parts(), u64::MAX).unwrap();
                    reading = Some((captured, filter.clone(), 0));
                }
                Step::Unite(items) => {
                    let mut other = filter.empty_like().unwrap();
                    other.insert_each(&items, 0, |_| ControlFlow::Continue(()));
                    let before = filter.clone();
                    match filter.union(&other) {
                        Ok(()) => for item in items.iter().take(other.len() as usize) {
                            *counts.entry(*item).or_default() += 1;
                            total += 1;
                        }
                        Err(error) => {
                            prop_assert_eq!(error, UnionError::Room);
                            prop_assert!(filter == before);
                        }
                    }
                }
            }
            prop_assert_eq!((filter.len(), filter.used()), (total, total));
        }
        for (item, count) in counts {
            prop_assert!(filter.count(&item) >= count);
        }
    }
}

#[test]
fn what_does_not_go_together_is_refused() {
    let builder = CuckooFilter::builder()
        .capacity(100)
        .error_rate(0.01)
        .seed(1);
    for builder in [
        builder.slots(100),
        builder.bucket_size(4),
        builder.max_kicks(20),
        CuckooFilter::builder().error_rate(0.01),
    ] {
        assert_eq!(builder.build(), Err(CuckooError::Conflict));
    }
    for rate in [0.0, -1.0, 1e-10, 0.51, 1.0, f64::NAN, f64::INFINITY] {
        let built = builder.error_rate(rate).build();
        assert_eq!(built, Err(CuckooError::ErrorRate), "{rate}");
    }
    let keyed = CuckooFilter::builder().capacity(100).seed(1);
    assert_eq!(keyed.build(), Err(CuckooError::UnexpectedKey));
    let large = builder.capacity(u64::MAX);
    assert_eq!(large.build(), Err(CuckooError::Buckets));
    let large = builder.capacity(1_000_000).max_bytes(1000).build();
    assert_eq!(large, Err(CuckooError::TooLarge { limit: 1000 }));
    let beyond = builder.expansion(CuckooFilter::MAX_EXPANSION + 1).build();
    assert_eq!(beyond, Err(CuckooError::Expansion));
}

#[test]
fn parts_that_no_filter_has_are_refused() {
    let good = filter(100, 0.01, 2, 1).parts();
    assert_eq!(good.validate(1 << 20), Ok(()));
    let keyed = good.keyed.unwrap();
    assert_eq!(
        (keyed.width, keyed.step, keyed.key),
        (10, 2, Key::from_seed(1))
    );
    let change = |change: &dyn Fn(&mut KeyedParts)| {
        let mut keyed = keyed;
        change(&mut keyed);
        let mut parts = good;
        parts.keyed = Some(keyed);
        parts.validate(1 << 20)
    };
    for refused in [
        change(&|keyed| keyed.width = 9),
        change(&|keyed| keyed.width = 57),
        change(&|keyed| keyed.width = 0),
        change(&|keyed| keyed.step = 1),
        change(&|keyed| keyed.step = 255),
        change(&|keyed| keyed.error_rate = 0.001),
        change(&|keyed| keyed.error_rate = f64::NAN),
        change(&|keyed| keyed.error_rate = 0.6),
    ] {
        assert_eq!(refused, Err(CuckooError::ErrorRate));
    }
    let mut odd = good;
    odd.buckets += 1;
    assert_eq!(odd.validate(1 << 20), Err(CuckooError::Buckets));
    let mut wide = good;
    wide.bucket_size = 2;
    assert_eq!(wide.validate(1 << 20), Err(CuckooError::BucketSize));
    // Table 45 would need 10 + 2 + 45 bits.
    let mut long = good;
    (long.buckets, long.expansion, long.tables) = (2, 1, 46);
    assert_eq!(long.validate(u64::MAX), Err(CuckooError::Tables));
    long.tables = 45;
    assert_eq!(long.validate(u64::MAX), Ok(()));
}

#[test]
fn a_filter_of_the_widest_fingerprints_grows_no_more() {
    let mut parts = filter(1, 0.01, 1, 1).parts();
    (parts.buckets, parts.tables) = (2, 45);
    let mut filter = CuckooFilter::from_parts(&parts, u64::MAX).unwrap();
    assert_eq!(filter.expected_until_growth(), None);
    let refused = (0..10_000).find_map(|item| filter.insert(&item).err());
    assert_eq!(refused, Some(InsertError::CannotGrow));
    assert!((0..filter.len()).all(|item| filter.contains(&item)));
}

#[test]
fn two_filters_of_half_the_items_are_one_of_all() {
    for (capacity, each) in [(10_000, 5000), (10_000, 4000), (500, 4000)] {
        let mut one = filter(capacity, 0.001, 2, 7);
        let mut other = one.empty_like().unwrap();
        for item in 0..each {
            one.insert(&item).unwrap();
            other.insert(&(item + each - 500)).unwrap();
        }
        let is_united = one.union(&other);
        if capacity == 500 {
            // The first tables are full in both.
            assert_eq!((is_united, one.len()), (Err(UnionError::Room), each));
            continue;
        }
        assert_eq!(
            (is_united, one.len(), one.used()),
            (Ok(()), 2 * each, 2 * each)
        );
        assert!((0..2 * each - 500).all(|item| one.count(&item) >= 1));
        assert!((each - 500..each).all(|item| one.count(&item) >= 2));
        let (share, deviation) = measured(&one, 0.001, 1_000_000);
        assert!(share < 0.001 + 4.0 * deviation, "{share}");
    }
}

/// The second table of the other filter needs one here, too, but the first one finds no room.
#[test]
fn a_union_without_room_leaves_the_filter_as_it_was() {
    let mut one = filter(500, 0.001, 2, 7);
    let mut other = one.empty_like().unwrap();
    (0..500).for_each(|item| one.insert(&item).unwrap());
    (0..1000).for_each(|item| other.insert(&item).unwrap());
    assert_eq!((one.tables(), other.tables()), (1, 2));
    one.begin_capture(1, 0..one.stream_len());
    let before = one.clone();
    assert_eq!(one.union(&other), Err(UnionError::Room));
    assert!(one == before);
}

#[test]
fn filters_that_differ_are_not_united() {
    let mut one = filter(100, 0.01, 2, 1);
    let before = one.clone();
    let plain = CuckooFilter::new(100);
    for (other, error) in [
        (filter(100, 0.01, 2, 2), UnionError::Key),
        (filter(100, 0.02, 2, 1), UnionError::ErrorRate),
        (filter(200, 0.01, 2, 1), UnionError::Capacity),
        (filter(100, 0.01, 4, 1), UnionError::Growth),
        // Its widths are others, too.
        (filter(100, 0.01, 0, 1), UnionError::Growth),
        (plain.clone(), UnionError::Hash),
    ] {
        assert_eq!(one.union(&other), Err(error));
    }
    assert!(one == before);
    // RedisBloom's kind can be united, too.
    let (mut one, mut other) = (plain.clone(), plain);
    one.insert("a").unwrap();
    other.insert("b").unwrap();
    one.union(&other).unwrap();
    assert!(one.contains("a") && one.contains("b") && one.len() == 2);
}

#[test]
fn a_copy_is_brought_up_to_date() {
    let mut filter = filter(100, 0.001, 2, 1);
    (0..500).for_each(|item| filter.insert(&item).unwrap());
    filter.begin_capture(1, 0..filter.stream_len());
    filter.capture_mut().track_changes(1);
    let mut copy = filter.clone();
    (0..50).for_each(|item| assert!(filter.remove(&item)));
    (500..530).for_each(|item| filter.insert(&item).unwrap());
    assert!(filter.update_copy(1, &mut copy));
    assert!(copy == filter);
    let mut stranger = self::filter(100, 0.001, 2, 2);
    while stranger.tables() < filter.tables() {
        stranger.insert(&stranger.len().clone()).unwrap();
    }
    assert!(!filter.update_copy(1, &mut stranger));
}
