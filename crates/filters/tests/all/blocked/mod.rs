//! The blocked layout: what it promises about errors, growth, bytes and items crafted to collide.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss
)]

use crate::common::Batches;
use std::ops::ControlFlow;

use everbloom::hash::Key;
use everbloom::host::LayeredFilter;
use everbloom::redisbloom::{FilterParts, PartsError};
use everbloom::sizing::BlockedSize;
use everbloom::{BloomFilter, BuildError, InsertError, Layout, UnionError};
use proptest::prelude::*;

mod growth;
mod rates;
mod searched;
mod sizes;
mod slow;

/// Items that no filter here gets, from this number on.
const ABSENT: u64 = 1 << 40;

fn fixed(capacity: u64, rate: f64, seed: u64) -> BloomFilter {
    let builder = BloomFilter::builder()
        .layout(Layout::Classic)
        .capacity(capacity)
        .error_rate(rate);
    builder.layout(Layout::Blocked).seed(seed).build().unwrap()
}

fn scalable(capacity: u64, rate: f64, seed: u64) -> LayeredFilter {
    let builder = LayeredFilter::builder()
        .layout(Layout::Classic)
        .capacity(capacity)
        .error_rate(rate);
    builder.layout(Layout::Blocked).seed(seed).build().unwrap()
}

/// Grown to so many items, or on until the newest layer is full.
fn grown(first: u64, rate: f64, items: u64, on: bool) -> LayeredFilter {
    let mut filter = scalable(first, rate, first ^ items);
    let is_full = |filter: &LayeredFilter| {
        let newest = filter.layers().last().unwrap();
        newest.len() >= newest.capacity()
    };
    let mut number = 0_u64;
    while filter.len() < items || on && !is_full(&filter) {
        filter.insert(&number.to_le_bytes());
        number += 1;
    }
    filter
}

fn probes(count: u64) -> Vec<[u8; 8]> {
    (ABSENT..ABSENT + count).map(u64::to_le_bytes).collect()
}

/// The measured rate and what it may deviate by: the spread of the sample, and that of the filters
/// themselves, whose blocks differ by about a quarter of the rate.
fn check_rate(replies: &[bool], rate: f64, blocks: u64, what: &str) -> f64 {
    let measured = replies.iter().filter(|found| **found).count() as f64 / replies.len() as f64;
    let sample = (rate * (1.0 - rate) / replies.len() as f64).sqrt();
    let filters = 0.3 * rate / (blocks as f64).sqrt();
    let most = rate + 4.0 * sample.hypot(filters);
    assert!(measured <= most, "{what}: {measured} for {rate}");
    measured
}

/// Items, many of them twice, of many lengths.
fn items() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let item = prop_oneof![
        (0_u32..600).prop_map(|n| n.to_string().into_bytes()),
        prop::collection::vec(any::<u8>(), 0..100),
    ];
    prop::collection::vec(item, 0..600)
}

