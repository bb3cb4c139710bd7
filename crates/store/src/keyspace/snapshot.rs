//! All keys as they were at one moment, collected while commands run.
//!
//! At that moment every database is given the snapshot ([`Snapshot::begin`]). From then on an entry
//! is *kept* once: before its first change, or when the walk over the shards reaches it, whichever
//! is earlier. Entries created later carry the snapshot's number and are skipped. A small value is
//! kept as a copy. A large one is kept by beginning to read it ([`Captured`]); its pieces are read
//! later, wherever the value is by then.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use super::captured::Captured;
use super::key::SHARDS;
use super::sharded::Keyspace;
use super::snapshot_queue::SnapshotQueue;
pub use super::snapshot_queue::{Kept, KeptValue};
use crate::limits::SNAPSHOT_STEP_BYTES;

/// A snapshot being made. It ends when this is dropped, finished or not, even by a panic.
#[derive(Debug)]
pub struct Snapshot {
    keyspace: Arc<Keyspace>,
    queue: Arc<SnapshotQueue>,
}

impl Snapshot {
    /// Begins a snapshot of this moment; `at_once` runs at the same moment, while nothing can
    /// change.
    pub fn begin(keyspace: &Arc<Keyspace>, at_once: impl FnOnce()) -> Self {
        // Entries that no snapshot has seen have the number zero.
        static LAST: AtomicU32 = AtomicU32::new(0);
        let epoch = LAST.fetch_add(1, Ordering::Relaxed).wrapping_add(1).max(1);
        let queue = Arc::new(SnapshotQueue::new(epoch, &keyspace.captures));
        // Before the locks, so that after a panic it is dropped after them.
        let snapshot = Snapshot {
            keyspace: Arc::clone(keyspace),
            queue,
        };
        let mut shards: Vec<_> = (0..SHARDS)
            .map(|index| keyspace.shard(index).write())
            .collect();
        for shard in &mut shards {
            for db in 0..keyspace.databases() {
                let queue = Arc::clone(&snapshot.queue);
                shard.db_mut(db).join_snapshot(queue, db);
            }
        }
        at_once();
        snapshot
    }

    /// The keys that it is made of.
    pub fn keyspace(&self) -> &Keyspace {
        &self.keyspace
    }

    /// Keeps entries of one shard, some 256 KiB; true when none is left.
    pub fn walk(&self, shard: usize) -> bool {
        let mut budget = SNAPSHOT_STEP_BYTES.get();
        let mut shard = self.keyspace.shard(shard).write();
        (0..self.keyspace.databases()).all(|db| {
            let db = shard.db_mut(db);
            let all = db.keep_some(&mut budget);
            self.keyspace.settle(db);
            all
        })
    }

    /// The entries kept since the last call.
    pub fn take_kept(&self) -> Vec<Kept<Captured>> {
        let kept = self.queue.take_kept().into_iter();
        kept.map(|kept| kept.read_by(|id| Captured::take_over(&self.keyspace, id)))
            .collect()
    }
}

impl Drop for Snapshot {
    fn drop(&mut self) {
        // Done first, so that readers of removed values find them all the time.
        self.queue.adopt_emptied();
        for index in 0..SHARDS {
            let mut shard = self.keyspace.shard(index).write();
            for db in 0..self.keyspace.databases() {
                shard.db_mut(db).leave_snapshot();
            }
        }
        // The readers of values that were not written end without a lock.
        drop(self.take_kept());
    }
}
