//! The entries of one database within one shard.

use std::ops::Range;
use std::sync::Arc;

use everbloom::host;
use everbloom_files::Value;
use hashbrown::HashTable;

use super::captures::Captures;
use super::entry::Entry;
use super::order;
use super::snapshot_queue::SnapshotQueue;
use super::sums::Sums;
use crate::clock::Now;

/// Entries found by the hash of their key. Every method that takes a `hash` wants the keyspace's
/// hash of that same key.
#[derive(Debug, Default)]
pub struct Db {
    table: HashTable<Box<Entry>>,
    sums: Sums,
    settled: isize,
    expiring: usize,
    /// The sum of the expiry times of the keys that have one.
    expiry_times: u128,
    /// No key expires before this time (milliseconds of Unix time).
    earliest_expiry: u64,
    /// The snapshot being made, and this database's number at its moment.
    snapshot: Option<(Arc<SnapshotQueue>, usize)>,
    captures: Arc<Captures>,
}

/// What is left of a removed entry, to be freed when no lock is held. A snapshot may have taken the
/// entry over.
#[derive(Debug)]
pub struct Leftover(Option<Entry>);

impl Leftover {
    /// Bytes that are freed with it.
    pub fn memory(&self) -> usize {
        self.0.as_ref().map_or(0, Entry::memory)
    }
}

impl Db {
    /// No entries, in a keyspace of these readers.
    pub(super) fn new(captures: &Arc<Captures>) -> Self {
        Db {
            captures: Arc::clone(captures),
            ..Db::default()
        }
    }

    /// The number of keys, those included that have expired but are not yet removed.
    pub fn len(&self) -> usize {
        self.table.len()
    }

    /// Whether there is no key.
    pub fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    /// The number of keys that have an expiry.
    pub fn expiring(&self) -> usize {
        self.expiring
    }

    /// What all entries come to.
    pub fn sums(&self) -> &Sums {
        &self.sums
    }

    /// What the memory changed by since this was asked last.
    #[inline]
    pub fn take_memory_delta(&mut self) -> isize {
        let before = std::mem::replace(&mut self.settled, self.sums.memory);
        self.sums.memory - before
    }

    /// Empties the database; returns how many keys it held, and what is left of them to be freed.
    pub fn take_all(&mut self) -> (usize, Option<Db>) {
        let mut held = std::mem::replace(self, Db::new(&self.captures));
        self.settled = held.settled;
        self.snapshot = held.snapshot.take();
        let keys = held.len();
        match &self.snapshot {
            Some((snapshot, number)) => {
                snapshot.adopt_all(*number, held.table);
                (keys, None)
            }
            None => {
                self.captures.removed_all(|id, hash, key| {
                    let is_it = |entry: &Box<Entry>| entry.is(hash, key) && entry.is_read_by(id);
                    let (entry, _) = held.table.find_entry(hash, is_it).ok()?.remove();
                    Some(entry.value)
                });
                (keys, Some(held))
            }
        }
    }

    /// Makes a snapshot the one that changes are kept for, or ends that.
    pub(super) fn join_snapshot(&mut self, snapshot: Option<(Arc<SnapshotQueue>, usize)>) {
        self.snapshot = snapshot;
    }

    /// Keeps entries for the snapshot until `budget` bytes are used up; true when all are kept.
    pub(super) fn keep_some(&mut self, budget: &mut usize) -> bool {
        let Some((snapshot, number)) = &self.snapshot else {
            return true;
        };
        for entry in self.table.iter_mut() {
            if entry.epoch == snapshot.epoch() {
                continue;
            }
            if *budget == 0 {
                return false;
            }
            let kept = self
                .sums
                .change(entry, |entry| snapshot.keep(*number, entry));
            *budget = budget.saturating_sub(kept.max(64));
        }
        true
    }

