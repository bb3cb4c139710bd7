//! A large value is copied as it was at one moment, while nobody has to wait.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

use std::ops::Range;
use std::sync::Arc;

use everbloom::{CuckooFilter, Layout, ScalableBloomFilter};
use everbloom_commands::Filter;
use everbloom_files::Value;
use everbloom_store::clock::Now;
use everbloom_store::keyspace::{Footprint, Keyspace, View};
use everbloom_store::steps;
use everbloom_store::{Settings, Store};

const KEY: &[u8] = b"large";
const LEN: usize = 2_000_000;

fn store_with(value: Value) -> Arc<Store> {
    let store = Store::new(Settings::default(), None, u64::MAX);
    change(&store, |view| view.insert(0, KEY, value, None));
    store
}

/// Changes something, which needs the lock of the key.
fn change<R>(store: &Store, change: impl FnOnce(&mut View<'_>) -> R) -> R {
    let mut footprint = Footprint::none();
    footprint.add_key(&store.keyspace, KEY);
    change(&mut footprint.lock(&store.keyspace, true, Now::default()))
}

fn text(byte: u8) -> Value {
    Value::Text(vec![byte; LEN].into())
}

fn bytes_of(value: &Value) -> Vec<u8> {
    match value {
        Value::Text(text) => text.to_vec(),
        Value::Filter(filter) => {
            let mut bytes = Vec::new();
            while let Some(chunk) = filter.stream_chunk(bytes.len() as u64, usize::MAX) {
                bytes.extend_from_slice(&chunk);
            }
            bytes
        }
    }
}

fn all_of(value: &Value) -> Range<u64> {
    match value {
        Value::Text(text) => 0..text.len() as u64,
        Value::Filter(filter) => 0..filter.stream_len(),
    }
}

/// The copied bytes, with whether the copy still holds; `meddle` runs after each step, and gets the
/// number of steps so far.
fn copy(
    store: &Arc<Store>,
    part: impl Fn(&Value) -> Range<u64>,
    mut meddle: impl FnMut(usize),
) -> Option<(Vec<u8>, bool)> {
    let mut steps = 0;
    let begin = |value: &Value| Some((Vec::new(), part(value)));
    let (copy, watching) = steps::copy(store, 0, KEY, Now::default(), begin, |copy, _, piece| {
        // Whoever wants to write need not wait.
        let shard = Keyspace::shard_of(store.keyspace.hash(KEY));
        assert!(store.keyspace.shard(shard).try_write().is_some());
        copy.extend_from_slice(piece);
        steps += 1;
        meddle(steps);
        true
    })?;
    let shard = Keyspace::shard_of(store.keyspace.hash(KEY));
    let holds = watching.holds(&store.keyspace.shard(shard).read());
    Some((copy, holds))
}

#[test]
fn any_part_of_any_value_is_copied() {
    let builder = ScalableBloomFilter::builder().layout(Layout::Blocked);
    let mut grown = builder.capacity(100_000).build().unwrap();
    let mut cuckoo = CuckooFilter::new(1_000_000);
    for item in 0..500_000_u32 {
        grown.insert(&item);
        cuckoo.insert(&item).unwrap();
    }
    assert!(grown.layers().len() > 1);
    let filters = [Filter::from(grown), Filter::from(cuckoo)].map(Value::Filter);
    for value in filters.into_iter().chain([text(b'x'), text(b'\0')]) {
        let all = bytes_of(&value);
        let store = store_with(value);
        let copied = copy(&store, all_of, |_| ()).unwrap();
        assert!(copied == (all.clone(), true));
        let part = 300_000..all.len() - 5;
        let wanted = part.start as u64..part.end as u64;
        let copied = copy(&store, |_| wanted.clone(), |_| ()).unwrap();
        assert!(copied.0 == all[part]);
    }
}

#[test]
fn a_copy_is_of_one_moment() {
    let store = store_with(text(b'a'));
    let change_at = |at: usize, byte: u8| {
        let store = &store;
        move |step| {
            if step == at {
                change(store, |view| {
                    view.modify(0, KEY, |value| *value = text(byte)).unwrap();
                });
            }
        }
    };
    let steps = LEN.div_ceil(256 << 10);
    for (at, byte) in [(1, b'b'), (steps / 2, b'c'), (steps - 1, b'd')] {
        let copied = copy(&store, all_of, change_at(at, byte)).unwrap();
        assert!(copied == (vec![byte; LEN], true), "changed at {at}");
    }
    // The last step is done: the copy is of the moment before the change, and no longer good.
    let copied = copy(&store, all_of, change_at(steps, b'e')).unwrap();
    assert!(copied == (vec![b'd'; LEN], false));
    // Removed and made anew is changed, too.
    let copied = copy(&store, all_of, |step| {
        if step == 2 {
            change(&store, |view| view.delete(0, KEY));
            change(&store, |view| view.insert(0, KEY, text(b'f'), None));
        }
    });
    assert!(copied.unwrap().0 == vec![b'f'; LEN]);
}

#[test]
fn what_changes_all_the_time_or_is_gone_is_not_copied() {
    let store = store_with(text(b'a'));
    let mut times = 0_u8;
    let copied = copy(&store, all_of, |_| {
        times += 1;
        change(&store, |view| view.touch(0, KEY));
    });
    assert_eq!((copied, times), (None, 3));
    let gone = copy(&store, all_of, |_| {
        change(&store, |view| view.delete(0, KEY));
    });
    assert_eq!(gone, None);
    assert_eq!(copy(&store, all_of, |_| ()), None);
}
