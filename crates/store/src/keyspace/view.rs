//! What a command may do with the shards that were locked for it.

use std::mem;

use parking_lot::{RwLockReadGuard, RwLockWriteGuard};
use smallvec::SmallVec;

use super::db::{Db, Leftover};
use super::entry::Entry;
use super::shard::Shard;
use super::sharded::Keyspace;
use crate::clock::Now;
use everbloom_files::Value;

/// A locked shard.
#[derive(Debug)]
enum Held<'k> {
    Shared(RwLockReadGuard<'k, Shard>),
    Exclusive(RwLockWriteGuard<'k, Shard>),
}

/// What was removed from the keyspace: freed after the locks are, for it may take long.
#[derive(Debug)]
enum Removed {
    Entry(Leftover),
    Db(Db),
}

impl Removed {
    fn memory(&self) -> usize {
        match self {
            Removed::Entry(entry) => entry.memory(),
            Removed::Db(db) => db.memory().unsigned_abs(),
        }
    }
}

/// Some locked shards. A command that reads gets it as `&View`, one that writes as `&mut View`,
/// and the lock of each is of the same kind.
#[derive(Debug)]
pub struct View<'k> {
    held: SmallVec<[(usize, Held<'k>); 2]>,
    removed: Vec<Removed>,
    keyspace: &'k Keyspace,
    now: Now,
    /// Keys found expired and removed: the journal must say so before what the command did.
    expired: Vec<(usize, Box<[u8]>)>,
}

impl<'k> View<'k> {
    /// Locks the shards with these numbers, which must be in rising order.
    pub(crate) fn lock(
        keyspace: &'k Keyspace,
        shards: impl Iterator<Item = usize>,
        exclusive: bool,
        now: Now,
    ) -> Self {
        let held = shards
            .map(|index| {
                let lock = keyspace.shard(index);
                let held = if exclusive {
                    Held::Exclusive(lock.write())
                } else {
                    Held::Shared(lock.read())
                };
                (index, held)
            })
            .collect();
        View {
            held,
            removed: Vec::new(),
            keyspace,
            now,
            expired: Vec::new(),
        }
    }

    /// The moment at which the command runs.
    pub fn now(&self) -> Now {
        self.now
    }

    /// How many databases there are.
    pub fn databases(&self) -> usize {
        self.keyspace.databases()
    }

    /// The hash of a key.
    pub fn hash(&self, key: &[u8]) -> u64 {
        self.keyspace.hash(key)
    }

    /// The live entry of a key.
    pub fn get(&self, db: usize, key: &[u8]) -> Option<&Entry> {
        let hash = self.keyspace.hash(key);
        self.shard(Keyspace::shard_of(hash))
            .db(db)
            .get(hash, key, self.now)
    }

    /// The live entry of a key, without counting as an access.
    pub fn peek(&self, db: usize, key: &[u8]) -> Option<&Entry> {
        let hash = self.keyspace.hash(key);
        self.shard(Keyspace::shard_of(hash))
            .db(db)
            .peek(hash, key, self.now.ms)
    }

    /// Whether a live entry of this key is there.
    pub fn contains(&self, db: usize, key: &[u8]) -> bool {
        self.get(db, key).is_some()
    }

    /// The locked shards, with their numbers: all of them for a command on the whole keyspace.
    pub fn shards(&self) -> impl Iterator<Item = (usize, &Shard)> {
        self.held.iter().map(|(index, held)| {
            let shard: &Shard = match held {
                Held::Shared(guard) => guard,
                Held::Exclusive(guard) => guard,
            };
            (*index, shard)
        })
    }

    /// Looks at one shard. A view that holds no shard at all locks it for so long; any other must
    /// hold it.
    pub fn with_shard<R>(&self, index: usize, look: impl FnOnce(&Shard) -> R) -> R {
        if self.held.is_empty() {
            look(&self.keyspace.shard(index).read())
        } else {
            look(self.shard(index))
        }
    }

    /// All live entries of a database, of all locked shards.
    pub fn entries(&self, db: usize) -> impl Iterator<Item = (u64, &Entry)> {
        self.shards()
            .flat_map(move |(_, shard)| shard.db(db).iter(self.now.ms))
    }

    /// Changes a value in place; `None` when the key is not there. Touches the key.
    pub fn modify<R>(
        &mut self,
        db: usize,
        key: &[u8],
        change: impl FnOnce(&mut Value) -> R,
    ) -> Option<R> {
        let (hash, now) = (self.live(db, key), self.now);
        let shard = self.shard_mut(Keyspace::shard_of(hash));
        let result = shard.db_mut(db).modify(hash, key, now, change)?;
        shard.touch(db, key);
        Some(result)
    }

    /// Puts a value under a key, in place of what was there.
    pub fn insert(&mut self, db: usize, key: &[u8], value: Value, expires_at: Option<u64>) {
        let (hash, clock) = (self.live(db, key), self.now.clock);
        let shard = self.shard_mut(Keyspace::shard_of(hash));
        let old = shard
            .db_mut(db)
            .insert(hash, Entry::new(key, value, expires_at, clock));
        shard.touch(db, key);
        self.removed.extend(old.map(Removed::Entry));
    }

    /// Removes a live entry; its memory is freed after the locks.
    pub fn delete(&mut self, db: usize, key: &[u8]) -> bool {
        let hash = self.live(db, key);
        let shard = self.shard_mut(Keyspace::shard_of(hash));
        let gone = shard.db_mut(db).discard(hash, key);
        let deleted = gone.is_some();
        if deleted {
            shard.touch(db, key);
        }
        self.removed.extend(gone.map(Removed::Entry));
        deleted
    }

    /// Takes a live entry out and returns it, to be put elsewhere.
    pub fn take(&mut self, db: usize, key: &[u8]) -> Option<Entry> {
        let hash = self.live(db, key);
        let shard = self.shard_mut(Keyspace::shard_of(hash));
        let taken = shard.db_mut(db).take(hash, key)?;
        shard.touch(db, key);
        Some(taken)
    }

    /// Sets or clears the expiry of a live key; false when there is none.
    pub fn set_expiry(&mut self, db: usize, key: &[u8], at: Option<u64>) -> bool {
        let (hash, now) = (self.live(db, key), self.now.ms);
        let shard = self.shard_mut(Keyspace::shard_of(hash));
        let set = shard.db_mut(db).set_expiry(hash, key, at, now);
        if set {
            shard.touch(db, key);
        }
        set
    }

    /// Notes that a key counts as changed for those who watch it.
    pub fn touch(&mut self, db: usize, key: &[u8]) {
        let hash = self.keyspace.hash(key);
        self.shard_mut(Keyspace::shard_of(hash)).touch(db, key);
    }

    /// Empties a database; returns how many keys it held. The view must hold the whole keyspace.
    pub fn flush(&mut self, db: usize) -> usize {
        let keyspace = self.keyspace;
        let mut keys = 0;
        for shard in exclusive(&mut self.held) {
            if !shard.db(db).is_empty() {
                let (held, left) = shard.flush(db, |key| keyspace.hash(key));
                keys += held;
                self.removed.extend(left.map(Removed::Db));
            }
        }
        keys
    }

    /// Exchanges two databases. The view must hold the whole keyspace.
    pub fn swap(&mut self, a: usize, b: usize) {
        let keyspace = self.keyspace;
        for shard in exclusive(&mut self.held) {
            shard.swap(a, b, |key| keyspace.hash(key));
        }
    }

    /// The shard of a key, to be changed.
    pub fn shard_of_key(&mut self, key: &[u8]) -> &mut Shard {
        let hash = self.keyspace.hash(key);
        self.shard_mut(Keyspace::shard_of(hash))
    }

    /// The keys that were found expired and removed since this was asked last, with their database.
    pub fn take_expired(&mut self) -> Vec<(usize, Box<[u8]>)> {
        mem::take(&mut self.expired)
    }

    /// The key's hash, once the key has been removed if it has expired.
    fn live(&mut self, db: usize, key: &[u8]) -> u64 {
        let (hash, now) = (self.keyspace.hash(key), self.now.ms);
        let shard = self.shard_mut(Keyspace::shard_of(hash));
        if shard.db(db).has_expired(hash, key, now) {
            let gone = shard.db_mut(db).discard(hash, key);
            shard.touch(db, key);
            self.removed.extend(gone.map(Removed::Entry));
            self.expired.push((db, key.into()));
        }
        hash
    }

    #[expect(
        clippy::expect_used,
        reason = "the lock planner holds every shard a command names"
    )]
    fn shard(&self, index: usize) -> &Shard {
        let at = self.held.binary_search_by_key(&index, |(i, _)| *i).ok();
        match at
            .and_then(|at| self.held.get(at))
            .expect("the shard of every named key is held")
        {
            (_, Held::Shared(guard)) => guard,
            (_, Held::Exclusive(guard)) => guard,
        }
    }

    #[expect(
        clippy::expect_used,
        reason = "the lock planner locks exclusively for every write"
    )]
    fn shard_mut(&mut self, index: usize) -> &mut Shard {
        let at = self.held.binary_search_by_key(&index, |(i, _)| *i).ok();
        match at.and_then(|at| self.held.get_mut(at)) {
            Some((_, Held::Exclusive(guard))) => Some(&mut **guard),
            _ => None,
        }
        .expect("the shard of every key to be written is held exclusively")
    }
}

