//! The locks of several places at once.

use std::ops::{Deref, DerefMut};

use everbloom_store::keyspace::Shard;
use smallvec::SmallVec;

use super::place::Place;

/// The locked shards of some places. `G` holds the lock of one.
pub struct Locks<G> {
    /// In the order of the shards' numbers, in which everybody locks.
    held: SmallVec<[(usize, G); 64]>,
    /// Which of them each place is in.
    of: SmallVec<[usize; 64]>,
}

impl<G: Deref<Target = Shard>> Locks<G> {
    /// Locks the shards of these places; `lock` gets the number of a shard.
    pub fn new(places: &[Place<'_>], lock: impl Fn(usize) -> G) -> Self {
        let mut shards: SmallVec<[usize; 64]> = places.iter().map(|place| place.shard).collect();
        shards.sort_unstable();
        shards.dedup();
        let held: SmallVec<[(usize, G); 64]> =
            shards.iter().map(|shard| (*shard, lock(*shard))).collect();
        let of = places.iter().map(|place| {
            let at = held.binary_search_by_key(&place.shard, |(shard, _)| *shard);
            at.unwrap_or_else(|at| at)
        });
        Locks {
            of: of.collect(),
            held,
        }
    }

    /// The shard of a place, by its number among the places.
    #[expect(clippy::indexing_slicing, reason = "every place has its shard locked")]
    pub fn of(&self, place: usize) -> &Shard {
        &self.held[self.of[place]].1
    }

    /// The same, to be changed.
    #[expect(clippy::indexing_slicing, reason = "every place has its shard locked")]
    pub fn of_mut(&mut self, place: usize) -> &mut Shard
    where
        G: DerefMut,
    {
        &mut self.held[self.of[place]].1
    }
}
