//! The kinds of connections: over TCP, with and without TLS, and over a Unix socket.

use std::io::{self, Write};
use std::net;
use std::os::unix;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::server::TlsStream;

/// An accepted connection that belongs to no event loop yet.
pub enum Incoming {
    /// Over TCP.
    Tcp(net::TcpStream),
    /// Over TCP, and encrypted after the handshake.
    Tls(net::TcpStream, Arc<ServerConfig>),
    /// Over a Unix socket.
    Unix(unix::net::UnixStream),
}

impl Incoming {
    /// Tells the client why the connection is refused. A client that waits for a handshake is told
    /// nothing.
    pub fn refuse(&self, why: &str) {
        // It does not matter whether the client receives it.
        let _ = match self {
            Incoming::Tcp(stream) => (&*stream).write(why.as_bytes()),
            Incoming::Unix(stream) => (&*stream).write(why.as_bytes()),
            Incoming::Tls(..) => Ok(0),
        };
    }

    /// Makes TCP send replies at once, and probe a client that is silent for this many seconds. As
    /// in Redis, three probes in about the same time follow. If this fails, the connection is
    /// slower, or is found dead later.
    pub fn tune(&self, keepalive: u32) {
        let (Incoming::Tcp(stream) | Incoming::Tls(stream, _)) = self else {
            return;
        };
        let _ = stream.set_nodelay(true);
        if keepalive > 0 {
            // The system counts whole seconds, and refuses 0.
            let seconds = |seconds: u32| Duration::from_secs(seconds.max(1).into());
            let keepalive = TcpKeepalive::new()
                .with_time(seconds(keepalive))
                .with_interval(seconds(keepalive / 3))
                .with_retries(3);
            let _ = SockRef::from(stream).set_tcp_keepalive(&keepalive);
        }
    }

    /// The connection in the current event loop; with TLS it is ready after the handshake.
    pub async fn open(self) -> io::Result<Stream> {
        Ok(match self {
            Incoming::Tcp(stream) => Stream::Tcp(TcpStream::from_std(stream)?),
            Incoming::Tls(stream, config) => {
                let stream = TcpStream::from_std(stream)?;
                Stream::Tls(Box::new(TlsAcceptor::from(config).accept(stream).await?))
            }
            Incoming::Unix(stream) => Stream::Unix(UnixStream::from_std(stream)?),
        })
    }
}

/// A connection in an event loop.
pub enum Stream {
    /// Over TCP.
    Tcp(TcpStream),
    /// Over TCP, encrypted.
    Tls(Box<TlsStream<TcpStream>>),
    /// Over a Unix socket.
    Unix(UnixStream),
}

/// Calls the same method of the variant's stream.
macro_rules! each {
    ($stream:expr, $method:ident $(, $arg:expr)*) => {
        match $stream.get_mut() {
            Stream::Tcp(stream) => Pin::new(stream).$method($($arg),*),
            Stream::Tls(stream) => Pin::new(stream).$method($($arg),*),
            Stream::Unix(stream) => Pin::new(stream).$method($($arg),*),
        }
    };
}

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        each!(self, poll_read, cx, buf)
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        each!(self, poll_write, cx, buf)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        each!(self, poll_flush, cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        each!(self, poll_shutdown, cx)
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_dead_client_is_noticed_after_twice_the_setting() {
        for (setting, interval) in [(300, 100), (1, 1), (2, 1)] {
            let listener = net::TcpListener::bind("127.0.0.1:0").unwrap();
            let stream = net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let incoming = Incoming::Tcp(stream.try_clone().unwrap());
            incoming.tune(setting);
            let socket = SockRef::from(&stream);
            assert!(socket.keepalive().unwrap());
            let seconds = Duration::from_secs;
            assert_eq!(
                socket.tcp_keepalive_time().unwrap(),
                seconds(setting.into())
            );
            assert_eq!(socket.tcp_keepalive_interval().unwrap(), seconds(interval));
            assert_eq!(socket.tcp_keepalive_retries().unwrap(), 3);
        }
    }
}
