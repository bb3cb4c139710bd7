//! Starting a server, and ending it.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::Duration;

use socket2::{Domain, Protocol, SockRef, Socket, TcpKeepalive, Type};
use thiserror::Error;
use tokio::sync::mpsc;
use tracing::{info, warn};

use crate::clock::Now;
use crate::config::Settings;
use crate::persistence::{OpenError, Persistence, jobs, load, log};
use crate::server::Server;
use crate::stats::Sampler;
use crate::worker::{Accepted, Worker};

/// Why a server did not start.
#[derive(Debug, Error)]
pub enum StartError {
    /// An address cannot be listened on.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// The address as it was given.
        address: String,
        /// What the system says.
        source: io::Error,
    },
    /// The data directory cannot be used.
    #[error(transparent)]
    Data(#[from] OpenError),
    /// A thread or an event loop cannot be made.
    #[error("cannot start a thread: {0}")]
    Thread(#[from] io::Error),
}

/// A server that runs. Dropping it stops it and waits for its end.
#[derive(Debug)]
pub struct Running {
    server: Arc<Server>,
    threads: Vec<JoinHandle<()>>,
    /// Ends after the others, when the log is complete.
    keeper: Option<JoinHandle<()>>,
}

impl Server {
    /// Starts a server: when this returns, connections to its addresses are accepted.
    pub fn start(settings: Settings) -> Result<Running, StartError> {
        let persistence = Persistence::open(&settings)?;
        Self::start_on(settings, persistence)
    }

    /// The same, with a data directory that is open already, or none.
    pub fn start_on(
        settings: Settings,
        persistence: Option<Persistence>,
    ) -> Result<Running, StartError> {
        let workers = match settings.io_threads {
            0 => std::thread::available_parallelism().map_or(1, usize::from),
            n => n,
        };
        let listeners = listen(&settings)?;
        let server = Server::with_persistence(settings, workers, persistence);
        server.set_loading(server.persistence().is_some());
        let addresses = listeners.iter().filter_map(|l| l.local_addr().ok());
        server.set_addresses(addresses.filter_map(|a| a.as_socket()).collect());

        let mut threads = Vec::new();
        let mut senders = Vec::new();
        for (index, stats) in server.workers.iter().enumerate() {
            let (sender, receiver) = mpsc::unbounded_channel();
            senders.push(sender);
            let (shared, stats) = (Arc::clone(&server), Arc::clone(stats));
            threads.push(spawn(
                &format!("worker-{index}"),
                &server,
                move |runtime| {
                    runtime.block_on(Worker::new(shared, stats).run(receiver));
                },
            )?);
        }
        let shared = Arc::clone(&server);
        threads.push(spawn("main", &server, move |runtime| {
            runtime.block_on(attend(shared, listeners, senders));
        })?);
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

/// Loads the data directory, and then writes the log.
fn keep(server: &Arc<Server>) {
    let Some(persistence) = server.persistence() else {
        return;
    };
    match load::load(server, persistence) {
        Ok(log) => {
            server.set_loading(false);
            log::run(server, persistence, log);
        }
        // What is there is not everything: it stays marked as loading and is saved nowhere.
        Err(load::LoadError::Stopped) => info!("stopped while loading"),
        Err(problem) => server.fail(problem.to_string()),
    }
}

impl Running {
    /// The server.
    pub fn server(&self) -> &Arc<Server> {
        &self.server
    }

    /// The first address it listens on.
    pub fn addr(&self) -> Option<SocketAddr> {
        self.server.addresses().first().copied()
    }

    /// Returns once the data of an earlier run is loaded, or the server has failed.
    pub fn wait_until_loaded(&self) {
        while self.server.is_loading() && !self.server.is_stopping() {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Waits until the server was stopped and has ended; an error says why it had to stop.
    pub fn wait(mut self) -> Result<(), String> {
        self.join();
        self.server.failure().map_or(Ok(()), Err)
    }

    fn join(&mut self) {
        for thread in self.threads.drain(..) {
            joined(thread);
        }
        let Some(keeper) = self.keeper.take() else {
            return;
        };
        self.server.journal.close();
        joined(keeper);
        if let Some(persistence) = self.server.persistence() {
            persistence.end_jobs();
        }
        if self.server.failure().is_none() && !self.server.is_loading() {
            load::save_at_end(&self.server, self.server.save_at_end());
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

/// Starts a thread with an event loop, which nudges the journal before it sleeps.
fn spawn(
    name: &str,
    server: &Arc<Server>,
    work: impl FnOnce(tokio::runtime::Runtime) + Send + 'static,
) -> io::Result<JoinHandle<()>> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .on_thread_park({
            let server = Arc::clone(server);
            move || server.journal.nudge()
        })
        .build()?;
    std::thread::Builder::new()
        .name(name.into())
        .spawn(move || work(runtime))
}

fn listen(settings: &Settings) -> Result<Vec<Socket>, StartError> {
    let mut listeners = Vec::new();
    for address in &settings.bind {
        let (optional, host) = match address.strip_prefix('-') {
            Some(host) => (true, host),
            None => (false, address.as_str()),
        };
        let port = match (settings.port, listeners.first().map(Socket::local_addr)) {
            // All addresses share the port that the system chose for the first.
            (0, Some(Ok(first))) => first.as_socket().map_or(0, |a| a.port()),
            (port, _) => port,
        };
        match listen_on(host, port, settings.tcp_backlog) {
            Ok(listener) => listeners.push(listener),
            Err(error) if optional => {
                info!("not listening on {host}: {error}");
            }
            Err(source) => {
                let address = format!("{host}:{port}");
                return Err(StartError::Listen { address, source });
            }
        }
    }
    Ok(listeners)
}

fn listen_on(host: &str, port: u16, backlog: u32) -> io::Result<Socket> {
    let host = match host {
        "*" => "0.0.0.0",
        "::*" => "::",
        host => host,
    };
    let address = (host, port)
        .to_socket_addrs()?
        .next()
        .ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "no such address"))?;
    let socket = Socket::new(
        Domain::for_address(address),
        Type::STREAM,
        Some(Protocol::TCP),
    )?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    socket.set_reuse_address(true)?;
    socket.bind(&address.into())?;
    socket.listen(i32::try_from(backlog).unwrap_or(i32::MAX))?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

/// The main thread's work: accepts connections and does what must be done now and then.
async fn attend(
    server: Arc<Server>,
    listeners: Vec<Socket>,
    workers: Vec<mpsc::UnboundedSender<Accepted>>,
) {
    let mut tasks = tokio::task::JoinSet::new();
    for listener in listeners {
        match tokio::net::TcpListener::from_std(listener.into()) {
            Ok(listener) => {
                tasks.spawn(accept(Arc::clone(&server), listener, workers.clone()));
            }
            Err(error) => warn!(%error, "cannot accept connections"),
        }
    }
    drop(workers);
    tasks.spawn(keep_house(Arc::clone(&server)));
    server.stopping().await;
    // Dropping the acceptors drops the channels, and with the last connection each worker ends.
    tasks.shutdown().await;
}

async fn accept(
    server: Arc<Server>,
    listener: tokio::net::TcpListener,
    workers: Vec<mpsc::UnboundedSender<Accepted>>,
) {
    for worker in workers.iter().cycle() {
        let (stream, addr) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                // Mostly too many open files: wait until some are closed.
                warn!(%error, "cannot accept a connection");
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        server.stats.connections.fetch_add(1, Ordering::Relaxed);
        if let Some(accepted) = admit(&server, stream, addr)
            && worker.send(accepted).is_err()
        {
            return;
        }
    }
}

/// Lets a connection in, or tells it why not.
fn admit(server: &Server, stream: tokio::net::TcpStream, addr: SocketAddr) -> Option<Accepted> {
    let settings = server.config.snapshot();
    if is_denied(&settings, addr) {
        let _ = stream.try_write(PROTECTED_MODE.as_bytes());
        return None;
    }
    let laddr = stream.local_addr().unwrap_or(addr);
    let Some(client) = server
        .clients
        .enter(addr, laddr, settings.maxclients, Now::read())
    else {
        server
            .stats
            .rejected_connections
            .fetch_add(1, Ordering::Relaxed);
        let _ = stream.try_write(b"-ERR max number of clients reached\r\n");
        return None;
    };
    // Without these a connection is slower, or is found dead later: no reason to refuse it.
    let _ = stream.set_nodelay(true);
    if settings.tcp_keepalive > 0 {
        let interval = Duration::from_secs(settings.tcp_keepalive.into());
        let keepalive = TcpKeepalive::new()
            .with_time(interval)
            .with_interval(interval / 3);
        let _ = SockRef::from(&stream).set_tcp_keepalive(&keepalive);
    }
    match stream.into_std() {
        Ok(stream) => Some((stream, client)),
        Err(_) => {
            server.clients.leave(client.id);
            None
        }
    }
}

/// Protected mode: without a password, only this machine gets in.
fn is_denied(settings: &Settings, addr: SocketAddr) -> bool {
    let local = addr.ip().to_canonical().is_loopback();
    settings.protected_mode && settings.requirepass.is_empty() && !local
}

const PROTECTED_MODE: &str = "-DENIED everbloom is running in protected mode because protected \
    mode is enabled and no password is set for the default user. In this mode connections are \
    only accepted from the loopback interface. To accept connections from other machines, set a \
    password with 'requirepass', or, if no untrusted machine can reach this port, turn protected \
    mode off with 'protected-mode no'.\r\n";

/// Removes expired keys and closes silent connections, `hz` times a second.
async fn keep_house(server: Arc<Server>) {
    let mut sampler = Sampler::new(&server.workers);
    loop {
        let settings = server.config.snapshot();
        sampler.tick(&server.workers, &server.stats);
        tokio::time::sleep(Duration::from_secs(1) / settings.hz.clamp(1, 500)).await;
        if server.is_loading() {
            continue;
        }
        if server.active_expire.load(Ordering::Relaxed) {
            server.remove_expired();
        }
        jobs::attend(&server);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn protected_mode_lets_only_this_machine_in() {
        let open = Settings::default();
        let password = Settings {
            requirepass: "secret".into(),
            ..Settings::default()
        };
        let unprotected = Settings {
            protected_mode: false,
            ..Settings::default()
        };
        for local in [
            "127.0.0.1:1",
            "127.1.2.3:1",
            "[::1]:1",
            "[::ffff:127.0.0.1]:1",
        ] {
            assert!(!is_denied(&open, local.parse().unwrap()), "{local}");
        }
        for remote in ["10.0.0.1:1", "[fe80::1]:1", "[::ffff:10.0.0.1]:1"] {
            let remote = remote.parse().unwrap();
            assert!(is_denied(&open, remote), "{remote}");
            assert!(!is_denied(&password, remote), "{remote}");
            assert!(!is_denied(&unprotected, remote), "{remote}");
        }
    }
}
