//! All keys as they were at one moment, collected while commands go on.
//!
//! At that moment every database is given the snapshot ([`Snapshot::begin`]). From then on an entry
//! is *kept* once: before its first change, or when the walk over the shards comes to it, whichever
//! is earlier. Entries made after the moment carry the snapshot's number from birth and are passed
//! over. To keep a string or a small filter is to copy it. A large filter is kept by beginning a
//! capture ([`everbloom::capture`]), whose pieces are fetched later, wherever the filter has gone by
//! then; if it is removed, the snapshot adopts it.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use everbloom::{FilterParts, ScalableBloomFilter};
use parking_lot::Mutex;

use super::db::Db;
use super::entry::{Entry, Value};
use super::{Keyspace, SHARDS};

/// A filter of more bytes than this is captured in pieces; one of fewer is copied, which takes some
/// ten microseconds.
const LARGE: u64 = 64 << 10;
/// How often a captured filter is looked for. It is found at the second look at the latest, unless it
/// moves again in between.
const MOST_LOOKS: usize = 10_000;
/// About how many bytes the walk keeps under one lock.
const STEP: usize = 256 << 10;

/// A snapshot being made.
#[derive(Debug)]
pub struct Snapshot {
    epoch: u32,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    kept: Vec<Kept>,
    /// Where the large filters are that are not yet written.
    large: HashMap<u64, (u64, Box<[u8]>)>,
    /// Those of them that were removed from the keyspace.
    adopted: HashMap<u64, Entry>,
    /// Databases that were emptied, with their number at the moment of the snapshot.
    emptied: Vec<(usize, Db)>,
    last_id: u64,
}

/// An entry as it was.
#[derive(Debug)]
pub struct Kept {
    /// Its database.
    pub db: usize,
    /// Its key.
    pub key: Box<[u8]>,
    /// Its expiry, Unix time in milliseconds.
    pub expires_at: Option<u64>,
    /// Its value.
    pub value: KeptValue,
}

/// A value as it was.
#[derive(Debug)]
pub enum KeptValue {
    /// All of it.
    Whole(Value),
    /// A large filter but for its bits, which [`Snapshot::next_piece`] brings.
    Large {
        /// What to ask for them with.
        id: u64,
        /// The rest.
        parts: FilterParts,
    },
}

impl Snapshot {
    /// Begins a snapshot of the present moment; `at_once` runs at that same moment, while nothing
    /// can change.
    pub fn begin(keyspace: &Keyspace, at_once: impl FnOnce()) -> Arc<Snapshot> {
        // Zero is the number of entries that no snapshot has seen.
        static LAST: AtomicU32 = AtomicU32::new(0);
        let epoch = LAST.fetch_add(1, Ordering::Relaxed).wrapping_add(1).max(1);
        let snapshot = Arc::new(Snapshot {
            epoch,
            state: Mutex::default(),
        });
        let mut shards: Vec<_> = (0..SHARDS)
            .map(|index| keyspace.shard(index).write())
            .collect();
        for shard in &mut shards {
            for db in 0..keyspace.databases() {
                shard
                    .db_mut(db)
                    .join_snapshot(Some((Arc::clone(&snapshot), db)));
            }
        }
        at_once();
        snapshot
    }

    /// Ends it, finished or not: no entry is kept any more.
    pub fn end(&self, keyspace: &Keyspace) {
        for index in 0..SHARDS {
            let mut shard = keyspace.shard(index).write();
            for db in 0..keyspace.databases() {
                shard.db_mut(db).join_snapshot(None);
            }
        }
        let unwritten: Vec<u64> = self.state.lock().large.keys().copied().collect();
        for id in unwritten {
            self.with_filter(keyspace, id, ScalableBloomFilter::end_capture);
        }
        // What was removed after the last look is needed no more.
        let rest = std::mem::take(&mut *self.state.lock());
        drop(rest);
    }

    /// Keeps entries of one shard, some 256 KiB; true when none is left to keep.
    pub fn walk(&self, keyspace: &Keyspace, shard: usize) -> bool {
        let mut budget = STEP;
        let mut shard = keyspace.shard(shard).write();
        (0..keyspace.databases()).all(|db| shard.db_mut(db).keep_some(&mut budget))
    }

    /// The entries kept since this was asked last.
    pub fn take_kept(&self) -> Vec<Kept> {
        let mut state = self.state.lock();
        self.adopt_emptied(&mut state);
        std::mem::take(&mut state.kept)
    }

    /// Takes over, one by one, what the databases held that were emptied.
    fn adopt_emptied(&self, state: &mut State) {
        for (db, mut emptied) in std::mem::take(&mut state.emptied) {
            for (hash, entry) in emptied.drain() {
                self.adopt_locked(state, db, hash, entry);
            }
        }
    }

