//! A snapshot is all keys as they were at one moment, whatever is done to them while it is written.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::expect_used,
    clippy::indexing_slicing
)]

use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use everbloom::host::LayeredFilter;
use everbloom::{CuckooFilter, Layout};
use everbloom_commands::Filter;
use everbloom_files::Value;
use everbloom_files::rdb::{Event, Reader, dump};
use everbloom_files::storage::{FileStatus, StorageFile, Syncing};
use everbloom_store::Settings;
use everbloom_store::clock::Now;
use everbloom_store::keyspace::Footprint;
use everbloom_store::keyspace::snapshot::Snapshot;
use everbloom_store::keyspace::{DbSums, Keyspace, ViewMut};
use everbloom_store::machine::{Machine, System};
use everbloom_store::persistence::writer::{Purpose, Writing};
use proptest::prelude::*;

const DATABASES: usize = 3;

/// A file in memory that lets something happen before each write.
struct Meddled<'m> {
    bytes: Vec<u8>,
    meddle: Box<dyn FnMut() + Send + 'm>,
}

impl fmt::Debug for Meddled<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.bytes.len())
    }
}

impl Write for Meddled<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        (self.meddle)();
        self.bytes.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl StorageFile for Meddled<'_> {
    fn sync(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn sync_elsewhere(&self) -> io::Result<Syncing> {
        Ok(Box::new(|| Ok(())))
    }

    fn truncate(&mut self, _: u64) -> io::Result<()> {
        Ok(())
    }

    fn status(&self) -> io::Result<FileStatus> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

type Contents = BTreeMap<(usize, Vec<u8>), (Option<u64>, Vec<u8>)>;

fn whole(keyspace: &Keyspace) -> ViewMut<'_> {
    Footprint::Whole.write(keyspace, Now { ms: 1000, clock: 0 })
}

/// All keys with their expiries and their DUMP payloads.
fn contents(keyspace: &Keyspace) -> Contents {
    let view = whole(keyspace);
    let mut contents = Contents::new();
    for db in 0..DATABASES {
        for (_, entry) in view.read().entries(db) {
            let payload = dump(&entry.value, false, usize::MAX).unwrap();
            contents.insert((db, entry.key().to_vec()), (entry.expires_at(), payload));
        }
    }
    contents
}

fn read_back(file: &[u8]) -> Contents {
    let mut reader = Reader::new(file, u64::MAX).unwrap();
    let (mut contents, mut current) = (Contents::new(), 0);
    loop {
        match reader.next_event().unwrap() {
            Event::SelectDb(db) => current = usize::try_from(db).unwrap(),
            Event::Key {
                expires_at,
                key,
                value,
                ..
            } => {
                let payload = dump(&value, false, usize::MAX).unwrap();
                let twice = contents.insert((current, key), (expires_at, payload));
                assert!(twice.is_none(), "a key is in the file twice");
            }
            Event::End { .. } => return contents,
            Event::Aux { .. } | Event::Resize { .. } => {}
            other => panic!("{other:?}"),
        }
    }
}

/// Something that a command does.
#[derive(Debug, Clone)]
enum Op {
    Add {
        db: usize,
        key: u8,
        items: u32,
    },
    Set {
        db: usize,
        key: u8,
    },
    Append {
        db: usize,
        key: u8,
    },
    Delete {
        db: usize,
        key: u8,
    },
    Expire {
        db: usize,
        key: u8,
        at: u64,
    },
    Rename {
        db: usize,
        key: u8,
        to: u8,
        to_db: usize,
    },
    Overwrite {
        db: usize,
        key: u8,
    },
    LoadChunk {
        db: usize,
        key: u8,
        at: u64,
    },
    Flush {
        db: usize,
    },
    Swap {
        a: usize,
        b: usize,
    },
}

