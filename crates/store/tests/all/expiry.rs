//! Expired keys are removed in time, whatever happens to them before, and no others.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

use std::collections::BTreeMap;
use std::sync::Arc;

use everbloom::Span;
use everbloom::host::LayeredFilter;
use everbloom_files::Value;
use everbloom_store::clock::Now;
use everbloom_store::keyspace::{EntryMut, Footprint, ViewMut, Watches};
use everbloom_store::{Expired, Settings, Store};
use proptest::prelude::*;

const DATABASES: usize = 3;
const KEYS: u8 = 5;

/// A key of a database.
type Key = (usize, u8);

/// What happens to keys, as the commands of the same names do it.
#[derive(Debug, Clone)]
enum Op {
    /// SET, RESTORE: a key in place of what was there.
    Set(Key, Option<u64>),
    /// EXPIRE, PERSIST.
    Expire(Key, Option<u64>),
    Append(Key),
    Delete(Key),
    /// RENAME, MOVE.
    Rename(Key, Key),
    Copy(Key, Key),
    Swap(usize, usize),
    Flush(usize),
    Wait(u64),
    RemoveExpired,
}

fn key() -> impl Strategy<Value = Key> {
    (0..DATABASES, 0..KEYS)
}

fn op() -> impl Strategy<Value = Op> {
    let db = 0..DATABASES;
    let ttl = || prop::option::weighted(0.8, 1_u64..100);
    prop_oneof![
        6 => (key(), ttl()).prop_map(|(key, ttl)| Op::Set(key, ttl)),
        6 => (key(), ttl()).prop_map(|(key, ttl)| Op::Expire(key, ttl)),
        2 => key().prop_map(Op::Append),
        2 => key().prop_map(Op::Delete),
        3 => (key(), key()).prop_map(|(from, to)| Op::Rename(from, to)),
        3 => (key(), key()).prop_map(|(from, to)| Op::Copy(from, to)),
        1 => (db.clone(), db.clone()).prop_map(|(a, b)| Op::Swap(a, b)),
        1 => db.prop_map(Op::Flush),
        4 => (1_u64..60).prop_map(Op::Wait),
        4 => Just(Op::RemoveExpired),
    ]
}

/// The expiry of each key that is there.
type Model = BTreeMap<Key, Option<u64>>;

fn name(key: u8) -> [u8; 1] {
    [b'a' + key]
}

fn text() -> Value {
    Value::Text(b"value"[..].into())
}

fn entry<'v>(view: &'v mut ViewMut<'_>, db: usize, name: &'v [u8]) -> EntryMut<'v> {
    let key = view.keyspace().key(db, name);
    view.entry(key)
}

fn rename(view: &mut ViewMut<'_>, (db, from): Key, (to_db, to): Key) {
    if let Some(taken) = entry(view, db, &name(from)).take() {
        let expires_at = taken.expires_at();
        entry(view, to_db, &name(to)).insert(taken.value, expires_at);
    }
}

fn copy(view: &mut ViewMut<'_>, (db, from): Key, (to_db, to): Key) {
    let found = view.read().get(view.keyspace().key(db, &name(from)));
    if let Some((value, at)) = found.map(|entry| (entry.value.clone(), entry.expires_at())) {
        entry(view, to_db, &name(to)).insert(value, at);
    }
}

fn apply(view: &mut ViewMut<'_>, model: &mut Model, op: &Op, now: u64) {
    let at = |ttl: Option<u64>| ttl.map(|ttl| now + ttl);
    match *op {
        Op::Set((db, key), ttl) => {
            entry(view, db, &name(key)).insert(text(), at(ttl));
            model.insert((db, key), at(ttl));
        }
        Op::Expire((db, key), ttl) => {
            let there = model.get_mut(&(db, key));
            assert_eq!(
                entry(view, db, &name(key)).set_expiry(at(ttl)),
                there.is_some()
            );
            there
                .into_iter()
                .for_each(|expires_at| *expires_at = at(ttl));
        }
        Op::Append((db, key)) => {
            let longer = entry(view, db, &name(key)).modify(|value| match value {
                Value::Text(text) => text.append(b"more"),
                Value::Filter(_) => panic!("only strings are used"),
            });
            assert_eq!(longer.is_some(), model.contains_key(&(db, key)));
        }
        Op::Delete((db, key)) => {
            let there = model.remove(&(db, key)).is_some();
            assert_eq!(entry(view, db, &name(key)).delete(), there);
        }
        Op::Rename(from, to) => {
            rename(view, from, to);
            if let Some(at) = model.remove(&from) {
                model.insert(to, at);
            }
        }
        Op::Copy(from, to) => {
            copy(view, from, to);
            if let Some(at) = model.get(&from).copied() {
                model.insert(to, at);
            }
        }
        Op::Swap(a, b) => {
            view.swap(a, b);
            let swapped = |db| match db {
                db if db == a => b,
                db if db == b => a,
                db => db,
            };
            let all = std::mem::take(model).into_iter();
            model.extend(all.map(|((db, key), at)| ((swapped(db), key), at)));
        }
        Op::Flush(db) => {
            view.flush(db);
            model.retain(|(of, _), _| *of != db);
        }
        Op::Wait(_) | Op::RemoveExpired => {}
    }
}