    /// The queue of the snapshot being made.
    pub(super) fn snapshot_queue(&self) -> Option<Arc<SnapshotQueue>> {
        self.snapshot.as_ref().map(|(queue, _)| Arc::clone(queue))
    }

    /// Lets a reader of the value under `key` begin, if the key is alive; `begin` gets its id.
    pub(crate) fn begin_capture<R>(
        &mut self,
        hash: u64,
        key: &[u8],
        now: u64,
        begin: impl FnOnce(&mut Value, u64) -> Option<R>,
    ) -> Option<R> {
        let entry = self.table.find_mut(hash, |e| e.is(hash, key))?;
        if entry.is_expired(now) {
            return None;
        }
        let id = self.captures.new_id();
        let begun = self
            .sums
            .change(entry, |entry| begin(&mut entry.value, id))?;
        self.captures.begin(id, hash, key);
        Some(begun)
    }

    /// Works on the value under `key`, if it has this reader.
    pub(super) fn with_captured<R>(
        &mut self,
        hash: u64,
        key: &[u8],
        id: u64,
        work: impl FnOnce(&mut Value) -> R,
    ) -> Option<R> {
        let is_it = |entry: &Box<Entry>| entry.is(hash, key) && entry.is_read_by(id);
        let entry = self.table.find_mut(hash, is_it)?;
        Some(self.sums.change(entry, |entry| work(&mut entry.value)))
    }

    /// Whether an entry of this key is there, expired or not.
    pub fn contains(&self, hash: u64, key: &[u8]) -> bool {
        self.table.find(hash, |e| e.is(hash, key)).is_some()
    }

    /// All entries that are alive at `now`, with their hashes.
    pub fn iter(&self, now: u64) -> impl Iterator<Item = (u64, &Entry)> {
        self.table
            .iter()
            .filter(move |e| !e.is_expired(now))
            .map(|e| (e.hash, &**e))
    }

    /// Calls `look` with the entries of a slice of the [`order`], expired ones included. It takes
    /// time in proportion to how many there are.
    pub(super) fn slice(&self, positions: Range<u64>, look: impl FnMut(&Entry)) {
        order::slice(&self.table, positions, look);
    }

    /// The sum of the times left until expiry, in milliseconds, of the keys that have one. A key
    /// that has expired and is not yet removed counts less than nothing.
    pub fn time_left(&self, now: u64) -> u64 {
        // A number of keys fits 64 bits, so the product fits 128.
        let passed = self.expiring as u128 * u128::from(now);
        u64::try_from(self.expiry_times.saturating_sub(passed)).unwrap_or(u64::MAX)
    }

    /// Asks the processor for the memory of the entry with this hash, if there is one. It reads the
    /// table alone, and so it may ask for another entry instead, one in 128 times.
    #[inline]
    pub fn prefetch(&self, hash: u64) {
        if let Some(likely) = self.table.find(hash, |_| true) {
            host::prefetch(&**likely);
        }
    }

    /// The entry of `key` if it is alive.
    #[inline]
    pub fn get(&self, hash: u64, key: &[u8], now: Now) -> Option<&Entry> {
        let entry = self.peek(hash, key, now.ms)?;
        entry.access(now.clock);
        Some(entry)
    }

    /// The entry of `key` if it is alive, without counting as an access.
    #[inline]
    pub fn peek(&self, hash: u64, key: &[u8], now: u64) -> Option<&Entry> {
        self.table
            .find(hash, |e| e.is(hash, key))
            .map(|entry| &**entry)
            .filter(|entry| !entry.is_expired(now))
    }

    /// Whether `key` is there but has expired.
    pub fn has_expired(&self, hash: u64, key: &[u8], now: u64) -> bool {
        self.expiring > 0
            && self
                .table
                .find(hash, |e| e.is(hash, key))
                .is_some_and(|e| e.is_expired(now))
    }

