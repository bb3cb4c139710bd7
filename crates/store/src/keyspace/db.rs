//! The entries of one database within one shard.

use std::ops::Range;
use std::sync::Arc;

use everbloom::host;
use everbloom_commands::bf::advance::{self, Begun};
use everbloom_files::Value;
use hashbrown::HashTable;

use super::captures::Captures;
use super::entry::{Entry, ValueSlot};
use super::expiries::Expiries;
use super::key::{KeyRef, Place};
use super::order;
use super::snapshot_queue::SnapshotQueue;
use super::sums::DbSums;
use crate::clock::Now;

/// Entries found by the hash of their key.
#[derive(Debug, Default)]
pub struct Db {
    table: HashTable<Box<Entry>>,
    sums: DbSums,
    settled: isize,
    expiries: Expiries,
    /// When windows have something to forget.
    windows: Expiries,
    snapshot: Option<Joined>,
    captures: Arc<Captures>,
}

/// A database's state within the snapshot being made.
#[derive(Debug)]
struct Joined {
    queue: Arc<SnapshotQueue>,
    /// This database's number when the snapshot began.
    number: usize,
    /// How many entries of the table the snapshot still needs.
    unkept: usize,
    /// The next bucket of the walk.
    next_bucket: usize,
}

impl Joined {
    /// Keeps an entry before its first change; returns how many bytes were copied.
    fn keep(&mut self, entry: &mut Entry) -> usize {
        if entry.epoch == self.queue.epoch() {
            return 0;
        }
        self.unkept -= 1;
        self.queue.keep(self.number, entry)
    }

    /// Takes over an entry that was removed for good, if the snapshot needs it.
    fn adopt(&mut self, entry: Entry) -> Option<Entry> {
        if entry.epoch != self.queue.epoch() {
            self.unkept -= 1;
        }
        self.queue.adopt(self.number, entry)
    }
}

/// The least budget that an entry takes in a snapshot's step, and the cost of a bucket with nothing
/// to keep.
const ENTRY_BYTES: usize = 64;
const BUCKET_BYTES: usize = 8;

/// The bytes of an expired key's name that take as much of the budget as another entry.
const NAME_BYTES_PER_ENTRY: usize = 4 << 10;

/// The bytes that generations free that take as much of the budget as another entry.
const FREED_BYTES_PER_ENTRY: usize = 64 << 10;

/// When a window is looked at again, at the earliest.
const RETRY_MS: u64 = 1;

/// The entry of a key, expired or not, that is probably at this place.
#[inline]
fn find_mut<'t>(
    table: &'t mut HashTable<Box<Entry>>,
    key: KeyRef<'_>,
    place: Place,
) -> Option<&'t mut Box<Entry>> {
    let is_it = |entry: &Entry| entry.is(key.hash, key.name);
    if table.get_bucket(place.bucket).is_some_and(|it| is_it(it)) {
        return table.get_bucket_mut(place.bucket);
    }
    table.find_mut(key.hash, |it| is_it(it))
}

/// The remains of a removed entry, to be freed when no lock is held. A snapshot may have taken over
/// the entry.
#[derive(Debug)]
pub struct Leftover(Option<Entry>);

impl Leftover {
    /// Bytes that are freed with it.
    pub fn memory(&self) -> usize {
        self.0.as_ref().map_or(0, Entry::memory)
    }
}

impl Db {
    /// An empty database in a keyspace with these readers.
    pub(super) fn new(captures: &Arc<Captures>) -> Self {
        Db {
            captures: Arc::clone(captures),
            ..Db::default()
        }
    }

    /// The number of keys, including those that have expired but are not yet removed.
    pub fn len(&self) -> usize {
        self.table.len()
    }

    /// Whether there is no key.
    pub fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    /// The number of keys that have an expiry.
    pub fn expiring(&self) -> usize {
        self.expiries.keys()
    }

    /// The totals over all entries.
    pub fn sums(&self) -> &DbSums {
        &self.sums
    }

    /// Bytes of the entries and of the heaps of what expires.
    pub fn memory(&self) -> isize {
        let heaps = self.expiries.memory() + self.windows.memory();
        self.sums.memory + heaps.cast_signed()
    }

    /// The change in memory since the last call.
    #[inline]
    pub fn take_memory_delta(&mut self) -> isize {
        let memory = self.memory();
        memory - std::mem::replace(&mut self.settled, memory)
    }

