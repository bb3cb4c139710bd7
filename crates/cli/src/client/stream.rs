//! The connections that a client may have: over TCP, with and without TLS, and over a Unix socket.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, TcpStream, ToSocketAddrs};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection};

use super::place::Place;

/// How long to wait for one address to accept a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// A connection.
#[derive(Debug)]
pub(crate) enum Stream {
    Tcp(TcpStream),
    Tls(Box<Tls>),
    Unix(UnixStream),
}

/// A connection over TLS, which also goes on where a socket does not block.
#[derive(Debug)]
pub(crate) struct Tls {
    session: ClientConnection,
    socket: TcpStream,
}

impl Stream {
    /// Connects; with TLS, shakes hands. `patience` holds for each wait from then on.
    pub(super) fn open(
        place: &Place,
        tls: Option<&Arc<ClientConfig>>,
        patience: Option<Duration>,
    ) -> io::Result<Self> {
        let (host, port) = match place {
            Place::Unix(path) => {
                let stream = UnixStream::connect(path)?;
                stream.set_read_timeout(patience)?;
                stream.set_write_timeout(patience)?;
                return Ok(Self::Unix(stream));
            }
            Place::Tcp { host, port, .. } => (host, *port),
        };
        let mut socket = connect(host, port)?;
        socket.set_read_timeout(patience)?;
        socket.set_write_timeout(patience)?;
        let Some(config) = tls else {
            return Ok(Self::Tcp(socket));
        };
        let name = ServerName::try_from(host.clone()).map_err(io::Error::other)?;
        let mut session =
            ClientConnection::new(Arc::clone(config), name).map_err(io::Error::other)?;
        session.complete_io(&mut socket).map_err(explained)?;
        Ok(Self::Tls(Box::new(Tls { session, socket })))
    }

    pub(crate) fn set_nonblocking(&self) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => stream.set_nonblocking(true),
            Self::Tls(tls) => tls.socket.set_nonblocking(true),
            Self::Unix(stream) => stream.set_nonblocking(true),
        }
    }

    /// Whether a read that fills less than its buffer has taken all that there is.
    pub(crate) fn is_plain(&self) -> bool {
        !matches!(self, Self::Tls(_))
    }

    /// The server's address, if it has one.
    pub(super) fn peer(&self) -> Option<IpAddr> {
        let peer = match self {
            Self::Tcp(stream) => stream.peer_addr(),
            Self::Tls(tls) => tls.socket.peer_addr(),
            Self::Unix(_) => return None,
        };
        peer.ok().map(|address| address.ip())
    }
}

/// What the errors of a handshake mean that those meet who begin with TLS.
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

impl AsRawFd for Stream {
    fn as_raw_fd(&self) -> RawFd {
        match self {
            Self::Tcp(stream) => stream.as_raw_fd(),
            Self::Tls(tls) => tls.socket.as_raw_fd(),
            Self::Unix(stream) => stream.as_raw_fd(),
        }
    }
}

impl Read for Stream {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.read(buf),
            Self::Tls(tls) => tls.read(buf),
            Self::Unix(stream) => stream.read(buf),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.write(buf),
            Self::Tls(tls) => tls.write(buf),
            Self::Unix(stream) => stream.write(buf),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Tls(tls) => tls.send(),
            Self::Tcp(_) | Self::Unix(_) => Ok(()),
        }
    }
}

impl Tls {
    /// Sends what is encrypted, as far as the socket takes it.
    fn send(&mut self) -> io::Result<()> {
        while self.session.wants_write() {
            self.session.write_tls(&mut self.socket)?;
        }
        Ok(())
    }

    /// The same, where it is enough that some is sent.
    fn send_some(&mut self) -> io::Result<()> {
        match self.send() {
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(()),
            sent => sent,
        }
    }

    /// Reads what is decrypted, or else from the socket, also while it takes nothing more.
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.session.reader().read(buf) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                read => return read,
            }
            self.send_some()?;
            if self.session.read_tls(&mut self.socket)? == 0 {
                return Ok(0);
            }
            self.session
                .process_new_packets()
                .map_err(io::Error::other)?;
        }
    }

    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        self.send_some()?;
        let taken = self.session.writer().write(buf)?;
        self.send_some()?;
        if taken == 0 && !buf.is_empty() {
            return Err(ErrorKind::WouldBlock.into());
        }
        Ok(taken)
    }
}
