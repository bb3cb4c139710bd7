//! The entries that a snapshot has kept: as they were at its moment.
//!
//! [`snapshot`](super::snapshot) walks over the keyspace and hands them to the writer; a database
//! knows no more of a snapshot than this.

use std::collections::HashMap;

use everbloom_commands::Parts;
use everbloom_files::Value;
use hashbrown::HashTable;
use parking_lot::Mutex;

use super::entry::Entry;

/// A value of more bytes than this is captured in pieces; one of fewer is copied, which takes some
/// ten microseconds.
const LARGE: u64 = 64 << 10;

/// What a snapshot has kept.
#[derive(Debug)]
pub struct Keeper {
    epoch: u32,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    kept: Vec<Kept>,
    /// Where the large values are that are not yet written.
    large: HashMap<u64, (u64, Box<[u8]>)>,
    /// Those of them that were removed from the keyspace.
    adopted: HashMap<u64, Entry>,
    /// Databases that were emptied, with their number at the moment of the snapshot.
    emptied: Vec<(usize, HashTable<Box<Entry>>)>,
    last_id: u64,
}

/// An entry as it was.
#[derive(Debug)]
pub struct Kept {
    /// Its database.
    pub db: usize,
    /// Its key.
    pub key: Box<[u8]>,
    /// Its expiry, Unix time in milliseconds.
    pub expires_at: Option<u64>,
    /// Its value.
    pub value: KeptValue,
}

/// A value as it was.
#[derive(Debug)]
pub enum KeptValue {
    /// All of it.
    Whole(Value),
    /// A large one but for its bytes, which
    /// [`Snapshot::next_piece`](super::snapshot::Snapshot::next_piece) brings.
    Large {
        /// What to ask for them with.
        id: u64,
        /// The rest.
        rest: Rest,
    },
}

/// What there is of a large value besides its bytes.
#[derive(Debug)]
pub enum Rest {
    /// The length of a string.
    Len(u64),
    /// The parts of a filter. The bytes are those of its arrays.
    Parts(Parts),
}

/// Where a captured value is.
pub(super) enum Place<R> {
    /// In the keeper, which has worked with it.
    Adopted(R),
    /// In the keyspace, under the key of this hash.
    Keyspace(u64, Box<[u8]>),
}

impl Keeper {
    /// A keeper for the snapshot of this number.
    pub(super) fn new(epoch: u32) -> Self {
        Keeper {
            epoch,
            // No capture has the number of one of another snapshot.
            state: Mutex::new(State {
                last_id: u64::from(epoch) << 32,
                ..State::default()
            }),
        }
    }

    /// The numbers of the large values that are not yet written.
    pub(super) fn unwritten(&self) -> Vec<u64> {
        self.state.lock().large.keys().copied().collect()
    }

    /// Drops what is kept.
    pub(super) fn clear(&self) {
        let rest = std::mem::take(&mut *self.state.lock());
        drop(rest);
    }

    /// Forgets a large value that is written, or lost.
    pub(super) fn forget(&self, id: u64) {
        let mut state = self.state.lock();
        state.large.remove(&id);
        let done = state.adopted.remove(&id);
        // A large value is freed without the lock.
        drop(state);
        drop(done);
    }

    /// Works with a captured value if it was adopted; otherwise says where it was last. `None` if
    /// there is none with this number.
    pub(super) fn find<R>(&self, id: u64, work: impl FnOnce(&mut Value) -> R) -> Option<Place<R>> {
        self.adopt_emptied();
        let mut state = self.state.lock();
        if let Some(entry) = state.adopted.get_mut(&id) {
            return Some(Place::Adopted(work(&mut entry.value)));
        }
        let (hash, key) = state.large.get(&id)?.clone();
        Some(Place::Keyspace(hash, key))
    }

    /// The entries kept since this was asked last.
    pub fn take_kept(&self) -> Vec<Kept> {
        self.adopt_emptied();
        std::mem::take(&mut self.state.lock().kept)
    }

    /// Takes over, one by one, what the databases held that were emptied. Commands wait for one
    /// table of one shard at most.
    fn adopt_emptied(&self) {
        loop {
            let mut state = self.state.lock();
            let Some((db, emptied)) = state.emptied.pop() else {
                return;
            };
            for entry in emptied {
                self.adopt_locked(&mut state, db, entry.hash, *entry);
            }
        }
    }

    /// The number that entries carry which are kept, or are younger than the snapshot.
    pub(super) fn epoch(&self) -> u32 {
        self.epoch
    }

    /// Keeps an entry that stays in the keyspace. Its shard is locked.
    pub(super) fn keep(&self, db: usize, entry: &mut Entry) -> usize {
        entry.epoch = self.epoch;
        let mut state = self.state.lock();
        let (key, expires_at): (Box<[u8]>, _) = (entry.key().into(), entry.expires_at());
        let hash = entry.hash;
        let value = match state.begin_capture(&mut entry.value, hash, &key) {
            Some((id, rest)) => KeptValue::Large { id, rest },
            None => KeptValue::Whole(entry.value.clone()),
        };
        let size = match &value {
            KeptValue::Whole(value) => value.memory(),
            KeptValue::Large { .. } => 0,
        };
        state.kept.push(Kept {
            db,
            key,
            expires_at,
            value,
        });
        size + entry.key().len()
    }

    /// Takes an entry over that leaves the keyspace for good, if the snapshot still needs it.
    pub(super) fn adopt(&self, db: usize, hash: u64, entry: Entry) -> Option<Entry> {
        let needed = entry.epoch != self.epoch || entry.value.capture_id().is_some();
        if !needed {
            return Some(entry);
        }
        self.adopt_locked(&mut self.state.lock(), db, hash, entry);
        None
    }

    fn adopt_locked(&self, state: &mut State, db: usize, hash: u64, mut entry: Entry) {
        let (key, expires_at): (Box<[u8]>, _) = (entry.key().into(), entry.expires_at());
        if entry.epoch == self.epoch {
            if let Some(id) = entry.value.capture_id() {
                state.adopted.insert(id, entry);
            }
            return;
        }
        let value = match state.begin_capture(&mut entry.value, hash, &key) {
            Some((id, rest)) => {
                state.adopted.insert(id, entry);
                KeptValue::Large { id, rest }
            }
            None => KeptValue::Whole(entry.value),
        };
        state.kept.push(Kept {
            db,
            key,
            expires_at,
            value,
        });
    }

    /// Takes over the entries of a database that was emptied.
    pub(super) fn adopt_all(&self, db: usize, emptied: HashTable<Box<Entry>>) {
        self.state.lock().emptied.push((db, emptied));
    }

    /// Notes where a captured value has gone.
    pub(super) fn moved(&self, id: u64, hash: u64, key: &[u8]) {
        if let Some(place) = self.state.lock().large.get_mut(&id) {
            *place = (hash, key.into());
        }
    }
}

impl State {
    /// Begins to capture a value if it is a large one; returns the number of the capture.
    fn begin_capture(&mut self, value: &mut Value, hash: u64, key: &[u8]) -> Option<(u64, Rest)> {
        let id = self.last_id + 1;
        let rest = match value {
            Value::Text(text) if text.len() as u64 > LARGE => {
                text.begin_capture(id);
                Rest::Len(text.len() as u64)
            }
            Value::Filter(filter) if filter.stream_len() > LARGE => {
                Rest::Parts(filter.begin_capture(id))
            }
            _ => return None,
        };
        self.last_id = id;
        self.large.insert(id, (hash, key.into()));
        Some((id, rest))
    }
}
