//! A large value is read in pieces as it was when the reader began, whatever happens to it.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

use std::cell::Cell;
use std::ops::Range;
use std::sync::Arc;

use everbloom::host::LayeredFilter;
use everbloom::redisbloom::CuckooParts;
use everbloom::{CuckooFilter, Layout};
use everbloom_commands::Filter;
use everbloom_files::Value;
use everbloom_files::rdb::dump;
use everbloom_store::clock::Now;
use everbloom_store::keyspace::snapshot::Snapshot;
use everbloom_store::keyspace::{Footprint, KeyRef, ViewMut};
use everbloom_store::reader::{Copied, ValueReader};
use everbloom_store::{Settings, Store};
use proptest::prelude::*;

const KEY: &[u8] = b"large";
const LEN: usize = 600_000;

fn store_with(value: Value) -> Arc<Store> {
    let store = Store::new(Settings::default(), None, u64::MAX);
    change(&store, |view| view.entry(key(&store)).insert(value, None));
    store
}

/// The key of the value.
fn key(store: &Store) -> KeyRef<'static> {
    store.keyspace.key(0, KEY)
}

/// Changes something, with the locks of all keys.
fn change<R>(store: &Store, change: impl FnOnce(&mut ViewMut<'_>) -> R) -> R {
    change(&mut Footprint::Whole.write(&store.keyspace, Now::default()))
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

/// The bytes of all arrays of a filter, without a search for each array.
fn bytes_of_arrays(value: &Value) -> Vec<u8> {
    let Value::Filter(filter) = value else {
        panic!("no filter");
    };
    let arrays = (0..filter.arrays()).flat_map(|number| filter.array(number).unwrap().into_owned());
    arrays.collect()
}

fn begin(store: &Arc<Store>, name: &[u8], part: Option<Range<u64>>) -> Option<ValueReader> {
    (0..2).find_map(|db| {
        let part = part.clone();
        let begin = |value: &Value| Some(((), part.unwrap_or(0..value.stream_len())));
        let key = store.keyspace.key(db, name);
        ValueReader::begin(store, key, begin).map(|(_, reader)| reader)
    })
}

/// All bytes of a reader; `meddle` runs behind each piece.
fn read(store: &Store, reader: &mut ValueReader, mut meddle: impl FnMut()) -> Vec<u8> {
    let (mut bytes, mut piece) = (Vec::new(), Vec::new());
    while reader.next(&mut piece) {
        // Writers need not wait.
        assert!(
            store
                .keyspace
                .shard(key(store).shard())
                .try_write()
                .is_some()
        );
        bytes.extend_from_slice(&piece);
        meddle();
    }
    assert!(reader.is_at_end(), "the value was lost");
    bytes
}

#[test]
fn any_part_of_any_value_is_read() {
    let builder = LayeredFilter::builder().layout(Layout::Blocked);
    let mut grown = builder.capacity(100_000).build().unwrap();
    let mut cuckoo = CuckooFilter::builder().slots(1_000_000).build().unwrap();
    for item in 0..500_000_u32 {
        grown.insert(&item);
        cuckoo.insert(&item).unwrap();
    }
    assert!(grown.layers().len() > 1);
    let filters = [Filter::from(grown), Filter::from(cuckoo)].map(Value::Filter);
    for value in filters.into_iter().chain([text(b'x')]) {
        let all = bytes_of(&value);
        let store = store_with(value);
        let mut reader = begin(&store, KEY, None).unwrap();
        assert!(read(&store, &mut reader, || ()) == all);
        let part = 300_000..all.len() - 5;
        let wanted = part.start as u64..part.end as u64;
        let mut reader = begin(&store, KEY, Some(wanted)).unwrap();
        assert!(read(&store, &mut reader, || ()) == all[part]);
    }
    assert!(begin(&store_with(text(b'x')), b"no such key", None).is_none());
}

/// A header of 38 bytes makes the one, a header of 2 MB the other. A step for each pair of arrays
/// would take minutes.
#[test]
fn a_filter_of_very_many_arrays_is_read_array_by_array() {
    let tables = CuckooParts {
        tables: u16::MAX,
        ..CuckooFilter::builder().slots(2).parts().unwrap()
    };
    let tables = CuckooFilter::from_parts(&tables, u64::MAX).unwrap();
    let mut layers = LayeredFilter::builder().layout(Layout::Blocked);
    layers = layers.capacity(1);
    let mut layers = layers.build().unwrap().parts();
    layers.layers = vec![layers.layers[0]; 60_000];
    let layers = LayeredFilter::from_parts(&layers, u64::MAX).unwrap();
    for filter in [Filter::from(tables), Filter::from(layers)] {
        let value = Value::Filter(filter);
        let all = bytes_of_arrays(&value);
        let store = store_with(value);
        let mut reader = begin(&store, KEY, None).unwrap();
        assert!(read(&store, &mut reader, || ()) == all);
        let copied = Copied::make(&store, key(&store), || true).unwrap().unwrap();
        assert!(bytes_of_arrays(copied.value()) == all);
    }
}

/// What may happen to a value while it is read.
#[derive(Clone, Debug)]
enum Event {
    Change(usize, usize),
    Append(usize),
    Delete,
    Replace,
    Rename(u8, usize),
    Flush(usize),
    Swap,
    BeginSnapshot,
    EndSnapshot,
    Begin,
    Read(usize),
    End(usize),
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        6 => (0..LEN, 1..100_000_usize).prop_map(|(at, len)| Event::Change(at, len)),
        4 => (0..LEN).prop_map(|at| Event::Change(at, 1)),
        2 => (1..100_000_usize).prop_map(Event::Append),
        1 => Just(Event::Delete),
        1 => Just(Event::Replace),
        2 => (0..3_u8, 0..2_usize).prop_map(|(key, db)| Event::Rename(key, db)),
        1 => (0..2_usize).prop_map(Event::Flush),
        1 => Just(Event::Swap),
        1 => Just(Event::BeginSnapshot),
        1 => Just(Event::EndSnapshot),
        5 => Just(Event::Begin),
        12 => (0..6_usize).prop_map(Event::Read),
        1 => (0..6_usize).prop_map(Event::End),
    ]
}

/// The store, and where the value is now. Of each reader: what it must read, and what it has read.
struct Model {
    store: Arc<Store>,
    key: Vec<u8>,
    db: usize,
    readers: Vec<(ValueReader, Vec<u8>, Vec<u8>)>,
    snapshot: Option<Snapshot>,
}

impl Model {
    fn happen(&mut self, event: Event, byte: u8) {
        let (store, key, db) = (Arc::clone(&self.store), self.key.clone(), self.db);
        match event {
            Event::Change(at, len) => change(&store, |view| {
                view.entry(store.keyspace.key(db, &key)).modify(|value| {
                    if let Value::Text(text) = value {
                        let end = (at + len).min(text.len());
                        text.part_mut(at.min(end)..end).fill(byte);
                    }
                });
            }),
            Event::Append(len) => change(&store, |view| {
                view.entry(store.keyspace.key(db, &key)).modify(|value| {
                    if let Value::Text(text) = value {
                        text.append(&vec![byte; len]).unwrap();
                    }
                });
            }),
            Event::Delete => change(&store, |view| {
                view.entry(store.keyspace.key(db, &key)).delete();
            }),
            Event::Replace => change(&store, |view| {
                view.entry(store.keyspace.key(db, &key))
                    .insert(text(byte), None)
            }),
            Event::Rename(name, to) => {
                (self.key, self.db) = (vec![name], to);
                change(&store, |view| {
                    if let Some(entry) = view.entry(store.keyspace.key(db, &key)).take() {
                        view.entry(store.keyspace.key(to, &[name]))
                            .insert(entry.value, None);
                    }
                });
            }
            Event::Flush(db) => change(&store, |view| {
                view.flush(db);
            }),
            Event::Swap => {
                self.db = 1 - db;
                change(&store, |view| view.swap(0, 1));
            }
            Event::BeginSnapshot => {
                self.snapshot = None;
                self.snapshot = Some(Snapshot::begin(&store.keyspace, || ()));
            }
            Event::EndSnapshot => self.snapshot = None,
            Event::Begin => self.begin(),
            Event::Read(index) => self.read(index),
            Event::End(index) if index < self.readers.len() => drop(self.readers.remove(index)),
            Event::End(_) => {}
        }
    }

    fn begin(&mut self) {
        let key = self.store.keyspace.key(self.db, &self.key);
        let get = |view: &mut ViewMut<'_>| Some(bytes_of(&view.read().peek(key)?.value));
        let Some(then) = change(&self.store, get) else {
            return;
        };
        let all = |value: &Value| Some(((), 0..value.stream_len()));
        let begun = ValueReader::begin(&self.store, key, all);
        self.readers.push((begun.unwrap().1, then, Vec::new()));
    }

    /// Reads one piece.
    fn read(&mut self, index: usize) {
        let Some((reader, then, bytes)) = self.readers.get_mut(index) else {
            return;
        };
        let mut piece = Vec::new();
        reader.next(&mut piece);
        bytes.extend_from_slice(&piece);
        assert!(then.starts_with(bytes), "another moment");
        if reader.is_at_end() {
            assert_eq!(then.len(), bytes.len(), "the value was lost");
            drop(self.readers.remove(index));
        }
    }
}

fn payload(value: &Value) -> Vec<u8> {
    dump(value, false, usize::MAX).unwrap()
}

/// Changes a value here and there: less than it takes to grow.
fn alter(value: &mut Value, round: u32) {
    let items = round * 2000..(round + 1) * 2000;
    match value {
        Value::Text(text) => {
            for item in items {
                let at = usize::try_from(item * 7919).unwrap() % LEN;
                text.part_mut(at..at + 1).fill(u8::try_from(round).unwrap());
            }
            text.append(b"more").unwrap();
        }
        Value::Filter(Filter::Bloom(filter)) => filter.extend(items),
        Value::Filter(Filter::Cuckoo(filter)) => {
            items.for_each(|item| filter.insert(&item).unwrap());
        }
    }
}

/// The value changes at every place while it is copied, more than is copied at once in the end.
#[test]
fn a_copy_follows_the_value() {
    let [classic, blocked] = [Layout::Classic, Layout::Blocked].map(|layout| {
        let builder = LayeredFilter::builder().layout(layout);
        Value::Filter(builder.capacity(500_000).build().unwrap().into())
    });
    let cuckoo = Value::Filter(
        CuckooFilter::builder()
            .slots(1_000_000)
            .build()
            .unwrap()
            .into(),
    );
    for value in [text(255), classic, blocked, cuckoo] {
        let store = store_with(value);
        let rounds = Cell::new(0);
        let go_on = || {
            let round = rounds.replace(rounds.get() + 1);
            if round < 30 {
                change(&store, |view| {
                    view.entry(key(&store)).modify(|value| alter(value, round))
                });
            }
            true
        };
        let copied = Copied::make(&store, key(&store), go_on);
        let mut copied = copied.unwrap().unwrap();
        assert!(copied.refresh(|| true));
        change(&store, |view| {
            let value = &view.read().get(key(&store)).unwrap().value;
            assert!(copied.is_current(value));
            assert!(payload(copied.value()) == payload(value));
        });
        change(&store, |view| {
            view.entry(key(&store)).modify(|value| alter(value, 99))
        });
        change(&store, |view| {
            let value = &view.read().get(key(&store)).unwrap().value;
            assert!(!copied.is_current(value));
            let copy = copied.current(value).unwrap();
            assert!(payload(&copy) == payload(value));
        });
        drop(copied);
        let held = change(&store, |view| {
            view.read()
                .get(key(&store))
                .unwrap()
                .value
                .capture()
                .is_active()
        });
        assert!(!held, "the reader has ended");
    }
}

/// Another value, or one with other arrays, is not the one that was copied.
#[test]
fn a_copy_of_another_value_is_none() {
    let builder = CuckooFilter::builder().slots(1 << 17).expansion(1);
    let mut grown = builder.build().unwrap();
    (0..200_000_u32).for_each(|item| grown.insert(&item).unwrap());
    assert!(grown.tables() > 1);
    // A table is dropped, and another one is made in its place.
    let replace_table = |value: &mut Value| {
        let Value::Filter(Filter::Cuckoo(filter)) = value else {
            return;
        };
        (0..200_000_u32).for_each(|item| assert!(filter.remove(&item)));
        assert_eq!(filter.tables(), 1);
        (0..200_000_u32).for_each(|item| filter.insert(&item).unwrap());
    };
    let replace = |value: &mut Value| *value = text(1);
    let changes: [&dyn Fn(&mut Value); 2] = [&replace_table, &replace];
    for alter in changes {
        let store = store_with(Value::Filter(grown.clone().into()));
        let mut copied = Copied::make(&store, key(&store), || true);
        let copied = copied.as_mut().unwrap().as_mut().unwrap();
        change(&store, |view| view.entry(key(&store)).modify(alter));
        assert!(!copied.refresh(|| true));
        change(&store, |view| {
            let value = &view.read().get(key(&store)).unwrap().value;
            assert!(!copied.is_current(value) && copied.current(value).is_none());
        });
    }
    let store = store_with(text(0));
    let none = store.keyspace.key(0, b"none");
    let none = Copied::make(&store, none, || true);
    assert!(none.unwrap().is_none());
    let stopped = Copied::make(&store, key(&store), || false);
    assert!(stopped.is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    /// Readers begin and end while the value changes, moves and goes. Each sees its moment, and
    /// nothing stays behind.
    #[test]
    fn each_reader_sees_its_moment(events in prop::collection::vec(event(), 0..100)) {
        let store = store_with(text(255));
        let mut model = Model {
            store: Arc::clone(&store),
            key: KEY.to_vec(),
            db: 0,
            readers: Vec::new(),
            snapshot: None,
        };
        for (event, byte) in events.into_iter().zip((0..=250).cycle()) {
            model.happen(event, byte);
        }
        model.snapshot = None;
        while !model.readers.is_empty() {
            let before = (model.readers.len(), model.readers[0].2.len());
            model.read(0);
            let now = model.readers.first().map_or(0, |reader| reader.2.len());
            prop_assert!((model.readers.len(), now) != before, "the value was lost");
        }
        let keyspace = &model.store.keyspace;
        let mut clean = 0;
        change(&model.store, |view| {
            for db in 0..2 {
                for (_, entry) in view.read().entries(db) {
                    assert!(!entry.value.capture().is_active());
                    clean += entry.memory();
                }
            }
        });
        prop_assert_eq!(keyspace.memory(), clean);
    }
}

/// The memory of what is kept counts as used, and a reader that vanishes releases it.
#[test]
fn what_is_kept_is_counted_and_released() {
    let store = store_with(text(b'a'));
    let before = store.keyspace.memory();
    let mut first = begin(&store, KEY, None).unwrap();
    let second = begin(&store, KEY, None).unwrap();
    change(&store, |view| {
        view.entry(key(&store)).modify(|value| match value {
            Value::Text(text) => text.part_mut(0..LEN).fill(b'b'),
            Value::Filter(_) => unreachable!(),
        });
    });
    let kept = store.keyspace.memory() - before;
    assert!(
        (LEN..LEN + 1000).contains(&kept),
        "{kept} bytes for two readers"
    );
    drop(second);
    assert!(read(&store, &mut first, || ()) == vec![b'a'; LEN]);
    assert!(store.keyspace.memory() < before + 1000);
    drop(first);
    assert_eq!(store.keyspace.memory(), before);
}

/// A value that is changed behind each piece, which once gave up after three tries.
#[test]
fn a_value_that_changes_all_the_time_is_read() {
    let store = store_with(text(0));
    let mut reader = begin(&store, KEY, None).unwrap();
    let mut round = 0;
    let bytes = read(&store, &mut reader, || {
        round += 1;
        change(&store, |view| {
            view.entry(key(&store)).modify(|value| match value {
                Value::Text(text) => text.part_mut(0..LEN).fill(round),
                Value::Filter(_) => unreachable!(),
            });
        });
    });
    assert!(bytes == vec![0; LEN]);
    assert_eq!(usize::from(round), LEN.div_ceil(64 << 10));
}
