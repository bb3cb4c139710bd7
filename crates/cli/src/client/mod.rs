//! A blocking client with one connection.

mod credentials;
mod login;
mod place;
mod stream;
mod trust;

use std::ffi::OsStr;
use std::io::{self, ErrorKind};
use std::mem;
use std::sync::Arc;
use std::time::Duration;

use everbloom_resp::{DecodeError, DecodeLimits, Decoder, Protocol, Reply, encode_request};
use rustls::ClientConfig;

use crate::failure::Failure;
use credentials::Credentials;
pub(crate) use login::ServerArgs;
pub(crate) use place::{Place, Url, is_url};
use stream::Socket;

/// The most bytes to read from the socket at a time.
const READ_SIZE: usize = 64 * 1024;

/// The address of a server, and how to log in there.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    pub(crate) place: Place,
    pub(crate) database: u32,
    pub(crate) protocol: Protocol,
    /// The most bytes of one reply.
    pub(crate) longest: usize,
    /// How long to wait for bytes, or for the server to take some. `None`: for ever.
    pub(crate) patience: Option<Duration>,
    credentials: Option<Credentials>,
    tls: Option<Arc<ClientConfig>>,
}

impl Target {
    /// A server that speaks RESP2; where it speaks TLS, the files of the flags are read.
    pub(crate) fn new(url: &Url, args: &ServerArgs) -> Result<Self, Failure> {
        let tls = match url.place {
            Place::Tcp { tls: true, .. } => Some(trust::read(args).map_err(Failure::Other)?),
            _ => None,
        };
        Ok(Self {
            place: url.place.clone(),
            database: url.database,
            protocol: Protocol::Resp2,
            longest: usize::MAX,
            patience: None,
            credentials: url.credentials.clone().or_else(|| args.credentials()),
            tls,
        })
    }

    /// Another server, with the same login and the same trust. It speaks TLS if this one does.
    pub(crate) fn elsewhere(&self, host: &str, port: u16) -> Self {
        let mut other = self.clone();
        other.place = Place::Tcp {
            host: host.to_owned(),
            port,
            tls: self.tls.is_some(),
        };
        other
    }
}

/// One connection.
#[derive(Debug)]
pub(crate) struct Client {
    socket: Box<dyn Socket>,
    decoder: Decoder,
    inbox: Vec<u8>,
    outbox: Vec<u8>,
    /// The most bytes of one reply.
    longest: usize,
    /// Whether the server has sent a reply.
    heard: bool,
    /// Whether it is TCP without TLS.
    is_plain_tcp: bool,
}

impl Client {
    /// Connects, logs in and chooses the protocol and the database.
    pub(crate) fn connect(target: &Target) -> Result<Self, Failure> {
        let socket = stream::open(&target.place, target.tls.as_ref(), target.patience);
        let mut client = Self {
            socket: socket.map_err(|error| {
                Failure::Connect(format!("cannot connect to {}: {error}", target.place))
            })?,
            decoder: Decoder::new(DecodeLimits::default()),
            inbox: Vec::new(),
            outbox: Vec::new(),
            longest: target.longest,
            heard: false,
            is_plain_tcp: matches!(target.place, Place::Tcp { tls: false, .. }),
        };
        if let Some(credentials) = &target.credentials {
            let mut request: Vec<&[u8]> = vec![b"AUTH"];
            let user = credentials.user.as_deref();
            request.extend(user.map(OsStr::as_encoded_bytes));
            request.push(credentials.password.as_encoded_bytes());
            match client.demand(&request) {
                Err(Failure::Refused(text))
                    if credentials.is_optional
                        && text.contains("without any password configured") => {}
                outcome => drop(outcome?),
            }
        }
        if target.protocol == Protocol::Resp3 {
            client.demand(&["HELLO", "3"])?;
        }
        if target.database != 0 {
            client.demand(&["SELECT", &target.database.to_string()])?;
        }
        Ok(client)
    }

    /// Sends one request and waits for its reply, which may be an error.
    pub(crate) fn call<T: AsRef<[u8]>>(&mut self, request: &[T]) -> Result<Reply, Failure> {
        self.prepare(request);
        self.flush()?;
        self.answer()
    }