    /// Empties the database. Returns how many keys it held, and their remains to be freed.
    pub fn take_all(&mut self) -> (usize, Option<Db>) {
        let mut held = std::mem::replace(self, Db::new(&self.captures));
        self.settled = held.settled;
        let keys = held.len();
        match held.snapshot.take() {
            Some(mut joined) => {
                joined.queue.adopt_all(joined.number, held.table);
                joined.unkept = 0;
                self.snapshot = Some(joined);
                (keys, None)
            }
            None => {
                self.captures.removed_all(|id, hash| {
                    let found = held.table.find_entry(hash, |e| e.is_read_by(id));
                    let (entry, _) = found.ok()?.remove();
                    Some(entry.value)
                });
                (keys, Some(held))
            }
        }
    }

    /// Begins to keep entries for a snapshot, in which the database has this number.
    pub(super) fn join_snapshot(&mut self, queue: Arc<SnapshotQueue>, number: usize) {
        self.snapshot = Some(Joined {
            queue,
            number,
            unkept: self.table.len(),
            next_bucket: 0,
        });
    }

    /// Stops keeping entries for a snapshot.
    pub(super) fn leave_snapshot(&mut self) {
        self.snapshot = None;
    }

    /// Keeps entries for the snapshot until `budget` bytes are used; true when all are kept. The
    /// next call continues where this one ended.
    pub(super) fn keep_some(&mut self, budget: &mut usize) -> bool {
        let Some(joined) = &mut self.snapshot else {
            return true;
        };
        while joined.unkept > 0 {
            if *budget == 0 {
                return false;
            }
            if joined.next_bucket >= self.table.num_buckets() {
                // Entries that are not kept yet change their buckets when the table is rebuilt.
                joined.next_bucket = 0;
            }
            let entry = self.table.get_bucket_mut(joined.next_bucket);
            let cost = match entry.filter(|entry| entry.epoch != joined.queue.epoch()) {
                Some(entry) => {
                    let kept = self.sums.change(entry, |entry| joined.keep(entry));
                    kept.max(ENTRY_BYTES)
                }
                None => BUCKET_BYTES,
            };
            joined.next_bucket += 1;
            *budget = budget.saturating_sub(cost);
        }
        true
    }

    /// Whether a snapshot is being made of it.
    pub fn is_in_snapshot(&self) -> bool {
        self.snapshot.is_some()
    }

    /// The queue of the snapshot being made.
    pub(super) fn snapshot_queue(&self) -> Option<Arc<SnapshotQueue>> {
        self.snapshot
            .as_ref()
            .map(|joined| Arc::clone(&joined.queue))
    }

    /// Begins a reader of the value under `key`, if the key is alive; also returns the reader's id,
    /// which `begin` is given.
    pub(super) fn begin_capture<R>(
        &mut self,
        key: KeyRef<'_>,
        now: u64,
        begin: impl FnOnce(&mut Value, u64) -> Option<R>,
    ) -> Option<(R, u64)> {
        let entry = self
            .table
            .find_mut(key.hash, |e| e.is(key.hash, key.name))?;
        if entry.is_expired(now) {
            return None;
        }
        let id = self.captures.new_id();
        let begun = self
            .sums
            .change(entry, |entry| begin(&mut entry.value, id))?;
        self.captures.begin(id, key.hash);
        Some((begun, id))
    }

    /// Runs work on the value that has this reader, under a key of this hash. It changes nothing
    /// but what is kept for readers.
    pub(super) fn with_captured<R>(
        &mut self,
        hash: u64,
        id: u64,
        work: impl FnOnce(&mut Value) -> R,
    ) -> Option<R> {
        let entry = self.table.find_mut(hash, |e| e.is_read_by(id))?;
        Some(self.sums.read(entry, work))
    }

    /// Whether there is an entry of this key that is alive at `now`.
    pub fn contains(&self, key: KeyRef<'_>, now: u64) -> bool {
        self.peek(key, now).is_some()
    }

    /// All entries that are alive at `now`, with their hashes.
    pub fn iter(&self, now: u64) -> impl Iterator<Item = (u64, &Entry)> {
        self.table
            .iter()
            .filter(move |e| !e.is_expired(now))
            .map(|e| (e.hash, &**e))
    }

    /// Calls `look` with the entries of a slice of the [`order`], including expired ones. The time
    /// is proportional to their number.
    pub(super) fn slice(&self, positions: Range<u64>, look: impl FnMut(&Entry)) {
        order::slice(&self.table, positions, look);
    }

