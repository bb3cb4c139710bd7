//! The one key that a command on a filter works on: found once, handed to the command as a slot.

use everbloom_commands::{Family, ReadSlot, Slot};

use crate::server::Server;
use crate::stats::WorkerStats;
use everbloom_files::Value;
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

    /// Asks for the memory that these items have in the filter that is there.
    #[inline]
    pub fn prefetch_items(&self, shard: &Shard, items: &[&[u8]]) {
        let entry = shard.db(self.db).peek(self.hash, self.key, self.now.ms);
        if let Some(Value::Filter(filter)) = entry.map(|entry| &entry.value) {
            filter.prefetch_items(items);
        }
    }

    /// What a reading command finds there.
    #[inline]
    pub fn read<'s, F: Family>(&self, shard: &'s Shard, stats: &WorkerStats) -> ReadSlot<'s, F> {
        let entry = shard.db(self.db).get(self.hash, self.key, self.now);
        let counter = if entry.is_some() {
            &stats.keyspace_hits
        } else {
            &stats.keyspace_misses
        };
        counter.add(1);
        match entry.map(|entry| &entry.value) {
            None => ReadSlot::Missing,
            Some(Value::Filter(filter)) => filter.into(),
            Some(Value::Text(_)) => ReadSlot::OtherType,
        }
    }

    /// Lets a writing command work there; the key is made if the command filled a vacant slot. A
    /// key that was there but had expired is removed first, which `record` notes. The shard must be
    /// the one that [`Place::shard`] names.
    pub fn write<R, F: Family>(
        &self,
        server: &Server,
        shard: &mut Shard,
        record: &mut Record,
        work: impl FnOnce(&mut Slot<'_, F>) -> R,
    ) -> R {
        let db = shard.db_mut(self.db);
        let expired = db.has_expired(self.hash, self.key, self.now.ms);
        if expired {
            db.discard(self.hash, self.key);
            server.stats.expired(1);
            record.expired(self.db, self.key);
        }
        let mut work = Some(work);
        let mut run = |slot: &mut Slot<'_, F>| work.take().map(|work| work(slot));
        let result = db.modify(self.hash, self.key, self.now, |value| match value {
            Value::Filter(filter) => run(&mut filter.into()),
            Value::Text(_) => run(&mut Slot::OtherType),
        });
        let mut created = None;
        let result = result
            .flatten()
            .or_else(|| run(&mut Slot::Vacant(&mut created)));
        if let Some(filter) = created {
            let value = Value::Filter(filter.into());
            db.insert(self.hash, Entry::new(self.key, value, None, self.now.clock));
        }
        server.store.keyspace.settle(db);
        if expired {
            shard.touch(self.db, self.key);
        }
        #[expect(
            clippy::expect_used,
            reason = "exactly one of the three slots was offered"
        )]
        result.expect("the work ran")
    }
}