    /// Changes the value of `key` in place, if it is alive, and keeps account of it.
    #[inline]
    pub fn modify<R>(
        &mut self,
        hash: u64,
        key: &[u8],
        now: Now,
        change: impl FnOnce(&mut Value) -> R,
    ) -> Option<R> {
        let entry = self.table.find_mut(hash, |e| e.is(hash, key))?;
        if entry.is_expired(now.ms) {
            return None;
        }
        entry.access(now.clock);
        let snapshot = self.snapshot.as_ref();
        Some(self.sums.change(entry, |entry| {
            keep(snapshot, entry);
            change(&mut entry.value)
        }))
    }

    /// Puts an entry in, in place of an older one of the same key, which is removed for good.
    pub fn insert(&mut self, hash: u64, mut entry: Entry) -> Option<Leftover> {
        entry.hash = hash;
        let old = self.discard(hash, entry.key());
        if entry.value.capture().is_active() {
            let key: Box<[u8]> = entry.key().into();
            self.captures.moved(&mut entry.value, hash, &key);
        }
        if let Some((snapshot, _)) = &self.snapshot {
            entry.epoch = snapshot.epoch();
        }
        self.sums.add(Sums::of(&entry));
        self.note_expiry(entry.expires_at());
        self.table.insert_unique(hash, Box::new(entry), |e| e.hash);
        old
    }

    /// Takes an entry out, expired or not, to be put elsewhere.
    pub fn take(&mut self, hash: u64, key: &[u8]) -> Option<Entry> {
        let mut entry = self.remove(hash, key)?;
        keep(self.snapshot.as_ref(), &mut entry);
        Some(entry)
    }

    /// Removes an entry for good, expired or not.
    pub fn discard(&mut self, hash: u64, key: &[u8]) -> Option<Leftover> {
        let entry = self.remove(hash, key)?;
        Some(self.leave(entry))
    }

    fn remove(&mut self, hash: u64, key: &[u8]) -> Option<Entry> {
        let found = self.table.find_entry(hash, |e| e.is(hash, key)).ok()?;
        let (entry, _) = found.remove();
        self.forget(&entry);
        Some(*entry)
    }

    /// Lets a removed entry go, to the snapshot or to the readers that need it.
    fn leave(&self, entry: Entry) -> Leftover {
        match &self.snapshot {
            Some((snapshot, number)) => Leftover(snapshot.adopt(*number, entry)),
            None if entry.value.capture().is_active() => {
                self.captures.removed(entry.value);
                Leftover(None)
            }
            None => Leftover(Some(entry)),
        }
    }

    /// Sets or clears the expiry of a key that is alive; false when there is none.
    pub fn set_expiry(&mut self, hash: u64, key: &[u8], at: Option<u64>, now: u64) -> bool {
        let found = self.table.find_mut(hash, |e| e.is(hash, key));
        let Some(entry) = found.filter(|entry| !entry.is_expired(now)) else {
            return false;
        };
        let snapshot = self.snapshot.as_ref();
        self.sums.change(entry, |entry| keep(snapshot, entry));
        let had = entry.expires_at();
        entry.set_expires_at(at);
        self.forget_expiry(had);
        self.note_expiry(at);
        true
    }

    /// Whether a key may have expired: false spares a walk over the entries.
    pub fn may_have_expired(&self, now: u64) -> bool {
        self.expiring > 0 && self.earliest_expiry <= now
    }

    /// Removes all expired entries and finds the next time at which one expires; returns their
    /// keys, with what is left of each.
    pub fn remove_expired(&mut self, now: u64) -> Vec<(Box<[u8]>, Leftover)> {
        let gone: Vec<Box<Entry>> = self.table.extract_if(|e| e.is_expired(now)).collect();
        self.earliest_expiry = self
            .table
            .iter()
            .filter_map(|e| e.expires_at())
            .min()
            .unwrap_or(u64::MAX);
        gone.into_iter()
            .map(|entry| {
                self.forget(&entry);
                (entry.key().into(), self.leave(*entry))
            })
            .collect()
    }