fn exclusive<'v>(
    held: &'v mut SmallVec<[(usize, Held<'_>); 2]>,
) -> impl Iterator<Item = &'v mut Shard> {
    held.iter_mut().filter_map(|(_, held)| match held {
        Held::Exclusive(guard) => Some(&mut **guard),
        Held::Shared(_) => None,
    })
}

impl Drop for View<'_> {
    fn drop(&mut self) {
        let keyspace = self.keyspace;
        for shard in exclusive(&mut self.held) {
            for db in 0..keyspace.databases() {
                keyspace.settle(shard.db_mut(db));
            }
        }
        self.held.clear();
        if !self.removed.is_empty() {
            let bytes = self.removed.iter().map(Removed::memory).sum();
            keyspace.free(mem::take(&mut self.removed), bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::SHARDS;
    use super::*;

    const NOW: Now = Now { ms: 0, clock: 0 };

    #[test]
    fn a_view_that_holds_no_shard_locks_one_at_a_time() {
        let keyspace = Keyspace::new(1);
        let locked = || {
            let locked = |index: &usize| keyspace.shard(*index).try_write().is_none();
            (0..SHARDS).filter(locked).collect::<Vec<_>>()
        };
        let view = View::lock(&keyspace, 0..0, false, NOW);
        for index in 0..SHARDS {
            view.with_shard(index, |_| assert_eq!(locked(), [index]));
        }
        assert!(locked().is_empty());
    }

    #[test]
    fn what_is_flushed_is_freed_behind_and_after_the_locks() {
        let keyspace = Keyspace::new(1);
        let mut view = View::lock(&keyspace, 0..SHARDS, true, NOW);
        view.insert(0, b"large", Value::Text(vec![0; 1 << 20].into()), None);
        assert_eq!(view.flush(0), 1);
        assert!(!keyspace.release.is_started());
        drop(view);
        assert!(keyspace.release.is_started());
        assert_eq!(keyspace.memory(), 0);
    }
}