fn op() -> impl Strategy<Value = Op> {
    let db = || 0..DATABASES;
    let key = || 0..8u8;
    prop_oneof![
        6 => (db(), key(), 1..400u32).prop_map(|(db, key, items)| Op::Add { db, key, items }),
        2 => (db(), key()).prop_map(|(db, key)| Op::Set { db, key }),
        2 => (db(), key()).prop_map(|(db, key)| Op::Append { db, key }),
        2 => (db(), key()).prop_map(|(db, key)| Op::Delete { db, key }),
        1 => (db(), key(), 1500..2000u64).prop_map(|(db, key, at)| Op::Expire { db, key, at }),
        3 => (db(), key(), key(), db())
            .prop_map(|(db, key, to, to_db)| Op::Rename { db, key, to, to_db }),
        1 => (db(), key()).prop_map(|(db, key)| Op::Overwrite { db, key }),
        1 => (db(), key(), 0..600_000u64).prop_map(|(db, key, at)| Op::LoadChunk { db, key, at }),
        1 => db().prop_map(|db| Op::Flush { db }),
        1 => (db(), db()).prop_map(|(a, b)| Op::Swap { a, b }),
    ]
}

fn name(key: u8) -> Vec<u8> {
    format!("key:{key}").into_bytes()
}

/// Filters under even keys, every other one of them large, and the upper half blocked.
fn new_filter(key: u8) -> Value {
    let capacity = if key.is_multiple_of(4) { 400_000 } else { 100 };
    let layout = if key < 4 {
        Layout::Classic
    } else {
        Layout::Blocked
    };
    // One of them grows by small tables, which come and go, and one is as large as a filter of
    // several pieces.
    if key == 5 || key == 6 {
        let capacity = if key == 5 { 16 } else { 400_000 };
        let builder = CuckooFilter::builder().slots(capacity);
        return Value::Filter(builder.build().unwrap().into());
    }
    // So does one with an error rate.
    if key == 7 {
        let builder = CuckooFilter::builder().capacity(10).error_rate(0.01);
        return Value::Filter(builder.build().unwrap().into());
    }
    let filter = LayeredFilter::builder()
        .capacity(capacity)
        .layout(layout)
        .build()
        .unwrap();
    Value::Filter(filter.into())
}

/// Inserts items; then, every other time, removes most of those that the last call inserted, so
/// that tables are dropped.
fn change(filter: &mut CuckooFilter, items: impl Iterator<Item = String>, seed: u32) {
    for (i, item) in items.enumerate() {
        filter.insert(&item).unwrap();
        if !i.is_multiple_of(4) && seed % 2 == 1 {
            filter.remove(&format!("{}:{i}", seed - 1));
            filter.remove(&item);
        }
    }
    if seed % 8 == 7 {
        filter.compact();
    }
}

