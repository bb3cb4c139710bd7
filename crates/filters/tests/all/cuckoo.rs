//! Cuckoo filters: against RedisBloom's recorded ones, against vectors of the reference model,
//! against a slow model with deletes, and parts from outside.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::expect_used,
    clippy::panic,
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap
)]

#[path = "../cuckoo/slow.rs"]
mod slow;

use std::collections::HashMap;
use std::fs;
use std::ops::ControlFlow;

use base64::Engine as _;
use everbloom::redisbloom::CuckooError;
use everbloom::redisbloom::{ChunkError, CuckooParts};
use everbloom::{CuckooFilter, InsertError};
use proptest::prelude::*;
use serde_json::Value;
use slow::Slow;

fn base64(value: &Value) -> Vec<u8> {
    base64::engine::general_purpose::STANDARD
        .decode(value.as_str().unwrap())
        .unwrap()
}

fn items(value: &Value) -> Vec<Vec<u8>> {
    let item = |value: &Value| match value {
        Value::String(text) => text.clone().into_bytes(),
        other => base64(&other["b64"]),
    };
    value.as_array().unwrap().iter().map(item).collect()
}

/// The filter that a recording or a vector begins with.
fn start(parameters: &Value) -> CuckooFilter {
    let mut builder = CuckooFilter::builder();
    let number = |name: &str| parameters[name].as_u64();
    if let Some(capacity) = number("capacity") {
        builder = builder.slots(capacity);
    }
    if let Some(size) = number("bucket_size") {
        builder = builder.bucket_size(u8::try_from(size).unwrap());
    }
    if let Some(kicks) = number("max_iterations") {
        builder = builder.max_kicks(u16::try_from(kicks).unwrap());
    }
    if let Some(factor) = number("expansion") {
        builder = builder.expansion(u16::try_from(factor).unwrap());
    }
    builder.build().unwrap()
}

/// The header of RedisBloom: little-endian, packed.
fn header(filter: &CuckooFilter) -> Vec<u8> {
    let parts = filter.parts();
    let mut out = Vec::new();
    for number in [
        parts.items,
        parts.buckets,
        parts.removed,
        parts.tables.into(),
    ] {
        out.extend(number.to_le_bytes());
    }
    for number in [parts.bucket_size.into(), parts.max_kicks, parts.expansion] {
        out.extend(number.to_le_bytes());
    }
    out
}

fn slots(filter: &CuckooFilter) -> Vec<u8> {
    let mut out = Vec::new();
    while let Some(chunk) = filter.stream_chunk(out.len() as u64, 1000) {
        out.extend_from_slice(&chunk);
    }
    out
}

#[test]
fn recorded_filters_are_built_again_bit_for_bit() {
    for name in [
        "cf-default",
        "cf-scaled-with-deletes",
        "cf-bucket-4-expansion-0",
        "cf-bucket-1-expansion-1",
    ] {
        let path = format!("{}/tests/golden/{name}.json", env!("CARGO_MANIFEST_DIR"));
        let recorded: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
        let mut filter = start(&recorded["create"]);
        let replies = recorded["add_replies"].as_array().unwrap();
        for (item, reply) in items(&recorded["added"]).iter().zip(replies) {
            let added = filter.insert(item);
            assert_eq!(added.is_ok(), reply.as_i64() == Some(1), "{name}");
        }
        for item in items(&recorded["deleted"]) {
            filter.remove(&item);
        }
        let chunks = recorded["chunks"].as_array().unwrap();
        assert_eq!(header(&filter), base64(&chunks[0]["data"]), "{name}");
        let (mut loaded, mut at) = (
            CuckooFilter::from_parts(&filter.parts(), 1 << 20).unwrap(),
            0,
        );
        for chunk in &chunks[1..] {
            let data = base64(&chunk["data"]);
            assert_eq!(filter.stream_chunk(at, 1 << 24).unwrap(), data, "{name}");
            loaded.load_chunk(at, &data).unwrap();
            at += data.len() as u64;
            assert_eq!(chunk["iter"].as_u64(), Some(at + 1));
        }
        assert_eq!(filter.stream_chunk(at, 1), None);
        let answers = recorded["probes_expected"].as_array().unwrap();
        let probes = items(&recorded["probes"]);
        for (item, answer) in probes.iter().zip(answers) {
            assert_eq!(loaded.contains(item), answer.as_u64() == Some(1));
        }
        assert!(loaded == filter);
        let each = |filter: &CuckooFilter| {
            let mut found = Vec::new();
            filter.contains_each(&probes, |one| found.push(u64::from(one)));
            found
        };
        let answers: Vec<_> = answers
            .iter()
            .map(|answer| answer.as_u64().unwrap())
            .collect();
        assert_eq!(each(&loaded), answers);
    }
}

