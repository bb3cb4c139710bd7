//! All that is remembered: keys, the journal of their changes, and the files of both.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use tokio::sync::watch;

use crate::clock::Now;
use crate::health::Health;
use crate::journal::Journal;
use crate::keyspace::{Keyspace, SHARDS, Shard};
use crate::persistence::Persistence;
use crate::settings::Settings;

/// All that is remembered.
#[derive(Debug)]
pub struct Store {
    /// The keys.
    pub keyspace: Keyspace,
    /// Where effects go.
    pub journal: Journal,
    /// Whether data is being loaded, and whether files can be written.
    pub health: Health,
    /// Bytes of memory of this machine: no filter and no argument of a command that is read from a
    /// file may take more.
    pub memory: u64,
    persistence: Option<Persistence>,
    settings: Mutex<Arc<Settings>>,
    stopping: AtomicBool,
    failure: watch::Sender<Option<String>>,
}

impl Store {
    /// No keys yet, and a data directory that is to be loaded, if there is one.
    pub fn new(settings: Settings, persistence: Option<Persistence>, memory: u64) -> Arc<Self> {
        let store = Store {
            keyspace: Keyspace::new(settings.databases),
            journal: Journal::default(),
            health: Health::default(),
            memory,
            persistence,
            settings: Mutex::new(Arc::new(settings)),
            stopping: AtomicBool::new(false),
            failure: watch::Sender::new(None),
        };
        store.health.set_loading(store.persistence.is_some());
        Arc::new(store)
    }

    /// The settings in force.
    pub fn settings(&self) -> Arc<Settings> {
        Arc::clone(&self.settings.lock())
    }

    /// Puts other settings in force.
    pub fn set_settings(&self, settings: Settings) {
        *self.settings.lock() = Arc::new(settings);
    }

    /// The data directory, if there is one.
    pub fn persistence(&self) -> Option<&Persistence> {
        self.persistence.as_ref()
    }

    /// The host is about to end: loading is given up.
    pub fn stop(&self) {
        self.stopping.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }

    /// The host must end, because of something that nobody can go on after.
    pub fn fail(&self, why: String) {
        tracing::error!("{why}");
        self.failure.send_modify(|failure| {
            failure.get_or_insert(why);
        });
    }

    /// Why the store has failed, if it has.
    pub fn failure(&self) -> Option<String> {
        self.failure.borrow().clone()
    }

    /// Returns once the store has failed.
    pub async fn failed(&self) {
        // The sender lives in `self`, so the channel cannot close.
        let _ = self.failure.subscribe().wait_for(Option::is_some).await;
    }

    /// Removes keys whose time has come, a shard at a time; returns how many.
    pub fn remove_expired(&self) -> usize {
        (0..SHARDS).map(|index| self.remove_expired_of(index)).sum()
    }

    fn remove_expired_of(&self, index: usize) -> usize {
        let now = Now::read();
        let due = |shard: &Shard| shard.dbs().iter().any(|db| db.may_have_expired(now.ms));
        if !due(&self.keyspace.shard(index).read()) {
            return 0;
        }
        let mut gone = Vec::new();
        let mut shard = self.keyspace.shard(index).write();
        let mut record = self.journal.record();
        for db in 0..self.keyspace.databases() {
            if shard.db(db).may_have_expired(now.ms) {
                let removed = shard.db_mut(db).remove_expired(now.ms);
                for (key, _) in &removed {
                    shard.touch(db, key);
                    record.expired(db, key);
                }
                self.keyspace.settle(shard.db_mut(db));
                gone.extend(removed);
            }
        }
        self.journal.append(record);
        // What was removed is freed without the lock.
        drop(shard);
        let (count, bytes) = (gone.len(), gone.iter().map(|(_, left)| left.memory()).sum());
        self.keyspace.free(gone, bytes);
        count
    }
}
