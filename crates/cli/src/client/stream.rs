//! The connections that a client may have: over TCP, with and without TLS, and over a Unix socket.

use std::fmt::Debug;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, StreamOwned};

use super::place::Place;

/// How long to wait for one address to accept a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// What a connection reads and writes.
pub(super) trait Socket: Read + Write + Debug + Send {}

impl<T: Read + Write + Debug + Send> Socket for T {}

/// Connects; with TLS, shakes hands. `patience` holds for each wait from then on.
pub(super) fn open(
    place: &Place,
    tls: Option<&Arc<ClientConfig>>,
    patience: Option<Duration>,
) -> io::Result<Box<dyn Socket>> {
    let (host, port) = match place {
        Place::Unix(path) => {
            let stream = UnixStream::connect(path)?;
            stream.set_read_timeout(patience)?;
            stream.set_write_timeout(patience)?;
            return Ok(Box::new(stream));
        }
        Place::Tcp { host, port, .. } => (host, *port),
    };
    let mut stream = connect(host, port)?;
    stream.set_read_timeout(patience)?;
    stream.set_write_timeout(patience)?;
    let Some(config) = tls else {
        return Ok(Box::new(stream));
    };
    let name = ServerName::try_from(host.clone()).map_err(io::Error::other)?;
    let mut session = ClientConnection::new(Arc::clone(config), name).map_err(io::Error::other)?;
    session.complete_io(&mut stream).map_err(explained)?;
    Ok(Box::new(StreamOwned::new(session, stream)))
}

/// Explains the handshake errors that new users of TLS see.
fn explained(error: io::Error) -> io::Error {
    let cause = error.get_ref().and_then(|it| it.downcast_ref());
    let Some(rustls::Error::InvalidCertificate(problem)) = cause else {
        return error;
    };
    // The library that checks certificates is rustls' own affair, and so are its errors.
    if !format!("{problem:?}").contains("CaUsedAsEndEntity") {
        return error;
    }
    io::Error::other(
        "the server's certificate is one of an authority, as 'openssl req -x509' makes it; make \
         it again with -addext basicConstraints=critical,CA:FALSE, or let an authority sign one",
    )
}

/// Tries each address of the host in turn. If all fail, returns the error of the last one.
fn connect(host: &str, port: u16) -> io::Result<TcpStream> {
    let mut failure = io::Error::new(ErrorKind::NotFound, "the host name has no address");
    for address in (host, port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, CONNECT_TIMEOUT) {
            Ok(stream) => {
                stream.set_nodelay(true)?;
                return Ok(stream);
            }
            Err(error) => failure = error,
        }
    }
    Err(failure)
}