    /// The sum of the times left until expiry, in milliseconds, over the keys that have one. An
    /// expired key that is not yet removed counts as negative.
    pub fn time_left(&self, now: u64) -> u64 {
        self.expiries.time_left(now)
    }

    /// Finds a key's entry, if there is one, and prefetches its memory. It reads only the table, so
    /// in one of 128 cases it finds another entry.
    #[inline]
    pub fn prefetch(&self, key: KeyRef<'_>, place: &mut Place) {
        if let Some(bucket) = self.table.find_bucket_index(key.hash, |_| true)
            && let Some(likely) = self.table.get_bucket(bucket)
        {
            host::prefetch(&**likely);
            place.bucket = bucket;
        }
    }

    /// What is likely the value of a key, for a prefetch: only the hashes of names are compared,
    /// and it may have expired.
    #[inline]
    pub fn likely(&self, key: KeyRef<'_>, place: &mut Place) -> Option<&Value> {
        let is_likely = |entry: &Entry| entry.hash == key.hash;
        let mut found = self.table.get_bucket(place.bucket);
        if !found.is_some_and(|it| is_likely(it)) {
            place.bucket = self.table.find_bucket_index(key.hash, |it| is_likely(it))?;
            found = self.table.get_bucket(place.bucket);
        }
        found.map(|entry| &entry.value)
    }

    /// The entry of `key` if it is alive.
    #[inline]
    pub fn get(&self, key: KeyRef<'_>, now: Now) -> Option<&Entry> {
        let entry = self.peek(key, now.ms)?;
        entry.access(now.clock);
        Some(entry)
    }

    /// The same for an entry that is probably at this place.
    #[inline]
    pub(super) fn get_at(&self, key: KeyRef<'_>, place: Place, now: Now) -> Option<&Entry> {
        match self.table.get_bucket(place.bucket) {
            Some(entry) if entry.is(key.hash, key.name) && !entry.is_expired(now.ms) => {
                entry.access(now.clock);
                Some(entry)
            }
            _ => self.get(key, now),
        }
    }

    /// The entry of `key` if it is alive, without counting as an access.
    #[inline]
    pub fn peek(&self, key: KeyRef<'_>, now: u64) -> Option<&Entry> {
        self.find(key).filter(|entry| !entry.is_expired(now))
    }

    /// Whether `key` has expired but is not yet removed.
    pub fn has_expired(&self, key: KeyRef<'_>, now: u64) -> bool {
        self.find(key).is_some_and(|entry| entry.is_expired(now))
    }

    #[inline]
    fn find(&self, key: KeyRef<'_>) -> Option<&Entry> {
        let entry = self.table.find(key.hash, |e| e.is(key.hash, key.name));
        entry.map(|entry| &**entry)
    }

