//! A blocking client with one connection.

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

use everbloom_resp::{DecodeError, DecodeLimits, Decoder, Protocol, Reply, encode_request};

/// How long to wait for one address to accept a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// The most bytes to read from the socket at a time.
const READ_SIZE: usize = 64 * 1024;

/// The address of a server, and how to log in there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) protocol: Protocol,
    pub(crate) credentials: Option<Credentials>,
}

/// The arguments of AUTH. Without a user, the password is the default user's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Credentials {
    pub(crate) user: Option<OsString>,
    pub(crate) password: OsString,
}

/// The flags of every subcommand that logs in.
#[derive(clap::Args, Debug)]
pub(crate) struct LoginArgs {
    /// The user to log in as; the default user when only --pass is given
    #[arg(long, value_name = "NAME", requires = "pass")]
    user: Option<OsString>,
    /// The password; REDISCLI_AUTH in the environment keeps it out of the process list
    #[arg(long, value_name = "PASSWORD")]
    pass: Option<OsString>,
}

impl LoginArgs {
    pub(crate) fn credentials(&self) -> Option<Credentials> {
        let password = self
            .pass
            .clone()
            .or_else(|| std::env::var_os("REDISCLI_AUTH"))?;
        Some(Credentials {
            user: self.user.clone(),
            password,
        })
    }
}

/// Why there is no reply.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ClientError {
    #[error("cannot connect to {host} port {port}: {source}")]
    Connect {
        host: String,
        port: u16,
        source: io::Error,
    },
    #[error("the connection broke: {0}")]
    Broken(#[source] io::Error),
    #[error("the server closed the connection")]
    Closed,
    #[error("the server sent something that is not RESP: {0}")]
    NotResp(#[from] DecodeError),
    #[error("the server refused: {text}")]
    Refused { text: String },
    #[error("the server sent an answer of an unexpected kind to {command}")]
    Unexpected { command: &'static str },
}

/// One connection.
#[derive(Debug)]
pub(crate) struct Client {
    stream: TcpStream,
    decoder: Decoder,
    inbox: Vec<u8>,
    outbox: Vec<u8>,
}

impl Client {
    /// Connects, logs in and chooses the protocol.
    pub(crate) fn connect(target: &Target) -> Result<Self, ClientError> {
        let stream = open(&target.host, target.port).map_err(|source| ClientError::Connect {
            host: target.host.clone(),
            port: target.port,
            source,
        })?;
        let mut client = Self {
            stream,
            decoder: Decoder::new(DecodeLimits::default()),
            inbox: Vec::new(),
            outbox: Vec::new(),
        };
        if let Some(credentials) = &target.credentials {
            let mut request: Vec<&[u8]> = vec![b"AUTH"];
            request.extend(
                credentials
                    .user
                    .as_ref()
                    .map(|user| user.as_encoded_bytes()),
            );
            request.push(credentials.password.as_encoded_bytes());
            client.demand(&request)?;
        }
        if target.protocol == Protocol::Resp3 {
            client.demand(&["HELLO", "3"])?;
        }
        Ok(client)
    }

    /// Sends one request and waits for its reply, which may be an error.
    pub(crate) fn call<T: AsRef<[u8]>>(&mut self, request: &[T]) -> Result<Reply, ClientError> {
        self.queue(request);
        self.flush()?;
        self.next_reply()
    }

    /// Keeps a request until [`flush`](Self::flush) sends it. Each has a reply to wait for.
    pub(crate) fn queue<T: AsRef<[u8]>>(&mut self, request: &[T]) {
        encode_request(request, &mut self.outbox);
    }

    pub(crate) fn flush(&mut self) -> Result<(), ClientError> {
        let sent = self.stream.write_all(&self.outbox);
        self.outbox.clear();
        sent.map_err(ClientError::Broken)
    }

    /// Waits for the next reply, which may be an error.
    pub(crate) fn next_reply(&mut self) -> Result<Reply, ClientError> {
        loop {
            // A pushed message is not the answer to a request.
            match self.receive()? {
                Reply::Push(_) => {}
                reply => return Ok(reply),
            }
        }
    }

    /// As `call`, but returns an error reply as an error.
    pub(crate) fn demand<T: AsRef<[u8]>>(&mut self, request: &[T]) -> Result<Reply, ClientError> {
        match self.call(request)? {
            Reply::Error(text) => Err(ClientError::Refused {
                text: text.into_owned(),
            }),
            reply => Ok(reply),
        }
    }

    /// The socket, for a caller that sends and reads by itself.
    pub(crate) fn into_stream(self) -> TcpStream {
        self.stream
    }

    fn receive(&mut self) -> Result<Reply, ClientError> {
        let mut chunk = vec![0; READ_SIZE];
        loop {
            if let Some((reply, length)) = self.decoder.decode(&self.inbox)? {
                self.inbox.drain(..length);
                return Ok(reply);
            }
            let count = self.stream.read(&mut chunk).map_err(ClientError::Broken)?;
            if count == 0 {
                return Err(ClientError::Closed);
            }
            self.inbox.extend(chunk.iter().take(count));
        }
    }
}

/// Tries each address of the host in turn. If all fail, returns the error of the last one.
fn open(host: &str, port: u16) -> io::Result<TcpStream> {
    let mut failure = io::Error::new(io::ErrorKind::NotFound, "the host name has no address");
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

/// Host and port of `redis://HOST[:PORT]`. IPv6 addresses are in brackets.
pub(crate) fn parse_url(url: &str) -> Result<(String, u16), String> {
    let wrong = |why: &str| format!("'{url}' is not redis://HOST[:PORT]: {why}");
    let rest = url.strip_prefix("redis://").ok_or_else(|| {
        wrong(if url.contains("://") {
            "another scheme"
        } else {
            "the scheme is missing"
        })
    })?;
    let rest = rest.strip_suffix('/').unwrap_or(rest);
    if rest.contains('@') {
        return Err(wrong("log in with --user and --pass"));
    }
    if rest.contains('/') {
        return Err(wrong("it has a path"));
    }
    let (host, port) = match rest.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((host, "")) => (host, None),
        Some((host, port)) => (host, Some(port.strip_prefix(':').unwrap_or(port))),
        None => rest
            .split_once(':')
            .map_or((rest, None), |(host, port)| (host, Some(port))),
    };
    if host.is_empty() {
        return Err(wrong("the host is missing"));
    }
    let port = match port {
        None => 6379,
        Some(digits) => digits
            .parse()
            .map_err(|_| wrong("the port is not a port"))?,
    };
    Ok((host.to_owned(), port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls() {
        let here = |host: &str, port| Ok((host.to_owned(), port));
        assert_eq!(parse_url("redis://localhost"), here("localhost", 6379));
        assert_eq!(parse_url("redis://10.0.0.1:7000/"), here("10.0.0.1", 7000));
        assert_eq!(parse_url("redis://[::1]"), here("::1", 6379));
        assert_eq!(parse_url("redis://[::1]:7000"), here("::1", 7000));
        for wrong in [
            "localhost:6379",
            "redis://",
            "redis://:7000",
            "redis://a:b",
            "redis://a:70000",
            "redis://me:secret@a",
            "redis://a/1",
        ] {
            assert!(parse_url(wrong).is_err(), "{wrong}");
        }
    }
}