/// `cuckoo/model.json` was made with an executable model of RedisBloom's filters, with other items
/// and parameters than were recorded: hundreds of inserts, deletes and compactions each.
#[test]
fn vectors_of_the_reference_model_hold() {
    let path = format!("{}/tests/cuckoo/model.json", env!("CARGO_MANIFEST_DIR"));
    let vectors: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    for (number, vector) in vectors.as_array().unwrap().iter().enumerate() {
        let mut filter = start(vector);
        let mut most = 1;
        let words = vector["ops"].as_str().unwrap().split(' ');
        for (step, (word, reply)) in words.zip(vector["replies"].as_array().unwrap()).enumerate() {
            let (what, item) = word.split_at(1);
            let item = format!("item:{item}");
            let answer = |added| match added {
                Ok(added) => i64::from(added),
                Err(error) => {
                    assert_eq!(error, InsertError::Full);
                    -1
                }
            };
            let found = match what {
                "a" => answer(filter.insert(&item).map(|()| true)),
                "n" => answer(filter.insert_if_absent(&item)),
                "d" => filter.remove(&item).into(),
                "c" => filter.count(&item) as i64,
                _ => {
                    filter.compact();
                    filter.tables() as i64
                }
            };
            assert_eq!(
                Some(found),
                reply.as_i64(),
                "vector {number}, step {step}: {word}"
            );
            most = most.max(filter.tables());
        }
        assert_eq!(Some(most as u64), vector["most_tables"].as_u64());
        assert_eq!(
            header(&filter),
            base64(&vector["header"]),
            "vector {number}"
        );
        assert!(
            slots(&filter) == base64(&vector["slots"]),
            "vector {number}"
        );
    }
}

#[derive(Clone, Debug)]
enum Step {
    Insert(u16),
    InsertIfAbsent(u16),
    InsertEach(Vec<u16>, bool),
    Remove(u16),
    Compact,
    Capture,
    Load(u32, Vec<u8>),
}

fn step() -> impl Strategy<Value = Step> {
    let item = || 0_u16..120;
    prop_oneof![
        6 => item().prop_map(Step::Insert),
        3 => item().prop_map(Step::InsertIfAbsent),
        1 => (prop::collection::vec(item(), 0..80), any::<bool>())
            .prop_map(|(items, absent)| Step::InsertEach(items, absent)),
        6 => item().prop_map(Step::Remove),
        1 => Just(Step::Compact),
        1 => Just(Step::Capture),
    ]
}

fn step_or_load() -> impl Strategy<Value = Step> {
    let data = prop::collection::vec(any::<u8>(), 0..40);
    prop_oneof![
        20 => step(),
        1 => (any::<u32>(), data).prop_map(|(at, data)| Step::Load(at, data)),
    ]
}

fn builder(capacity: u64, bucket_size: u8, max_kicks: u16, expansion: u16) -> CuckooFilter {
    let builder = CuckooFilter::builder()
        .slots(capacity)
        .bucket_size(bucket_size);
    builder
        .max_kicks(max_kicks)
        .expansion(expansion)
        .build()
        .unwrap()
}

/// A capture in progress, and the filter as it was when it began.
type Captured = (CuckooFilter, CuckooFilter, u64);

/// Takes the next piece of the capture; whether there was one.
fn go_on(filter: &mut CuckooFilter, (captured, _, at): &mut Captured) -> bool {
    let mut piece = Vec::new();
    let more = filter.capture_next(1, &mut piece);
    captured.load_chunk(*at, &piece).unwrap_or_else(|error| {
        assert!(!more, "{error}");
    });
    *at += piece.len() as u64;
    more
}

