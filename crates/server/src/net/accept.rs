//! Letting connections in.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use everbloom_store::clock::Now;
use socket2::{SockRef, TcpKeepalive};
use tokio::sync::mpsc;
use tracing::warn;

use super::worker::Accepted;
use crate::config::Settings;
use crate::server::Server;

/// Accepts connections and hands them to the workers in turn.
pub(crate) async fn accept(
    server: Arc<Server>,
    listener: tokio::net::TcpListener,
    workers: Vec<mpsc::UnboundedSender<Accepted>>,
) {
    for worker in workers.iter().cycle() {
        let (stream, addr) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                // Mostly too many open files: wait until some are closed.
                warn!("cannot accept a connection: {error}");
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