fn apply(keyspace: &Keyspace, op: &Op, seed: u32) {
    let mut view = whole(keyspace);
    match *op {
        Op::Add { db, key, items } => {
            if !view.read().contains(keyspace.key(db, &name(key))) {
                view.entry(keyspace.key(db, &name(key)))
                    .insert(new_filter(key), None);
            }
            view.entry(keyspace.key(db, &name(key))).modify(|value| {
                let items = (0..items).map(|i| format!("{seed}:{i}"));
                match value {
                    Value::Filter(Filter::Bloom(filter)) => filter.extend(items),
                    Value::Filter(Filter::Cuckoo(filter)) => change(filter, items, seed),
                    Value::Text(_) => {}
                }
            });
        }
        Op::Set { db, key } | Op::Overwrite { db, key } => {
            let text = format!("value {seed}").into_bytes();
            // Every other string is as long as a filter of several pieces.
            let times = if seed.is_multiple_of(2) { 1 } else { 20_000 };
            view.entry(keyspace.key(db, &name(key)))
                .insert(Value::Text(text.repeat(times).into()), None);
        }
        Op::Append { db, key } => {
            view.entry(keyspace.key(db, &name(key))).modify(|value| {
                if let Value::Text(text) = value {
                    text.append(b" and more").unwrap();
                }
            });
        }
        Op::Delete { db, key } => {
            view.entry(keyspace.key(db, &name(key))).delete();
        }
        Op::Expire { db, key, at } => {
            view.entry(keyspace.key(db, &name(key)))
                .set_expiry(Some(at));
        }
        Op::Rename { db, key, to, to_db } => {
            if let Some(entry) = view.entry(keyspace.key(db, &name(key))).take() {
                let expires_at = entry.expires_at();
                view.entry(keyspace.key(to_db, &name(to)))
                    .insert(entry.value, expires_at);
            }
        }
        Op::LoadChunk { db, key, at } => {
            view.entry(keyspace.key(db, &name(key))).modify(|value| {
                // A chunk that does not fit changes nothing.
                match value {
                    Value::Filter(Filter::Bloom(filter)) => {
                        let _ = filter.load_chunk(at, &[0x5a; 3000]);
                    }
                    Value::Filter(Filter::Cuckoo(filter)) => {
                        let _ = filter.load_chunk(at, &[0x5a; 3000]);
                    }
                    Value::Text(text) => {
                        let at = usize::try_from(at).unwrap();
                        text.part_mut(at..at + 3000).fill(0x5a);
                    }
                }
            });
        }
        Op::Flush { db } => {
            view.flush(db);
        }
        Op::Swap { a, b } => view.swap(a, b),
    }
}

/// The sums are what a walk over all entries finds, expired ones included.
fn check_sums(keyspace: &Keyspace) {
    let (mut kept, mut found) = (DbSums::default(), DbSums::default());
    let view = Footprint::Whole.write(keyspace, Now::default());
    let mut memory = 0;
    for db in 0..DATABASES {
        for shard in view.read().shards() {
            memory += shard.db(db).memory();
            kept.add(*shard.db(db).sums());
        }
        for (_, entry) in view.read().entries(db) {
            found.add(DbSums::of(entry));
        }
    }
    assert_eq!(kept, found);
    assert_eq!(memory, keyspace.memory().cast_signed());
}

fn machine() -> Arc<dyn Machine> {
    Arc::new(System::default())
}

/// The file of a snapshot, which ends. `meddle` is called between the writes.
fn written<'m>(snapshot: Snapshot, meddle: impl FnMut() + Send + 'm) -> Vec<u8> {
    let mut file = Meddled {
        bytes: Vec::new(),
        meddle: Box::new(meddle),
    };
    let settings = Settings {
        rdbcompression: false,
        ..Settings::default()
    };
    let how = Writing {
        purpose: Purpose::Snapshot(None),
        settings: &settings,
        machine: &machine(),
        is_ending: &AtomicBool::new(false),
    };
    how.write(&snapshot, &mut file).unwrap();
    file.bytes
}

fn check(before: &[Op], during: &[Op]) {
    let keyspace = Arc::new(Keyspace::new(DATABASES));
    for (seed, op) in before.iter().enumerate() {
        apply(&keyspace, op, u32::try_from(seed).unwrap());
        check_sums(&keyspace);
    }
    let then = contents(&keyspace);
    let snapshot = Snapshot::begin(&keyspace, || ());
    let mut ops = during.iter().enumerate();
    let mut meddle = || {
        for (seed, op) in ops.by_ref().take(3) {
            apply(&keyspace, op, 1000 + u32::try_from(seed).unwrap());
            check_sums(&keyspace);
        }
    };
    // Some before the walk has begun, the rest between the writes.
    meddle();
    let file = written(snapshot, meddle);
    assert!(
        read_back(&file) == then,
        "the file is not what the keys were"
    );

    // Another snapshot, of what the keys are now, shows that the first has left nothing behind.
    let now = contents(&keyspace);
    let snapshot = Snapshot::begin(&keyspace, || ());
    let file = written(snapshot, || ());
    assert!(
        read_back(&file) == now,
        "the second file is not what the keys are"
    );
    check_sums(&keyspace);
    whole(&keyspace).flush(0);
    whole(&keyspace).flush(1);
    whole(&keyspace).flush(2);
    check_sums(&keyspace);
    assert_eq!(keyspace.memory(), 0, "the account of memory is off");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn a_snapshot_is_one_moment(
        before in prop::collection::vec(op(), 1..40),
        during in prop::collection::vec(op(), 1..120),
    ) {
        check(&before, &during);
    }
}

