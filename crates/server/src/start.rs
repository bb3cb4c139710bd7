//! Starts and stops a server.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::Duration;

use everbloom::host::memory;
use everbloom_store::clock::Now;
use everbloom_store::persistence::{OpenError, Persistence, load, log, schedule};
use thiserror::Error;
use tokio::sync::mpsc;
use tracing::{info, warn};

use crate::address::Address;
use crate::config::Settings;
use crate::dispatch::replay::Replayer;
use crate::native::table::registry;
use crate::net::listen::{Listener, listen};
use crate::net::worker::{Accepted, Worker};
use crate::net::{accept, connections, files};
use crate::server::Server;
use crate::stats::Sampler;

/// Why a server did not start.
#[derive(Debug, Error)]
pub enum StartError {
    /// It cannot listen on an address, or TLS cannot be set up.
    #[error("{0}")]
    Entrance(String),
    /// The system allows too few open files.
    #[error("{0}")]
    Files(String),
    /// The data directory cannot be used.
    #[error(transparent)]
    Data(#[from] OpenError),
    /// A thread or an event loop cannot be created.
    #[error("cannot start a thread: {0}")]
    Thread(#[from] io::Error),
}

/// A running server. Dropping it stops it and waits for its end.
#[derive(Debug)]
pub struct Running {
    server: Arc<Server>,
    threads: Vec<JoinHandle<()>>,
    /// Stopped after the others, when the log is complete.
    keeper: Option<JoinHandle<()>>,
}

impl Server {
    /// Starts a server. When this returns, it accepts connections to its addresses. The port for the
    /// metrics is not its own: `everbloom_watch::start` opens that as well.
    pub fn start(mut settings: Settings) -> Result<Running, StartError> {
        // First: a start that fails because the port is taken leaves no data directory.
        let listeners = open_entrances(&mut settings)?;
        let persistence = Persistence::open(&settings.data)?;
        Self::start_with(settings, persistence, listeners)
    }

    /// The same, with an open data directory, or none.
    pub fn start_on(
        mut settings: Settings,
        persistence: Option<Persistence>,
    ) -> Result<Running, StartError> {
        let listeners = open_entrances(&mut settings)?;
        Self::start_with(settings, persistence, listeners)
    }

    fn start_with(
        settings: Settings,
        persistence: Option<Persistence>,
        listeners: Vec<Listener>,
    ) -> Result<Running, StartError> {
        warn_without_password(&settings, &listeners);
        let workers = worker_count(&settings);
        let commands = registry().len();
        let server = Server::new(settings, workers, commands, persistence);
        server.read_tls_files().map_err(StartError::Entrance)?;
        server.set_entrances(listeners.iter().map(|l| l.entrance.clone()).collect());

        let mut threads = Vec::new();
        let mut senders = Vec::new();
        for (index, stats) in server.workers.iter().enumerate() {
            let (sender, receiver) = mpsc::unbounded_channel();
            senders.push(sender);
            let stats = Arc::clone(stats);
            threads.push(spawn(&format!("worker-{index}"), &server, |server| {
                connections::serve(Worker::new(server, stats), receiver)
            })?);
        }
        let main = spawn("main", &server, |server| attend(server, listeners, senders));
        threads.push(main?);
        threads.push(spawn("expiry", &server, remove_expired)?);
        let shared = Arc::clone(&server);
        let keeper = std::thread::Builder::new()
            .name("log".into())
            .spawn(move || keep(&shared))?;
        Ok(Running {
            server,
            threads,
            keeper: Some(keeper),
        })
    }
}

/// Makes the limit on open files fit, and listens.
fn open_entrances(settings: &mut Settings) -> Result<Vec<Listener>, StartError> {
    let workers = worker_count(settings);
    files::reserve(settings, workers).map_err(StartError::Files)?;
    listen(settings).map_err(StartError::Entrance)
}

fn worker_count(settings: &Settings) -> usize {
    match settings.io_threads {
        0 => std::thread::available_parallelism().map_or(1, usize::from),
        n => n,
    }
}

/// Other machines can reach the server, and it has no password.
fn warn_without_password(settings: &Settings, listeners: &[Listener]) {
    let is_local = |listener: &Listener| listener.entrance.address.is_local();
    if !settings.requirepass.is_empty() || listeners.iter().all(is_local) {
        return;
    }
    match settings.protected_mode {
        true => warn!(
            "there is no password, so clients of other machines are refused: set requirepass to \
             serve them"
        ),
        false => warn!(
            "there is no password, and protected-mode is off: whoever reaches the port can read, \
             change and delete everything; set requirepass"
        ),
    }
}

/// Loads the data directory, and then writes the log.
fn keep(server: &Arc<Server>) {
    let Some(persistence) = server.store.persistence() else {
        return;
    };
    let store = &*server.store;
    match load::load(store, persistence, &mut Replayer::new(server)) {
        Ok(log) => log::run(store, persistence, log),
        // The data is incomplete, so it stays marked as loading and is never saved.
        Err(load::LoadError::Stopped) => info!("stopped while loading"),
        Err(problem) => server.store.fail(format!(
            "{problem}; the server did not start, and the data is as it was: see persistence.md in \
             the guide"
        )),
    }
}

impl Running {
    /// The server.
    pub fn server(&self) -> &Arc<Server> {
        &self.server
    }

    /// Runs work on a thread of its own, with an event loop. The work ends when the server stops.
    pub fn run_beside<W: Future<Output = ()>>(
        &mut self,
        name: &str,
        work: impl FnOnce(Arc<Server>) -> W + Send + 'static,
    ) -> Result<(), StartError> {
        self.threads.push(spawn(name, &self.server, work)?);
        Ok(())
    }

    /// The first address it listens on, unless that is a Unix socket.
    pub fn addr(&self) -> Option<SocketAddr> {
        match self.server.entrances().first()?.address {
            Address::Ip(address) => Some(address),
            Address::Unix(_) => None,
        }
    }

    /// Returns once the data of an earlier run is loaded, or the server has failed.
    pub fn wait_until_loaded(&self) {
        while self.server.store.health.is_loading() && !self.server.is_stopping() {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Waits until the server was stopped and has ended; an error says why it had to stop.
    pub fn wait(mut self) -> Result<(), String> {
        self.join();
        self.server.store.failure().map_or(Ok(()), Err)
    }

    fn join(&mut self) {
        for thread in self.threads.drain(..) {
            joined(thread);
        }
        let Some(keeper) = self.keeper.take() else {
            return;
        };
        self.server.store.journal.close();
        joined(keeper);
        if let Some(persistence) = self.server.store.persistence() {
            persistence.end_jobs();
        }
        if self.server.store.failure().is_none() && !self.server.store.health.is_loading() {
            schedule::save_at_end(&self.server.store, self.server.save_at_end());
        }
    }
}

fn joined(thread: JoinHandle<()>) {
    if thread.join().is_err() {
        tracing::error!("a thread of the server has panicked");
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.server.stop();
        self.join();
    }
}

/// Starts a thread with an event loop that runs `work`.
fn spawn<W: Future<Output = ()>>(
    name: &str,
    server: &Arc<Server>,
    work: impl FnOnce(Arc<Server>) -> W + Send + 'static,
) -> io::Result<JoinHandle<()>> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        // For the worker's long work. It stays: with no memory for a new thread, there would be none.
        .max_blocking_threads(1)
        .thread_keep_alive(Duration::MAX)
        .build()?;
    let server = Arc::clone(server);
    std::thread::Builder::new()
        .name(name.into())
        .spawn(move || runtime.block_on(async { work(server).await }))
}

/// The main thread's work: accepts connections and runs periodic tasks.
async fn attend(
    server: Arc<Server>,
    listeners: Vec<Listener>,
    workers: Vec<mpsc::UnboundedSender<Accepted>>,
) {
    let mut tasks = tokio::task::JoinSet::new();
    for listener in listeners {
        let (server, workers) = (Arc::clone(&server), workers.clone());
        tasks.spawn(async {
            if let Err(error) = accept::accept(server, listener, workers).await {
                warn!("cannot accept connections: {error}");
            }
        });
    }
    drop(workers);
    tasks.spawn(keep_house(Arc::clone(&server)));
    tokio::select! {
        () = server.stopping() => {}
        () = server.store.failed() => server.stop(),
    }
    // Dropping the acceptors closes the channels. Each worker ends with its last connection.
    tasks.shutdown().await;
}

/// Removes expired keys and generations on a separate thread. It looks for them `hz` times a second, and continues
/// at once while it finds some.
async fn remove_expired(server: Arc<Server>) {
    while !server.is_stopping() {
        let active = server.active_expire.load(Ordering::Relaxed);
        if active && !server.store.health.is_loading() {
            let removed = server.store.remove_expired(Now::read());
            server.stats.expired(removed.keys);
            if removed.any() {
                continue;
            }
        }
        tokio::select! {
            () = tokio::time::sleep(period(&server.config.snapshot())) => {}
            () = server.stopping() => {}
        }
    }
}

/// Regains the memory that is kept for small blocks, as soon as the system has as much. Returns
/// whether it lacks.
fn look_after_memory(was_short: bool) -> bool {
    let is_short = memory::is_short();
    if is_short && !was_short {
        warn!("the system has no more memory: commands that may need some are refused");
    }
    if is_short && memory::keep_reserve() {
        warn!("the system has memory again");
        return false;
    }
    is_short
}

/// The interval of periodic tasks.
fn period(settings: &Settings) -> Duration {
    Duration::from_secs(1) / settings.hz.clamp(1, 500)
}

/// Starts snapshots that are due and closes silent connections, `hz` times a second.
async fn keep_house(server: Arc<Server>) {
    let mut sampler = Sampler::new(&server.workers);
    let mut was_short = false;
    loop {
        let settings = server.config.snapshot();
        sampler.tick(&server.workers, &server.stats);
        was_short = look_after_memory(was_short);
        tokio::time::sleep(period(&settings)).await;
        server.limit_clients(&server.config.snapshot());
        if server.store.health.is_loading() {
            continue;
        }
        schedule::attend(&server.store);
        if settings.timeout > 0 {
            let now = Now::read();
            for client in server.clients.list() {
                if now.ms.saturating_sub(client.active()) / 1000 >= settings.timeout {
                    client.kill();
                }
            }
        }
    }
}
