//! The operations of a command on the shards that it has locked.

use std::mem;

use parking_lot::{RwLockReadGuard, RwLockWriteGuard};
use smallvec::SmallVec;

use super::db::{Db, Leftover};
use super::entry::Entry;
use super::shard::Shard;
use super::sharded::Keyspace;
use crate::clock::Now;
use everbloom_files::Value;

/// The location of a key in the shards of a view, whether the key exists or not.
#[derive(Debug, Clone, Copy)]
pub struct KeyLocation<'a> {
    db: usize,
    key: &'a [u8],
    hash: u64,
    /// The position of its shard among those that the view holds.
    held: usize,
}

impl KeyLocation<'_> {
    /// The key's database.
    pub fn db(&self) -> usize {
        self.db
    }
}

/// What a writing command finds under a key.
#[derive(Debug)]
pub enum ValueSlot<'v> {
    /// The value.
    Held(&'v mut Value),
    /// No value. If the command puts one here, the key is created.
    Vacant(&'v mut Option<Value>),
}

/// A locked shard.
#[derive(Debug)]
enum Held<'k> {
    Shared(RwLockReadGuard<'k, Shard>),
    Exclusive(RwLockWriteGuard<'k, Shard>),
}

/// Values removed from the keyspace. They are freed after the locks, because that can take long.
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

/// Some locked shards. A command that reads gets a `&View` with read locks, one that writes a `&mut
/// View` with write locks.
#[derive(Debug)]
pub struct View<'k> {
    held: SmallVec<[(usize, Held<'k>); 2]>,
    removed: Vec<Removed>,
    keyspace: &'k Keyspace,
    now: Now,
    expired: Expired,
}

/// Keys found expired and removed. The journal must record this before the command's own effects.
#[derive(Debug, Default)]
pub struct Expired {
    /// The keys, with their databases.
    pub keys: Vec<(usize, Box<[u8]>)>,
    /// How many more there were, for which there was no memory.
    pub unlisted: usize,
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
            expired: Expired::default(),
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

    /// Finds the location of a key. The view must hold its shard.
    #[inline]
    pub fn locate<'a>(&self, db: usize, key: &'a [u8]) -> KeyLocation<'a> {
        self.locate_hash(db, key, self.keyspace.hash(key))
    }

    /// As [`View::locate`], for a key whose [hash](View::hash) is known.
    #[inline]
    pub fn locate_hash<'a>(&self, db: usize, key: &'a [u8], hash: u64) -> KeyLocation<'a> {
        let shard = Keyspace::shard_of(hash);
        let held = self.held.binary_search_by_key(&shard, |(index, _)| *index);
        KeyLocation {
            db,
            key,
            hash,
            held: held.unwrap_or(usize::MAX),
        }
    }

    /// Prefetches the memory of the entry at a location.
    #[inline]
    pub fn prefetch(&self, at: &KeyLocation<'_>) {
        self.held_shard(at.held).db(at.db).prefetch(at.hash);
    }

    /// What is likely the value at a location, for a prefetch: it may be another's, or expired.
    #[inline]
    pub fn likely_at(&self, at: &KeyLocation<'_>) -> Option<&Value> {
        self.held_shard(at.held).db(at.db).likely(at.hash)
    }

    /// The live entry at a location.
    #[inline]
    pub fn get_at(&self, at: &KeyLocation<'_>) -> Option<&Entry> {
        let db = self.held_shard(at.held).db(at.db);
        db.get(at.hash, at.key, self.now)
    }

    /// The live entry at a location, without counting as an access.
    #[inline]
    pub fn peek_at(&self, at: &KeyLocation<'_>) -> Option<&Entry> {
        let db = self.held_shard(at.held).db(at.db);
        db.peek(at.hash, at.key, self.now.ms)
    }

    /// Lets `work` change the value at a location, and creates the key if `work` puts a value where
    /// there was none. Also returns whether the memory grew. Call [`View::remove_expired`] first.
    #[inline]
    pub fn change_at<R>(
        &mut self,
        at: &KeyLocation<'_>,
        work: impl FnOnce(ValueSlot<'_>) -> R,
    ) -> (R, bool) {
        let (keyspace, now) = (self.keyspace, self.now);
        let db = self.held_shard_mut(at.held).db_mut(at.db);
        let mut work = Some(work);
        let mut run = |found: ValueSlot<'_>| work.take().map(|work| work(found));
        let modified = db.modify(at.hash, at.key, now, |value| run(ValueSlot::Held(value)));
        let mut created = None;
        let result = modified
            .flatten()
            .or_else(|| run(ValueSlot::Vacant(&mut created)));
        if let Some(value) = created {
            let entry = Entry::new(at.key, value, None, now.clock);
            // There was no value.
            let _ = db.insert(at.hash, entry);
        }
        let grown = keyspace.settle(db) > 0;
        #[expect(clippy::expect_used, reason = "there was either something or nothing")]
        (result.expect("the work ran"), grown)
    }

    /// Marks the key at a location as changed for the clients that watch it.
    #[inline]
    pub fn touch_at(&mut self, at: &KeyLocation<'_>) {
        self.held_shard_mut(at.held).touch(at.db, at.key);
    }

    /// Removes the key at a location if it has expired. For clients that watch it nothing changes:
    /// it was gone before.
    #[inline]
    pub fn remove_expired(&mut self, at: &KeyLocation<'_>) {
        let now = self.now.ms;
        let db = self.held_shard(at.held).db(at.db);
        if db.expiring() > 0 && db.has_expired(at.hash, at.key, now) {
            self.remove_at(at);
        }
    }

    /// Removes the key at a location, which has expired.
    #[cold]
    fn remove_at(&mut self, at: &KeyLocation<'_>) {
        let keyspace = self.keyspace;
        let shard = self.held_shard_mut(at.held);
        let db = shard.db_mut(at.db);
        let gone = db.discard(at.hash, at.key);
        keyspace.settle(db);
        retire(&mut self.removed, gone.map(Removed::Entry));
        // Few always find memory.
        match self.expired.keys.try_reserve(1).is_ok() || self.expired.keys.is_empty() {
            true => self.expired.keys.push((at.db, at.key.into())),
            false => self.expired.unlisted += 1,
        }
    }

    /// The live entry of a key.
    pub fn get(&self, db: usize, key: &[u8]) -> Option<&Entry> {
        self.get_at(&self.locate(db, key))
    }

    /// The live entry of a key, without counting as an access.
    pub fn peek(&self, db: usize, key: &[u8]) -> Option<&Entry> {
        self.peek_at(&self.locate(db, key))
    }

    /// Whether this key has a live entry.
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

    /// Runs work on one shard. A view without any shard locks it meanwhile; any other must hold it.
    pub fn with_shard<R>(&self, index: usize, look: impl FnOnce(&Shard) -> R) -> R {
        if self.held.is_empty() {
            look(&self.keyspace.shard(index).read())
        } else {
            let held = self.held.binary_search_by_key(&index, |(index, _)| *index);
            look(self.held_shard(held.unwrap_or(usize::MAX)))
        }
    }

    /// All live entries of a database, of all locked shards.
    pub fn entries(&self, db: usize) -> impl Iterator<Item = (u64, &Entry)> {
        self.shards()
            .flat_map(move |(_, shard)| shard.db(db).iter(self.now.ms))
    }

    /// Runs work on the database of a live key, and updates the memory total.
    fn with_live<R>(
        &mut self,
        at: &KeyLocation<'_>,
        work: impl FnOnce(&mut Db, Now) -> Option<R>,
    ) -> Option<R> {
        self.remove_expired(at);
        let (keyspace, now) = (self.keyspace, self.now);
        let shard = self.held_shard_mut(at.held);
        let db = shard.db_mut(at.db);
        let result = work(db, now)?;
        keyspace.settle(db);
        shard.touch(at.db, at.key);
        Some(result)
    }

    /// Changes a value in place; `None` when the key does not exist. Touches the key.
    pub fn modify<R>(
        &mut self,
        db: usize,
        key: &[u8],
        change: impl FnOnce(&mut Value) -> R,
    ) -> Option<R> {
        let at = self.locate(db, key);
        self.with_live(&at, |db, now| db.modify(at.hash, key, now, change))
    }

    /// Stores a value under a key and replaces the old one.
    pub fn insert(&mut self, db: usize, key: &[u8], value: Value, expires_at: Option<u64>) {
        let at = self.locate(db, key);
        let old = self.with_live(&at, |db, now| {
            Some(db.insert(at.hash, Entry::new(key, value, expires_at, now.clock)))
        });
        retire(&mut self.removed, old.flatten().map(Removed::Entry));
    }

    /// Removes a live entry; its memory is freed after the locks.
    pub fn delete(&mut self, db: usize, key: &[u8]) -> bool {
        let at = self.locate(db, key);
        let gone = self.with_live(&at, |db, _| db.discard(at.hash, key));
        let deleted = gone.is_some();
        retire(&mut self.removed, gone.map(Removed::Entry));
        deleted
    }

    /// Takes out a live entry and returns it, so that it can be inserted elsewhere.
    pub fn take(&mut self, db: usize, key: &[u8]) -> Option<Entry> {
        let at = self.locate(db, key);
        self.with_live(&at, |db, _| db.take(at.hash, key))
    }

    /// Sets or clears the expiry of a live key; false when there is none.
    pub fn set_expiry(&mut self, db: usize, key: &[u8], at: Option<u64>) -> bool {
        let location = self.locate(db, key);
        let set = self.with_live(&location, |db, now| {
            db.set_expiry(location.hash, key, at, now.ms).then_some(())
        });
        set.is_some()
    }

    /// Marks a key as changed for the clients that watch it.
    pub fn touch(&mut self, db: usize, key: &[u8]) {
        self.touch_at(&self.locate(db, key));
    }

    /// Empties a database; returns how many keys it held. The view must hold the whole keyspace.
    pub fn flush(&mut self, db: usize) -> usize {
        let (keyspace, now) = (self.keyspace, self.now.ms);
        let mut keys = 0;
        for shard in exclusive(&mut self.held) {
            if !shard.db(db).is_empty() {
                let (held, left) = shard.flush(db, now, |key| keyspace.hash(key));
                keys += held;
                keyspace.settle(shard.db_mut(db));
                retire(&mut self.removed, left.map(Removed::Db));
            }
        }
        keys
    }

    /// Exchanges two databases. The view must hold the whole keyspace.
    pub fn swap(&mut self, a: usize, b: usize) {
        let (keyspace, now) = (self.keyspace, self.now.ms);
        for shard in exclusive(&mut self.held) {
            shard.swap(a, b, now, |key| keyspace.hash(key));
        }
    }

    /// The shard of a key, for changes.
    pub fn shard_of_key(&mut self, key: &[u8]) -> &mut Shard {
        self.held_shard_mut(self.locate(0, key).held)
    }

    /// Whether keys were found expired and removed since [`take_expired`](Self::take_expired).
    #[inline]
    pub fn has_removed_expired(&self) -> bool {
        !self.expired.keys.is_empty()
    }

    /// The keys found expired and removed since the last call.
    pub fn take_expired(&mut self) -> Expired {
        mem::take(&mut self.expired)
    }

    #[inline]
    #[expect(clippy::expect_used, reason = "every named key has its shard locked")]
    fn held_shard(&self, held: usize) -> &Shard {
        match self.held.get(held) {
            Some((_, Held::Shared(guard))) => Some(&**guard),
            Some((_, Held::Exclusive(guard))) => Some(&**guard),
            None => None,
        }
        .expect("the shard of every named key is held")
    }

    #[inline]
    #[expect(
        clippy::expect_used,
        reason = "every command that writes locks exclusively"
    )]
    fn held_shard_mut(&mut self, held: usize) -> &mut Shard {
        match self.held.get_mut(held) {
            Some((_, Held::Exclusive(guard))) => Some(&mut **guard),
            _ => None,
        }
        .expect("the shard of every key to be written is held exclusively")
    }
}

/// Keeps what was removed until the locks are gone. Without memory for that it is freed at once.
fn retire(removed: &mut Vec<Removed>, one: Option<Removed>) {
    if let Some(one) = one
        && removed.try_reserve(1).is_ok()
    {
        removed.push(one);
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
