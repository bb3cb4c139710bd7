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

/// Fewer numbers than this are sorted by comparing them; more are put into a set of bits.
const FEW_NUMBERS: usize = 16;

const WORD_BITS: usize = 64;

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
        let keys = keys.into_iter();
        let mut footprint = Footprint::none();
        if let Footprint::Shards(shards) = &mut footprint {
            shards.reserve(keys.size_hint().0.min(MAX_NUMBERS));
        }
        keys.for_each(|key| footprint.add(key));
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
    if shards.len() < FEW_NUMBERS {
        shards.sort_unstable();
        shards.dedup();
        return;
    }
    let mut set = [0_u64; SHARDS / WORD_BITS];
    for shard in shards.drain(..) {
        if let Some(word) = set.get_mut(shard / WORD_BITS) {
            *word |= 1 << (shard % WORD_BITS);
        }
    }
    for (at, mut word) in set.into_iter().enumerate() {
        while word != 0 {
            shards.push(at * WORD_BITS + word.trailing_zeros() as usize);
            word &= word - 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_sorted_and_each_is_left_once() {
        for count in [0, 1, 2, FEW_NUMBERS - 1, FEW_NUMBERS, 64, MAX_NUMBERS] {
            let mut shards: SmallVec<[usize; 4]> = (0..count)
                .map(|number| SHARDS - 1 - number * 37 % 300 * 3)
                .collect();
            let mut expected = shards.to_vec();
            expected.sort_unstable();
            expected.dedup();
            sort(&mut shards);
            assert_eq!(shards.to_vec(), expected, "{count}");
        }
    }
}
