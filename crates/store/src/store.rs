//! The server's data: keys, the journal of their changes, and the files of both.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use tokio::sync::watch;

use crate::clock::Now;
use crate::health::{Cause, Health};
use crate::journal::Journal;
use crate::keyspace::{Db, Keyspace, SHARDS, Shard};
use crate::limits::{EXPIRY_STEP_KEYS, EXPIRY_STEPS, UNWRITTEN_BYTES};
use crate::machine::{Machine, System};
use crate::pace::Pace;
use crate::persistence::Persistence;
use crate::settings::Settings;

/// What was removed because its time has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Expired {
    /// Keys.
    pub keys: usize,
    /// Windows that dropped generations.
    pub windows: usize,
}

impl Expired {
    /// Whether anything was removed.
    pub fn any(self) -> bool {
        self.keys + self.windows > 0
    }
}

/// The server's data.
#[derive(Debug)]
pub struct Store {
    /// The keys.
    pub keyspace: Arc<Keyspace>,
    /// The queue of effects.
    pub journal: Journal,
    /// Whether data is being loaded, and whether files can be written.
    pub health: Health,
    /// The clock and the threads.
    pub machine: Arc<dyn Machine>,
    /// Bytes of memory of this machine. No filter and no command argument from a file may be
    /// larger.
    pub memory: u64,
    persistence: Option<Persistence>,
    settings: Mutex<Arc<Settings>>,
    stopping: AtomicBool,
    failure: watch::Sender<Option<String>>,
}

impl Store {
    /// A store without keys, and a data directory to load, if there is one.
    pub fn new(settings: Settings, persistence: Option<Persistence>, memory: u64) -> Arc<Self> {
        let machine: Arc<dyn Machine> = match &persistence {
            Some(persistence) => Arc::clone(&persistence.machine),
            None => Arc::new(System::default()),
        };
        let store = Store {
            keyspace: Keyspace::with_hasher(settings.databases, machine.key_hasher()).into(),
            journal: Journal::default(),
            health: Health::default(),
            machine,
            memory,
            persistence,
            settings: Mutex::new(Arc::new(settings)),
            stopping: AtomicBool::new(false),
            failure: watch::Sender::new(None),
        };
        store.health.set_loading(store.persistence.is_some());
        Arc::new(store)
    }

    /// The current settings.
    pub fn settings(&self) -> Arc<Settings> {
        Arc::clone(&self.settings.lock())
    }

    /// Replaces the settings.
    pub fn set_settings(&self, settings: Settings) {
        *self.settings.lock() = Arc::new(settings);
    }

    /// The data directory, if there is one.
    pub fn persistence(&self) -> Option<&Persistence> {
        self.persistence.as_ref()
    }

    /// Whether a change made now can be logged soon; also true if no log is kept. While it is
    /// false, the server makes no changes of its own, such as removing expired keys. It takes no
    /// lock.
    pub fn can_log(&self) -> bool {
        !self.health.is_log_failing()
    }

    /// Whether a snapshot is wanted and the last one failed, and no log holds the changes instead.
    pub fn lacks_snapshot(&self, settings: &Settings) -> bool {
        let logged = || self.persistence().is_some_and(Persistence::log_holds_all);
        self.health.is_save_failing() && !settings.save.is_empty() && !logged()
    }

    /// Whether writes are refused because the disk is in trouble.
    pub fn refuses_writes(&self, settings: &Settings) -> bool {
        let for_snapshot = || settings.stop_writes_on_bgsave_error && self.lacks_snapshot(settings);
        self.health.is_log_failing() || for_snapshot()
    }

    /// Whether a log is kept. While its first file is being written, it is, unless that has failed
    /// before.
    pub fn keeps_log(&self) -> bool {
        self.journal.is_logging() && !self.health.has(Cause::LogMissing)
    }

    /// The host is about to stop: loading is cancelled.
    pub fn stop(&self) {
        self.stopping.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }

    /// Records an error after which the host must stop.
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

    /// Removes expired keys and expired generations of windows, some of each shard, so that no lock
    /// is held for long. More may be left unless there was nothing. While the changes cannot be
    /// logged soon, all stay, but commands treat them as removed.
    pub fn remove_expired(&self, now: Now) -> Expired {
        let pace = Pace::new(&self.machine);
        self.remove_expired_until(now, |_| {
            pace.rest();
            false
        })
    }

    /// The same without pauses, until there is room or some milliseconds have passed.
    pub fn make_room(&self, now: Now, has_room: impl Fn() -> bool) -> Expired {
        let mut steps = 0;
        self.remove_expired_until(now, |removed| {
            steps += usize::from(removed.any());
            removed.any() && (steps >= EXPIRY_STEPS.get() || has_room())
        })
    }

    /// Removes what has expired from one shard after the other, until `done` says so; it is told
    /// what was removed from the shard.
    fn remove_expired_until(&self, now: Now, mut done: impl FnMut(Expired) -> bool) -> Expired {
        let mut removed = Expired::default();
        if !self.keyspace.may_have_expired(now.ms) || !self.can_log_expiry() {
            return removed;
        }
        self.keyspace.forget_earliest_expiry();
        for index in 0..SHARDS {
            if !self.can_log_expiry() {
                self.keyspace.note_expiry(now.ms);
                break;
            }
            let of_shard = self.remove_expired_of(index, now);
            removed.keys += of_shard.keys;
            removed.windows += of_shard.windows;
            if done(of_shard) {
                self.keyspace.note_expiry(now.ms);
                break;
            }
        }
        removed
    }

    /// Whether the log accepts changes, and is not far behind.
    fn can_log_expiry(&self) -> bool {
        let unwritten = || self.journal.end().saturating_sub(self.journal.written());
        self.can_log() && !(self.journal.is_logging() && unwritten() > UNWRITTEN_BYTES.get_u64())
    }

    fn remove_expired_of(&self, index: usize, now: Now) -> Expired {
        let earliest = |shard: &Shard| shard.dbs().iter().filter_map(Db::earliest_expiry).min();
        let first = earliest(&self.keyspace.shard(index).read());
        if first.is_none_or(|at| at > now.ms) {
            self.keyspace.note_expiry(first.unwrap_or(u64::MAX));
            return Expired::default();
        }
        let (mut gone, mut windows) = (Vec::new(), 0);
        let mut budget = EXPIRY_STEP_KEYS.get();
        let mut shard = self.keyspace.shard(index).write();
        let mut record = self.journal.record();
        for number in 0..self.keyspace.databases() {
            let removed = shard.db_mut(number).remove_expired(now.ms, &mut budget);
            for (key, _) in &removed {
                record.expired(number, key);
                shard.touch_expired(self.keyspace.key(number, key));
            }
            let db = shard.db_mut(number);
            // Nobody sees a change: lookups skip what has expired.
            let begun = db.forget_generations(now.ms, &mut budget);
            for (key, begun) in &begun {
                record.command(number, &begun.command(key));
            }
            self.keyspace.settle(db);
            gone.extend(removed);
            windows += begun.len();
        }
        self.journal.append(record);
        self.keyspace
            .note_expiry(earliest(&shard).unwrap_or(u64::MAX));
        // Removed values are freed without the lock.
        drop(shard);
        let (keys, bytes) = (gone.len(), gone.iter().map(|(_, left)| left.memory()).sum());
        self.keyspace.free(gone, bytes);
        Expired { keys, windows }
    }
}
