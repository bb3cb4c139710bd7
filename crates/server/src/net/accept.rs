//! Accepts connections.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use everbloom_store::clock::Now;
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::mpsc;
use tracing::warn;

use super::listen::Listener;
use super::stream::Incoming;
use super::worker::Accepted;
use crate::address::Address;
use crate::clients::{Client, Refused};
use crate::config::Settings;
use crate::server::Server;

/// Accepts connections and hands them to the workers in turn.
pub(crate) async fn accept(
    server: Arc<Server>,
    listener: Listener,
    workers: Vec<mpsc::UnboundedSender<Accepted>>,
) -> io::Result<()> {
    let door = Door::open(listener)?;
    for worker in workers.iter().cycle() {
        let (stream, addr, laddr) = match door.next(&server).await {
            Ok(accepted) => accepted,
            Err(error) => {
                // The usual cause is too many open files: wait until some are closed.
                warn!("cannot accept a connection: {error}");
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        server.stats.connections.fetch_add(1, Ordering::Relaxed);
        if let Some(client) = admit(&server, &stream, addr, laddr)
            && worker.send((stream, client)).is_err()
        {
            break;
        }
    }
    Ok(())
}

/// A listener in the event loop.
enum Door {
    Tcp {
        listener: TcpListener,
        tls: bool,
    },
    /// The file is removed before the listener is closed. Otherwise another server could find
    /// nobody listening and create its own file at the path, which would then be removed.
    Unix(SocketFile, UnixListener),
}

/// The path of a Unix socket, which is removed at the end.
struct SocketFile(Arc<str>);

impl Drop for SocketFile {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_file(&*self.0) {
            warn!("cannot remove {}: {error}", self.0);
        }
    }
}

impl Door {
    fn open(listener: Listener) -> io::Result<Door> {
        let Listener { socket, entrance } = listener;
        Ok(match entrance.address {
            Address::Unix(path) => {
                Door::Unix(SocketFile(path), UnixListener::from_std(socket.into())?)
            }
            Address::Ip(_) => Door::Tcp {
                listener: TcpListener::from_std(socket.into())?,
                tls: entrance.tls,
            },
        })
    }

    /// The next connection, its address, and the address it connected to.
    async fn next(&self, server: &Server) -> io::Result<(Incoming, Address, Address)> {
        let (listener, tls) = match self {
            Door::Tcp { listener, tls } => (listener, tls),
            Door::Unix(file, listener) => {
                let (stream, _) = listener.accept().await?;
                let stream = Incoming::Unix(stream.into_std()?);
                let address = Address::Unix(Arc::clone(&file.0));
                return Ok((stream, address.clone(), address));
            }
        };
        let (stream, addr) = listener.accept().await?;
        let laddr = stream.local_addr().unwrap_or(addr);
        let stream = stream.into_std()?;
        let stream = match tls.then(|| server.tls()) {
            None => Incoming::Tcp(stream),
            Some(Some(config)) => Incoming::Tls(stream, config),
            Some(None) => return Err(io::Error::other("TLS has no certificate")),
        };
        Ok((stream, Address::Ip(addr), Address::Ip(laddr)))
    }
}

/// Accepts a connection, or tells the client why it is refused.
fn admit(server: &Server, stream: &Incoming, addr: Address, laddr: Address) -> Option<Arc<Client>> {
    let settings = server.config.snapshot();
    if is_denied(&settings, &addr) {
        stream.refuse(PROTECTED_MODE);
        return None;
    }
    let most = settings.maxclients;
    let client = match server.clients.enter(addr, laddr, most, Now::read()) {
        Ok(client) => client,
        Err(Refused::Full) => {
            let rejected = &server.stats.rejected_connections;
            rejected.fetch_add(1, Ordering::Relaxed);
            stream.refuse("-ERR max number of clients reached\r\n");
            return None;
        }
        Err(Refused::Closed) => return None,
    };
    stream.tune(settings.tcp_keepalive);
    Some(client)
}

/// Protected mode: without a password, only clients on this machine are accepted.
fn is_denied(settings: &Settings, addr: &Address) -> bool {
    settings.protected_mode && settings.requirepass.is_empty() && !addr.is_local()
}

const PROTECTED_MODE: &str = "-DENIED everbloom is running in protected mode because protected \
    mode is enabled and no password is set for the default user. In this mode connections are \
    only accepted from the loopback interface. To accept connections from other machines, set a \
    password with 'requirepass', or, if no untrusted machine can reach this port, turn protected \
    mode off with 'protected-mode no'.\r\n";

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
        let local = Address::Ip("127.0.0.1:1".parse().unwrap());
        let remote = Address::Ip("10.0.0.1:1".parse().unwrap());
        assert!(!is_denied(&open, &local));
        assert!(is_denied(&open, &remote));
        assert!(!is_denied(&password, &remote));
        assert!(!is_denied(&unprotected, &remote));
    }
}