    /// Appends the next piece of a large filter's bits to `out`; false when there are no more.
    pub fn next_piece(&self, keyspace: &Keyspace, id: u64, out: &mut Vec<u8>) -> bool {
        let more = self.with_filter(keyspace, id, |filter| filter.capture_next(out));
        if more != Some(true) {
            let mut state = self.state.lock();
            state.large.remove(&id);
            let done = state.adopted.remove(&id);
            // A large filter is freed without the lock.
            drop(state);
            drop(done);
        }
        more == Some(true)
    }

    /// Finds a captured filter, in the keyspace or among the adopted.
    fn with_filter<R>(
        &self,
        keyspace: &Keyspace,
        id: u64,
        work: impl FnOnce(&mut ScalableBloomFilter) -> R,
    ) -> Option<R> {
        let mut work = Some(work);
        for _ in 0..MOST_LOOKS {
            let (hash, key) = {
                let mut state = self.state.lock();
                self.adopt_emptied(&mut state);
                if let Some(Entry {
                    value: Value::Filter(filter),
                    ..
                }) = state.adopted.get_mut(&id)
                {
                    return work.take().map(|work| work(filter));
                }
                state.large.get(&id)?.clone()
            };
            let mut shard = keyspace.shard(Keyspace::shard_of(hash)).write();
            for db in 0..keyspace.databases() {
                let db = shard.db_mut(db);
                if let Some(filter) = db.captured(hash, &key, id) {
                    let before = filter.memory_usage().cast_signed();
                    let result = work.take().map(|work| work(filter));
                    let grown = filter.memory_usage().cast_signed() - before;
                    db.account(grown);
                    keyspace.settle(db);
                    return result;
                }
            }
            // It was moved or removed since its place was read: its new place is known by now.
        }
        None
    }

    /// The number that entries carry which are kept, or are younger than the snapshot.
    pub(super) fn epoch(&self) -> u32 {
        self.epoch
    }

    /// Keeps an entry that stays in the keyspace. Its shard is locked.
    pub(super) fn keep(&self, db: usize, entry: &mut Entry) -> usize {
        entry.epoch = self.epoch;
        let mut state = self.state.lock();
        let (key, expires_at): (Box<[u8]>, _) = (entry.key().into(), entry.expires_at());
        let value = match &mut entry.value {
            Value::Filter(filter) if filter.stream_len() > LARGE => {
                let (id, parts) = state.begin_capture(filter, entry.hash, &key);
                KeptValue::Large { id, parts }
            }
            value => KeptValue::Whole(value.clone()),
        };
        let size = match &value {
            KeptValue::Whole(value) => value.memory(),
            KeptValue::Large { .. } => 0,
        };
        state.kept.push(Kept {
            db,
            key,
            expires_at,
            value,
        });
        size + entry.key().len()
    }

    /// Takes an entry over that leaves the keyspace for good, if the snapshot still needs it.
    pub(super) fn adopt(&self, db: usize, hash: u64, entry: Entry) -> Option<Entry> {
        let needed = entry.epoch != self.epoch
            || matches!(&entry.value, Value::Filter(f) if f.capture_id().is_some());
        if !needed {
            return Some(entry);
        }
        self.adopt_locked(&mut self.state.lock(), db, hash, entry);
        None
    }

    fn adopt_locked(&self, state: &mut State, db: usize, hash: u64, mut entry: Entry) {
        let (key, expires_at): (Box<[u8]>, _) = (entry.key().into(), entry.expires_at());
        let kept = entry.epoch == self.epoch;
        let value = match &mut entry.value {
            Value::Filter(filter) => match filter.capture_id().filter(|_| kept) {
                Some(id) => {
                    state.adopted.insert(id, entry);
                    return;
                }
                None if kept => return,
                None if filter.stream_len() > LARGE => {
                    let (id, parts) = state.begin_capture(filter, hash, &key);
                    state.adopted.insert(id, entry);
                    KeptValue::Large { id, parts }
                }
                None => KeptValue::Whole(entry.value),
            },
            Value::Text(_) if kept => return,
            Value::Text(_) => KeptValue::Whole(entry.value),
        };
        state.kept.push(Kept {
            db,
            key,
            expires_at,
            value,
        });
    }

    /// Takes a database over that was emptied.
    pub(super) fn adopt_db(&self, db: usize, emptied: Db) {
        self.state.lock().emptied.push((db, emptied));
    }

    /// Notes where a captured filter has gone.
    pub(super) fn moved(&self, id: u64, hash: u64, key: &[u8]) {
        if let Some(place) = self.state.lock().large.get_mut(&id) {
            *place = (hash, key.into());
        }
    }
}

impl State {
    fn begin_capture(
        &mut self,
        filter: &mut ScalableBloomFilter,
        hash: u64,
        key: &[u8],
    ) -> (u64, FilterParts) {
        self.last_id += 1;
        self.large.insert(self.last_id, (hash, key.into()));
        (self.last_id, filter.begin_capture(self.last_id))
    }
}
