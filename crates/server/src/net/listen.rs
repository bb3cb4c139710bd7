//! The sockets that clients connect to.

use std::fs::{self, Permissions};
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::Path;

use rustix::io::Errno;
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use tracing::{info, warn};

use crate::address::{Address, Entrance};
use crate::config::Settings;

/// A socket that clients connect to.
pub struct Listener {
    /// The socket, which listens already.
    pub socket: Socket,
    /// Its address, and whether TLS is spoken there.
    pub entrance: Entrance,
}

/// Listens on the addresses in the settings.
pub(crate) fn listen(settings: &Settings) -> Result<Vec<Listener>, String> {
    let mut listeners = Vec::new();
    // If there is another socket, port 0 means none, as in Redis. Without one, a server would be
    // unreachable.
    if settings.port > 0 || (settings.tls.port == 0 && settings.unixsocket.is_none()) {
        let (addresses, port) = (&settings.bind, settings.port);
        listeners = listen_on_all(addresses, port, false, settings.tcp_backlog)?;
    }
    if settings.tls.port > 0 {
        let (addresses, port) = (&settings.bind, settings.tls.port);
        listeners.extend(listen_on_all(addresses, port, true, settings.tcp_backlog)?);
    }
    if let Some(path) = &settings.unixsocket {
        let address = path.display().to_string();
        let entrance = Entrance {
            address: Address::Unix(address.as_str().into()),
            tls: false,
        };
        let socket = listen_at(path, settings);
        let socket = socket.map_err(|error| refused(&address, &error))?;
        listeners.push(Listener { socket, entrance });
    }
    if listeners.is_empty() {
        return Err("no address of bind is available".into());
    }
    Ok(listeners)
}

/// Listens on a port of every address in a setting like `bind`. As in Redis, an address after a dash
/// may be unavailable, and one whose protocol this machine does not support is skipped.
pub fn listen_on_all(
    addresses: &[String],
    mut port: u16,
    tls: bool,
    backlog: u32,
) -> Result<Vec<Listener>, String> {
    let mut listeners = Vec::new();
    for address in addresses {
        let (optional, host) = match address.strip_prefix('-') {
            Some(host) => (true, host),
            None => (false, address.as_str()),
        };
        let found = match resolve(host, port) {
            Ok(found) => found,
            Err(error) if optional => {
                info!("not listening on {host}: {error}");
                continue;
            }
            Err(error) => return Err(refused(&format!("{host}:{port}"), &error)),
        };
        match listen_on(found, backlog) {
            Ok((socket, bound)) => {
                // All addresses share the port that the system chose for the first.
                port = bound.port();
                let address = Address::Ip(bound);
                let entrance = Entrance { address, tls };
                listeners.push(Listener { socket, entrance });
            }
            Err(error) if optional && error.kind() == io::ErrorKind::AddrNotAvailable => {
                info!("not listening on {host}: {error}");
            }
            Err(error) if is_unsupported(&error) => {
                warn!("not listening on {host}: {error}");
            }
            Err(error) => return Err(refused_port(host, port, &error)),
        }
    }
    Ok(listeners)
}

fn refused(address: &str, error: &io::Error) -> String {
    format!("cannot listen on {address}: {error}")
}

fn refused_port(host: &str, port: u16, error: &io::Error) -> String {
    let hint = match error.kind() {
        io::ErrorKind::AddrInUse => {
            ": another program listens there; choose another port, such as --port 7000, or \
             --port 0 for a free one"
        }
        _ => "",
    };
    refused(&format!("{host}:{port}"), error) + hint
}

/// Whether this machine does not support an address's protocol, as without IPv6.
fn is_unsupported(error: &io::Error) -> bool {
    matches!(
        Errno::from_io_error(error),
        Some(
            Errno::AFNOSUPPORT
                | Errno::PFNOSUPPORT
                | Errno::PROTONOSUPPORT
                | Errno::SOCKTNOSUPPORT
                | Errno::NOPROTOOPT
        )
    )
}

