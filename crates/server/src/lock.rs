//! Which shards a command needs, locked in the one order that cannot deadlock.

use smallvec::SmallVec;

use everbloom_commands::command::KeySpec;

use crate::clock::Now;
use crate::keyspace::{Keyspace, SHARDS, View};

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

    /// Adds the shard of one key.
    pub fn add_key(&mut self, keyspace: &Keyspace, key: &[u8]) {
        if let Footprint::Shards(shards) = self {
            shards.push(Keyspace::shard_of(keyspace.hash(key)));
        }
    }

    /// Adds the keys that a command line names.
    pub fn add_keys(&mut self, keyspace: &Keyspace, keys: KeySpec, args: &[&[u8]]) {
        for key in keys_of(keys, args) {
            self.add_key(keyspace, key);
        }
    }

    /// Locks it: for writing when `exclusive`, for reading otherwise.
    pub fn lock(mut self, keyspace: &Keyspace, exclusive: bool, now: Now) -> View<'_> {
        match &mut self {
            Footprint::Whole => View::lock(keyspace, 0..SHARDS, exclusive, now),
            Footprint::Shards(shards) => {
                shards.sort_unstable();
                shards.dedup();
                View::lock(keyspace, shards.iter().copied(), exclusive, now)
            }
        }
    }
}

/// The keys among the arguments of a command (its name is argument 0).
pub fn keys_of<'a>(keys: KeySpec, args: &'a [&'a [u8]]) -> impl Iterator<Item = &'a [u8]> {
    let count = i64::try_from(args.len()).unwrap_or(i64::MAX);
    let last = if keys.last < 0 {
        count + i64::from(keys.last)
    } else {
        i64::from(keys.last)
    };
    let first = usize::try_from(keys.first).unwrap_or(0);
    let step = usize::try_from(keys.step).unwrap_or(1).max(1);
    let end = usize::try_from(last.min(count - 1) + 1).unwrap_or(0);
    let keyed = if first == 0 {
        0..0
    } else {
        first..end.max(first)
    };
    keyed.step_by(step).filter_map(|at| args.get(at).copied())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_follow_first_last_and_step() {
        let args: Vec<&[u8]> = vec![b"MSET", b"a", b"1", b"b", b"2"];
        let names = |first, last, step| -> Vec<&[u8]> {
            keys_of(KeySpec { first, last, step }, &args).collect()
        };
        assert_eq!(names(1, -1, 2), vec![b"a".as_slice(), b"b"]);
        assert_eq!(names(1, 1, 1), vec![b"a".as_slice()]);
        assert_eq!(names(1, 2, 1), vec![b"a".as_slice(), b"1"]);
        assert!(names(0, 0, 0).is_empty());
        assert_eq!(names(4, 9, 1), vec![b"2".as_slice()]);
    }
}
