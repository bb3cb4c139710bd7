//! What a command can do with the shards that it has locked: read them, or change them.

use std::mem;
use std::ops::{Deref, DerefMut};

use parking_lot::{RwLockReadGuard, RwLockWriteGuard};
use smallvec::SmallVec;

use super::db::{Db, Leftover};
use super::entry::{Entry, ValueSlot};
use super::key::{KeyRef, Place, Places, SHARDS};
use super::shard::Shard;
use super::sharded::Keyspace;
use crate::clock::Now;
use everbloom_files::Value;

/// Locked shards with their numbers, in rising order.
type Locks<G> = SmallVec<[(usize, G); 2]>;

/// The locked shard of this number, which is probably at this position.
///
/// # Panics
///
/// It is not locked: a command must lock the shards of all keys that it names.
#[inline]
#[expect(clippy::indexing_slicing, reason = "see above")]
fn shard_in<G: Deref<Target = Shard>>(locks: &[(usize, G)], shard: usize, at: usize) -> &Shard {
    &locks[position(locks, shard, at)].1
}

/// The same, for changes.
#[inline]
#[expect(clippy::indexing_slicing, reason = "see above")]
fn shard_in_mut<G: DerefMut<Target = Shard>>(
    locks: &mut [(usize, G)],
    shard: usize,
    at: usize,
) -> &mut Shard {
    let at = position(locks, shard, at);
    &mut locks[at].1
}

/// The position of a locked shard, which is probably this one.
#[inline]
fn position<G>(locks: &[(usize, G)], shard: usize, at: usize) -> usize {
    match locks.get(at) {
        Some((number, _)) if *number == shard => at,
        _ => search(locks, shard),
    }
}

/// The positions and numbers of locked shards.
fn numbers<G>(locks: &[(usize, G)]) -> impl Iterator<Item = (usize, usize)> {
    locks.iter().map(|(number, _)| *number).enumerate()
}

/// The numbers of shards come from hashes, so they are spread evenly, and one is found near to where
/// it is expected.
#[inline]
fn search<G>(locks: &[(usize, G)], shard: usize) -> usize {
    let expected = shard * locks.len() / SHARDS;
    let (before, after) = locks.split_at(expected.min(locks.len()));
    let is_it = |(number, _): &(usize, G)| *number == shard;
    let found = match after.first() {
        Some((number, _)) if *number <= shard => {
            after.iter().position(is_it).map(|at| expected + at)
        }
        _ => before.iter().rposition(is_it),
    };
    found.unwrap_or(usize::MAX)
}

/// Shards that are locked for reading.
#[derive(Debug)]
pub struct ReadLocks<'k> {
    locks: Locks<RwLockReadGuard<'k, Shard>>,
    keyspace: &'k Keyspace,
    now: Now,
}

impl<'k> ReadLocks<'k> {
    /// Locks the shards with these numbers, which must be in rising order.
    #[inline]
    pub(super) fn lock(
        keyspace: &'k Keyspace,
        shards: impl Iterator<Item = usize>,
        now: Now,
    ) -> Self {
        let mut locks = Locks::with_capacity(shards.size_hint().0);
        shards.for_each(|it| locks.push((it, keyspace.shard(it).read())));
        ReadLocks {
            locks,
            keyspace,
            now,
        }
    }

    /// What is in them.
    #[inline]
    pub fn view(&self) -> View<'_> {
        View {
            shards: Shards::Shared(&self.locks),
            keyspace: self.keyspace,
            now: self.now,
        }
    }
}

/// The shards of a view.
#[derive(Debug, Clone, Copy)]
enum Shards<'v> {
    Shared(&'v [(usize, RwLockReadGuard<'v, Shard>)]),
    Exclusive(&'v [(usize, RwLockWriteGuard<'v, Shard>)]),
}

/// What a command that reads sees of the keyspace.
#[derive(Debug, Clone, Copy)]
pub struct View<'v> {
    shards: Shards<'v>,
    keyspace: &'v Keyspace,
    now: Now,
}

impl<'v> View<'v> {
    /// A view that locks one shard at a time, for [`View::with_shard`].
    pub fn of_each(keyspace: &'v Keyspace, now: Now) -> Self {
        View {
            shards: Shards::Shared(&[]),
            keyspace,
            now,
        }
    }

    /// The moment at which the command runs.
    pub fn now(self) -> Now {
        self.now
    }

