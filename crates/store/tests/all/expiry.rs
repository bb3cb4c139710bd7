//! Expired keys are removed in time, whatever happens to them before, and no others.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

use std::collections::BTreeMap;
use std::sync::Arc;

use everbloom_files::Value;
use everbloom_store::clock::Now;
use everbloom_store::keyspace::{Footprint, View};
use everbloom_store::{Settings, Store};
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

fn rename(view: &mut View<'_>, (db, from): Key, (to_db, to): Key) {
    if let Some(entry) = view.take(db, &name(from)) {
        let expires_at = entry.expires_at();
        view.insert(to_db, &name(to), entry.value, expires_at);
    }
}

fn copy(view: &mut View<'_>, (db, from): Key, (to_db, to): Key) {
    let found = view.get(db, &name(from));
    if let Some((value, at)) = found.map(|entry| (entry.value.clone(), entry.expires_at())) {
        view.insert(to_db, &name(to), value, at);
    }
}

fn apply(view: &mut View<'_>, model: &mut Model, op: &Op, now: u64) {
    let at = |ttl: Option<u64>| ttl.map(|ttl| now + ttl);
    match *op {
        Op::Set((db, key), ttl) => {
            view.insert(db, &name(key), text(), at(ttl));
            model.insert((db, key), at(ttl));
        }
        Op::Expire((db, key), ttl) => {
            let there = model.get_mut(&(db, key));
            assert_eq!(view.set_expiry(db, &name(key), at(ttl)), there.is_some());
            there
                .into_iter()
                .for_each(|expires_at| *expires_at = at(ttl));
        }
        Op::Append((db, key)) => {
            let longer = view.modify(db, &name(key), |value| match value {
                Value::Text(text) => text.append(b"more"),
                Value::Filter(_) => panic!("only strings are used"),
            });
            assert_eq!(longer.is_some(), model.contains_key(&(db, key)));
        }
        Op::Delete((db, key)) => {
            let there = model.remove(&(db, key)).is_some();
            assert_eq!(view.delete(db, &name(key)), there);
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

fn whole(store: &Store, ms: u64) -> View<'_> {
    Footprint::Whole.lock(&store.keyspace, true, Now { ms, clock: 0 })
}

/// Removes what has expired, in however many calls.
fn remove_expired(store: &Store, ms: u64) -> usize {
    let mut removed = 0;
    while store.keyspace.may_have_expired(ms) {
        removed += store.remove_expired(Now { ms, clock: 0 });
    }
    removed
}

/// How many keys there are, expired ones included, and how many of them have an expiry.
fn counts(store: &Store) -> (usize, usize) {
    let view = whole(store, 0);
    let dbs = || view.shards().flat_map(|(_, shard)| shard.dbs());
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
                let found = view.peek(db, &name(key)).map(|entry| entry.expires_at());
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
        view.insert(0, &key.to_be_bytes(), text(), expires_at(key));
    }
}

#[test]
fn one_call_removes_a_few_keys_of_each_shard() {
    let store = store();
    fill(&store, 300_000, |_| Some(1));
    let now = Now { ms: 1, clock: 0 };
    let first = store.remove_expired(now);
    assert!((60_000..=70_000).contains(&first), "{first}");
    assert_eq!(first + remove_expired(&store, 1), 300_000);
    assert_eq!(store.keyspace.memory(), 0);
}

#[test]
fn nothing_is_looked_at_before_its_time() {
    let store = store();
    fill(&store, 1000, |key| {
        (key % 2 == 0).then_some(500 + u64::from(key))
    });
    assert!(!store.keyspace.may_have_expired(499));
    assert_eq!(store.remove_expired(Now { ms: 500, clock: 0 }), 1);
    assert!(!store.keyspace.may_have_expired(501));
    assert!(store.keyspace.may_have_expired(502));
    // A key that is to expire earlier than all others is not overlooked.
    assert!(whole(&store, 400).set_expiry(0, &1_u32.to_be_bytes(), Some(450)));
    assert!(store.keyspace.may_have_expired(450));
    assert_eq!(remove_expired(&store, 450), 1);
    assert!(!store.keyspace.may_have_expired(501));
}
