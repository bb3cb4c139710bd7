//! The shards that a command needs, locked in one order, so that commands cannot deadlock.

use smallvec::SmallVec;

use super::key::{KeyRef, SHARDS};
use super::sharded::Keyspace;
use super::view::{ReadLocks, ViewMut};
use crate::clock::Now;
use crate::machine::pause_before_lock;

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

    /// The shards of some keys.
    #[inline]
    pub fn of<'a>(keys: impl IntoIterator<Item = KeyRef<'a>>) -> Self {
        let mut footprint = Footprint::none();
        keys.into_iter().for_each(|key| footprint.add(key));
        footprint
    }

    /// Adds the shard of a key.
    #[inline]
    pub fn add(&mut self, key: KeyRef<'_>) {
        if let Footprint::Shards(shards) = self {
            if shards.len() == MAX_NUMBERS {
                sort(shards);
            }
            shards.push(key.shard());
        }
    }

    /// Adds the shards of another footprint.
    pub fn extend(&mut self, other: &Footprint) {
        match (&mut *self, other) {
            (Footprint::Shards(shards), Footprint::Shards(more)) => {
                shards.extend_from_slice(more);
                sort(shards);
            }
            _ => *self = Footprint::Whole,
        }
    }

    /// Locks it for reading.
    #[inline]
    pub fn read(mut self, keyspace: &Keyspace, now: Now) -> ReadLocks<'_> {
        pause_before_lock();
        match &mut self {
            Footprint::Whole => ReadLocks::lock(keyspace, 0..SHARDS, now),
            Footprint::Shards(shards) => ReadLocks::lock(keyspace, sorted(shards), now),
        }
    }

    /// Locks it for changes.
    #[inline]
    pub fn write(mut self, keyspace: &Keyspace, now: Now) -> ViewMut<'_> {
        pause_before_lock();
        match &mut self {
            Footprint::Whole => ViewMut::lock(keyspace, 0..SHARDS, now),
            Footprint::Shards(shards) => ViewMut::lock(keyspace, sorted(shards), now),
        }
    }
}

/// Each number once, in rising order.
#[inline]
fn sorted(shards: &mut SmallVec<[usize; 4]>) -> impl Iterator<Item = usize> {
    if shards.len() > 1 {
        sort(shards);
    }
    shards.iter().copied()
}

/// Leaves each number once, in rising order.
fn sort(shards: &mut SmallVec<[usize; 4]>) {
    shards.sort_unstable();
    shards.dedup();
}
