//! All keys as they were at one moment, collected while commands go on.
//!
//! At that moment every database is given the snapshot ([`Snapshot::begin`]). From then on an entry
//! is *kept* once: before its first change, or when the walk over the shards comes to it, whichever
//! is earlier. Entries made after the moment carry the snapshot's number from birth and are passed
//! over. To keep a small value is to copy it. A large one is kept by beginning a capture
//! ([`everbloom::host`]), whose pieces are fetched later, wherever the value has gone by then; if
//! it is removed, the snapshot adopts it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use everbloom_files::Value;

use super::keeper::{Keeper, Place};
pub use super::keeper::{Kept, KeptValue, Rest};
use super::sharded::{Keyspace, SHARDS};

/// How often a captured value is looked for. It is found at the second look at the latest, unless
/// it moves again in between.
const MOST_LOOKS: usize = 10_000;
/// About how many bytes the walk keeps under one lock.
const STEP: usize = 256 << 10;

/// A snapshot being made.
#[derive(Debug)]
pub struct Snapshot {
    keeper: Arc<Keeper>,
}

impl Snapshot {
    /// Begins a snapshot of the present moment; `at_once` runs at that same moment, while nothing
    /// can change.
    pub fn begin(keyspace: &Keyspace, at_once: impl FnOnce()) -> Snapshot {
        // Zero is the number of entries that no snapshot has seen.
        static LAST: AtomicU32 = AtomicU32::new(0);
        let epoch = LAST.fetch_add(1, Ordering::Relaxed).wrapping_add(1).max(1);
        let keeper = Arc::new(Keeper::new(epoch));
        let mut shards: Vec<_> = (0..SHARDS)
            .map(|index| keyspace.shard(index).write())
            .collect();
        for shard in &mut shards {
            for db in 0..keyspace.databases() {
                shard
                    .db_mut(db)
                    .join_snapshot(Some((Arc::clone(&keeper), db)));
            }
        }
        at_once();
        Snapshot { keeper }
    }

    /// Ends it, finished or not: no entry is kept any more.
    pub fn end(&self, keyspace: &Keyspace) {
        for index in 0..SHARDS {
            let mut shard = keyspace.shard(index).write();
            for db in 0..keyspace.databases() {
                shard.db_mut(db).join_snapshot(None);
            }
        }
        for id in self.keeper.unwritten() {
            self.with_captured(keyspace, id, Value::end_capture);
        }
        // What was removed after the last look is needed no more.
        self.keeper.clear();
    }

    /// Keeps entries of one shard, some 256 KiB; true when none is left to keep.
    pub fn walk(&self, keyspace: &Keyspace, shard: usize) -> bool {
        let mut budget = STEP;
        let mut shard = keyspace.shard(shard).write();
        (0..keyspace.databases()).all(|db| {
            let db = shard.db_mut(db);
            let all = db.keep_some(&mut budget);
            keyspace.settle(db);
            all
        })
    }

    /// The entries kept since this was asked last.
    pub fn take_kept(&self) -> Vec<Kept> {
        self.keeper.take_kept()
    }

    /// Appends the next bytes of a large value to `out`; false when there are no more.
    pub fn next_piece(&self, keyspace: &Keyspace, id: u64, out: &mut Vec<u8>) -> bool {
        let more = self.with_captured(keyspace, id, |value| value.capture_next(out));
        if more != Some(true) {
            self.keeper.forget(id);
        }
        more == Some(true)
    }

    /// Finds a captured value, in the keyspace or among the adopted.
    fn with_captured<R>(
        &self,
        keyspace: &Keyspace,
        id: u64,
        mut work: impl FnMut(&mut Value) -> R,
    ) -> Option<R> {
        for _ in 0..MOST_LOOKS {
            let (hash, key) = match self.keeper.find(id, &mut work)? {
                Place::Adopted(result) => return Some(result),
                Place::Keyspace(hash, key) => (hash, key),
            };
            let mut shard = keyspace.shard(Keyspace::shard_of(hash)).write();
            for db in 0..keyspace.databases() {
                let db = shard.db_mut(db);
                let result = db.with_captured(hash, &key, id, &mut work);
                if result.is_some() {
                    keyspace.settle(db);
                    return result;
                }
            }
            // It was moved or removed since its place was read: its new place is known by now.
        }
        None
    }
}
