//! All keys, in shards with a lock each.

use std::hash::BuildHasher;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use foldhash::quality::SeedableRandomState;
use parking_lot::RwLock;

use super::captures::Captures;
use super::db::Db;
use super::key::{KeyRef, SHARDS};
use super::release::Release;
use super::shard::Shard;

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

    /// Names a key.
    #[inline]
    pub fn key<'a>(&self, db: usize, name: &'a [u8]) -> KeyRef<'a> {
        let hash = self.hash(name);
        KeyRef { db, name, hash }
    }

    /// The hash of a key. It differs from process to process, so that nobody can choose keys that
    /// collide.
    #[inline]
    fn hash(&self, name: &[u8]) -> u64 {
        self.hasher.hash_one(name)
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

    /// How many readers of values in pieces there are.
    pub fn readers(&self) -> usize {
        self.captures.count()
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

    use super::super::key::shard_of;
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
            let shard = shard_of(hash);
            tags[shard].insert(hash >> 57);
            places[shard].insert(hash & 127);
        }
        for (shard, (tags, places)) in tags.iter().zip(&places).enumerate() {
            assert!(tags.len() >= FEWEST, "{} tags in {shard}", tags.len());
            assert!(places.len() >= FEWEST, "{} places in {shard}", places.len());
        }
    }
}
