//! The server: what all connections and workers share.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use parking_lot::Mutex;
use tokio::sync::watch;
use tokio_rustls::rustls::ServerConfig;

use everbloom_store::Store;
use everbloom_store::persistence::Persistence;

use crate::address::Entrance;
use crate::clients::Clients;
use crate::config::{Config, Settings};
use crate::slowlog::SlowLog;
use crate::stats::{ServerStats, WorkerStats};
use crate::tls::{self, TlsError};

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
    entrances: OnceLock<Vec<Entrance>>,
    tls: Mutex<Option<Arc<ServerConfig>>>,
    stop: watch::Sender<bool>,
}

impl Server {
    /// A server with these settings and `workers` workers, which count for so many commands. It
    /// does not listen yet, and has no data directory.
    pub fn new(settings: Settings, workers: usize, commands: usize) -> Arc<Self> {
        Self::with_persistence(settings, workers, commands, None)
    }

    /// The same, with a data directory that is yet to be loaded.
    pub fn with_persistence(
        settings: Settings,
        workers: usize,
        commands: usize,
        persistence: Option<Persistence>,
    ) -> Arc<Self> {
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
            entrances: OnceLock::new(),
            tls: Mutex::new(None),
            stop: watch::Sender::new(false),
            config: Config::new(settings),
        })
    }

    /// Where it listens; empty before it does.
    pub fn entrances(&self) -> &[Entrance] {
        self.entrances.get().map_or(&[], Vec::as_slice)
    }

    /// Notes where it listens, once.
    pub(crate) fn set_entrances(&self, entrances: Vec<Entrance>) {
        // A server is started once; a second list would be a second server's.
        let _ = self.entrances.set(entrances);
    }

    /// How clients over TLS are met, if they are.
    pub(crate) fn tls(&self) -> Option<Arc<ServerConfig>> {
        self.tls.lock().clone()
    }

    /// Meets further clients so.
    pub(crate) fn set_tls(&self, config: Option<Arc<ServerConfig>>) {
        *self.tls.lock() = config;
    }

    /// Reads the files of TLS anew, and answers whether there are any. When they are wrong, those
    /// that were read before hold.
    pub fn read_tls_files(&self) -> Result<bool, TlsError> {
        let config = tls::read(&self.config.snapshot().tls)?;
        let any = config.is_some();
        self.set_tls(config);
        Ok(any)
    }

    /// Asks the server to stop: no new connections, the open ones end after the batch they are at.
    pub fn stop(&self) {
        self.store.stop();
        self.stop.send_replace(true);
        self.clients.close();
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