    /// All keys, with or without the locks.
    pub fn keyspace(self) -> &'v Keyspace {
        self.keyspace
    }

    /// The part of a key's database that is in its shard, which must be locked.
    #[inline]
    pub fn db(self, key: KeyRef<'_>) -> &'v Db {
        self.db_at(key, Place::default())
    }

    /// Finds the shards of many keys among those of the view.
    pub fn places(self, keys: &[KeyRef<'_>]) -> Places {
        let mut positions = [0_u8; SHARDS];
        let mut note = |at: usize, number: usize| {
            if let Some(position) = positions.get_mut(number) {
                // A position that needs more bits is searched for.
                *position = u8::try_from(at).unwrap_or(0);
            }
        };
        match self.shards {
            Shards::Shared(locks) => numbers(locks).for_each(|(at, number)| note(at, number)),
            Shards::Exclusive(locks) => numbers(locks).for_each(|(at, number)| note(at, number)),
        }
        let position = |key: &KeyRef<'_>| positions.get(key.shard()).copied();
        let places = keys.iter().map(|key| Place {
            lock: position(key).unwrap_or(0).into(),
            ..Place::default()
        });
        places.collect()
    }

    /// The part of a key's database that is in its shard, which is probably at this place.
    #[inline]
    pub fn db_at(self, key: KeyRef<'_>, place: Place) -> &'v Db {
        self.shard(key.shard(), place.lock).db(key.db)
    }

    /// The live entry of a key.
    #[inline]
    pub fn get(self, key: KeyRef<'_>) -> Option<&'v Entry> {
        self.db(key).get(key, self.now)
    }

    /// The live entry of a key that is probably at this place.
    #[inline]
    pub fn get_at(self, key: KeyRef<'_>, place: Place) -> Option<&'v Entry> {
        self.db_at(key, place).get_at(key, place, self.now)
    }

    /// The live entry of a key, without counting as an access.
    #[inline]
    pub fn peek(self, key: KeyRef<'_>) -> Option<&'v Entry> {
        self.db(key).peek(key, self.now.ms)
    }

    /// Whether this key has a live entry. It counts as an access.
    pub fn contains(self, key: KeyRef<'_>) -> bool {
        self.get(key).is_some()
    }

    /// The locked shards: all of them for a command on the whole keyspace.
    pub fn shards(self) -> impl Iterator<Item = &'v Shard> {
        let (shared, exclusive) = match self.shards {
            Shards::Shared(locks) => (locks, &[][..]),
            Shards::Exclusive(locks) => (&[][..], locks),
        };
        let shared = shared.iter().map(|(_, shard)| &**shard);
        shared.chain(exclusive.iter().map(|(_, shard)| &**shard))
    }

    /// Runs work on the shard of this number. If the view has none, it is locked meanwhile.
    pub fn with_shard<R>(self, number: usize, look: impl FnOnce(&Shard) -> R) -> R {
        match self.shards {
            Shards::Shared([]) => look(&self.keyspace.shard(number).read()),
            _ => look(self.shard(number, number)),
        }
    }

    #[inline]
    fn shard(self, number: usize, at: usize) -> &'v Shard {
        match self.shards {
            Shards::Shared(locks) => shard_in(locks, number, at),
            Shards::Exclusive(locks) => shard_in(locks, number, at),
        }
    }

    /// All live entries of a database, of all locked shards.
    pub fn entries(self, db: usize) -> impl Iterator<Item = (u64, &'v Entry)> {
        let shards = self.shards();
        shards.flat_map(move |shard| shard.db(db).iter(self.now.ms))
    }
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

/// Keeps what was removed until the locks are gone. Without memory for that it is freed at once.
fn retire(removed: &mut Vec<Removed>, one: Option<Removed>) {
    if let Some(one) = one
        && removed.try_reserve(1).is_ok()
    {
        removed.push(one);
    }
}

/// Keys found expired and removed. The journal must record this before the command's own effects.
#[derive(Debug, Default)]
pub struct Expired {
    /// The keys, with their databases.
    pub keys: Vec<(usize, Box<[u8]>)>,
    /// How many more there were, for which there was no memory.
    pub unlisted: usize,
}

/// Shards that are locked for a command that changes them.
#[derive(Debug)]
pub struct ViewMut<'k> {
    locks: Locks<RwLockWriteGuard<'k, Shard>>,
    removed: Vec<Removed>,
    keyspace: &'k Keyspace,
    now: Now,
    expired: Expired,
}

impl<'k> ViewMut<'k> {
    /// Locks the shards with these numbers, which must be in rising order.
    #[inline]
    pub(super) fn lock(
        keyspace: &'k Keyspace,
        shards: impl Iterator<Item = usize>,
        now: Now,
    ) -> Self {
        let mut locks = Locks::with_capacity(shards.size_hint().0);
        shards.for_each(|it| locks.push((it, keyspace.shard(it).write())));
        ViewMut {
            locks,
            removed: Vec::new(),
            keyspace,
            now,
            expired: Expired::default(),
        }
    }

    /// All keys, with or without the locks.
    pub fn keyspace(&self) -> &'k Keyspace {
        self.keyspace
    }

    /// The same shards for reading.
    #[inline]
    pub fn read(&self) -> View<'_> {
        View {
            shards: Shards::Exclusive(&self.locks),
            keyspace: self.keyspace,
            now: self.now,
        }
    }

    /// The shard of a key, which must be locked.
    #[inline]
    pub fn shard(&mut self, key: KeyRef<'_>) -> &mut Shard {
        shard_in_mut(&mut self.locks, key.shard(), 0)
    }

    /// The entry of a key, to change it. If it has expired, it is removed first.
    #[inline]
    pub fn entry<'v>(&'v mut self, key: KeyRef<'v>) -> EntryMut<'v> {
        self.entry_at(key, Place::default())
    }

    /// The same for a key that is probably at this place.
    #[inline]
    pub fn entry_at<'v>(&'v mut self, key: KeyRef<'v>, place: Place) -> EntryMut<'v> {
        let mut entry = EntryMut {
            shard: shard_in_mut(&mut self.locks, key.shard(), place.lock),
            place,
            removed: &mut self.removed,
            expired: &mut self.expired,
            keyspace: self.keyspace,
            key,
            now: self.now,
        };
        entry.remove_if_expired();
        entry
    }

    /// Empties a database; returns how many keys it held. The view must hold the whole keyspace.
    pub fn flush(&mut self, db: usize) -> usize {
        let (keyspace, now) = (self.keyspace, self.now.ms);
        let mut keys = 0;
        for (_, shard) in &mut self.locks {
            if !shard.db(db).is_empty() {
                let (held, left) = shard.flush(db, now, |db, name| keyspace.key(db, name));
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
        for (_, shard) in &mut self.locks {
            shard.swap(a, b, now, |db, name| keyspace.key(db, name));
        }
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
}

impl Drop for ViewMut<'_> {
    fn drop(&mut self) {
        self.locks.clear();
        if !self.removed.is_empty() {
            let bytes = self.removed.iter().map(Removed::memory).sum();
            self.keyspace.free(mem::take(&mut self.removed), bytes);
        }
    }
}

/// A key in a locked shard, whether it exists or not, to change it.
#[derive(Debug)]
pub struct EntryMut<'v> {
    shard: &'v mut Shard,
    place: Place,
    removed: &'v mut Vec<Removed>,
    expired: &'v mut Expired,
    keyspace: &'v Keyspace,
    key: KeyRef<'v>,
    now: Now,
}

impl EntryMut<'_> {
    #[inline]
    fn remove_if_expired(&mut self) {
        let db = self.shard.db(self.key.db);
        if db.expiring() > 0 && db.has_expired(self.key, self.now.ms) {
            self.remove_expired();
        }
    }

    #[cold]
    fn remove_expired(&mut self) {
        let key = self.key;
        let db = self.shard.db_mut(key.db);
        let gone = db.discard(key);
        self.keyspace.settle(db);
        self.shard.touch_expired(key);
        retire(self.removed, gone.map(Removed::Entry));
        // Few always find memory.
        match self.expired.keys.try_reserve(1).is_ok() || self.expired.keys.is_empty() {
            true => self.expired.keys.push((key.db, key.name.into())),
            false => self.expired.unlisted += 1,
        }
    }

    /// The keys that were found expired and removed in the view of this entry.
    #[inline]
    pub fn expired(&mut self) -> &mut Expired {
        self.expired
    }

    /// Lets `work` change the value, or create the key if `work` puts a value where there was none.
    /// Also returns whether the memory grew.
    #[inline]
    pub fn change<R>(&mut self, work: impl FnOnce(ValueSlot<'_>) -> R) -> (R, bool) {
        let db = self.shard.db_mut(self.key.db);
        let result = db.change((self.key, self.place), self.now, work);
        (result, self.keyspace.settle(db) > 0)
    }

    /// Changes the value in place; `None` when the key does not exist. Touches the key.
    pub fn modify<R>(&mut self, change: impl FnOnce(&mut Value) -> R) -> Option<R> {
        self.touching(|db, key, now| db.modify(key, now, change))
    }

    /// Stores a value, and replaces the old one.
    pub fn insert(&mut self, value: Value, expires_at: Option<u64>) {
        let old = self.touching(|db, key, now| {
            Some(db.insert(Entry::new(key, value, expires_at, now.clock)))
        });
        retire(self.removed, old.flatten().map(Removed::Entry));
    }

    /// Removes it; false when it does not exist. Its memory is freed after the locks.
    pub fn delete(&mut self) -> bool {
        let gone = self.touching(|db, key, _| db.discard(key));
        let deleted = gone.is_some();
        retire(self.removed, gone.map(Removed::Entry));
        deleted
    }

    /// Takes it out, so that it can be inserted elsewhere.
    pub fn take(&mut self) -> Option<Entry> {
        self.touching(|db, key, _| db.take(key))
    }

    /// Sets or clears the expiry; false when the key does not exist.
    pub fn set_expiry(&mut self, at: Option<u64>) -> bool {
        let set = self.touching(|db, key, now| db.set_expiry(key, at, now.ms).then_some(()));
        set.is_some()
    }

    /// Marks the key as changed for the clients that watch it.
    #[inline]
    pub fn touch(&mut self) {
        self.shard.touch(self.key);
    }

    /// Runs work on the key's database. If it has changed the key, marks it as changed.
    fn touching<R>(
        &mut self,
        work: impl FnOnce(&mut Db, KeyRef<'_>, Now) -> Option<R>,
    ) -> Option<R> {
        let db = self.shard.db_mut(self.key.db);
        let result = work(db, self.key, self.now)?;
        self.keyspace.settle(db);
        self.touch();
        Some(result)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Now = Now { ms: 0, clock: 0 };

    #[test]
    fn a_view_that_holds_no_shard_locks_one_at_a_time() {
        let keyspace = Keyspace::new(1);
        let locked = || {
            let locked = |index: &usize| keyspace.shard(*index).try_write().is_none();
            (0..SHARDS).filter(locked).collect::<Vec<_>>()
        };
        let view = View::of_each(&keyspace, NOW);
        for index in 0..SHARDS {
            view.with_shard(index, |_| assert_eq!(locked(), [index]));
        }
        assert!(locked().is_empty());
    }

    /// Tables move their entries when they grow, and a bucket gets another entry.
    #[test]
    fn a_key_is_found_when_another_is_at_its_place() {
        let keyspace = Keyspace::new(1);
        let names: Vec<String> = (0..20_000).map(|name| name.to_string()).collect();
        let keys: Vec<_> = names
            .iter()
            .map(|name| keyspace.key(0, name.as_bytes()))
            .collect();
        let value = |at: usize| Value::Text(at.to_string().into_bytes().into());
        let mut view = ViewMut::lock(&keyspace, 0..SHARDS, NOW);
        for (at, key) in keys.iter().enumerate().take(10_000) {
            view.entry(*key).insert(value(at), None);
        }
        let mut places = view.read().places(&keys);
        for (key, place) in keys.iter().zip(&mut places) {
            view.read().db(*key).prefetch(*key, place);
        }
        for (at, key) in keys.iter().enumerate().take(5000) {
            assert!(view.entry(*key).delete(), "{at}");
        }
        for (at, key) in keys.iter().enumerate().skip(10_000) {
            view.entry(*key).insert(value(at), None);
        }
        for (at, (key, place)) in keys.iter().zip(places).enumerate() {
            let text = |value: &Value| value.part(0, 0..100);
            let expected = (at >= 5000).then(|| text(&value(at)));
            let found = view.read().get_at(*key, place);
            assert_eq!(found.map(|entry| text(&entry.value)), expected);
            let (changed, _) = view.entry_at(*key, place).change(|found| match found {
                ValueSlot::Held(value) => Some(text(value)),
                ValueSlot::Vacant(_) => None,
            });
            assert_eq!(changed, expected);
        }
    }

    #[test]
    fn what_is_flushed_is_freed_behind_and_after_the_locks() {
        let keyspace = Keyspace::new(1);
        let mut view = ViewMut::lock(&keyspace, 0..SHARDS, NOW);
        let large = Value::Text(vec![0; 1 << 20].into());
        view.entry(keyspace.key(0, b"large")).insert(large, None);
        assert_eq!(view.flush(0), 1);
        assert!(!keyspace.release.is_started());
        drop(view);
        assert!(keyspace.release.is_started());
        assert_eq!(keyspace.memory(), 0);
    }
}
