//! All keys, in shards with a lock each.

use std::hash::BuildHasher;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use everbloom_files::Value;
use foldhash::quality::SeedableRandomState;
use parking_lot::RwLock;

use super::captures::{Captures, Location};
use super::db::Db;
use super::release::Release;
use super::shard::Shard;

/// The number of shards, as a power of two. It is large enough that workers rarely use the same
/// shard, and small enough that a command on the whole keyspace locks all shards in some ten
/// microseconds.
pub const SHARD_BITS: u32 = 10;

/// The number of shards.
pub const SHARDS: usize = 1 << SHARD_BITS;

/// The position of the shard's number in a hash: below the seven highest bits.
pub const SHARD_SHIFT: u32 = 64 - 7 - SHARD_BITS;

/// How often a value with readers is looked up. The second look-up finds it, unless it moves again
/// in between.
const MAX_LOOKS: usize = 10_000;

/// All keys of all databases.
#[derive(Debug)]
pub struct Keyspace {
    shards: Box<[RwLock<Shard>]>,
    hasher: SeedableRandomState,
    memory: AtomicUsize,
    /// No key expires before this time (milliseconds of Unix time).
    earliest_expiry: AtomicU64,
    databases: usize,
    pub(super) release: Release,
    pub(super) captures: Arc<Captures>,
}

impl Keyspace {
    /// An empty keyspace of `databases` databases.
    pub fn new(databases: usize) -> Self {
        Self::with_hasher(databases, SeedableRandomState::random())
    }

    /// The same with a hasher for the keys.
    pub fn with_hasher(databases: usize, hasher: SeedableRandomState) -> Self {
        let captures = Arc::default();
        Keyspace {
            shards: (0..SHARDS)
                .map(|_| RwLock::new(Shard::new(databases, &captures)))
                .collect(),
            hasher,
            memory: AtomicUsize::new(0),
            earliest_expiry: AtomicU64::new(u64::MAX),
            databases,
            release: Release::default(),
            captures,
        }
    }

    /// How many databases there are.
    pub fn databases(&self) -> usize {
        self.databases
    }

    /// The hash of a key. It differs from process to process, so that nobody can choose keys that
    /// collide.
    #[inline]
    pub fn hash(&self, key: &[u8]) -> u64 {
        self.hasher.hash_one(key)
    }

    /// The number of the shard that holds keys of this hash.
    #[inline]
    pub fn shard_of(hash: u64) -> usize {
        // These bits are neither the lowest nor the seven highest. hashbrown uses those to tell the
        // keys of a shard apart, so they must differ within a shard.
        usize::try_from(hash >> SHARD_SHIFT).unwrap_or(0) & (SHARDS - 1)
    }

    /// The lock of shard `index`.
    #[inline]
    pub fn shard(&self, index: usize) -> &RwLock<Shard> {
        // `index` is below SHARDS by construction; the mask makes sure of it.
        #[expect(clippy::indexing_slicing, reason = "masked to the length of the array")]
        &self.shards[index & (SHARDS - 1)]
    }

    /// Bytes that keys and values take, over all databases.
    pub fn memory(&self) -> usize {
        self.memory.load(Ordering::Relaxed)
    }

    /// Frees removed values of about this many bytes, in the background if that takes long. No
    /// shard should be locked.
    pub fn free(&self, removed: impl IntoIterator + Send + 'static, bytes: usize) {
        self.release.free(removed, bytes);
    }

    /// Whether a key may have expired that is not yet removed.
    pub fn may_have_expired(&self, now: u64) -> bool {
        self.earliest_expiry.load(Ordering::Relaxed) <= now
    }

    /// Begins a pass over all shards that records the earliest expiry of each.
    pub(crate) fn forget_earliest_expiry(&self) {
        self.earliest_expiry.store(u64::MAX, Ordering::Relaxed);
    }

    /// Records that a key expires at this time and that no key of the shards visited expires
    /// earlier.
    pub(crate) fn note_expiry(&self, at: u64) {
        // Mostly a read: most keys expire later than others.
        if at < self.earliest_expiry.load(Ordering::Relaxed) {
            self.earliest_expiry.fetch_min(at, Ordering::Relaxed);
        }
    }

    /// Appends the next bytes for a reader to `out`, wherever its value is; false when there are no
    /// more.
    pub fn capture_next(&self, id: u64, out: &mut Vec<u8>) -> bool {
        let more = self.with_captured(id, |value| value.capture_next(id, out));
        more == Some(true)
    }

    /// Ends a reader.
    pub fn end_capture(&self, id: u64) {
        self.with_captured(id, |value| value.capture_mut().end(id));
        self.captures.end(id);
    }

    /// Finds the value of a reader, in the keyspace or among those that were removed.
    pub(crate) fn with_captured<R>(
        &self,
        id: u64,
        mut work: impl FnMut(&mut Value) -> R,
    ) -> Option<R> {
        for _ in 0..MAX_LOOKS {
            let (hash, key) = match self.captures.find(id)? {
                Location::Removed(value) => return Some(work(&mut value.lock())),
                Location::Keyspace(hash, key) => (hash, key),
            };
            let mut shard = self.shard(Self::shard_of(hash)).write();
            for db in 0..self.databases {
                let db = shard.db_mut(db);
                let result = db.with_captured(hash, &key, id, &mut work);
                if result.is_some() {
                    self.settle(db);
                    return result;
                }
            }
            // It was moved or removed after its location was read. The new location is known by
            // now, unless the value waits in a snapshot's queue.
            let queue = shard.dbs().iter().find_map(Db::snapshot_queue);
            drop(shard);
            if let Some(queue) = queue {
                queue.adopt_emptied();
            }
        }
        None
    }

    /// Adds the memory that a database gained or lost to the total, and returns it. Records the
    /// database's earliest expiry, too.
    #[inline]
    pub fn settle(&self, db: &mut Db) -> isize {
        if let Some(at) = db.take_added_expiry() {
            self.note_expiry(at);
        }
        let delta = db.take_memory_delta();
        if delta != 0 {
            // Wrapping addition of a negative delta in two's complement is subtraction.
            self.memory
                .fetch_add(delta.cast_unsigned(), Ordering::Relaxed);
        }
        delta
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    /// A table compares a hash's seven highest bits, its tag, before it compares a key, and looks
    /// in the bucket of the lowest bits. If either were the same for all keys of a shard, every
    /// look-up would compare many keys.
    #[test]
    fn keys_of_one_shard_differ_in_tag_and_place() {
        // 256 keys a shard: of 128 equally likely values, 110.8 are expected, with a standard
        // deviation of 3.3.
        const FEWEST: usize = 80;
        let keyspace = Keyspace::new(1);
        let mut tags = vec![HashSet::new(); SHARDS];
        let mut places = tags.clone();
        for number in 0..256 * SHARDS {
            let hash = keyspace.hash(number.to_string().as_bytes());
            let shard = Keyspace::shard_of(hash);
            tags[shard].insert(hash >> 57);
            places[shard].insert(hash & 127);
        }
        for (shard, (tags, places)) in tags.iter().zip(&places).enumerate() {
            assert!(tags.len() >= FEWEST, "{} tags in {shard}", tags.len());
            assert!(places.len() >= FEWEST, "{} places in {shard}", places.len());
        }
    }
}
