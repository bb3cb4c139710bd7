//! The databases of one shard, and the keys that clients watch there.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use smallvec::SmallVec;

use super::captures::Captures;
use super::db::Db;
use super::key::KeyRef;

/// The flags of the clients that watch a key: its first change sets them.
type Watchers = SmallVec<[Arc<AtomicBool>; 1]>;

/// A database and the name of a key in it.
pub(super) type WatchedKey = (usize, Box<[u8]>);

/// Names a key by its database and its name.
pub(super) trait KeyOf: for<'k> Fn(usize, &'k [u8]) -> KeyRef<'k> {}

impl<F: for<'k> Fn(usize, &'k [u8]) -> KeyRef<'k>> KeyOf for F {}

/// One shard.
#[derive(Debug)]
pub struct Shard {
    dbs: Vec<Db>,
    watched: HashMap<WatchedKey, Watchers>,
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
        let mut touched = self.watched_and_alive([a, b], now, &key);
        touched.extend(self.watched_and_alive([b, a], now, &key));
        self.dbs.swap(a, b);
        for id in &touched {
            self.touch_watched(id);
        }
    }

    /// Empties a database. Returns how many keys it held, and their remains, to be freed without
    /// the lock.
    pub(super) fn flush(&mut self, db: usize, now: u64, key: impl KeyOf) -> (usize, Option<Db>) {
        for id in self.watched_and_alive([db, db], now, &key) {
            self.touch_watched(&id);
        }
        self.db_mut(db).take_all()
    }

    /// The keys watched in `db` that are alive in it, or in the database `other` about to replace
    /// it. An expired key counts as missing: whoever watches it either found it expired, or notices
    /// that it is gone.
    fn watched_and_alive(
        &self,
        [db, other]: [usize; 2],
        now: u64,
        key: &impl KeyOf,
    ) -> Vec<WatchedKey> {
        let there = |at, name| self.db(at).contains(key(at, name), now);
        self.watched
            .keys()
            .filter(|(at, key)| *at == db && (there(db, key) || there(other, key)))
            .cloned()
            .collect()
    }

    /// Watches a key for the client with this flag; false if it watches the key already.
    pub(super) fn watch(&mut self, id: WatchedKey, changed: &Arc<AtomicBool>) -> bool {
        let watchers = self.watched.entry(id).or_default();
        let is_new = !watchers.iter().any(|other| Arc::ptr_eq(other, changed));
        if is_new {
            watchers.push(Arc::clone(changed));
        }
        is_new
    }

    /// Ends the watch of a key for the client with this flag.
    pub(super) fn unwatch(&mut self, id: &WatchedKey, changed: &Arc<AtomicBool>) {
        if let Some(watchers) = self.watched.get_mut(id) {
            watchers.retain(|other| !Arc::ptr_eq(other, changed));
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
            self.touch_watched(&id(key));
        }
    }

    fn touch_watched(&self, id: &WatchedKey) {
        for changed in self.watched.get(id).into_iter().flatten() {
            changed.store(true, Ordering::Release);
        }
    }
}

fn id(key: KeyRef<'_>) -> WatchedKey {
    (key.db, key.name.into())
}