proptest! {
    /// The same slots and counts as a model that is slow and obvious, after every step; and a
    /// capture is the filter as it was, whatever happens between its pieces.
    #[test]
    fn does_as_the_slow_model(
        capacity in 2_u64..60, bucket_size in 1_u8..5, max_kicks in 1_u16..200,
        expansion in 0_u16..4,
        steps in prop::collection::vec(step_or_load(), 0..250),
    ) {
        let mut filter = builder(capacity, bucket_size, max_kicks, expansion);
        let mut slow = Slow::new(&filter);
        let mut capture: Option<Captured> = None;
        for step in steps {
            match step {
                Step::Insert(item) => {
                    prop_assert_eq!(filter.insert(&item.to_le_bytes()).is_ok(), slow.insert(item));
                }
                Step::InsertIfAbsent(item) => {
                    let reply = filter.insert_if_absent(&item.to_le_bytes()).ok();
                    let expected = if slow.count(item) > 0 { Some(false) } else {
                        slow.insert(item).then_some(true)
                    };
                    prop_assert_eq!(reply, expected);
                }
                Step::InsertEach(items, absent) => {
                    let mut replies = Vec::new();
                    let bytes = items.iter().map(|item| item.to_le_bytes());
                    match absent {
                        true => filter.insert_each_if_absent(bytes, u64::MAX, |reply| {
                            replies.push(reply.ok());
                            ControlFlow::Continue(())
                        }),
                        false => filter.insert_each(bytes, u64::MAX, |reply| {
                            replies.push(reply.ok().map(|()| true));
                            ControlFlow::Continue(())
                        }),
                    }
                    for (item, reply) in items.into_iter().zip(replies) {
                        let expected = if absent && slow.count(item) > 0 { Some(false) } else {
                            slow.insert(item).then_some(true)
                        };
                        prop_assert_eq!(reply, expected);
                    }
                }
                Step::Remove(item) => {
                    prop_assert_eq!(filter.remove(&item.to_le_bytes()), slow.remove(item));
                }
                Step::Compact => {
                    filter.compact();
                    slow.compact(true);
                }
                Step::Load(at, data) => {
                    let at = u64::from(at) % (filter.slots() + 10);
                    prop_assert_eq!(filter.load_chunk(at, &data).is_ok(), slow.load(at, &data));
                }
                Step::Capture => match &mut capture {
                    None => {
                        filter.begin_capture(1, 0..filter.slots());
                        let parts = filter.parts();
                        let captured = CuckooFilter::from_parts(&parts, u64::MAX).unwrap();
                        capture = Some((captured, filter.clone(), 0));
                    }
                    Some(going) => if !go_on(&mut filter, going) {
                        filter.capture_mut().end(1);
                        prop_assert!(going.0 == going.1);
                        capture = None;
                    }
                },
            }
            prop_assert_eq!(slots(&filter), slow.tables.concat());
            prop_assert_eq!((filter.len(), filter.removed()), (slow.items, slow.removed));
            let used = slow.tables.concat().iter().filter(|slot| **slot != 0).count();
            prop_assert_eq!(filter.stats().fill_ratio, used as f64 / filter.slots() as f64);
        }
        for item in 0..120_u16 {
            let bytes = item.to_le_bytes();
            prop_assert_eq!(filter.count(&bytes), slow.count(item));
            prop_assert_eq!(filter.contains(&bytes), slow.count(item) > 0);
        }
        if let Some(mut going) = capture {
            while go_on(&mut filter, &mut going) {}
            prop_assert!(going.0 == going.1);
        }
    }

    /// As long as only items are removed that were inserted, none is missed.
    #[test]
    fn no_item_is_missed(
        capacity in 2_u64..2000, bucket_size in 1_u8..9, expansion in 1_u16..4,
        steps in prop::collection::vec((any::<bool>(), 0_u16..300), 0..600),
    ) {
        let mut filter = builder(capacity, bucket_size, 20, expansion);
        let mut held: HashMap<u16, u64> = HashMap::new();
        for (remove, item) in steps {
            let count = held.entry(item).or_default();
            if remove && *count > 0 {
                prop_assert!(filter.remove(&item));
                *count -= 1;
            } else {
                filter.insert(&item).unwrap();
                *count += 1;
            }
        }
        filter.compact();
        for (item, count) in &held {
            prop_assert!(filter.count(item) >= *count);
        }
        prop_assert_eq!(filter.len(), held.values().sum::<u64>());
    }
}