    fn note_expiry(&mut self, at: Option<u64>) {
        if let Some(at) = at {
            self.earliest_expiry = if self.expiring == 0 {
                at
            } else {
                self.earliest_expiry.min(at)
            };
            self.expiring += 1;
            self.expiry_times += u128::from(at);
        }
    }

    fn forget_expiry(&mut self, at: Option<u64>) {
        if let Some(at) = at {
            self.expiring -= 1;
            self.expiry_times -= u128::from(at);
        }
    }

    fn forget(&mut self, entry: &Entry) {
        self.sums.remove(Sums::of(entry));
        self.forget_expiry(entry.expires_at());
    }
}

/// Keeps an entry for the snapshot before its first change.
#[inline]
fn keep(snapshot: Option<&(Arc<SnapshotQueue>, usize)>, entry: &mut Entry) {
    if let Some((snapshot, number)) = snapshot
        && entry.epoch != snapshot.epoch()
    {
        snapshot.keep(*number, entry);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(key: &str, at: Option<u64>) -> Entry {
        Entry::new(key.as_bytes(), Value::Text(b"v"[..].into()), at, 0)
    }

    fn now(ms: u64) -> Now {
        Now { ms, clock: 0 }
    }

    #[test]
    fn memory_returns_to_zero() {
        let mut db = Db::default();
        db.insert(1, text("a", None));
        db.insert(1, text("a", Some(5)));
        db.insert(2, text("b", None));
        let grown = db.modify(2, b"b", now(0), |value| match value {
            Value::Text(text) => text.append(&[0; 1000]),
            Value::Filter(_) => unreachable!(),
        });
        assert!(grown.is_some());
        assert!(db.sums().memory > 1000);
        db.discard(1, b"a");
        db.discard(2, b"b");
        assert_eq!((db.sums().memory, db.len(), db.expiring()), (0, 0, 0));
    }

    #[test]
    fn nothing_is_kept_for_a_reader_that_has_ended() {
        let mut db = Db::default();
        let mut entry = text("a", None);
        entry.value.begin_capture(7, 0..1);
        db.insert(1, entry);
        let entry = db.peek(1, b"a", 0).unwrap();
        assert!(!entry.value.capture().is_active());
    }

    #[test]
    fn the_time_left_is_that_of_all_keys() {
        let mut db = Db::default();
        for (hash, at) in [Some(100), None, Some(300), Some(500), Some(700)]
            .into_iter()
            .enumerate()
        {
            db.insert(hash as u64, text("a", at));
        }
        assert_eq!((db.expiring(), db.time_left(50)), (4, 1400));
        db.insert(0, text("a", Some(200)));
        db.insert(2, text("a", None));
        assert!(db.set_expiry(1, b"a", Some(60), 50));
        assert!(db.set_expiry(3, b"a", Some(900), 50));
        assert_eq!((db.expiring(), db.time_left(50)), (4, 10 + 150 + 850 + 650));
        assert_eq!(db.remove_expired(250).len(), 2);
        assert!(db.set_expiry(3, b"a", None, 250));
        assert_eq!((db.expiring(), db.time_left(250)), (1, 450));
        assert_eq!(db.time_left(800), 0);
        db.take(4, b"a");
        assert_eq!((db.expiring(), db.time_left(0)), (0, 0));
    }

    #[test]
    fn expired_keys_are_neither_seen_nor_kept() {
        let mut db = Db::default();
        db.insert(1, text("a", Some(10)));
        db.insert(2, text("b", Some(20)));
        assert!(db.get(1, b"a", now(9)).is_some());
        assert!(db.get(1, b"a", now(10)).is_none());
        assert!(!db.may_have_expired(9));
        assert!(db.may_have_expired(10));
        assert_eq!(db.remove_expired(10).len(), 1);
        assert!(!db.may_have_expired(19));
        assert!(db.set_expiry(2, b"b", None, 10));
        assert!(!db.may_have_expired(30));
    }
}
