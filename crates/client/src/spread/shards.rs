//! The keys of a spread filter, and the known generations of each shard.

use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};

use super::parameters::{MAX_GENERATIONS, SpreadParameters};
use crate::Error;
use crate::name::check_untagged;

/// The shards of a filter.
#[derive(Debug)]
pub(super) struct Shards {
    pub(super) name: String,
    pub(super) parameters: SpreadParameters,
    /// The newest generation of each shard that was seen: there may be newer ones.
    newest: Vec<AtomicU32>,
}

impl Shards {
    pub(super) fn new(name: &str, parameters: SpreadParameters) -> Result<Shards, Error> {
        check_untagged(name)?;
        let newest = (0..parameters.shards()).map(|_| AtomicU32::new(0));
        Ok(Shards {
            name: name.to_owned(),
            parameters,
            newest: newest.collect(),
        })
    }

    pub(super) fn places(&self) -> Range<usize> {
        0..self.newest.len()
    }

    /// The key of a shard's filter, in a slot of its own.
    pub(super) fn key(&self, shard: usize, generation: u32) -> String {
        let name = &self.name;
        match generation {
            0 => format!("{{{name}:{shard}}}"),
            _ => format!("{{{name}:{shard}}}:{generation}"),
        }
    }

    pub(super) fn newest(&self, shard: usize) -> u32 {
        let newest = self.newest.get(shard);
        newest.map_or(0, |newest| newest.load(Ordering::Relaxed))
    }

    pub(super) fn remember(&self, shard: usize, generation: u32) {
        if let Some(newest) = self.newest.get(shard) {
            newest.fetch_max(generation, Ordering::Relaxed);
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
