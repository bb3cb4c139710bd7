//! The databases of one shard, and the keys that clients watch there.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use smallvec::SmallVec;

use super::captures::Captures;
use super::db::Db;
use super::key::KeyRef;

/// A client that watches a key.
#[derive(Debug)]
struct Watcher {
    /// The client's flag, which the first change sets.
    changed: Arc<AtomicBool>,
    /// Whether the key was there when the watch began. If it was, its removal is a change, also when
    /// it has expired: the clock may go back before EXEC.
    was_there: bool,
}

/// A database and the name of a key in it.
pub(super) type WatchedKey = (usize, Box<[u8]>);

/// Names a key by its database and its name.
pub(super) trait KeyOf: for<'k> Fn(usize, &'k [u8]) -> KeyRef<'k> {}

impl<F: for<'k> Fn(usize, &'k [u8]) -> KeyRef<'k>> KeyOf for F {}

/// One shard.
#[derive(Debug)]
pub struct Shard {
    dbs: Vec<Db>,
    watched: HashMap<WatchedKey, SmallVec<[Watcher; 1]>>,
}

impl Shard {
    /// An empty shard of `databases` databases.
    pub(super) fn new(databases: usize, captures: &Arc<Captures>) -> Self {
        Shard {
            dbs: (0..databases).map(|_| Db::new(captures)).collect(),
            watched: HashMap::new(),
        }
    }

    /// The entries of a database. `index` must be below the number of databases; SELECT checks
    /// this.
    #[inline]
    #[expect(clippy::indexing_slicing, reason = "SELECT lets no other index in")]
    pub fn db(&self, index: usize) -> &Db {
        &self.dbs[index]
    }

    /// The entries of a database, for changes.
    #[inline]
    #[expect(clippy::indexing_slicing, reason = "SELECT lets no other index in")]
    pub fn db_mut(&mut self, index: usize) -> &mut Db {
        &mut self.dbs[index]
    }

    /// All databases in order.
    pub fn dbs(&self) -> &[Db] {
        &self.dbs
    }

    /// Exchanges two databases. Touches watched keys that are alive in either, before or after.
    pub(super) fn swap(&mut self, a: usize, b: usize, now: u64, key: impl KeyOf) {
        self.touch_all([a, b], now, &key);
        self.touch_all([b, a], now, &key);
        self.dbs.swap(a, b);
    }

    /// Empties a database. Returns how many keys it held, and their remains, to be freed without
    /// the lock.
    pub(super) fn flush(&mut self, db: usize, now: u64, key: impl KeyOf) -> (usize, Option<Db>) {
        self.touch_all([db, db], now, &key);
        self.db_mut(db).take_all()
    }

    /// Touches the keys watched in `db` that are alive in it, or in the database `other` about to
    /// replace it. For the other keys, only those who found them there notice it.
    fn touch_all(&self, [db, other]: [usize; 2], now: u64, key: &impl KeyOf) {
        let there = |at, name| self.db(at).contains(key(at, name), now);
        for ((at, name), watchers) in &self.watched {
            if *at == db {
                touch(watchers, !there(db, name) && !there(other, name));
            }
        }
    }

    /// Watches a key for the client with this flag; false if it watches the key already.
    pub(super) fn watch(
        &mut self,
        id: WatchedKey,
        changed: &Arc<AtomicBool>,
        was_there: bool,
    ) -> bool {
        let watchers = self.watched.entry(id).or_default();
        let is_new = !watchers.iter().any(|it| Arc::ptr_eq(&it.changed, changed));
        if is_new {
            watchers.push(Watcher {
                changed: Arc::clone(changed),
                was_there,
            });
        }
        is_new
    }

    /// Ends the watch of a key for the client with this flag.
    pub(super) fn unwatch(&mut self, id: &WatchedKey, changed: &Arc<AtomicBool>) {
        if let Some(watchers) = self.watched.get_mut(id) {
            watchers.retain(|it| !Arc::ptr_eq(&it.changed, changed));
            if watchers.is_empty() {
                self.watched.remove(id);
            }
            // A long list is rare, and its room would never be used again.
            if self.watched.is_empty() {
                self.watched.shrink_to(64);
            }
        }
    }

    /// Records that a key was changed, for the clients that watch it.
    #[inline]
    pub fn touch(&mut self, key: KeyRef<'_>) {
        if !self.watched.is_empty() {
            self.touch_watched(key, false);
        }
    }

    /// Records that an expired key was removed. For those who found it expired nothing changes.
    pub fn touch_expired(&mut self, key: KeyRef<'_>) {
        if !self.watched.is_empty() {
            self.touch_watched(key, true);
        }
    }

    fn touch_watched(&self, key: KeyRef<'_>, was_gone: bool) {
        if let Some(watchers) = self.watched.get(&(key.db, key.name.into())) {
            touch(watchers, was_gone);
        }
    }
}

/// Tells the clients that a key was changed. If it was gone before, only those who found it there.
fn touch(watchers: &[Watcher], was_gone: bool) {
    for watcher in watchers.iter().filter(|it| it.was_there || !was_gone) {
        watcher.changed.store(true, Ordering::Release);
    }
}
