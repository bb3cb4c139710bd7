//! The one key that a command on a filter works on: found once, handed to the command as a slot.

use everbloom_commands::{Family, ReadSlot, Slot};

use crate::server::Server;
use crate::stats::WorkerStats;
use everbloom_files::{Text, Value};
use everbloom_store::clock::Now;
use everbloom_store::journal::Record;
use everbloom_store::keyspace::{Entry, Keyspace, Shard};

/// Where a key is, or would be.
#[derive(Debug, Clone, Copy)]
pub struct Place<'k> {
    /// The key's database.
    pub db: usize,
    /// Its name.
    pub key: &'k [u8],
    /// The number of its shard.
    pub shard: usize,
    hash: u64,
    now: Now,
}

impl<'k> Place<'k> {
    /// Finds the place of a key.
    #[inline]
    pub fn new(keyspace: &Keyspace, db: usize, key: &'k [u8], now: Now) -> Self {
        let hash = keyspace.hash(key);
        Place {
            db,
            key,
            shard: Keyspace::shard_of(hash),
            hash,
            now,
        }
    }

    /// Asks for the memory of the entry.
    #[inline]
    pub fn prefetch(&self, shard: &Shard) {
        shard.db(self.db).prefetch(self.hash);
    }

    /// The value that is there, without counting as an access.
    #[inline]
    pub fn peek<'s>(&self, shard: &'s Shard) -> Option<&'s Value> {
        let entry = shard.db(self.db).peek(self.hash, self.key, self.now.ms);
        entry.map(|entry| &entry.value)
    }

    /// The value that is there.
    #[inline]
    pub fn get<'s>(&self, shard: &'s Shard) -> Option<&'s Value> {
        let entry = shard.db(self.db).get(self.hash, self.key, self.now);
        entry.map(|entry| &entry.value)
    }

    /// Counts look-ups that found a key, or did not.
    #[inline]
    pub fn count_look_ups(found: bool, times: usize, stats: &WorkerStats) {
        let counter = if found {
            &stats.keyspace_hits
        } else {
            &stats.keyspace_misses
        };
        counter.add(times as u64);
    }

    /// What a reading command finds there.
    #[inline]
    pub fn read<'s, F: Family>(&self, shard: &'s Shard, stats: &WorkerStats) -> ReadSlot<'s, F> {
        let value = self.get(shard);
        Self::count_look_ups(value.is_some(), 1, stats);
        match value {
            None => ReadSlot::Missing,
            Some(Value::Filter(filter)) => filter.into(),
            Some(Value::Text(_)) => ReadSlot::OtherType,
        }
    }

    /// Lets a command on a filter work there; the key is made if the command filled a vacant slot.
    /// A key that was there but had expired is removed first, which `record` notes. The shard must
    /// be the one that [`Place::shard`] names.
    #[inline]
    pub fn write<R, F: Family>(
        &self,
        server: &Server,
        shard: &mut Shard,
        record: &mut Record,
        work: impl FnOnce(&mut Slot<'_, F>) -> R,
    ) -> R {
        self.remove_expired(server, shard, record);
        self.change(server, shard, |found| match found {
            Found::Value(Value::Filter(filter)) => work(&mut filter.into()),
            Found::Value(Value::Text(_)) => work(&mut Slot::OtherType),
            Found::Nothing(value) => {
                let mut created = None;
                let result = work(&mut Slot::Vacant(&mut created));
                *value = created.map(|filter: F| Value::Filter(filter.into()));
                result
            }
        })
    }

    /// Lets work on the string there, or on an empty one for which the key is made if it is empty
    /// no longer; `None` is a value of another type. [`Place::remove_expired`] comes first.
    #[inline]
    pub fn change_text<R>(
        &self,
        server: &Server,
        shard: &mut Shard,
        work: impl FnOnce(Option<&mut Text>) -> R,
    ) -> R {
        self.change(server, shard, |found| match found {
            Found::Value(Value::Text(text)) => work(Some(text)),
            Found::Value(Value::Filter(_)) => work(None),
            Found::Nothing(value) => {
                let mut text = Text::default();
                let result = work(Some(&mut text));
                *value = (!text.is_empty()).then_some(Value::Text(text));
                result
            }
        })
    }

    /// Removes a key that is there but has expired, and notes it.
    #[inline]
    pub fn remove_expired(&self, server: &Server, shard: &mut Shard, record: &mut Record) {
        let db = shard.db_mut(self.db);
        if db.has_expired(self.hash, self.key, self.now.ms) {
            db.discard(self.hash, self.key);
            shard.touch(self.db, self.key);
            server.stats.expired(1);
            record.expired(self.db, self.key);
        }
    }

    /// Lets work on what is there, and makes the key if there was nothing and now is.
    #[inline]
    fn change<R>(
        &self,
        server: &Server,
        shard: &mut Shard,
        work: impl FnOnce(Found<'_>) -> R,
    ) -> R {
        let db = shard.db_mut(self.db);
        let mut work = Some(work);
        let mut run = |found: Found<'_>| work.take().map(|work| work(found));
        let result = db.modify(self.hash, self.key, self.now, |value| {
            run(Found::Value(value))
        });
        let mut created = None;
        let result = result
            .flatten()
            .or_else(|| run(Found::Nothing(&mut created)));
        if let Some(value) = created {
            db.insert(self.hash, Entry::new(self.key, value, None, self.now.clock));
        }
        server.store.keyspace.settle(db);
        #[expect(clippy::expect_used, reason = "there was either something or nothing")]
        result.expect("the work ran")
    }
}

/// What a writing command finds.
enum Found<'v> {
    Value(&'v mut Value),
    /// The value of the key that is to be made, if one is.
    Nothing(&'v mut Option<Value>),
}
