//! The entries that a snapshot has kept, as they were at its moment, queued for its writer.
//!
//! [`snapshot`](super::snapshot) walks over the keyspace and passes them to the writer. A database
//! uses only this part of a snapshot.

use std::sync::Arc;

use everbloom_files::{Outline, Value};
use hashbrown::HashTable;
use parking_lot::Mutex;

use super::captures::Captures;
use super::entry::Entry;
use crate::limits::COPIED_BYTES;

/// The entries that a snapshot has kept.
#[derive(Debug)]
pub struct SnapshotQueue {
    epoch: u32,
    captures: Arc<Captures>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    kept: Vec<Kept>,
    /// Databases that were emptied, with their number at the moment of the snapshot.
    emptied: Vec<(usize, HashTable<Box<Entry>>)>,
}

/// An entry as it was at the snapshot's moment. `R` is what reads a large value, at first an id.
#[derive(Debug)]
pub struct Kept<R = u64> {
    /// Its database.
    pub db: usize,
    /// Its key.
    pub key: Box<[u8]>,
    /// Its expiry, Unix time in milliseconds.
    pub expires_at: Option<u64>,
    /// Its value.
    pub value: KeptValue<R>,
}

/// A value as it was at the snapshot's moment.
#[derive(Debug)]
pub enum KeptValue<R = u64> {
    /// The whole value.
    Whole(Value),
    /// A large one, whose bytes are still to be read.
    Large(R, Outline),
}

impl SnapshotQueue {
    /// A queue for the snapshot of this number.
    pub(super) fn new(epoch: u32, captures: &Arc<Captures>) -> Self {
        SnapshotQueue {
            epoch,
            captures: Arc::clone(captures),
            state: Mutex::default(),
        }
    }

    /// The entries kept since this was called last.
    pub fn take_kept(&self) -> Vec<Kept> {
        self.adopt_emptied();
        std::mem::take(&mut self.state.lock().kept)
    }

    /// Takes over the entries of emptied databases, one table at a time. Commands wait for one
    /// table of one shard at most.
    pub(super) fn adopt_emptied(&self) {
        loop {
            let mut state = self.state.lock();
            let Some((db, emptied)) = state.emptied.pop() else {
                return;
            };
            for entry in emptied {
                self.adopt_locked(&mut state, db, *entry);
            }
        }
    }

    /// The number carried by entries that are kept already or are newer than the snapshot.
    pub(super) fn epoch(&self) -> u32 {
        self.epoch
    }

    /// Keeps an entry that stays in the keyspace. Its shard is locked.
    pub(super) fn keep(&self, db: usize, entry: &mut Entry) -> usize {
        entry.epoch = self.epoch;
        let value = self.begin_capture(entry);
        let value = value.unwrap_or_else(|| KeptValue::Whole(entry.value.clone()));
        let size = match &value {
            KeptValue::Whole(value) => value.memory(),
            KeptValue::Large(..) => 0,
        };
        self.state.lock().kept.push(Kept::new(db, entry, value));
        size + entry.key().len()
    }

    /// Takes over an entry that leaves the keyspace for good, if the snapshot still needs it.
    pub(super) fn adopt(&self, db: usize, entry: Entry) -> Option<Entry> {
        if entry.epoch == self.epoch && !entry.value.capture().is_active() {
            return Some(entry);
        }
        self.adopt_locked(&mut self.state.lock(), db, entry);
        None
    }

    fn adopt_locked(&self, state: &mut State, db: usize, mut entry: Entry) {
        if entry.epoch != self.epoch {
            let Some(value) = self.begin_capture(&mut entry) else {
                let value = std::mem::take(&mut entry.value);
                state
                    .kept
                    .push(Kept::new(db, &entry, KeptValue::Whole(value)));
                return;
            };
            state.kept.push(Kept::new(db, &entry, value));
        }
        if entry.value.capture().is_active() {
            self.captures.removed(entry.value);
        }
    }

    /// Takes over the entries of a database that was emptied.
    pub(super) fn adopt_all(&self, db: usize, emptied: HashTable<Box<Entry>>) {
        self.state.lock().emptied.push((db, emptied));
    }

    /// Begins to read the value of an entry if it is large or has readers, which need it when it is
    /// removed.
    fn begin_capture(&self, entry: &mut Entry) -> Option<KeptValue> {
        let is_large = entry.value.stream_len() > COPIED_BYTES.get_u64();
        (is_large || entry.value.capture().is_active()).then(|| {
            let outline = entry.value.outline();
            let id = self.captures.new_id();
            entry.value.begin_capture(id, 0..entry.value.stream_len());
            self.captures.begin(id, entry.hash);
            KeptValue::Large(id, outline)
        })
    }
}

impl Kept {
    fn new(db: usize, entry: &Entry, value: KeptValue) -> Self {
        Kept {
            db,
            key: entry.key().into(),
            expires_at: entry.expires_at(),
            value,
        }
    }

    /// The same with a reader of its value in place of the id.
    pub(super) fn read_by<R>(self, reader: impl FnOnce(u64) -> R) -> Kept<R> {
        Kept {
            db: self.db,
            key: self.key,
            expires_at: self.expires_at,
            value: match self.value {
                KeptValue::Whole(value) => KeptValue::Whole(value),
                KeptValue::Large(id, outline) => KeptValue::Large(reader(id), outline),
            },
        }
    }
}