    /// Lets `work` change the value of `key` in place, or create it, and updates the totals. An
    /// expired entry must have been removed. The entry is probably at this place.
    #[inline]
    pub(super) fn change<R>(
        &mut self,
        (key, place): (KeyRef<'_>, Place),
        now: Now,
        work: impl FnOnce(ValueSlot<'_>) -> R,
    ) -> R {
        let Some(entry) = find_mut(&mut self.table, key, place) else {
            let mut created = None;
            let result = work(ValueSlot::Vacant(&mut created));
            if let Some(value) = created {
                // There was no value.
                let _ = self.insert(Entry::new(key, value, None, now.clock));
            }
            return result;
        };
        entry.access(now.clock);
        let snapshot = self.snapshot.as_mut();
        let before = entry.value.outdated_at();
        let result = self.sums.change(entry, |entry| {
            keep(snapshot, entry);
            work(ValueSlot::Held(&mut entry.value))
        });
        let after = entry.value.outdated_at();
        if before != after {
            self.window_changed(key.hash, before, after);
        }
        result
    }

    /// Changes the value of `key` in place, if there is one.
    pub fn modify<R>(
        &mut self,
        key: KeyRef<'_>,
        now: Now,
        change: impl FnOnce(&mut Value) -> R,
    ) -> Option<R> {
        self.change((key, Place::default()), now, |found| match found {
            ValueSlot::Held(value) => Some(change(value)),
            ValueSlot::Vacant(_) => None,
        })
    }

    /// Inserts an entry. An older one of the same key is removed for good.
    pub fn insert(&mut self, mut entry: Entry) -> Option<Leftover> {
        let hash = entry.hash;
        let old = self.remove(hash, entry.key());
        let (before, after) = (old.as_ref().and_then(Entry::expires_at), entry.expires_at());
        let old = old.map(|old| self.leave(old));
        if entry.value.capture().is_active() {
            self.captures.moved(&mut entry.value, hash);
        }
        if let Some(joined) = &self.snapshot {
            entry.epoch = joined.queue.epoch();
        }
        self.sums.add(DbSums::of(&entry));
        let outdated_at = entry.value.outdated_at();
        self.table.insert_unique(hash, Box::new(entry), |e| e.hash);
        self.expiry_changed(hash, before, after);
        self.window_changed(hash, None, outdated_at);
        old
    }

    /// Takes an entry out, expired or not, so that it can be inserted elsewhere.
    pub fn take(&mut self, key: KeyRef<'_>) -> Option<Entry> {
        let mut entry = self.remove(key.hash, key.name)?;
        self.expiry_changed(key.hash, entry.expires_at(), None);
        keep(self.snapshot.as_mut(), &mut entry);
        Some(entry)
    }

    /// Removes an entry for good, expired or not.
    pub fn discard(&mut self, key: KeyRef<'_>) -> Option<Leftover> {
        let entry = self.remove(key.hash, key.name)?;
        self.expiry_changed(key.hash, entry.expires_at(), None);
        Some(self.leave(entry))
    }

    /// Takes an entry out of the table and the totals. Its expiry is still counted.
    fn remove(&mut self, hash: u64, name: &[u8]) -> Option<Entry> {
        let found = self.table.find_entry(hash, |e| e.is(hash, name)).ok()?;
        let (entry, _) = found.remove();
        self.sums.remove(DbSums::of(&entry));
        self.window_changed(hash, entry.value.outdated_at(), None);
        Some(*entry)
    }

    /// Passes a removed entry to the snapshot or to the readers that need it, or else frees it.
    fn leave(&mut self, entry: Entry) -> Leftover {
        match &mut self.snapshot {
            Some(joined) => Leftover(joined.adopt(entry)),
            None if entry.value.capture().is_active() => {
                self.captures.removed(entry.value);
                Leftover(None)
            }
            None => Leftover(Some(entry)),
        }
    }

    /// Sets or clears the expiry of a key that is alive; false when there is none.
    pub fn set_expiry(&mut self, key: KeyRef<'_>, at: Option<u64>, now: u64) -> bool {
        let found = self.table.find_mut(key.hash, |e| e.is(key.hash, key.name));
        let Some(entry) = found.filter(|entry| !entry.is_expired(now)) else {
            return false;
        };
        let snapshot = self.snapshot.as_mut();
        self.sums.change(entry, |entry| keep(snapshot, entry));
        let before = entry.expires_at();
        entry.set_expires_at(at);
        self.expiry_changed(key.hash, before, at);
        true
    }

    /// The earliest expiry of a key or of generations that was added since the last call.
    #[inline]
    pub(super) fn take_added_expiry(&mut self) -> Option<u64> {
        let (key, window) = (self.expiries.take_added(), self.windows.take_added());
        key.into_iter().chain(window).min()
    }

    /// No key and no generation expires before this time (milliseconds of Unix time).
    pub fn earliest_expiry(&self) -> Option<u64> {
        let (key, window) = (self.expiries.earliest(), self.windows.earliest());
        key.into_iter().chain(window).min()
    }

    /// Removes expired entries until `budget` is used up. Each look-up of an entry takes one, and a
    /// long name more. Returns their keys and their remains.
    pub fn remove_expired(&mut self, now: u64, budget: &mut usize) -> Vec<(Box<[u8]>, Leftover)> {
        let mut gone = Vec::new();
        while *budget > 0
            && let Some(hash) = self.expiries.pop_due(now)
        {
            *budget -= 1;
            let found = self
                .table
                .find_entry(hash, |e| e.hash == hash && e.is_expired(now));
            if let Ok(found) = found {
                let entry = *found.remove().0;
                self.sums.remove(DbSums::of(&entry));
                self.expiry_changed(hash, entry.expires_at(), None);
                self.window_changed(hash, entry.value.outdated_at(), None);
                let key: Box<[u8]> = entry.key().into();
                *budget = budget.saturating_sub(key.len() / NAME_BYTES_PER_ENTRY);
                gone.push((key, self.leave(entry)));
                continue;
            }
            let later = self.expiries_of(hash).next();
            if let Some(later) = later {
                self.expiries.push(hash, later);
            }
        }
        gone
    }

    /// Drops the expired generations of windows until `budget` is used up. Each look-up of an entry
    /// takes one, and freed bytes more. Returns the keys and what a log must replay.
    pub fn forget_generations(&mut self, now: u64, budget: &mut usize) -> Vec<(Box<[u8]>, Begun)> {
        let mut begun = Vec::new();
        while *budget > 0
            && let Some(hash) = self.windows.pop_due(now)
        {
            *budget -= 1;
            let is_due = |e: &Entry| {
                let at = e.value.outdated_at().filter(|at| *at <= now);
                e.hash == hash && !e.is_expired(now) && at.is_some()
            };
            if let Some(entry) = self.table.find_mut(hash, |e| is_due(e)) {
                let (before, held) = (entry.value.outdated_at(), entry.memory());
                let snapshot = self.snapshot.as_mut();
                let forgot = self.sums.change(entry, |entry| {
                    keep(snapshot, entry);
                    forget(&mut entry.value, now)
                });
                let freed = held.saturating_sub(entry.memory());
                *budget = budget.saturating_sub(freed / FREED_BYTES_PER_ENTRY);
                let (key, after) = (entry.key().into(), entry.value.outdated_at());
                begun.extend(forgot.map(|forgot| (key, forgot)));
                self.windows.change(hash, before, after);
            }
            let next = self.outdated_of(hash, now).min();
            if let Some(next) = next {
                // One that had no memory for a new generation has to wait.
                self.windows.push(hash, next.max(now + RETRY_MS));
            }
        }
        begun
    }

    /// When the windows under the keys with this hash have something to forget.
    fn outdated_of(&self, hash: u64, now: u64) -> impl Iterator<Item = u64> {
        let of_hash = self.table.iter_hash(hash).filter(move |e| e.hash == hash);
        let alive = of_hash.filter(move |entry| !entry.is_expired(now));
        alive.filter_map(|entry| entry.value.outdated_at())
    }

    /// Updates the times of windows after that of a key changed. The table already has the change.
    #[inline]
    fn window_changed(&mut self, hash: u64, before: Option<u64>, after: Option<u64>) {
        if before.is_none() && after.is_none() {
            return;
        }
        self.windows.change(hash, before, after);
        if self.windows.is_stale() {
            let mut windows = std::mem::take(&mut self.windows);
            windows.rebuild(|hash| self.outdated_of(hash, 0));
            self.windows = windows;
        }
    }

    /// The expiries of the keys with this hash that have one. There is rarely more than one key.
    fn expiries_of(&self, hash: u64) -> impl Iterator<Item = u64> {
        let of_hash = self.table.iter_hash(hash).filter(move |e| e.hash == hash);
        of_hash.filter_map(|entry| entry.expires_at())
    }

    /// Updates the expiries after that of a key changed. The table already has the change.
    fn expiry_changed(&mut self, hash: u64, before: Option<u64>, after: Option<u64>) {
        self.expiries.change(hash, before, after);
        if self.expiries.is_stale() {
            let mut expiries = std::mem::take(&mut self.expiries);
            expiries.rebuild(|hash| self.expiries_of(hash));
            self.expiries = expiries;
        }
    }
}

/// Drops the expired generations of a value.
fn forget(value: &mut Value, now: u64) -> Option<Begun> {
    match value {
        Value::Filter(filter) => advance::forget(filter, now),
        Value::Text(_) => None,
    }
}

/// Keeps an entry for the snapshot before its first change.
#[inline]
fn keep(snapshot: Option<&mut Joined>, entry: &mut Entry) {
    if let Some(joined) = snapshot {
        joined.keep(entry);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(hash: u64, name: &str) -> KeyRef<'_> {
        let name = name.as_bytes();
        KeyRef { db: 0, name, hash }
    }

    fn text(hash: u64, name: &str, at: Option<u64>) -> Entry {
        Entry::new(key(hash, name), Value::Text(b"v"[..].into()), at, 0)
    }

    fn now(ms: u64) -> Now {
        Now { ms, clock: 0 }
    }

    #[test]
    fn memory_returns_to_zero() {
        let mut db = Db::default();
        db.insert(text(1, "a", None));
        db.insert(text(1, "a", Some(5)));
        db.insert(text(2, "b", None));
        let grown = db.modify(key(2, "b"), now(0), |value| match value {
            Value::Text(text) => text.append(&[0; 1000]),
            Value::Filter(_) => unreachable!(),
        });
        assert!(grown.is_some());
        assert!(db.sums().memory > 1000);
        db.discard(key(1, "a"));
        db.discard(key(2, "b"));
        assert_eq!((db.sums().memory, db.len(), db.expiring()), (0, 0, 0));
    }

    #[test]
    fn nothing_is_kept_for_a_reader_that_has_ended() {
        let mut db = Db::default();
        let mut entry = text(1, "a", None);
        entry.value.begin_capture(7, 0..1);
        db.insert(entry);
        let entry = db.peek(key(1, "a"), 0).unwrap();
        assert!(!entry.value.capture().is_active());
    }

    #[test]
    fn the_time_left_is_that_of_all_keys() {
        let mut db = Db::default();
        for (hash, at) in [Some(100), None, Some(300), Some(500), Some(700)]
            .into_iter()
            .enumerate()
        {
            db.insert(text(hash as u64, "a", at));
        }
        assert_eq!((db.expiring(), db.time_left(50)), (4, 1400));
        db.insert(text(0, "a", Some(200)));
        db.insert(text(2, "a", None));
        assert!(db.set_expiry(key(1, "a"), Some(60), 50));
        assert!(db.set_expiry(key(3, "a"), Some(900), 50));
        assert_eq!((db.expiring(), db.time_left(50)), (4, 10 + 150 + 850 + 650));
        assert_eq!(remove_expired(&mut db, 250), (2, 2));
        assert!(db.set_expiry(key(3, "a"), None, 250));
        assert_eq!((db.expiring(), db.time_left(250)), (1, 450));
        assert_eq!(db.time_left(800), 0);
        db.take(key(4, "a"));
        assert_eq!((db.expiring(), db.time_left(0)), (0, 0));
    }

    #[test]
    fn expired_keys_are_neither_seen_nor_kept() {
        let mut db = Db::default();
        db.insert(text(1, "a", Some(10)));
        db.insert(text(2, "b", Some(20)));
        assert!(db.get(key(1, "a"), now(9)).is_some());
        assert!(db.get(key(1, "a"), now(10)).is_none());
        assert_eq!(db.earliest_expiry(), Some(10));
        assert_eq!(remove_expired(&mut db, 10), (1, 1));
        assert_eq!(db.earliest_expiry(), Some(20));
        assert!(db.set_expiry(key(2, "b"), None, 10));
        assert_eq!(remove_expired(&mut db, 30), (0, 0));
        assert!(db.contains(key(2, "b"), 30));
    }

    /// How many entries were removed, and how many were looked up.
    fn remove_expired(db: &mut Db, now: u64) -> (usize, usize) {
        let mut budget = usize::MAX;
        let removed = db.remove_expired(now, &mut budget).len();
        (removed, usize::MAX - budget)
    }

    /// Each key that expires has an item in the heap that is not late, and the heap has few others.
    fn check_expiries(db: &Db) {
        let expiring: Vec<_> = db
            .table
            .iter()
            .filter(|e| e.expires_at().is_some())
            .collect();
        assert_eq!(db.expiring(), expiring.len());
        assert!(db.expiries.items() <= 2 * expiring.len() + 16);
        for entry in expiring {
            assert!(
                db.expiries
                    .has_item_for(entry.hash, entry.expires_at().unwrap())
            );
        }
    }

    #[test]
    fn only_entries_that_are_due_are_looked_at() {
        let mut db = Db::default();
        for hash in 0..10_000 {
            let at = (hash % 3 != 0).then_some(1000 + hash % 100);
            db.insert(text(hash, "a", at));
        }
        assert_eq!(remove_expired(&mut db, 999), (0, 0));
        assert_eq!(remove_expired(&mut db, 1000), (66, 66));
        check_expiries(&db);
        let mut budget = 5;
        assert_eq!(db.remove_expired(2000, &mut budget).len(), 5);
        assert_eq!(budget, 0);
        assert_eq!(db.earliest_expiry(), Some(1001));
    }

    #[test]
    fn a_long_name_counts_as_several_entries() {
        let mut db = Db::default();
        for hash in 0..10 {
            db.insert(text(hash, &"n".repeat(40 << 10), Some(1)));
        }
        let mut budget = 20;
        assert_eq!(db.remove_expired(1, &mut budget).len(), 2);
    }

    #[test]
    fn keys_without_an_expiry_take_no_memory_for_it_and_others_some() {
        let mut db = Db::default();
        for hash in 0..1000 {
            db.insert(text(hash, "a", None));
        }
        assert_eq!(db.memory(), db.sums().memory);
        let entry = db.sums().memory / 1000;
        for hash in 0..1000 {
            db.insert(text(1000 + hash, "a", Some(1 + hash)));
        }
        let more = db.memory() - 2000 * entry;
        // 16 bytes for each, in a buffer that doubles.
        assert!((16_000..=32_000).contains(&more), "{more}");
        assert_eq!(remove_expired(&mut db, 1000).0, 1000);
        let most = 1000 * entry + 1024;
        assert!(db.memory() <= most, "{}", db.memory());
    }

    #[test]
    fn a_key_that_is_renewed_takes_no_more_memory() {
        let mut db = Db::default();
        for hash in 0..100 {
            db.insert(text(hash, "a", Some(hash + 1)));
        }
        for round in 2..1000 {
            for hash in 0..100 {
                assert!(db.set_expiry(key(hash, "a"), Some(hash + round), 0));
                db.insert(text(hash, "a", Some(hash + round)));
            }
        }
        assert_eq!(db.expiries.items(), 100);
        check_expiries(&db);
        assert_eq!(remove_expired(&mut db, 998).0, 0);
        check_expiries(&db);
        assert_eq!(remove_expired(&mut db, 999).0, 1);
    }

    #[test]
    fn items_of_keys_that_are_gone_do_not_pile_up() {
        let mut db = Db::default();
        for round in 0..1000_u64 {
            for hash in 0..50 {
                db.insert(text(hash, "a", Some(10_000 - round)));
                match (hash + round) % 3 {
                    0 => drop(db.discard(key(hash, "a"))),
                    1 => assert!(db.set_expiry(key(hash, "a"), None, 0)),
                    _ => assert!(db.set_expiry(key(hash, "a"), Some(5000 - round), 0)),
                }
            }
            check_expiries(&db);
        }
        assert_eq!(remove_expired(&mut db, 10_000).0, 16);
        assert_eq!(db.expiring(), 0);
    }

    #[test]
    fn keys_of_the_same_hash_expire_each_in_its_time() {
        let mut db = Db::default();
        for (key, at) in [("a", 10), ("b", 20), ("c", 30)] {
            db.insert(text(7, key, Some(at)));
        }
        assert!(db.set_expiry(key(7, "a"), Some(25), 0));
        for _ in 0..100 {
            assert!(db.set_expiry(key(7, "c"), Some(40), 0));
            assert!(db.set_expiry(key(7, "c"), Some(30), 0));
            check_expiries(&db);
        }
        for (now, left) in [(15, 3), (20, 2), (25, 1), (29, 1), (30, 0)] {
            remove_expired(&mut db, now);
            assert_eq!(db.len(), left, "{now}");
        }
    }

    /// Keeping all entries of a table for a snapshot takes work in proportion to their number. The
    /// number of steps and the changes between them do not matter.
    #[test]
    fn a_snapshot_looks_at_every_entry_about_once() {
        for changes in [false, true] {
            let mut db = Db::default();
            for hash in 0..20_000 {
                db.insert(text(hash, "a", None));
            }
            let queue = Arc::new(SnapshotQueue::new(1, &db.captures));
            db.join_snapshot(Arc::clone(&queue), 0);
            let (mut spent, mut steps) = (0, 0);
            loop {
                let mut budget = 8 * ENTRY_BYTES;
                let done = db.keep_some(&mut budget);
                spent += 8 * ENTRY_BYTES - budget;
                if done {
                    break;
                }
                steps += 1;
                if changes {
                    // One is removed, one changed, and many are added: the table is rebuilt.
                    db.discard(key(steps, "a"));
                    assert!(db.set_expiry(key(10_000 + steps, "a"), Some(1), 0));
                    for hash in 0..20 {
                        db.insert(text(steps * 100_000 + hash, "a", None));
                    }
                }
            }
            assert!(steps > 1000, "{steps}");
            assert_eq!(queue.take_kept().len(), 20_000);
            let once = 20_000 * ENTRY_BYTES + db.table.num_buckets() * BUCKET_BYTES;
            assert!(spent <= 2 * once, "{spent} of {once}");
        }
    }
}
