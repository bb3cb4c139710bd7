//! The server: the state that all connections and workers share.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use parking_lot::Mutex;
use tokio::sync::watch;
use tokio_rustls::rustls::ServerConfig;

use everbloom::host::memory;
use everbloom_store::Store;
use everbloom_store::persistence::{Persistence, log, schedule};

use crate::address::Entrance;
use crate::clients::Clients;
use crate::config::{Config, Settings};
use crate::holds::Holds;
use crate::slowlog::SlowLog;
use crate::stats::{ServerStats, WorkerStats};
use crate::tls;

/// The state that all connections and workers share.
#[derive(Debug)]
pub struct Server {
    /// The settings.
    pub config: Config,
    /// The data.
    pub store: Arc<Store>,
    /// The open connections.
    pub clients: Clients,
    /// Keys that must not change for a while.
    pub holds: Arc<Holds>,
    /// Slow commands.
    pub slowlog: SlowLog,
    /// Figures of the whole server.
    pub stats: ServerStats,
    /// Figures of each worker.
    pub workers: Box<[Arc<WorkerStats>]>,
    /// When the server started.
    pub started: Instant,
    /// 40 random hexadecimal digits that identify this run.
    pub run_id: String,
    /// Bytes of memory of this machine.
    pub total_memory: u64,
    /// Whether expired keys are removed in the background.
    pub active_expire: AtomicBool,
    /// Whether to save a snapshot at the end, if a client has said so.
    save_at_end: Mutex<Option<bool>>,
    entrances: OnceLock<Vec<Entrance>>,
    tls: Mutex<Option<Arc<ServerConfig>>>,
    stop: watch::Sender<bool>,
}

impl Server {
    /// A server with these settings and `workers` workers, with figures for this many commands, and
    /// perhaps with a data directory to load. It does not listen yet.
    pub fn new(
        settings: Settings,
        workers: usize,
        commands: usize,
        persistence: Option<Persistence>,
    ) -> Arc<Self> {
        let total_memory = crate::system::total_memory();
        Arc::new(Server {
            store: Store::new(settings.data.clone(), persistence, total_memory),
            clients: Clients::default(),
            holds: Arc::default(),
            slowlog: SlowLog::default(),
            stats: ServerStats::default(),
            workers: (0..workers).map(|_| WorkerStats::new(commands)).collect(),
            started: Instant::now(),
            run_id: crate::system::random_hex(40),
            total_memory,
            active_expire: AtomicBool::new(true),
            save_at_end: Mutex::new(None),
            entrances: OnceLock::new(),
            tls: Mutex::new(None),
            stop: watch::Sender::new(false),
            config: Config::new(settings),
        })
    }

    /// The addresses it listens on; empty before that.
    pub fn entrances(&self) -> &[Entrance] {
        self.entrances.get().map_or(&[], Vec::as_slice)
    }

    /// Sets the addresses it listens on, once.
    pub(crate) fn set_entrances(&self, entrances: Vec<Entrance>) {
        // A server starts once; a second list would belong to a second server.
        let _ = self.entrances.set(entrances);
    }

    /// TLS settings for new connections.
    pub(crate) fn tls(&self) -> Option<Arc<ServerConfig>> {
        self.tls.lock().clone()
    }

    /// Sets TLS for new connections.
    pub(crate) fn set_tls(&self, config: Option<Arc<ServerConfig>>) {
        *self.tls.lock() = config;
    }

    /// Reads the TLS files again, and returns whether there are any. If they are invalid, the
    /// current ones stay.
    pub fn read_tls_files(&self) -> Result<bool, String> {
        let config = tls::read(&self.config.snapshot().tls)?;
        let any = config.is_some();
        self.set_tls(config);
        Ok(any)
    }

    /// Asks the server to stop: it refuses new connections, and closes the open ones after their
    /// current batch.
    pub fn stop(&self) {
        self.store.stop();
        self.stop.send_replace(true);
        self.clients.close();
    }

    /// Changes the settings: `change` works on a copy, which replaces them when it succeeds.
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

    /// Saves what would be lost if the server stopped now: nothing, if a log holds all changes. An
    /// error says why the server must not stop.
    pub fn save_before_stop(&self) -> Result<(), String> {
        let persistence = self.store.persistence();
        log::check_files(&self.store);
        if persistence.is_some_and(Persistence::log_holds_all) {
            return Ok(());
        }
        schedule::save_before_stop(&self.store, None)
    }

    /// Sets whether to save a snapshot at the end, whatever the save points say.
    pub fn set_save_at_end(&self, save: bool) {
        *self.save_at_end.lock() = Some(save);
    }

    /// Whether a client has said to save a snapshot at the end, or not to.
    pub fn save_at_end(&self) -> Option<bool> {
        *self.save_at_end.lock()
    }

    /// Whether the server was asked to stop.
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
        // Mostly a read: workers that only read must not compete for the cache line.
        if used > self.stats.peak_memory.load(Ordering::Relaxed) {
            self.stats.peak_memory.fetch_max(used, Ordering::Relaxed);
        }
        used
    }

    /// Closes the clients that hold most, if all clients hold more than `maxmemory-clients`.
    pub fn limit_clients(&self, settings: &Settings) {
        let most = settings.maxmemory_clients.max_bytes(settings.maxmemory);
        if let Some(most) = most
            && self.stats.evictable_buffers() > most
        {
            let evicted = self.clients.evict(most) as u64;
            let count = &self.stats.evicted_clients;
            count.fetch_add(evicted, Ordering::Relaxed);
        }
    }

    /// Whether the memory in use exceeds `maxmemory`, or the system has no more.
    pub fn over_memory_limit(&self, settings: &Settings) -> bool {
        memory::is_short() || settings.maxmemory > 0 && self.used_memory() > settings.maxmemory
    }

    /// Bytes of free memory, of `maxmemory` or of the machine's.
    pub fn free_memory(&self, settings: &Settings) -> u64 {
        if memory::is_short() {
            return 0;
        }
        let most = if settings.maxmemory > 0 {
            settings.maxmemory
        } else {
            self.total_memory
        };
        most.saturating_sub(self.used_memory())
    }

    /// The maximum bytes of one filter.
    pub fn max_filter_bytes(&self, settings: &Settings) -> u64 {
        match settings.bf_max_filter_bytes {
            0 => u64::MAX,
            most => most,
        }
    }
}
