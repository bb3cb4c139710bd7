//! The databases of one shard, and the keys that clients watch there.

use std::collections::HashMap;
use std::sync::Arc;

use super::captures::Captures;
use super::db::Db;

/// A watched key: how often it was touched since the first watch, and how many clients watch it.
#[derive(Debug, Default)]
struct Watched {
    version: u64,
    watchers: usize,
}

/// One shard.
#[derive(Debug)]
pub struct Shard {
    dbs: Vec<Db>,
    watched: HashMap<(usize, Box<[u8]>), Watched>,
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
    pub fn swap(&mut self, a: usize, b: usize, now: u64, hash: impl Fn(&[u8]) -> u64) {
        let mut touched = self.watched_and_alive([a, b], now, &hash);
        touched.extend(self.watched_and_alive([b, a], now, &hash));
        self.dbs.swap(a, b);
        for (db, key) in touched {
            self.touch(db, &key);
        }
    }

    /// Empties a database. Returns how many keys it held, and their remains, to be freed without
    /// the lock.
    pub fn flush(
        &mut self,
        db: usize,
        now: u64,
        hash: impl Fn(&[u8]) -> u64,
    ) -> (usize, Option<Db>) {
        for (db, key) in self.watched_and_alive([db, db], now, &hash) {
            self.touch(db, &key);
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
        hash: &impl Fn(&[u8]) -> u64,
    ) -> Vec<(usize, Box<[u8]>)> {
        let there = |at: usize, key: &[u8]| self.db(at).contains(hash(key), key, now);
        self.watched
            .keys()
            .filter(|(at, key)| *at == db && (there(db, key) || there(other, key)))
            .cloned()
            .collect()
    }

    /// Begins to watch a key and returns its current version.
    pub fn watch(&mut self, db: usize, key: &[u8]) -> u64 {
        self.watch_clock += 1;
        let clock = self.watch_clock;
        let watched = self.watched.entry((db, key.into())).or_default();
        if watched.watchers == 0 {
            watched.version = clock << 32;
        }
        watched.watchers += 1;
        watched.version
    }

    /// Ends one watch of a key.
    pub fn unwatch(&mut self, db: usize, key: &[u8]) {
        let id = (db, key.into());
        if let Some(watched) = self.watched.get_mut(&id) {
            watched.watchers -= 1;
            if watched.watchers == 0 {
                self.watched.remove(&id);
            }
        }
    }

    /// The version of a watched key.
    pub fn watch_version(&self, db: usize, key: &[u8]) -> Option<u64> {
        self.watched.get(&(db, key.into())).map(|w| w.version)
    }

    /// Records that a key was changed, for the clients that watch it.
    #[inline]
    pub fn touch(&mut self, db: usize, key: &[u8]) {
        if !self.watched.is_empty()
            && let Some(watched) = self.watched.get_mut(&(db, key.into()))
        {
            watched.version += 1;
        }
    }
}