fn whole(store: &Store, ms: u64) -> ViewMut<'_> {
    Footprint::Whole.write(&store.keyspace, Now { ms, clock: 0 })
}

/// Removes what has expired, in however many calls.
fn remove_expired(store: &Store, ms: u64) -> usize {
    let mut removed = 0;
    while store.keyspace.may_have_expired(ms) {
        removed += store.remove_expired(Now { ms, clock: 0 }).keys;
    }
    removed
}

/// How many keys there are, expired ones included, and how many of them have an expiry.
fn counts(store: &Store) -> (usize, usize) {
    let view = whole(store, 0);
    let dbs = || view.read().shards().flat_map(|shard| shard.dbs());
    (
        dbs().map(|db| db.len()).sum(),
        dbs().map(|db| db.expiring()).sum(),
    )
}

fn store() -> Arc<Store> {
    let settings = Settings {
        databases: DATABASES,
        ..Settings::default()
    };
    let store = Store::new(settings, None, u64::MAX);
    store.health.set_loading(false);
    store
}

fn check(ops: &[Op]) {
    let (store, mut model, mut now) = (store(), Model::new(), 1000);
    for op in ops {
        match op {
            Op::Wait(ms) => {
                now += ms;
                model.retain(|_, at| at.is_none_or(|at| at > now));
            }
            Op::RemoveExpired => {
                remove_expired(&store, now);
                let expiring = model.values().flatten().count();
                assert_eq!(counts(&store), (model.len(), expiring));
            }
            op => apply(&mut whole(&store, now), &mut model, op, now),
        }
        let view = whole(&store, now);
        for db in 0..DATABASES {
            for key in 0..KEYS {
                let name = name(key);
                let found = view.read().peek(store.keyspace.key(db, &name));
                let found = found.map(|entry| entry.expires_at());
                assert_eq!(found, model.get(&(db, key)).copied(), "{op:?}");
            }
        }
    }
    remove_expired(&store, u64::MAX - 1);
    let lasting = model.values().filter(|at| at.is_none()).count();
    assert_eq!(counts(&store), (lasting, 0));
    let mut view = whole(&store, now);
    for db in 0..DATABASES {
        view.flush(db);
    }
    drop(view);
    assert_eq!(store.keyspace.memory(), 0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn keys_expire_in_their_time_whatever_was_done_to_them(
        ops in prop::collection::vec(op(), 1..150),
    ) {
        check(&ops);
    }
}

fn fill(store: &Store, keys: u32, expires_at: impl Fn(u32) -> Option<u64>) {
    let mut view = whole(store, 0);
    for key in 0..keys {
        entry(&mut view, 0, &key.to_be_bytes()).insert(text(), expires_at(key));
    }
}

#[test]
fn a_watched_key_that_was_removed_has_changed_also_for_a_clock_that_went_back() {
    let store = store();
    fill(&store, 1, |_| Some(1000));
    let watching = |ms| {
        let mut watches = Watches::new(&store.keyspace);
        let now = Now { ms, clock: 0 };
        watches.add(0, &0_u32.to_be_bytes(), now).unwrap();
        watches
    };
    let (before, after) = (watching(999), watching(1000));
    assert_eq!(remove_expired(&store, 1000), 1);
    let have_changed = |watches: Watches, ms| watches.have_changed(Now { ms, clock: 0 });
    assert!(have_changed(before, 999) && !have_changed(after, 1000));
}

#[test]
fn one_call_removes_a_few_keys_of_each_shard() {
    let store = store();
    fill(&store, 300_000, |_| Some(1));
    let now = Now { ms: 1, clock: 0 };
    let first = store.remove_expired(now).keys;
    assert!((60_000..=70_000).contains(&first), "{first}");
    assert_eq!(first + remove_expired(&store, 1), 300_000);
    assert_eq!(store.keyspace.memory(), 0);
}

/// A window of 2 seconds with an item of each of these times.
fn window(times: &[u64]) -> Value {
    let builder = LayeredFilter::builder().capacity(1000).seed(1);
    let builder = builder.window(Span::Ticks(2000), 4, 1000);
    let mut filter = builder.build().unwrap();
    for time in times {
        filter.advance_to(*time).unwrap();
        filter.insert(time);
    }
    Value::Filter(filter.into())
}

#[test]
fn idle_windows_give_their_memory_back() {
    let store = store();
    let times = [1000, 1600, 2100, 2600, 3100];
    let mut view = whole(&store, 1000);
    for key in 0..2000_u32 {
        entry(&mut view, 1, &key.to_be_bytes()).insert(window(&times), None);
    }
    entry(&mut view, 0, b"never filled").insert(window(&[]), None);
    store.journal.set_logging(true);
    drop(view);
    let full = store.keyspace.memory();
    assert!(!store.keyspace.may_have_expired(3499));
    // The first generation of each is gone, and what is left is found.
    let mut rounds = Vec::new();
    while store.keyspace.may_have_expired(3500) {
        rounds.push(store.remove_expired(Now { ms: 3500, clock: 7 }).windows);
    }
    assert_eq!(rounds.iter().sum::<usize>(), 2000);
    let items = |key: &[u8]| match &whole(&store, 0)
        .read()
        .peek(store.keyspace.key(1, key))
        .unwrap()
        .value
    {
        Value::Filter(filter) => filter.items(),
        Value::Text(_) => panic!("a filter"),
    };
    assert_eq!(items(&[0; 4]), 4);
    let accessed = whole(&store, 0)
        .read()
        .peek(store.keyspace.key(1, &[0; 4]))
        .unwrap()
        .accessed();
    assert_eq!(accessed, 0, "nobody has used it");
    assert!(store.keyspace.memory() <= full);
    let logged = store.journal.take().to_bytes();
    let logged = String::from_utf8_lossy(&logged).into_owned();
    let advances = logged.matches("BF.ADVANCE\r\n").count();
    assert_eq!(advances, 2000);
    assert!(logged.contains("\r\n$1\r\n1\r\n$2\r\nAT\r\n$4\r\n3500\r\n"));
    // In the end each has one empty layer, and no place in the index.
    for ms in [4000, 4500, 5000, 5500, 6000] {
        remove_expired(&store, ms);
    }
    assert_eq!(items(&[0; 4]), 0);
    assert!(store.keyspace.memory() < full * 2 / 5, "{full}");
    assert!(!store.keyspace.may_have_expired(u64::MAX - 1));
}

/// A window is found in time whatever happened to it, and the ones that are removed cost nothing.
#[test]
fn windows_are_found_whatever_was_done_to_them() {
    let store = store();
    let late = |ms| window(&[1000, ms]);
    let mut view = whole(&store, 1000);
    entry(&mut view, 0, b"a").insert(late(3000), None);
    entry(&mut view, 0, b"b").insert(late(3000), Some(5000));
    entry(&mut view, 0, b"c").insert(window(&[]), None);
    // Filled in its place, moved to another database, and given an expiry before its time.
    entry(&mut view, 0, b"c").modify(|value| *value = late(2000));
    rename(&mut view, (0, 0), (1, 3));
    entry(&mut view, 0, b"b").set_expiry(Some(3000));
    drop(view);
    let removed = |ms| store.remove_expired(Now { ms, clock: 0 });
    assert_eq!(removed(2999).windows, 0);
    assert_eq!(
        removed(3000),
        Expired {
            keys: 1,
            windows: 0
        }
    );
    assert_eq!(removed(3499), Expired::default());
    for (ms, windows) in [(3500, 2), (4500, 1), (5500, 1), (20_000, 0)] {
        assert_eq!(removed(ms).windows, windows, "{ms}");
    }
    let mut view = whole(&store, 20_000);
    view.flush(0);
    view.flush(1);
    drop(view);
    assert_eq!(store.keyspace.memory(), 0);
}

#[test]
fn nothing_is_looked_at_before_its_time() {
    let store = store();
    fill(&store, 1000, |key| {
        (key % 2 == 0).then_some(500 + u64::from(key))
    });
    assert!(!store.keyspace.may_have_expired(499));
    assert_eq!(store.remove_expired(Now { ms: 500, clock: 0 }).keys, 1);
    assert!(!store.keyspace.may_have_expired(501));
    assert!(store.keyspace.may_have_expired(502));
    // A key that is to expire earlier than all others is not overlooked.
    assert!(entry(&mut whole(&store, 400), 0, &1_u32.to_be_bytes()).set_expiry(Some(450)));
    assert!(store.keyspace.may_have_expired(450));
    assert_eq!(remove_expired(&store, 450), 1);
    assert!(!store.keyspace.may_have_expired(501));
}
