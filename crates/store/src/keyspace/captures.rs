//! The locations of large values that are being read in pieces.
//!
//! A value may be renamed, moved or removed while it is read. So a
//! [`Captured`](super::captured::Captured) finds it by the reader's id: in the keyspace, or here
//! after its removal.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use everbloom_files::Value;
use parking_lot::Mutex;

/// The locations of all values that have readers, by the ids of the readers.
#[derive(Debug, Default)]
pub(super) struct Captures {
    last_id: AtomicU64,
    locations: Mutex<HashMap<u64, Location>>,
}

/// The location of a value with readers.
#[derive(Clone, Debug)]
pub(super) enum Location {
    /// In the keyspace, under a key of this hash.
    Keyspace(u64),
    /// Nowhere else: it was removed.
    Removed(Arc<Mutex<Value>>),
}

impl Captures {
    /// Creates an id for a reader.
    pub(super) fn new_id(&self) -> u64 {
        self.last_id.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Records the location of a new reader's value. Its shard is locked.
    pub(super) fn begin(&self, id: u64, hash: u64) {
        self.locations.lock().insert(id, Location::Keyspace(hash));
    }

    /// How many readers there are.
    pub(super) fn count(&self) -> usize {
        self.locations.lock().len()
    }

    /// The location of a reader's value.
    pub(super) fn find(&self, id: u64) -> Option<Location> {
        self.locations.lock().get(&id).cloned()
    }

    /// Removes a reader that has ended. Returns its value if that was removed from the keyspace: the
    /// last of its readers frees it.
    pub(super) fn end(&self, id: u64) -> Option<Arc<Mutex<Value>>> {
        match self.locations.lock().remove(&id)? {
            Location::Removed(value) => Some(value),
            Location::Keyspace(_) => None,
        }
    }

    /// Records the new location of a value with readers. Ends the readers that were dropped
    /// meanwhile.
    #[cold]
    pub(super) fn moved(&self, value: &mut Value, hash: u64) {
        let mut locations = self.locations.lock();
        let is_known = |id| locations.contains_key(&id);
        value.capture_mut().retain(is_known);
        for id in value.capture().ids() {
            locations.insert(id, Location::Keyspace(hash));
        }
    }

    /// Takes over a value with readers that was removed from the keyspace.
    #[cold]
    pub(super) fn removed(&self, value: Value) {
        let ids: Vec<u64> = value.capture().ids().collect();
        let value = Arc::new(Mutex::new(value));
        let mut locations = self.locations.lock();
        for id in ids {
            if let Some(location) = locations.get_mut(&id) {
                *location = Location::Removed(Arc::clone(&value));
            }
        }
    }

    /// Takes over the values with readers of a table that was emptied. `take` returns the value of
    /// this reader, if the table had it.
    pub(super) fn removed_all(&self, mut take: impl FnMut(u64, u64) -> Option<Value>) {
        let locations = self.locations.lock().clone();
        for (id, location) in locations {
            if let Location::Keyspace(hash) = location
                && let Some(value) = take(id, hash)
            {
                self.removed(value);
            }
        }
    }
}
