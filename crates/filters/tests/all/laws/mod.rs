//! What must hold for any parameters and any sequence of items.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use crate::common::Batches;
use std::ops::ControlFlow;

use everbloom::host::{Inserted, LayeredFilter};
use everbloom::redisbloom::{Check, ChunkError, FilterParts, LayerParts, Options, PartsError};
use everbloom::sizing::{self, LayerSize, Rounding};
use everbloom::{BloomFilter, InsertError, Layout};
use proptest::prelude::*;

mod corners;
mod rates;

const LIMIT: u64 = 1 << 26;

fn error_rate() -> impl Strategy<Value = f64> {
    prop_oneof![
        Just(0.25),
        Just(0.01),
        Just(0.5),
        Just(1e-300),
        Just(1.0_f64.next_down()),
        0.000_01..0.3_f64,
    ]
}

/// A filter as a program or a command makes it.
fn made() -> impl Strategy<Value = LayeredFilter> {
    (error_rate(), 1_u64..200, 0_u32..5, any::<bool>()).prop_map(
        |(rate, capacity, expansion, fixed)| {
            let builder = LayeredFilter::builder()
                .layout(Layout::Classic)
                .error_rate(rate)
                .capacity(capacity)
                .expansion(expansion);
            if fixed { builder.fixed() } else { builder }
                .build()
                .unwrap()
        },
    )
}

/// A filter as it may come from outside: any option bits, odd lengths, small and zero capacities,
/// counts beyond the capacity.
fn loaded(options: impl Strategy<Value = u32>) -> impl Strategy<Value = LayeredFilter> {
    let layer = (error_rate(), 0_u64..100, 1_u64..200, 0_u8..11, 0_u64..150);
    (prop::collection::vec(layer, 1..4), options, 0_u32..4).prop_map(
        |(layers, options, expansion)| {
            let layers: Vec<LayerParts> = layers
                .into_iter()
                .map(|(error_rate, capacity, bytes, log2_bits, items)| {
                    let bits_per_entry = LayerSize::bits_per_entry_of(error_rate);
                    let bytes = bytes.max((1 << log2_bits) / 8);
                    LayerParts {
                        bytes,
                        bits: bytes * 8,
                        items,
                        error_rate,
                        bits_per_entry,
                        hashes: LayerSize::hashes_of(bits_per_entry).unwrap(),
                        capacity,
                        log2_bits,
                    }
                })
                .collect();
            let items = layers.iter().map(|layer| layer.items).sum();
            let parts = FilterParts {
                items,
                options,
                expansion,
                key: None,
                valkey: None,
                window: None,
                layers,
            };
            LayeredFilter::from_parts(&parts, LIMIT).unwrap()
        },
    )
}

fn filter() -> impl Strategy<Value = LayeredFilter> {
    // Where capacities are logarithms, the next one may ask for all memory there is.
    let options = (0_u32..16).prop_map(|options| options & !Options::ENTRIES_ARE_BITS);
    prop_oneof![made(), loaded(options)]
}

/// Items, many of them twice.
fn items() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let item = prop_oneof![
        (0_u32..300).prop_map(|n| n.to_string().into_bytes()),
        prop::collection::vec(any::<u8>(), 0..20),
    ];
    prop::collection::vec(item, 0..400)
}

fn limit() -> impl Strategy<Value = u64> {
    prop_oneof![Just(1 << 20), 0_u64..2000]
}

/// The rules of an insertion, one item at a time, on the public interface only.
fn insert_by_rule(
    filter: &mut LayeredFilter,
    item: &[u8],
    limit: u64,
) -> Result<bool, InsertError> {
    if filter.contains(item) {
        return Ok(false);
    }
    let newest = filter.layers().last().unwrap();
    if newest.len() >= newest.capacity() {
        if filter.is_fixed() {
            return Err(InsertError::Full);
        }
        let next = newest
            .capacity()
            .checked_mul(u64::from(filter.expansion()))
            .and_then(|capacity| {
                LayerSize::new(
                    capacity,
                    newest.error_rate() / 2.0,
                    filter.options().rounding(),
                )
            })
            .filter(|size| size.bytes <= limit);
        if next.is_none() {
            return Err(InsertError::CannotGrow);
        }
    }
    filter.try_insert(item)
}

