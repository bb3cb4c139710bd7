//! A large value that is being read in pieces, as it was at one moment.

use std::sync::Arc;

use everbloom_files::Value;

use super::captures::Location;
use super::db::Db;
use super::key::{KeyRef, shard_of};
use super::sharded::Keyspace;
use crate::clock::Now;

/// How often a value with readers is looked up. The second look-up finds it, unless it moves again
/// in between.
const MAX_LOOKS: usize = 10_000;

/// A value that is being read, as it was when this began, wherever it is by now. The reading ends
/// when this is dropped, while no shard may be locked.
#[derive(Debug)]
pub struct Captured {
    keyspace: Arc<Keyspace>,
    id: u64,
}

impl Captured {
    /// Begins to read the value under a key. `begin` is given the value and the reader's id, and
    /// begins the capture. `None` when `begin` returns that, or the key does not exist.
    pub(crate) fn begin<T>(
        keyspace: &Arc<Keyspace>,
        key: KeyRef<'_>,
        now: Now,
        begin: impl FnOnce(&mut Value, u64) -> Option<T>,
    ) -> Option<(T, Captured)> {
        let captured = {
            let mut shard = keyspace.shard(key.shard()).write();
            let db = shard.db_mut(key.db);
            let begun = db.begin_capture(key, now.ms, begin);
            keyspace.settle(db);
            begun
        };
        let (result, id) = captured?;
        let keyspace = Arc::clone(keyspace);
        Some((result, Captured { keyspace, id }))
    }

    /// Takes over a reader that a snapshot has begun.
    pub(super) fn take_over(keyspace: &Arc<Keyspace>, id: u64) -> Self {
        let keyspace = Arc::clone(keyspace);
        Captured { keyspace, id }
    }

    /// The id of the reader, by which the value knows it.
    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    /// Appends the next bytes to `out`; false when there are no more.
    pub fn next(&self, out: &mut Vec<u8>) -> bool {
        self.with(|value| value.capture_next(self.id, out)) == Some(true)
    }

    /// Runs work on the value, in the keyspace or among those that were removed. It changes nothing
    /// but what is kept for readers.
    pub(crate) fn with<R>(&self, mut work: impl FnMut(&mut Value) -> R) -> Option<R> {
        let keyspace = &self.keyspace;
        for _ in 0..MAX_LOOKS {
            let hash = match keyspace.captures.find(self.id)? {
                Location::Removed(value) => return Some(work(&mut value.lock())),
                Location::Keyspace(hash) => hash,
            };
            let mut shard = keyspace.shard(shard_of(hash)).write();
            for db in 0..keyspace.databases() {
                let db = shard.db_mut(db);
                let result = db.with_captured(hash, self.id, &mut work);
                if result.is_some() {
                    keyspace.settle(db);
                    return result;
                }
            }
            // It was moved or removed after its location was read. The new location is known by
            // now, unless the value waits in a snapshot's queue.
            let queue = shard.dbs().iter().find_map(Db::snapshot_queue);
            drop(shard);
            if let Some(queue) = queue {
                queue.adopt_emptied();
            }
        }
        None
    }
}

impl Drop for Captured {
    fn drop(&mut self) {
        self.with(|value| value.capture_mut().end(self.id));
        let removed = self.keyspace.captures.end(self.id);
        let bytes = removed.as_ref().map_or(0, |value| value.lock().memory());
        self.keyspace.free(removed, bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keyspace::Footprint;
    use crate::limits::BACKGROUND_BYTES;

    #[test]
    fn a_removed_value_is_freed_behind_others_when_its_last_reader_ends() {
        for (len, is_long) in [(BACKGROUND_BYTES.ordinary(), true), (1000, false)] {
            let (keyspace, now) = (Arc::new(Keyspace::new(1)), Now::read());
            let key = keyspace.key(0, b"a");
            let change = || Footprint::of([key]).write(&keyspace, now);
            let value = Value::Text(vec![0; len].into());
            change().entry(key).insert(value, None);
            let begin = || {
                let begun = Captured::begin(&keyspace, key, now, |value, id| {
                    value.begin_capture(id, 0..1);
                    Some(())
                });
                begun.unwrap().1
            };
            let readers = [begin(), begin()];
            assert!(change().entry(key).delete());
            assert!(!keyspace.release.is_started());
            drop(readers);
            assert_eq!(keyspace.release.is_started(), is_long);
        }
    }
}