/// Otherwise databases would stay joined, and their changes would be kept for nobody.
#[test]
fn a_snapshot_that_panics_leaves_nothing_behind() {
    let keyspace = Arc::new(Keyspace::new(DATABASES));
    let add = |items| Op::Add {
        db: 0,
        key: 0,
        items,
    };
    apply(&keyspace, &add(300_000), 1);
    let used = keyspace.memory();
    let panics = || {
        let snapshot = Snapshot::begin(&keyspace, || ());
        written(snapshot, || panic!("as it must"));
    };
    assert!(catch_unwind(AssertUnwindSafe(panics)).is_err());
    apply(&keyspace, &add(1000), 2);
    assert_eq!(keyspace.memory(), used, "nothing is kept");
    let view = whole(&keyspace);
    let mut entries = view.read().entries(0);
    assert!(entries.all(|(_, entry)| !entry.value.capture().is_active()));
}

/// The large filter goes through everything that can happen to it while its pieces are fetched.
#[test]
fn a_large_filter_is_followed_wherever_it_goes() {
    follow(0);
}

#[test]
fn so_is_one_of_the_blocked_layout() {
    follow(4);
}

/// It kicks, grows and is compacted meanwhile.
#[test]
fn so_is_a_cuckoo_filter() {
    follow(6);
}

#[test]
fn so_is_one_of_small_tables_that_come_and_go() {
    let add = |items| Op::Add {
        db: 0,
        key: 5,
        items,
    };
    let load = |at| Op::LoadChunk { db: 0, key: 6, at };
    // The file is so large that much happens between its pieces.
    let large = Op::Add {
        db: 0,
        key: 6,
        items: 1000,
    };
    let during: Vec<Op> = (0..40)
        .flat_map(|i| [add(300 - 7 * i), load(9000 * u64::from(i)), add(11 * i)])
        .collect();
    check(&[large, add(200), add(200), add(90)], &during);
}

fn follow(key: u8) {
    let add = |items| Op::Add { db: 0, key, items };
    let before = [
        add(300_000),
        Op::Add {
            db: 1,
            key: 4,
            items: 1000,
        },
        Op::Set { db: 0, key: 1 },
    ];
    let ways: [&[Op]; 7] = [
        &[add(50_000), add(50_000), add(50_000), add(50_000)],
        &[
            Op::Rename {
                db: 0,
                key,
                to: 3,
                to_db: 2,
            },
            Op::Rename {
                db: 2,
                key: 3,
                to: 5,
                to_db: 0,
            },
        ],
        &[add(10), Op::Delete { db: 0, key }, add(10)],
        &[add(10), Op::Overwrite { db: 0, key }],
        &[add(10), Op::Flush { db: 0 }, add(10)],
        &[
            add(10),
            Op::Swap { a: 0, b: 2 },
            Op::Rename {
                db: 2,
                key,
                to: 1,
                to_db: 1,
            },
        ],
        &[
            Op::LoadChunk {
                db: 0,
                key,
                at: 500_000,
            },
            Op::LoadChunk {
                db: 0,
                key,
                at: 100,
            },
        ],
    ];
    for way in ways {
        check(&before, way);
        // The same, begun only when the file is half written.
        let later: Vec<Op> = (0..4)
            .map(|_| Op::Append { db: 0, key: 1 })
            .chain(way.iter().cloned())
            .collect();
        check(&before, &later);
    }
}