fn parameters() -> impl Strategy<Value = (u64, f64, u64)> {
    (
        1_u64..60,
        prop_oneof![Just(0.01), Just(1e-9), 0.0001..0.3_f64],
        any::<u64>(),
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn nothing_is_lost_and_batches_are_what_single_calls_are(
        (capacity, rate, seed) in parameters(), items in items(), others in items(),
    ) {
        let mut single = scalable(capacity, rate, seed);
        let (mut batch, mut extended) = (single.clone(), single.clone());
        let mut replies = Vec::new();
        for item in &items {
            // What any layer contains is not new, and changes nothing.
            let (known, before) = (single.contains(item), single.clone());
            replies.push(single.insert(item));
            prop_assert_eq!(replies.last(), Some(&!known));
            prop_assert_eq!(single == before, known);
        }
        prop_assert_eq!(batch.insert_all(&items), replies);
        extended.extend(&items);
        prop_assert!(single == batch && single == extended);
        prop_assert!(batch.contains_all(&items).iter().all(|found| *found));
        prop_assert!(items.iter().all(|item| batch.contains(item)));
        let singly: Vec<bool> = others.iter().map(|item| batch.contains(item)).collect();
        prop_assert_eq!(batch.contains_all(&others), singly);
        prop_assert_eq!(batch.len(), batch.layers().iter().map(|layer| layer.len()).sum::<u64>());

        let mut one = fixed(capacity, rate, seed);
        let (mut other, mut extended) = (one.clone(), one.clone());
        let mut replies = Vec::new();
        for item in &items {
            let known = one.contains(item);
            replies.push(one.insert(item));
            prop_assert_eq!(replies.last(), Some(&!known));
        }
        prop_assert_eq!(one.len(), replies.iter().filter(|is_new| **is_new).count() as u64);
        prop_assert_eq!(other.insert_all(&items), replies);
        extended.extend(&items);
        prop_assert!(one == other && one == extended);
        prop_assert!(items.iter().all(|item| one.contains(item)));
        let chain = LayeredFilter::from(one.clone());
        prop_assert!(chain.is_fixed() && items.iter().all(|item| chain.contains(item)));
    }

    #[test]
    fn every_filter_comes_back((capacity, rate, seed) in parameters(), items in items()) {
        let mut filter = scalable(capacity, rate, seed);
        filter.insert_all(&items);
        let bytes = filter.to_bytes();
        let read = LayeredFilter::from_bytes(&bytes).unwrap();
        prop_assert!(read == filter && read.key() == filter.key());
        prop_assert_eq!(read.to_bytes(), bytes);

        let parts = filter.parts();
        prop_assert_eq!(parts.key, Some(Key::from_seed(seed)));
        let mut loaded = LayeredFilter::from_parts(&parts, 1 << 20).unwrap();
        let (mut at, mut bits) = (0, Vec::new());
        while let Some(chunk) = filter.stream_chunk(at, 100) {
            loaded.load_chunk(at, &chunk).unwrap();
            at += chunk.len() as u64;
        }
        for layer in filter.layers() {
            bits.push(layer.as_bytes().to_vec());
        }
        prop_assert!(loaded == filter);
        let check = everbloom::redisbloom::Check::RdbValue;
        let whole = LayeredFilter::from_parts_and_bits(&parts, bits, 1 << 20, check).unwrap();
        prop_assert!(whole == filter);
        prop_assert_eq!(whole.error_rate(), filter.error_rate());

        let mut filter = fixed(capacity, rate, seed);
        filter.insert_all(&items);
        prop_assert_eq!(BloomFilter::from_bytes(&filter.to_bytes()), Ok(filter));
    }

    #[test]
    fn a_capture_is_the_filter_as_it_was(
        (capacity, rate, seed) in parameters(), before in items(), between in items(),
        as_batch: bool,
    ) {
        let mut filter = scalable(capacity, rate, seed);
        filter.insert_all(&before);
        let then = filter.clone();
        filter.begin_capture(1, 0..filter.stream_len());
        let mut captured = LayeredFilter::from_parts(&filter.parts(), 1 << 20).unwrap();
        let mut between = between.iter();
        let mut add = |filter: &mut LayeredFilter| {
            let items = between.by_ref().take(50);
            if as_batch {
                filter.insert_all(&items.collect::<Vec<_>>());
            } else {
                for item in items {
                    filter.insert(item);
                }
            }
        };
        add(&mut filter);
        let (mut at, mut piece) = (0, Vec::new());
        while filter.capture_next(1, &mut piece) {
            captured.load_chunk(at, &piece).unwrap();
            at += piece.len() as u64;
            piece.clear();
            add(&mut filter);
        }
        prop_assert!(captured == then);
    }

    #[test]
    fn a_union_has_the_items_of_both(
        (capacity, rate, seed) in parameters(), ours in items(), theirs in items(),
    ) {
        let (mut one, mut other) = (fixed(capacity, rate, seed), fixed(capacity, rate, seed));
        let mut both = one.clone();
        one.insert_all(&ours);
        other.insert_all(&theirs);
        one.union(&other).unwrap();
        both.insert_all(&ours);
        both.insert_all(&theirs);
        prop_assert!(one.as_bytes() == both.as_bytes());
        prop_assert_eq!(fixed(capacity, rate, !seed).union(&one), Err(UnionError::Key));
    }
}

#[test]
fn what_cannot_be_united() {
    let mut blocked = fixed(100, 0.01, 1);
    let classic = BloomFilter::builder()
        .layout(Layout::Classic)
        .capacity(100)
        .build()
        .unwrap();
    assert_eq!(blocked.union(&classic), Err(UnionError::Layout));
    assert_eq!(
        blocked.union(&fixed(10_000, 0.01, 1)),
        Err(UnionError::Bits)
    );
    assert_eq!(
        blocked.union(&fixed(100, 0.0099, 1)),
        Err(UnionError::ErrorRate)
    );
    let random = || {
        let builder = BloomFilter::builder().capacity(100).layout(Layout::Blocked);
        builder.build().unwrap()
    };
    assert_eq!(random().union(&random()), Err(UnionError::Key));
}

#[test]
fn a_filter_that_does_not_grow_is_full_at_its_capacity() {
    let builder = LayeredFilter::builder()
        .layout(Layout::Blocked)
        .capacity(50)
        .fixed();
    let mut filter = builder.build().unwrap();
    assert_eq!(filter.layers()[0].error_rate(), 0.01);
    let mut number = 0_u64;
    while filter.len() < 50 {
        filter.try_insert(&number.to_le_bytes()).unwrap();
        number += 1;
    }
    let absent = (number..)
        .find(|n| !filter.contains(&n.to_le_bytes()))
        .unwrap();
    assert_eq!(
        filter.try_insert(&absent.to_le_bytes()),
        Err(InsertError::Full)
    );
    assert!(filter.insert(&absent.to_le_bytes()));
}

#[test]
fn growth_has_limits() {
    let mut filter = scalable(1, 0.01, 1);
    let items: Vec<[u8; 8]> = (0..1000_u64).map(u64::to_le_bytes).collect();
    let mut refused = 0;
    filter.try_insert_each(items.iter().map(|item| &item[..]), 64, |reply| {
        refused += u64::from(reply == Err(InsertError::CannotGrow));
        ControlFlow::Continue(())
    });
    assert_eq!(
        (filter.layers().len(), filter.len()),
        (5, 1 + 2 + 4 + 8 + 16)
    );
    assert!(refused > 900);
    // Layers of equal size: the rate of the newest is halved until it would be too low.
    let builder = LayeredFilter::builder()
        .layout(Layout::Blocked)
        .error_rate(1e-12);
    let mut filter = builder.capacity(20).expansion(1).seed(1).build().unwrap();
    let refused = items.iter().find_map(|item| filter.try_insert(item).err());
    assert_eq!(refused, Some(InsertError::CannotGrow));
}

/// Each rule of the gate, broken alone.
#[test]
fn wrong_parts_are_refused() {
    let mut filter = scalable(3, 0.01, 42);
    filter.extend(["foo", "bar", "baz", "quux"]);
    let good = filter.parts();
    let limit = 1 << 20;
    assert!(LayeredFilter::from_parts(&good, limit).is_ok());
    let broken = |change: &dyn Fn(&mut FilterParts)| {
        let mut parts = good.clone();
        change(&mut parts);
        let check = everbloom::redisbloom::Check::RdbValue;
        LayeredFilter::from_parts_checked(&parts, limit, check).unwrap_err()
    };
    let layer = 1;
    assert_eq!(broken(&|parts| parts.layers.clear()), PartsError::NoLayers);
    assert_eq!(broken(&|parts| parts.items += 1), PartsError::Items);
    for options in [0, 1, 4, 7, 16 + 5] {
        assert_eq!(
            broken(&|parts| parts.options = options),
            PartsError::Options
        );
    }
    for bytes in [0, 63, 65, u64::MAX / 64 * 64] {
        let error = broken(&|parts| {
            let layer = &mut parts.layers[1];
            (layer.bytes, layer.bits) = (bytes, bytes.wrapping_mul(8));
        });
        assert_eq!(error, PartsError::Bits { layer });
    }
    assert_eq!(
        broken(&|parts| parts.layers[1].bits += 1),
        PartsError::Bits { layer }
    );
    assert_eq!(
        broken(&|parts| parts.layers[1].log2_bits = 9),
        PartsError::Bits { layer }
    );
    for hashes in [0, 1, 33, u32::MAX] {
        let error = broken(&|parts| parts.layers[1].hashes = hashes);
        assert_eq!(error, PartsError::Hashes { layer });
    }
    for rate in [0.0, 1.0, -1.0, f64::NAN] {
        let error = broken(&|parts| parts.layers[1].error_rate = rate);
        assert_eq!(error, PartsError::ErrorRate { layer });
    }
    assert_eq!(
        broken(&|parts| parts.layers[1].capacity = 0),
        PartsError::Capacity { layer }
    );
    let error = broken(&|parts| {
        let layer = &mut parts.layers[1];
        (layer.bytes, layer.bits) = (limit, limit * 8);
    });
    assert_eq!(error, PartsError::TooLarge { limit });
}

/// A filter from outside may have an older layer with room. Items still go to the newest.
#[test]
fn items_go_to_the_newest_layer() {
    let builder = LayeredFilter::builder().capacity(100).seed(1);
    let mut grown = builder.build().unwrap();
    grown.extend(0..200);
    let mut parts = grown.parts();
    assert_eq!(parts.layers.len(), 2);
    for layer in &mut parts.layers {
        layer.items = 10;
    }
    parts.items = 20;
    for as_batch in [false, true] {
        let mut filter = LayeredFilter::from_parts(&parts, 1 << 20).unwrap();
        if as_batch {
            filter.extend(0..50);
        } else {
            assert!((0..50).all(|item| filter.insert(&item)));
        }
        let items: Vec<u64> = filter.layers().iter().map(|layer| layer.len()).collect();
        assert_eq!(items, [10, 60]);
        assert!((0..50).all(|item| filter.contains(&item)));
    }
}
