//! What names a key, and which shard it is in.

use smallvec::SmallVec;

/// The number of shards, as a power of two. It is large enough that workers rarely use the same
/// shard, and small enough that a command on the whole keyspace locks all shards in some ten
/// microseconds.
pub(super) const SHARD_BITS: u32 = 10;

/// The number of shards.
pub const SHARDS: usize = 1 << SHARD_BITS;

/// The position of the shard's number in a hash: below the seven highest bits.
pub(super) const SHARD_SHIFT: u32 = 64 - 7 - SHARD_BITS;

/// A key, whether it exists or not: its database, its name and the keyspace's hash of the name.
/// [`Keyspace::key`](super::Keyspace::key) makes it, so a command hashes a name once.
#[derive(Debug, Clone, Copy)]
pub struct KeyRef<'a> {
    /// The number of its database.
    pub db: usize,
    /// Its name.
    pub name: &'a [u8],
    pub(super) hash: u64,
}

impl KeyRef<'_> {
    /// The number of its shard.
    #[inline]
    pub fn shard(self) -> usize {
        shard_of(self.hash)
    }
}

/// Where to look for a key first: where its shard is among those that are locked, and its entry in
/// the table. A command on many keys finds out both once, and goes on to the next key while that
/// comes from memory. If something else is there by now, the key is searched for.
#[derive(Debug, Clone, Copy)]
pub struct Place {
    /// The position of the shard. Mostly one is locked.
    pub(super) lock: usize,
    /// The bucket of the entry.
    pub(super) bucket: usize,
}

/// The places of many keys.
pub type Places = SmallVec<[Place; 4]>;

/// Nothing is known.
impl Default for Place {
    fn default() -> Self {
        Place {
            lock: 0,
            // No table has so many.
            bucket: usize::MAX,
        }
    }
}

/// The number of the shard that holds keys of this hash.
#[inline]
pub(super) fn shard_of(hash: u64) -> usize {
    // These bits are neither the lowest nor the seven highest. hashbrown uses those to tell the keys
    // of a shard apart, so they must differ within a shard.
    usize::try_from(hash >> SHARD_SHIFT).unwrap_or(0) & (SHARDS - 1)
}