/// Many pages, so that pieces are handed out while tables behind and before them change.
#[test]
fn a_large_capture_is_the_filter_as_it_was() {
    let mut filter = builder(1 << 20, 2, 20, 1);
    for item in 0..1_500_000_u32 {
        filter.insert(&item).unwrap();
    }
    assert_eq!(filter.tables(), 3);
    let then = filter.clone();
    filter.begin_capture(1, 0..filter.slots());
    let mut captured = CuckooFilter::from_parts(&filter.parts(), u64::MAX).unwrap();
    let (mut at, mut removed, mut piece) = (0, 0_u32, Vec::new());
    while filter.capture_next(1, &mut piece) {
        captured.load_chunk(at, &piece).unwrap();
        at += piece.len() as u64;
        piece.clear();
        for _ in 0..75_000 {
            filter.remove(&removed);
            removed += 1;
        }
    }
    assert!(captured == then);
    assert_eq!(filter.tables(), 1);
}

#[test]
fn bad_parts_are_refused() {
    let good = builder(16, 2, 20, 2).parts();
    let refused = |change: &dyn Fn(&mut CuckooParts)| {
        let mut parts = good;
        change(&mut parts);
        CuckooFilter::from_parts(&parts, 1 << 20).err()
    };
    assert_eq!(refused(&|_| ()), None);
    assert_eq!(
        refused(&|p| p.bucket_size = 0),
        Some(CuckooError::BucketSize)
    );
    assert_eq!(refused(&|p| p.max_kicks = 0), Some(CuckooError::Kicks));
    assert_eq!(
        refused(&|p| p.expansion = 32769),
        Some(CuckooError::Expansion)
    );
    assert_eq!(refused(&|p| p.tables = 0), Some(CuckooError::Tables));
    let lone = |p: &mut CuckooParts| (p.tables, p.expansion) = (2, 0);
    assert_eq!(refused(&lone), Some(CuckooError::Tables));
    for buckets in [0, 3, 1 << 56, 1 << 63, u64::MAX] {
        assert_eq!(
            refused(&|p| p.buckets = buckets),
            Some(CuckooError::Buckets)
        );
    }
    let large = Some(CuckooError::TooLarge { limit: 1 << 20 });
    for (buckets, tables, expansion) in [
        (1 << 55, 1, 1),
        (1 << 20, 1, 1),
        (8, 17, 2),
        (8, 65535, 32768),
        // Small tables take memory, too.
        (1, 65535, 1),
    ] {
        let change = |p: &mut CuckooParts| {
            (p.buckets, p.tables, p.expansion) = (buckets, tables, expansion);
        };
        assert_eq!(refused(&change), large, "{buckets} {tables} {expansion}");
    }
    // An expansion that is no power of two comes with a dump.
    let mut odd = good;
    (odd.expansion, odd.tables) = (3, 3);
    let mut filter = CuckooFilter::from_parts(&odd, 1 << 20).unwrap();
    assert_eq!(filter.slots(), 16 * (1 + 3 + 9));
    for item in 0..300 {
        filter.insert(&item).unwrap();
    }
    assert_eq!((filter.len(), filter.tables()), (300, 4));
}

/// Without a limit, too: each of these goes beyond 64 bits at one place only.
#[test]
fn sizes_do_not_wrap() {
    let good = builder(16, 1, 20, 1).parts();
    for (buckets, tables, expansion, bucket_size) in [
        // The sum of the slots of all tables.
        (1 << 55, 512, 1, 1),
        // The slots of the second table.
        (1 << 50, 2, 8192, 2),
        // The power of the expansion.
        (1, 29, 5, 1),
        // The buckets of the last table.
        (16, 27, 5, 1),
    ] {
        let parts = CuckooParts {
            buckets,
            tables,
            expansion,
            bucket_size,
            ..good
        };
        let limit = u64::MAX;
        let refused = Err(CuckooError::TooLarge { limit });
        assert_eq!(parts.validate(limit), refused, "{parts:?}");
    }
}

