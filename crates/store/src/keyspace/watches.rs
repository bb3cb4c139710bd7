//! The keys that one client watches, from WATCH to EXEC.

use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use everbloom::host::memory;
use everbloom_files::OutOfMemory;

use super::entry::Entry;
use super::footprint::Footprint;
use super::shard::WatchedKey;
use super::sharded::Keyspace;
use crate::clock::Now;

/// About the bytes that the shard of a watched key keeps for it beside the name.
const SHARED_WATCH_BYTES: usize = 96;

/// The keys that a client watches. The first change of one of them sets a flag, so EXEC takes
/// no longer for a million keys than for one. Dropping it ends the watches, while no shard may be
/// locked.
#[derive(Debug)]
pub struct Watches {
    keyspace: Arc<Keyspace>,
    keys: Vec<WatchedKey>,
    footprint: Footprint,
    bytes: usize,
    changed: Arc<AtomicBool>,
    /// When the first of the keys expires. Another expiry of a key is a change of the key.
    expires_at: u64,
}

impl Watches {
    /// Watches no key yet.
    pub fn new(keyspace: &Arc<Keyspace>) -> Self {
        Watches {
            keyspace: Arc::clone(keyspace),
            keys: Vec::new(),
            footprint: Footprint::none(),
            bytes: 0,
            changed: Arc::default(),
            expires_at: u64::MAX,
        }
    }

    /// What is left of watches that ended before EXEC: it counts as changed.
    pub fn lost(keyspace: &Arc<Keyspace>) -> Self {
        let mut watches = Watches::new(keyspace);
        watches.expires_at = 0;
        watches
    }

    /// Watches a key of a database, too. No shard may be locked.
    ///
    /// # Errors
    /// There is no memory for it.
    pub fn add(&mut self, db: usize, name: &[u8], now: Now) -> Result<(), OutOfMemory> {
        // Many small blocks would use the memory that is kept for small ones.
        if memory::is_short() || self.keys.try_reserve(1).is_err() {
            return Err(OutOfMemory);
        }
        let watched = (db, copy_of(name)?);
        let shared = (db, copy_of(name)?);
        let key = self.keyspace.key(db, name);
        let mut shard = self.keyspace.shard(key.shard()).write();
        let entry = shard.db(db).peek(key, now.ms);
        let (was_there, expires_at) = (entry.is_some(), entry.and_then(Entry::expires_at));
        if !shard.watch(shared, &self.changed, was_there) {
            return Ok(());
        }
        if let Some(at) = expires_at {
            self.expires_at = self.expires_at.min(at);
        }
        drop(shard);
        self.footprint.add(key);
        self.bytes += bytes_of(&watched);
        self.keys.push(watched);
        Ok(())
    }

    /// Whether a key was changed or has expired since its watch began.
    pub fn have_changed(&self, now: Now) -> bool {
        self.changed.load(Ordering::Acquire) || self.expires_at <= now.ms
    }

    /// The shards of the keys. While they are locked, no other client changes a key or sees that it
    /// was not changed.
    pub fn footprint(&self) -> &Footprint {
        &self.footprint
    }

    /// How many keys there are.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Bytes that they take.
    pub fn memory(&self) -> usize {
        self.bytes
    }

    /// Ends the watches: those of a long list on another thread. No shard may be locked.
    pub fn end(self) {
        let (keyspace, bytes) = (Arc::clone(&self.keyspace), self.bytes);
        keyspace.free(Some(self), bytes);
    }
}

impl Drop for Watches {
    fn drop(&mut self) {
        for (db, name) in mem::take(&mut self.keys) {
            let shard = self.keyspace.key(db, &name).shard();
            let mut shard = self.keyspace.shard(shard).write();
            shard.unwatch(&(db, name), &self.changed);
        }
    }
}

/// Bytes that a watch takes. The shard of the key has a copy of the name.
fn bytes_of((_, name): &WatchedKey) -> usize {
    2 * name.len() + size_of::<WatchedKey>() + SHARED_WATCH_BYTES
}

fn copy_of(name: &[u8]) -> Result<Box<[u8]>, OutOfMemory> {
    let mut copy = Vec::new();
    copy.try_reserve_exact(name.len())
        .map_err(|_| OutOfMemory)?;
    copy.extend_from_slice(name);
    Ok(copy.into_boxed_slice())
}

#[cfg(test)]
mod tests {
    use everbloom_files::Value;

    use super::super::Footprint;
    use super::*;

    const NOW: Now = Now { ms: 1000, clock: 1 };

    fn set(keyspace: &Keyspace, name: &[u8], expires_at: Option<u64>) {
        let key = keyspace.key(0, name);
        let mut view = Footprint::of([key]).write(keyspace, NOW);
        view.entry(key)
            .insert(Value::Text(Vec::new().into()), expires_at);
    }

    #[test]
    fn the_first_change_of_a_watched_key_is_noticed_by_each_who_watches_it() {
        let keyspace = Arc::new(Keyspace::new(1));
        let watching = |names: &[&[u8]]| {
            let mut watches = Watches::new(&keyspace);
            for name in names {
                watches.add(0, name, NOW).unwrap();
            }
            watches
        };
        let (one, two, other) = (
            watching(&[b"a"]),
            watching(&[b"b", b"a", b"a"]),
            watching(&[b"c"]),
        );
        assert_eq!((two.len(), two.memory()), (2, 2 * one.memory()));
        two.end();
        let two = watching(&[b"b", b"a"]);
        set(&keyspace, b"a", None);
        assert!(one.have_changed(NOW) && two.have_changed(NOW) && !other.have_changed(NOW));
        drop((one, two));
        assert!(!watching(&[b"a"]).have_changed(NOW));
    }

    #[test]
    fn a_watched_key_that_expires_has_changed() {
        let keyspace = Arc::new(Keyspace::new(1));
        set(&keyspace, b"gone", Some(NOW.ms));
        set(&keyspace, b"soon", Some(NOW.ms + 5));
        let mut watches = Watches::new(&keyspace);
        watches.add(0, b"gone", NOW).unwrap();
        assert!(!watches.have_changed(Now { ms: 2000, ..NOW }));
        watches.add(0, b"soon", NOW).unwrap();
        assert!(!watches.have_changed(Now { ms: 1004, ..NOW }));
        assert!(watches.have_changed(Now { ms: 1005, ..NOW }));
    }

    /// Its removal was a change, whatever the clock says later.
    #[test]
    fn a_watched_key_that_has_expired_was_changed_also_for_a_clock_that_went_back() {
        let later = Now { ms: 2000, ..NOW };
        let read = |keyspace: &Keyspace| {
            let key = keyspace.key(0, b"soon");
            Footprint::of([key]).write(keyspace, later).entry(key);
        };
        let flush = |keyspace: &Keyspace| {
            Footprint::Whole.write(keyspace, later).flush(0);
        };
        let removals: [&dyn Fn(&Keyspace); 2] = [&read, &flush];
        for remove in removals {
            let keyspace = Arc::new(Keyspace::new(1));
            set(&keyspace, b"soon", Some(NOW.ms + 5));
            let watching = |now| {
                let mut watches = Watches::new(&keyspace);
                watches.add(0, b"soon", now).unwrap();
                watches
            };
            let (before, after) = (watching(NOW), watching(later));
            remove(&keyspace);
            assert!(before.have_changed(NOW) && !after.have_changed(later));
        }
    }
}
