//! Copying a large value as it was at one moment, in steps: the lock of its shard is held for one
//! step at a time, so that nobody waits for the whole copy.
//!
//! The key is watched from before the first step, as WATCH does it. A step that finds the key
//! changed begins the copy anew.

use std::ops::Range;
use std::sync::Arc;

use everbloom_files::Value;

use crate::clock::Now;
use crate::keyspace::{Keyspace, Shard};
use crate::pace::Pace;
use crate::store::Store;

/// So many bytes are copied under one lock.
const STEP: u64 = 256 << 10;
/// How often a copy is begun: while others change the value all the time, none is ever done.
const TRIES: usize = 3;

/// A key that is watched until this is dropped, which must be when its shard is not locked.
#[derive(Debug)]
pub struct Watching {
    store: Arc<Store>,
    db: usize,
    key: Box<[u8]>,
    hash: u64,
    version: u64,
}

impl Watching {
    fn begin(store: &Arc<Store>, db: usize, key: &[u8]) -> Self {
        let hash = store.keyspace.hash(key);
        let shard = store.keyspace.shard(Keyspace::shard_of(hash));
        Watching {
            version: shard.write().watch(db, key),
            store: Arc::clone(store),
            db,
            key: key.into(),
            hash,
        }
    }

    /// Whether nothing has changed the key since. The shard is that of the key.
    pub fn holds(&self, shard: &Shard) -> bool {
        shard.watch_version(self.db, &self.key) == Some(self.version)
    }

    /// Looks at the value, if it is there and nothing has changed it.
    fn look<R>(&self, now: Now, look: impl FnOnce(&Value) -> R) -> Option<R> {
        let shard = self.store.keyspace.shard(Keyspace::shard_of(self.hash));
        let shard = shard.read();
        let entry = shard.db(self.db).peek(self.hash, &self.key, now.ms);
        let entry = entry.filter(|_| self.holds(&shard));
        entry.map(|entry| look(&entry.value))
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        let shard = self.store.keyspace.shard(Keyspace::shard_of(self.hash));
        shard.write().unwatch(self.db, &self.key);
    }
}

/// Copies bytes of the value under a key: of a string, or of the arrays of a filter laid end to
/// end. `begin` looks at the value and says which bytes, and what to begin with. `put` gets them
/// with their place, piece by piece, while nothing is locked; once it says false, all is given up.
///
/// The bytes are those of the moment at which the copy is done. `None` if there is no such key, if
/// one of the two gave up, or if the value was changed again and again.
pub fn copy<T>(
    store: &Arc<Store>,
    db: usize,
    key: &[u8],
    now: Now,
    begin: impl Fn(&Value) -> Option<(T, Range<u64>)>,
    mut put: impl FnMut(&mut T, u64, &[u8]) -> bool,
) -> Option<(T, Watching)> {
    let pace = Pace::default();
    let mut step = Vec::new();
    for _ in 0..TRIES {
        let watching = Watching::begin(store, db, key);
        let (mut copy, Range { start: mut at, end }) = watching.look(now, &begin)??;
        loop {
            if at >= end {
                return Some((copy, watching));
            }
            step.clear();
            let most = STEP.min(end - at);
            if watching
                .look(now, |value| append(value, at, most, &mut step))
                .is_none()
            {
                break;
            }
            if step.is_empty() || !put(&mut copy, at, &step) {
                return None;
            }
            at += step.len() as u64;
            pace.rest();
        }
    }
    None
}

/// Appends at most so many bytes of a value, from `at` on.
fn append(value: &Value, at: u64, most: u64, out: &mut Vec<u8>) {
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    match value {
        Value::Text(text) => {
            let rest = usize::try_from(at).ok().and_then(|at| text.get(at..));
            let rest = rest.unwrap_or_default();
            out.extend_from_slice(rest.get(..most).unwrap_or(rest));
        }
        Value::Filter(filter) => {
            out.extend_from_slice(&filter.stream_chunk(at, most).unwrap_or_default());
        }
    }
}
