//! The databases of one shard, and the keys that clients watch there.

use std::collections::HashMap;
use std::sync::Arc;

use super::captures::Captures;
use super::db::Db;
use super::key::KeyRef;

/// A watched key: how often it was touched since the first watch, and how many clients watch it.
#[derive(Debug, Default)]
struct Watched {
    version: u64,
    watchers: usize,
}

/// A database and the name of a key in it.
type WatchedKey = (usize, Box<[u8]>);

/// Names a key by its database and its name.
pub(super) trait KeyOf: for<'k> Fn(usize, &'k [u8]) -> KeyRef<'k> {}

impl<F: for<'k> Fn(usize, &'k [u8]) -> KeyRef<'k>> KeyOf for F {}

/// One shard.
#[derive(Debug)]
pub struct Shard {
    dbs: Vec<Db>,
    watched: HashMap<WatchedKey, Watched>,
    /// Grows with every watch that begins, so that a key watched again never repeats a version.
    watch_clock: u64,
}

impl Shard {
    /// An empty shard of `databases` databases.
    pub(super) fn new(databases: usize, captures: &Arc<Captures>) -> Self {
        Shard {
            dbs: (0..databases).map(|_| Db::new(captures)).collect(),
            watched: HashMap::new(),
            watch_clock: 0,
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

    /// Begins to watch a key and returns its current version.
    pub fn watch(&mut self, key: KeyRef<'_>) -> u64 {
        self.watch_clock += 1;
        let clock = self.watch_clock;
        let watched = self.watched.entry(id(key)).or_default();
        if watched.watchers == 0 {
            watched.version = clock << 32;
        }
        watched.watchers += 1;
        watched.version
    }

    /// Ends one watch of a key.
    pub fn unwatch(&mut self, key: KeyRef<'_>) {
        let id = id(key);
        if let Some(watched) = self.watched.get_mut(&id) {
            watched.watchers -= 1;
            if watched.watchers == 0 {
                self.watched.remove(&id);
            }
        }
    }

    /// The version of a watched key.
    pub fn watch_version(&self, key: KeyRef<'_>) -> Option<u64> {
        self.watched.get(&id(key)).map(|w| w.version)
    }

    /// Records that a key was changed, for the clients that watch it.
    #[inline]
    pub fn touch(&mut self, key: KeyRef<'_>) {
        if !self.watched.is_empty() {
            self.touch_watched(&id(key));
        }
    }

    fn touch_watched(&mut self, id: &WatchedKey) {
        if let Some(watched) = self.watched.get_mut(id) {
            watched.version += 1;
        }
    }
}

fn id(key: KeyRef<'_>) -> WatchedKey {
    (key.db, key.name.into())
}
