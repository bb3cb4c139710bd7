//! The keys of a spread filter, and the known generations of each shard.

use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};

use super::parameters::{MAX_GENERATIONS, SpreadParameters};
use crate::Error;
use crate::name::shard;

/// The shards of a filter.
#[derive(Debug)]
pub(super) struct Shards {
    pub(super) name: String,
    pub(super) parameters: SpreadParameters,
    shards: Vec<Shard>,
}

#[derive(Debug)]
struct Shard {
    key: String,
    /// The newest generation that was seen: there may be newer ones.
    newest: AtomicU32,
}

impl Shards {
    pub(super) fn new(name: &str, parameters: SpreadParameters) -> Result<Shards, Error> {
        let shards = (0..parameters.shards()).map(|place| {
            let key = shard(name, place)?;
            let newest = AtomicU32::new(0);
            Ok(Shard { key, newest })
        });
        Ok(Shards {
            name: name.to_owned(),
            parameters,
            shards: shards.collect::<Result<_, Error>>()?,
        })
    }

    pub(super) fn places(&self) -> Range<usize> {
        0..self.shards.len()
    }

    /// The key of a shard's filter.
    pub(super) fn key(&self, shard: usize, generation: u32) -> String {
        let key = self
            .shards
            .get(shard)
            .map_or("", |shard| shard.key.as_str());
        match generation {
            0 => key.to_owned(),
            _ => format!("{key}:{generation}"),
        }
    }

    pub(super) fn newest(&self, shard: usize) -> u32 {
        let shard = self.shards.get(shard);
        shard.map_or(0, |shard| shard.newest.load(Ordering::Relaxed))
    }

    pub(super) fn remember(&self, shard: usize, generation: u32) {
        if let Some(shard) = self.shards.get(shard) {
            shard.newest.fetch_max(generation, Ordering::Relaxed);
        }
    }

    /// Remembers that a shard has a generation after this one.
    pub(super) fn grown(&self, shard: usize, generation: u32) -> Result<u32, Error> {
        let next = generation + 1;
        if next >= MAX_GENERATIONS {
            return Err(Error::Shape("a spread filter has at most 31 generations"));
        }
        self.remember(shard, next);
        Ok(next)
    }
}