/// A header has 16 bits for the number of tables.
#[test]
fn no_filter_has_more_tables_than_can_be_written() {
    let mut parts = builder(2, 1, 20, 1).parts();
    (parts.buckets, parts.tables) = (1, u16::MAX - 1);
    let full = vec![vec![7]; parts.tables.into()];
    let mut filter = CuckooFilter::from_parts_and_slots(&parts, full, u64::MAX).unwrap();
    assert_eq!(filter.insert("a"), Ok(()));
    assert_eq!(filter.insert("a"), Err(InsertError::CannotGrow));
    assert_eq!(filter.parts().tables, u16::MAX);
}

#[test]
fn counts_that_do_not_fit_the_slots_do_no_harm() {
    // The header of a dump came, and one of its chunks.
    let mut parts = builder(16, 2, 20, 1).parts();
    (parts.tables, parts.items, parts.removed) = (3, 0, u64::MAX);
    let mut filter = CuckooFilter::from_parts(&parts, 1 << 20).unwrap();
    filter.load_chunk(16, &[7; 16]).unwrap();
    let present = (0..5000).find(|item| filter.contains(item)).unwrap();
    assert!(filter.remove(&present));
    assert_eq!((filter.len(), filter.removed(), filter.tables()), (0, 0, 1));
    parts.items = u64::MAX;
    let mut filter = CuckooFilter::from_parts(&parts, 1 << 20).unwrap();
    filter.insert("a").unwrap();
    assert_eq!(filter.len(), u64::MAX);
}

#[test]
fn chunks_lie_within_one_table() {
    let mut filter = builder(4, 2, 20, 1);
    while filter.tables() == 1 {
        filter.insert("a").unwrap();
    }
    assert_eq!(filter.load_chunk(3, &[1, 2]), Err(ChunkError::TooLong));
    assert_eq!(filter.load_chunk(8, &[1]), Err(ChunkError::NoLayer));
    assert_eq!(filter.load_chunk(u64::MAX, &[1]), Err(ChunkError::NoLayer));
    assert_eq!(filter.load_chunk(4, &[1; 4]), Ok(()));
}

#[test]
fn growth_stops_at_the_limit() {
    let beside = CuckooFilter::BYTES_BESIDE_SLOTS;
    let mut filter = builder(4, 2, 20, 2);
    // Three tables have 4 + 8 + 16 slots.
    let refused = (0..29).find_map(|_| {
        let (before, mut refused) = (filter.clone(), None);
        filter.insert_each(["a"], 16 + beside, |reply| {
            refused = reply.err();
            ControlFlow::Break(())
        });
        refused.map(|error| (before, error))
    });
    let (before, error) = refused.expect("no more items than slots");
    assert_eq!(error, InsertError::CannotGrow);
    assert_eq!(filter.tables(), 3);
    assert!(filter == before);
    // All new tables of a batch together: of 8, 16 and 32 slots.
    for (slots, new) in [(7, 0), (8, 1), (23, 1), (24, 2), (55, 2), (56, 3)] {
        let mut filter = builder(4, 2, 20, 2);
        let most = slots + beside * (new as u64).max(1);
        filter.insert_each(["a"; 200], most, |_| ControlFlow::Continue(()));
        assert_eq!(filter.tables(), 1 + new, "{slots}");
    }
}

/// What was allowed to grow may come back: limits count the same for both.
#[test]
fn a_grown_filter_is_within_the_limit_that_it_grew_under() {
    let next = 2 + CuckooFilter::BYTES_BESIDE_SLOTS;
    for limit in [2, 1 + next, 2 + next, 1000, 1003, 5000] {
        let mut filter = builder(2, 1, 20, 1);
        filter.insert_each(["a"; 1000], limit - 2, |_| ControlFlow::Continue(()));
        assert_eq!(filter.parts().validate(limit), Ok(()), "{limit}");
        assert!(filter.table_bytes() + next > limit, "{limit}");
    }
}
