//! Reads a large value in pieces, as it was when the reader began. The lock of its shard is held
//! for one piece at a time, so that commands can run. What they change is kept for the reader
//! ([`everbloom::host::Capture`]).

use std::ops::Range;
use std::sync::Arc;

use everbloom_files::Value;

use crate::clock::Now;
use crate::keyspace::Keyspace;
use crate::pace::Pace;
use crate::store::Store;

/// A reader of a value. It ends when it is dropped, while no shard may be locked.
#[derive(Debug)]
pub struct Reader {
    store: Arc<Store>,
    id: u64,
    left: u64,
    pace: Pace,
}

impl Reader {
    /// Begins to read the value under a key. `begin` inspects it and returns which bytes to read:
    /// of a string, or of the arrays of a filter laid end to end. `None` when `begin` returns that,
    /// or the key does not exist.
    pub fn begin<T>(
        store: &Arc<Store>,
        db: usize,
        key: &[u8],
        now: Now,
        begin: impl FnOnce(&Value) -> Option<(T, Range<u64>)>,
    ) -> Option<(T, Reader)> {
        let keyspace = &store.keyspace;
        let hash = keyspace.hash(key);
        let mut shard = keyspace.shard(Keyspace::shard_of(hash)).write();
        let db = shard.db_mut(db);
        let begun = db.begin_capture(hash, key, now.ms, |value, id| {
            let (result, part) = begin(value)?;
            let left = part.end.saturating_sub(part.start);
            value.begin_capture(id, part);
            value.capture_mut().track_changes(id);
            Some((result, id, left))
        });
        keyspace.settle(db);
        drop(shard);
        let (result, id, left) = begun?;
        let reader = Reader {
            store: Arc::clone(store),
            id,
            left,
            pace: Pace::new(&store.machine),
        };
        Some((result, reader))
    }

    /// The reader's id in the value.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Passes the remaining bytes to `put`, piece by piece, while nothing is locked. Returns false
    /// as soon as `put` does.
    pub fn read_all(&mut self, mut put: impl FnMut(&[u8]) -> bool) -> bool {
        let mut piece = Vec::new();
        while self.left > 0 {
            piece.clear();
            if !self.store.keyspace.capture_next(self.id, &mut piece) {
                return false;
            }
            self.left = self.left.saturating_sub(piece.len() as u64);
            if !put(&piece) {
                return false;
            }
            self.pace.rest();
        }
        true
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.store.keyspace.end_capture(self.id);
    }
}