fn resolve(host: &str, port: u16) -> io::Result<SocketAddr> {
    let host = match host {
        "*" => "0.0.0.0",
        "::*" => "::",
        host => host,
    };
    let mut found = (host, port).to_socket_addrs()?;
    found.next().ok_or_else(missing)
}

fn missing() -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, "no such address")
}

fn listen_on(address: SocketAddr, backlog: u32) -> io::Result<(Socket, SocketAddr)> {
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
    start(&socket, backlog)?;
    let bound = socket.local_addr()?.as_socket().ok_or_else(missing)?;
    Ok((socket, bound))
}

/// Listens at a path. Removes a socket left by an earlier server, but no other file.
fn listen_at(path: &Path, settings: &Settings) -> io::Result<Socket> {
    match fs::symlink_metadata(path) {
        Ok(found) if found.file_type().is_socket() => remove_stale(path)?,
        Ok(_) => {
            let problem = "a file that is no socket is there";
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, problem));
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    socket.bind(&SockAddr::unix(path)?)?;
    if settings.unixsocketperm > 0 {
        fs::set_permissions(path, Permissions::from_mode(settings.unixsocketperm))?;
    }
    start(&socket, settings.tcp_backlog)?;
    Ok(socket)
}

/// Removes a socket on which nobody listens.
fn remove_stale(path: &Path) -> io::Result<()> {
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    // Do not wait for a server that is too busy to accept the connection.
    socket.set_nonblocking(true)?;
    match socket.connect(&SockAddr::unix(path)?) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => fs::remove_file(path),
        Ok(()) => {
            let problem = "address in use: another server answers there";
            Err(io::Error::new(io::ErrorKind::AddrInUse, problem))
        }
        Err(error) => Err(error),
    }
}

fn start(socket: &Socket, backlog: u32) -> io::Result<()> {
    socket.listen(i32::try_from(backlog).unwrap_or(i32::MAX))?;
    socket.set_nonblocking(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listen_on_all(addresses: &[&str], port: u16) -> Result<Vec<Listener>, String> {
        let addresses: Vec<String> = addresses.iter().map(ToString::to_string).collect();
        super::listen_on_all(&addresses, port, false, 16)
    }

    /// 192.0.2.1 is an address for documentation, which no machine has. The other is no host name,
    /// and no name server is asked.
    #[test]
    fn an_address_after_a_dash_may_be_unavailable_but_not_in_use() {
        let first = listen_on_all(&["-192.0.2.1", "-a\0b", "127.0.0.1"], 0).unwrap();
        assert_eq!(first.len(), 1);
        let Address::Ip(taken) = first[0].entrance.address else {
            panic!("no address");
        };
        for addresses in [["127.0.0.1"], ["-127.0.0.1"]] {
            let refused = listen_on_all(&addresses, taken.port()).err().unwrap();
            assert!(refused.contains("in use"), "{refused}");
        }
        for unavailable in ["192.0.2.1", "a\0b"] {
            assert!(listen_on_all(&[unavailable], 0).is_err(), "{unavailable:?}");
        }
    }

    #[test]
    fn a_server_listens_somewhere() {
        let settings = Settings {
            bind: vec!["-192.0.2.1".into()],
            port: 0,
            ..Settings::default()
        };
        assert!(listen(&settings).is_err());
    }

    #[test]
    fn only_a_protocol_that_is_not_supported_is_skipped() {
        for errno in [Errno::AFNOSUPPORT, Errno::PFNOSUPPORT, Errno::NOPROTOOPT] {
            assert!(is_unsupported(&errno.into()), "{errno}");
        }
        for errno in [Errno::ADDRINUSE, Errno::ADDRNOTAVAIL, Errno::ACCESS] {
            assert!(!is_unsupported(&errno.into()), "{errno}");
        }
    }
}
