//! Connections that do not block: over TCP, with and without TLS, and over a Unix socket.

use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Result;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore};

const HOST: &str = "127.0.0.1";

/// Where the server listens.
#[derive(Debug)]
pub(super) enum Target {
    Tcp(u16),
    Tls(u16, Arc<ClientConfig>),
    Unix(PathBuf),
}

impl Target {
    /// A server with a certificate of this authority.
    pub(super) fn tls(port: u16, authority: &Path) -> Result<Self> {
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_file_iter(authority)? {
            roots.add(certificate?)?;
        }
        let provider = Arc::new(rustls_graviola::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(Self::Tls(port, Arc::new(config)))
    }

    /// Connects; with TLS, shakes hands. From then on nothing blocks.
    pub(super) fn open(&self) -> Result<Stream> {
        let connect = |port: u16| -> io::Result<TcpStream> {
            let socket = TcpStream::connect((HOST, port))?;
            socket.set_nodelay(true)?;
            Ok(socket)
        };
        match self {
            Self::Tcp(port) => {
                let socket = connect(*port)?;
                socket.set_nonblocking(true)?;
                Ok(Stream::Tcp(socket))
            }
            Self::Tls(port, config) => {
                let mut socket = connect(*port)?;
                let name = ServerName::try_from(HOST)?;
                let mut session = ClientConnection::new(Arc::clone(config), name)?;
                session.complete_io(&mut socket)?;
                socket.set_nonblocking(true)?;
                Ok(Stream::Tls(Box::new(Tls { session, socket })))
            }
            Self::Unix(path) => {
                let socket = UnixStream::connect(path)?;
                socket.set_nonblocking(true)?;
                Ok(Stream::Unix(socket))
            }
        }
    }
}

/// A connection.
#[derive(Debug)]
pub(super) enum Stream {
    Tcp(TcpStream),
    Tls(Box<Tls>),
    Unix(UnixStream),
}

#[derive(Debug)]
pub(super) struct Tls {
    session: ClientConnection,
    socket: TcpStream,
}

impl Stream {
    /// Whether a read that fills less than its buffer has taken all that there is.
    pub(super) fn is_plain(&self) -> bool {
        !matches!(self, Self::Tls(_))
    }
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