    /// Adds a request to those that `flush` sends.
    pub(crate) fn prepare<T: AsRef<[u8]>>(&mut self, request: &[T]) {
        encode_request(request, &mut self.outbox);
    }

    /// Sends what was prepared.
    pub(crate) fn flush(&mut self) -> Result<(), Failure> {
        let mut outbox = mem::take(&mut self.outbox);
        let sent = self.send(&outbox);
        outbox.clear();
        self.outbox = outbox;
        sent
    }

    /// Sends whole requests, as they go over the wire.
    pub(crate) fn send(&mut self, requests: &[u8]) -> Result<(), Failure> {
        let sent = self.socket.write_all(requests);
        let sent = sent.and_then(|()| self.socket.flush());
        sent.map_err(of_socket)
    }

    /// Sets the most bytes of one reply from now on.
    pub(crate) fn accept(&mut self, longest: usize) {
        self.longest = longest;
    }

    /// Waits for the reply to the oldest request without one.
    pub(crate) fn answer(&mut self) -> Result<Reply, Failure> {
        loop {
            // A pushed message is not the answer to a request.
            match self.receive()? {
                Reply::Push(_) => {}
                reply => return Ok(reply),
            }
        }
    }

    /// As `call`, but returns an error reply as an error.
    pub(crate) fn demand<T: AsRef<[u8]>>(&mut self, request: &[T]) -> Result<Reply, Failure> {
        accepted(self.call(request)?)
    }

    fn receive(&mut self) -> Result<Reply, Failure> {
        let mut chunk = vec![0; READ_SIZE];
        loop {
            if let Some((reply, length)) = self.decoder.decode(&self.inbox).map_err(not_resp)? {
                self.inbox.drain(..length);
                self.heard = true;
                return Ok(reply);
            }
            if self.inbox.len() > self.longest {
                return Err(not_resp(DecodeError::TooLong));
            }
            let count = match self.socket.read(&mut chunk) {
                Ok(count) => count,
                // A program that was stopped and goes on finds its waiting interrupted.
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(of_socket(error)),
            };
            if count == 0 {
                let hint = match self.is_plain_tcp && !self.heard {
                    true => " without a reply; is this a port of TLS? try --tls or rediss://",
                    false => "",
                };
                return Err(Failure::Ended(format!("{CLOSED}{hint}")));
            }
            self.inbox
                .extend_from_slice(chunk.get(..count).unwrap_or_default());
        }
    }
}

fn accepted(reply: Reply) -> Result<Reply, Failure> {
    match reply {
        Reply::Error(text) => Err(Failure::Refused(text.into_owned())),
        reply => Ok(reply),
    }
}

const CLOSED: &str = "the server closed the connection";

fn of_socket(error: io::Error) -> Failure {
    match error.kind() {
        // Systems differ in what they call a timeout.
        ErrorKind::WouldBlock | ErrorKind::TimedOut => {
            Failure::other("the server was silent for too long")
        }
        _ => Failure::Ended(format!("the connection broke: {error}")),
    }
}

fn not_resp(error: DecodeError) -> Failure {
    Failure::Other(format!(
        "the server sent something that is not RESP: {error}"
    ))
}

/// The server's answer to a command is none of those that it has.
pub(crate) fn unexpected(command: &str) -> Failure {
    Failure::Other(format!(
        "the server sent an answer of an unexpected kind to {command}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_silent_server_is_not_waited_for_for_ever() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let target = Target {
            place: Place::Tcp {
                host: "127.0.0.1".to_owned(),
                port: listener.local_addr().unwrap().port(),
                tls: false,
            },
            database: 0,
            protocol: Protocol::Resp2,
            longest: 100,
            patience: Some(Duration::from_millis(20)),
            credentials: None,
            tls: None,
        };
        let mut client = Client::connect(&target).unwrap();
        let error = client.call(&["PING"]).unwrap_err();
        assert_eq!(error.to_string(), "the server was silent for too long");
    }
}
