//! The server: what all connections and workers share.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use everbloom_commands::flags::{Flags, LOADING, TELLS_HEALTH, WHILE_LOADING, WRITE};
use everbloom_resp::Reply;
use parking_lot::Mutex;
use tokio::sync::watch;

use everbloom_store::Store;
use everbloom_store::persistence::Persistence;

use crate::clients::Clients;
use crate::config::{Config, Settings};
use crate::native::Command;
use crate::registry::Registry;
use crate::slowlog::SlowLog;
use crate::stats::{ServerStats, WorkerStats};

/// What all connections and workers share.
#[derive(Debug)]
pub struct Server {
    /// The settings.
    pub config: Config,
    /// All that is remembered.
    pub store: Arc<Store>,
    /// The open connections.
    pub clients: Clients,
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
    /// Whether keys whose time has come are removed before anybody asks for them.
    pub active_expire: AtomicBool,
    /// Whether the end is to save a snapshot, if a client has said so.
    save_at_end: Mutex<Option<bool>>,
    addresses: OnceLock<Vec<SocketAddr>>,
    stop: watch::Sender<bool>,
}

impl Server {
    /// A server with these settings and `workers` workers that does not listen yet, and has no
    /// data directory.
    pub fn new(settings: Settings, workers: usize) -> Arc<Self> {
        Self::with_persistence(settings, workers, None)
    }

    /// The same, with a data directory that is yet to be loaded.
    pub fn with_persistence(
        settings: Settings,
        workers: usize,
        persistence: Option<Persistence>,
    ) -> Arc<Self> {
        let commands = Registry::get().commands().len();
        let total_memory = crate::system::total_memory();
        Arc::new(Server {
            store: Store::new(settings.data.clone(), persistence, total_memory),
            clients: Clients::default(),
            slowlog: SlowLog::default(),
            stats: ServerStats::default(),
            workers: (0..workers).map(|_| WorkerStats::new(commands)).collect(),
            started: Instant::now(),
            run_id: crate::system::random_hex(40),
            total_memory,
            active_expire: AtomicBool::new(true),
            save_at_end: Mutex::new(None),
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
        self.store.stop();
        self.stop.send_replace(true);
        for client in self.clients.list() {
            client.kill();
        }
    }

    /// Changes the settings: `change` works on a copy, which is put in force when it succeeds.
    pub fn update_settings<E>(
        &self,
        change: impl FnOnce(&mut Settings) -> Result<(), E>,
    ) -> Result<(), E> {
        self.config.update(|settings| {
            change(settings)?;
            self.store.set_settings(settings.data.clone());
            Ok(())
        })
    }

    /// Why a command may not run now, if so: the data is being loaded, or writes are refused
    /// because they could not be made to last.
    #[inline]
    pub fn refusal(&self, command: &Command, settings: &Settings) -> Option<Reply> {
        if !self.store.health.is_troubled() {
            return None;
        }
        self.refusal_in_trouble(command, settings)
    }

    #[cold]
    fn refusal_in_trouble(&self, command: &Command, settings: &Settings) -> Option<Reply> {
        if self.store.health.is_loading()
            && !command.flags.has(Flags::of(&[LOADING, WHILE_LOADING]))
        {
            return Some(Reply::error(
                "LOADING Redis is loading the dataset in memory",
            ));
        }
        if !command.flags.has(Flags::of(&[WRITE, TELLS_HEALTH])) {
            return None;
        }
        if self.store.health.is_log_failing() {
            let figures = self.store.persistence().map(|p| &p.figures);
            let error = figures
                .and_then(|f| f.log_error.lock().clone())
                .unwrap_or_default();
            return Some(Reply::error(format!(
                "MISCONF Errors writing to the AOF file: {error}"
            )));
        }
        let refused = settings.data.stop_writes_on_bgsave_error
            && !settings.data.save.is_empty()
            && self.store.health.is_save_failing();
        refused.then(|| {
            Reply::error(
                "MISCONF Redis is configured to save RDB snapshots, but it's currently unable to \
                 persist to disk. Commands that may modify the data set are disabled, because \
                 this instance is configured to report errors during writes if RDB snapshotting \
                 fails (stop-writes-on-bgsave-error option). Please check the Redis logs for \
                 details about the RDB error.",
            )
        })
    }

    /// Says whether a snapshot is to be saved at the end, whatever the save points say.
    pub fn set_save_at_end(&self, save: bool) {
        *self.save_at_end.lock() = Some(save);
    }

    /// Whether a client has said that a snapshot is to be saved at the end, or that none is.
    pub fn save_at_end(&self) -> Option<bool> {
        *self.save_at_end.lock()
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
        let keys = u64::try_from(self.store.keyspace.memory()).unwrap_or(u64::MAX);
        let used = keys.saturating_add(self.stats.buffers.load(Ordering::Relaxed));
        // Mostly a read: workers that only look must not fight for the cache line.
        if used > self.stats.peak_memory.load(Ordering::Relaxed) {
            self.stats.peak_memory.fetch_max(used, Ordering::Relaxed);
        }
        used
    }

    /// Whether more memory is taken than `maxmemory` allows.
    pub fn over_memory_limit(&self, settings: &Settings) -> bool {
        settings.maxmemory > 0 && self.used_memory() > settings.maxmemory
    }

    /// Bytes of memory that are left, of `maxmemory` or of the machine's.
    pub fn free_memory(&self, settings: &Settings) -> u64 {
        let most = if settings.maxmemory > 0 {
            settings.maxmemory
        } else {
            self.total_memory
        };
        most.saturating_sub(self.used_memory())
    }

    /// Bytes that one filter may take.
    pub fn max_filter_bytes(&self, settings: &Settings) -> u64 {
        match settings.bf_max_filter_bytes {
            0 => u64::MAX,
            most => most,
        }
    }
}
