//! The shards that a command needs, locked in one order, so that commands cannot deadlock.

use smallvec::SmallVec;

use super::sharded::{Keyspace, SHARDS};
use super::view::View;
use crate::clock::Now;

/// The most numbers of shards that are listed, some more than once: a request may name any number of
/// keys.
const MAX_NUMBERS: usize = 4 * SHARDS;

/// The part of the keyspace that a command works on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Footprint {
    /// The shards with these numbers.
    Shards(SmallVec<[usize; 4]>),
    /// All shards.
    Whole,
}

impl Footprint {
    /// No shard at all.
    pub fn none() -> Self {
        Footprint::Shards(SmallVec::new())
    }

    /// The shard of one key.
    pub fn of_key(keyspace: &Keyspace, key: &[u8]) -> Self {
        let mut footprint = Footprint::none();
        footprint.add_key(keyspace, key);
        footprint
    }

    /// Adds the shard of one key.
    pub fn add_key(&mut self, keyspace: &Keyspace, key: &[u8]) {
        self.add_hash(keyspace.hash(key));
    }

    /// Adds the shard of the key with this hash.
    #[inline]
    pub fn add_hash(&mut self, hash: u64) {
        if let Footprint::Shards(shards) = self {
            if shards.len() == MAX_NUMBERS {
                sort(shards);
            }
            shards.push(Keyspace::shard_of(hash));
        }
    }

    /// Adds the shards of these keys.
    pub fn add_keys<'a>(&mut self, keyspace: &Keyspace, keys: impl Iterator<Item = &'a [u8]>) {
        for key in keys {
            self.add_key(keyspace, key);
        }
    }

    /// Locks it: for writing when `exclusive`, for reading otherwise.
    pub fn lock(mut self, keyspace: &Keyspace, exclusive: bool, now: Now) -> View<'_> {
        match &mut self {
            Footprint::Whole => View::lock(keyspace, 0..SHARDS, exclusive, now),
            Footprint::Shards(shards) => {
                sort(shards);
                View::lock(keyspace, shards.iter().copied(), exclusive, now)
            }
        }
    }
}

/// Leaves each number once, in rising order.
fn sort(shards: &mut SmallVec<[usize; 4]>) {
    shards.sort_unstable();
    shards.dedup();
}
