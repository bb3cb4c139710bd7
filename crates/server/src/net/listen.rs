//! The sockets that clients connect to.

use std::io;
use std::net::ToSocketAddrs;

use socket2::{Domain, Protocol, Socket, Type};
use thiserror::Error;
use tracing::info;

use crate::config::Settings;

/// An address cannot be listened on.
#[derive(Debug, Error)]
#[error("cannot listen on {address}: {source}")]
pub struct ListenError {
    /// The address as it was given.
    pub address: String,
    /// What the system says.
    pub source: io::Error,
}

/// Listens on the addresses that the settings name.
pub(crate) fn listen(settings: &Settings) -> Result<Vec<Socket>, ListenError> {
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
                return Err(ListenError { address, source });
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
