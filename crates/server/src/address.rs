//! Addresses of clients and of listening sockets.

use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

/// An end of a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// An address and a port.
    Ip(SocketAddr),
    /// The path of a Unix socket. Both ends show the server's path, because the client's socket has
    /// no name.
    Unix(Arc<str>),
}

impl Address {
    /// The address for commands without a client.
    pub const NOBODY: Address = Address::Ip(SocketAddr::new(
        std::net::IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        0,
    ));

    /// Whether the address is on this machine.
    pub fn is_local(&self) -> bool {
        match self {
            Address::Ip(address) => address.ip().to_canonical().is_loopback(),
            Address::Unix(_) => true,
        }
    }

    /// The port; 0 for a Unix socket, as Redis shows it.
    pub fn port(&self) -> u16 {
        match self {
            Address::Ip(address) => address.port(),
            Address::Unix(_) => 0,
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Ip(address) => address.fmt(f),
            Address::Unix(path) => write!(f, "{path}:0"),
        }
    }
}

/// An address on which the server listens.
#[derive(Debug, Clone)]
pub struct Entrance {
    /// The address.
    pub address: Address,
    /// Whether clients need a TLS handshake first.
    pub tls: bool,
}

impl fmt::Display for Entrance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.address {
            Address::Ip(address) if self.tls => write!(f, "{address} (TLS)"),
            Address::Ip(address) => address.fmt(f),
            Address::Unix(path) => f.write_str(path),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn local_is_this_machine() {
        let ip = |text: &str| Address::Ip(text.parse().unwrap());
        for local in [
            "127.0.0.1:1",
            "127.1.2.3:1",
            "[::1]:1",
            "[::ffff:127.0.0.1]:1",
        ] {
            assert!(ip(local).is_local(), "{local}");
        }
        for remote in ["10.0.0.1:1", "[fe80::1]:1", "[::ffff:10.0.0.1]:1"] {
            assert!(!ip(remote).is_local(), "{remote}");
        }
        let socket = Address::Unix("/run/s".into());
        assert!(socket.is_local());
        assert_eq!(socket.to_string(), "/run/s:0");
    }
}