fn load_copy(filter: &LayeredFilter, chunk: usize) -> LayeredFilter {
    let mut copy = LayeredFilter::from_parts(&filter.parts(), LIMIT).unwrap();
    let mut offset = 0;
    while let Some(data) = filter.stream_chunk(offset, chunk) {
        copy.load_chunk(offset, &data).unwrap();
        offset += data.len() as u64;
    }
    assert_eq!(offset, filter.stream_len());
    copy
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn no_false_negative_however_inserted(mut filter in filter(), items in items()) {
        let mut added = Vec::new();
        for (index, item) in items.iter().enumerate() {
            if index % 3 == 0 {
                filter.insert(item);
                added.push(item.clone());
            } else if filter.try_insert(item).is_ok() {
                added.push(item.clone());
            }
        }
        prop_assert!(added.iter().all(|item| filter.contains(item)));
        prop_assert!(filter.contains_all(&added).into_iter().all(|found| found));
        prop_assert!(added.iter().all(|item| !filter.insert(item)));
    }

    #[test]
    fn a_batch_is_one_by_one(
        filter in prop_oneof![made(), loaded(0_u32..16)], items in items(),
        limit in limit(), stop in 0_usize..500,
    ) {
        let mut by_rule = filter.clone();
        let mut expected = Vec::new();
        for item in items.iter().take(stop + 1) {
            expected.push(insert_by_rule(&mut by_rule, item, limit));
        }
        let (before, mut batched) = (filter.clone(), filter);
        let mut replies = Vec::new();
        batched.try_insert_each(items.iter().map(Vec::as_slice), limit, |reply| {
            replies.push(reply.map(|done| done == Inserted::New));
            if replies.len() > stop { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        prop_assert_eq!(&replies, &expected);
        prop_assert!(batched == by_rule);

        let mut alone = before;
        let mut replies = Vec::new();
        for item in items.iter().take(stop + 1) {
            alone.try_insert_each(core::iter::once(item.as_slice()), limit, |reply| {
                replies.push(reply.map(|done| done == Inserted::New));
                ControlFlow::Continue(())
            });
            alone.contains_each(core::iter::once(item.as_slice()), |found| {
                assert_eq!(found, replies.last().is_some_and(Result::is_ok));
            });
        }
        prop_assert_eq!(&replies, &expected);
        prop_assert!(alone == by_rule);

        let mut found = Vec::new();
        batched.contains_each(&items, |reply| found.push(reply));
        let expected: Vec<bool> = items.iter().map(|item| batched.contains(item)).collect();
        prop_assert_eq!(found, expected);
    }

    #[test]
    fn insert_all_is_insert_for_each(filter in filter(), items in items()) {
        let (mut one_by_one, mut at_once, mut extended) = (filter.clone(), filter.clone(), filter);
        let expected: Vec<bool> = items.iter().map(|item| one_by_one.insert(item)).collect();
        prop_assert_eq!(at_once.insert_all(&items), expected);
        extended.extend(&items);
        prop_assert!(at_once == one_by_one && extended == one_by_one);
    }

    #[test]
    fn loaded_it_is_the_same(mut filter in filter(), items in items(), chunk in 1_usize..300) {
        filter.insert_all(&items);
        let mut copy = load_copy(&filter, chunk);
        prop_assert!(copy == filter);
        let bits: Vec<_> = filter.layers().iter().map(|layer| layer.as_bytes().to_vec()).collect();
        let with_bits = |bits: Vec<Vec<u8>>| {
            LayeredFilter::from_parts_and_bits(&filter.parts(), bits, LIMIT, Check::RdbValue)
        };
        prop_assert!(with_bits(bits.clone()).as_ref() == Ok(&filter));
        let last = bits.len() - 1;
        let refused = Err(PartsError::Bits { layer: last });
        prop_assert!(with_bits(bits[..last].to_vec()) == refused, "a bit array is missing");
        let mut longer = bits;
        longer[last].push(0);
        prop_assert!(with_bits(longer) == refused, "a bit array is too long");
        prop_assert!(items.iter().all(|item| copy.contains(item)));
        copy.insert("more");
        filter.insert("more");
        prop_assert!(copy == filter);
    }

    #[test]
    fn counts_add_up(mut filter in filter(), items in items()) {
        let before = filter.len();
        let new = filter.insert_all(&items).into_iter().filter(|&new| new).count() as u64;
        prop_assert_eq!(filter.len(), before + new);
        prop_assert_eq!(filter.layers().iter().map(|layer| layer.len()).sum::<u64>(), filter.len());
        prop_assert!(filter.parts().validate(LIMIT, Check::DumpHeader).is_ok());
        let error = filter.stats().estimated_error_rate;
        prop_assert!((0.0..=1.0).contains(&error), "{error}");
        prop_assert!((0.0..=1.0).contains(&filter.stats().fill_ratio));
    }

    #[test]
    fn a_fixed_filter_is_a_layer(
        capacity in 1_u64..300, rate in 0.000_01..0.25_f64, items in items(), blocked: bool,
    ) {
        let mut builder = BloomFilter::builder().capacity(capacity).error_rate(rate);
        let chain = LayeredFilter::builder().capacity(capacity).error_rate(rate);
        let mut chain = chain.expansion(0);
        (builder, chain) = match blocked {
            true => (builder.seed(1), chain.seed(1)),
            false => (builder.layout(Layout::Classic), chain.layout(Layout::Classic)),
        };
        let (mut fixed, mut chain) = (builder.build().unwrap(), chain.build().unwrap());
        let (mut one_by_one, mut extended) = (fixed.clone(), fixed.clone());
        let replies = fixed.insert_all(&items);
        prop_assert_eq!(&replies, &chain.insert_all(&items));
        prop_assert_eq!(replies, items.iter().map(|i| one_by_one.insert(i)).collect::<Vec<_>>());
        extended.extend(&items);
        prop_assert!(fixed == one_by_one && fixed == extended);
        prop_assert!(items.iter().all(|item| fixed.contains(item)));
        prop_assert!(fixed.contains_all(&items).into_iter().all(|found| found));
        prop_assert!(LayeredFilter::from(fixed) == chain);
    }

    #[test]
    fn a_union_has_the_items_of_both(
        bits in 1_u64..3000, hashes in 1_u32..20, left in items(), right in items(),
    ) {
        let builder = BloomFilter::builder().layout(Layout::Classic);
        let empty = builder.bits(bits).hashes(hashes).build().unwrap();
        let (mut a, mut b, mut both) = (empty.clone(), empty.clone(), empty);
        a.insert_all(&left);
        b.insert_all(&right);
        both.insert_all(&left);
        both.insert_all(&right);
        let (least, most) = (a.len().max(b.len()), a.len() + b.len());
        a.union(&b).unwrap();
        prop_assert_eq!(a.as_bytes(), both.as_bytes());
        prop_assert!((least..=most).contains(&a.len()));
        prop_assert!(left.iter().chain(&right).all(|item| a.contains(item)));
    }
}

/// Large enough for the path with prefetching, in more than one layer.
#[test]
fn large_layers_answer_as_small_ones() {
    let mut filter = LayeredFilter::builder()
        .layout(Layout::Classic)
        .capacity(2_000_000)
        .build()
        .unwrap();
    let mut copy = filter.clone();
    let items: Vec<[u8; 8]> = (0..2_600_000_u64).map(u64::to_le_bytes).collect();
    let replies = filter.insert_all(&items);
    for (item, reply) in items.iter().zip(replies) {
        assert_eq!(copy.insert(item), reply);
    }
    assert!(filter == copy);
    assert_eq!(filter.layers().len(), 2);
    assert!(filter.contains_all(&items).iter().all(|&found| found));
    let others: Vec<[u8; 8]> = (1 << 40..(1 << 40) + 100_000_u64)
        .map(u64::to_le_bytes)
        .collect();
    let found = filter.contains_all(&others);
    assert!(
        others
            .iter()
            .zip(&found)
            .all(|(item, &found)| filter.contains(item) == found)
    );
    let rate = found.iter().filter(|&&found| found).count() as f64 / 100_000.0;
    assert!(
        (0.003..0.009).contains(&rate),
        "half of 1 % in the full layer, and a little: {rate}"
    );
}
