//! The server: what all connections and workers share.

use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use tokio::sync::watch;

use crate::clients::Clients;
use crate::clock::Now;
use crate::config::{Config, Settings};
use crate::journal::Journal;
use crate::keyspace::Keyspace;
use crate::registry::Registry;
use crate::slowlog::SlowLog;
use crate::stats::{ServerStats, WorkerStats};

/// What all connections and workers share.
#[derive(Debug)]
pub struct Server {
    /// The settings.
    pub config: Config,
    /// The keys.
    pub keyspace: Keyspace,
    /// The open connections.
    pub clients: Clients,
    /// Where effects go.
    pub journal: Journal,
    /// Commands that took long.
    pub slowlog: SlowLog,
    /// Figures of the whole server.
    pub stats: ServerStats,
    /// Figures of each worker.
    pub workers: Box<[Arc<WorkerStats>]>,
    /// When the server started.
    pub started: Instant,
    /// 40 random hexadecimal digits that name this run.
    pub run_id: String,
    /// Bytes of memory of this machine.
    pub total_memory: u64,
    addresses: OnceLock<Vec<SocketAddr>>,
    stop: watch::Sender<bool>,
}

impl Server {
    /// A server with these settings and `workers` workers that does not listen yet.
    pub fn new(settings: Settings, workers: usize) -> Arc<Self> {
        let commands = Registry::get().commands().len();
        Arc::new(Server {
            keyspace: Keyspace::new(settings.databases),
            clients: Clients::default(),
            journal: Journal::default(),
            slowlog: SlowLog::default(),
            stats: ServerStats::default(),
            workers: (0..workers).map(|_| WorkerStats::new(commands)).collect(),
            started: Instant::now(),
            run_id: crate::system::random_hex(40),
            total_memory: crate::system::total_memory(),
            addresses: OnceLock::new(),
            stop: watch::Sender::new(false),
            config: Config::new(settings),
        })
    }

    /// The addresses it listens on; empty before it does.
    pub fn addresses(&self) -> &[SocketAddr] {
        self.addresses.get().map_or(&[], Vec::as_slice)
    }

    /// Notes the addresses it listens on, once.
    pub(crate) fn set_addresses(&self, addresses: Vec<SocketAddr>) {
        // A server is started once; a second list would be a second server's.
        let _ = self.addresses.set(addresses);
    }

    /// Asks the server to stop: no new connections, the open ones end after the batch they are at.
    pub fn stop(&self) {
        self.stop.send_replace(true);
        for client in self.clients.list() {
            client.kill();
        }
    }

    /// Whether it was asked to stop.
    pub fn is_stopping(&self) -> bool {
        *self.stop.borrow()
    }

    /// Returns once the server was asked to stop.
    pub async fn stopping(&self) {
        // The sender lives in `self`, so the channel cannot close.
        let _ = self.stop.subscribe().wait_for(|stop| *stop).await;
    }

    /// Bytes that keys, values and the buffers of connections take.
    pub fn used_memory(&self) -> u64 {
        let keys = u64::try_from(self.keyspace.memory()).unwrap_or(u64::MAX);
        self.stats.peak_memory.fetch_max(keys, Ordering::Relaxed);
        keys
    }

    /// Whether more memory is taken than `maxmemory` allows.
    pub fn over_memory_limit(&self, settings: &Settings) -> bool {
        settings.maxmemory > 0 && self.used_memory() > settings.maxmemory
    }

    /// Bytes that one filter may take now: what is left of `maxmemory`, or of the machine's memory,
    /// within `bf-max-filter-bytes`.
    pub fn filter_budget(&self, settings: &Settings) -> u64 {
        let most = if settings.maxmemory > 0 {
            settings.maxmemory
        } else {
            self.total_memory
        };
        let left = most.saturating_sub(self.used_memory());
        if settings.bf_max_filter_bytes > 0 {
            left.min(settings.bf_max_filter_bytes)
        } else {
            left
        }
    }

    /// Removes keys whose time has come, a shard at a time.
    pub fn remove_expired(&self) {
        for index in 0..crate::keyspace::SHARDS {
            let now = Now::read();
            let due = |shard: &crate::keyspace::Shard| {
                shard.dbs().iter().any(|db| db.may_have_expired(now.ms))
            };
            if !due(&self.keyspace.shard(index).read()) {
                continue;
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
            drop(shard);
            self.stats.expired(gone.len());
        }
    }
}
