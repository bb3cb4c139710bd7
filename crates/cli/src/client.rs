//! A blocking client with one connection.

use std::ffi::OsString;
use std::fmt;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::str::FromStr;
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
    #[error("the server was silent for too long")]
    Silent,
    #[error("the server sent something that is not RESP: {0}")]
    NotResp(#[from] DecodeError),
    #[error("the server refused: {text}")]
    Refused { text: String },
    #[error("the server sent an answer of an unexpected kind to {command}")]
    Unexpected { command: &'static str },
}

impl ClientError {
    /// Whether it is what was asked for: a server ends the connection as its answer to SHUTDOWN.
    pub(crate) fn is_answer_to(&self, request: &[&[u8]]) -> bool {
        let is_end = matches!(self, Self::Closed | Self::Broken(_));
        let name = request.first();
        is_end && name.is_some_and(|name| name.eq_ignore_ascii_case(b"shutdown"))
    }

    fn of_socket(error: io::Error) -> Self {
        match error.kind() {
            // Systems differ in what they call a timeout.
            ErrorKind::WouldBlock | ErrorKind::TimedOut => Self::Silent,
            _ => Self::Broken(error),
        }
    }
}

/// One connection.
#[derive(Debug)]
pub(crate) struct Client {
    stream: TcpStream,
    decoder: Decoder,
    inbox: Vec<u8>,
    outbox: Vec<u8>,
    /// The most bytes of one reply.
    longest: usize,
}

/// What a server may cost its client.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// The most bytes of one reply.
    pub(crate) longest: usize,
    /// How long to wait for bytes, or for the server to take some. `None`: for ever.
    pub(crate) patience: Option<Duration>,
}

impl Bounds {
    const NONE: Self = Self {
        longest: usize::MAX,
        patience: None,
    };
}

impl Client {
    /// Connects, logs in and chooses the protocol.
    pub(crate) fn connect(target: &Target) -> Result<Self, ClientError> {
        Self::connect_within(target, Bounds::NONE)
    }

    /// As `connect`, to a server that may cost no more than this.
    pub(crate) fn connect_within(target: &Target, bounds: Bounds) -> Result<Self, ClientError> {
        let ready = |stream: TcpStream| {
            stream.set_read_timeout(bounds.patience)?;
            stream.set_write_timeout(bounds.patience)?;
            Ok(stream)
        };
        let stream = open(&target.host, target.port).and_then(ready);
        let mut client = Self {
            stream: stream.map_err(|source| ClientError::Connect {
                host: target.host.clone(),
                port: target.port,
                source,
            })?,
            decoder: Decoder::new(DecodeLimits::default()),
            inbox: Vec::new(),
            outbox: Vec::new(),
            longest: bounds.longest,
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
        self.prepare(request);
        self.flush()?;
        self.answer()
    }

    /// Adds a request to those that `flush` sends.
    pub(crate) fn prepare<T: AsRef<[u8]>>(&mut self, request: &[T]) {
        encode_request(request, &mut self.outbox);
    }

    /// Sends what was prepared.
    pub(crate) fn flush(&mut self) -> Result<(), ClientError> {
        let sent = self.stream.write_all(&self.outbox);
        self.outbox.clear();
        sent.map_err(ClientError::of_socket)
    }

    /// Waits for the reply to the oldest request without one.
    pub(crate) fn answer(&mut self) -> Result<Reply, ClientError> {
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

    /// Where the server is.
    pub(crate) fn peer(&self) -> io::Result<SocketAddr> {
        self.stream.peer_addr()
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
            if self.inbox.len() > self.longest {
                return Err(DecodeError::TooLong.into());
            }
            let count = match self.stream.read(&mut chunk) {
                Ok(count) => count,
                // A program that was stopped and goes on finds its waiting interrupted.
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(ClientError::of_socket(error)),
            };
            if count == 0 {
                return Err(ClientError::Closed);
            }
            self.inbox
                .extend_from_slice(chunk.get(..count).unwrap_or_default());
        }
    }
}

/// Tries each address of the host in turn. If all fail, returns the error of the last one.
fn open(host: &str, port: u16) -> io::Result<TcpStream> {
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

/// A server's address as `redis://[USER:PASSWORD@]HOST[:PORT][/DATABASE]`. IPv6 addresses are in
/// brackets. Characters with a meaning in a URL are written as `%40` in user and password.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Url {
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) database: u32,
    pub(crate) credentials: Option<Credentials>,
}

impl Url {
    fn parse(url: &str) -> Result<Self, &'static str> {
        let rest = url.strip_prefix("redis://").ok_or({
            if url.contains("://") {
                "another scheme"
            } else {
                "the scheme is missing"
            }
        })?;
        let (login, rest) = match rest.rsplit_once('@') {
            Some((login, rest)) => (Some(login), rest),
            None => (None, rest),
        };
        let (place, path) = rest.split_once('/').unwrap_or((rest, ""));
        let (host, port) = match place
            .strip_prefix('[')
            .and_then(|rest| rest.split_once(']'))
        {
            Some((host, "")) => (host, None),
            Some((host, port)) => (host, Some(port.strip_prefix(':').unwrap_or(port))),
            None => place
                .split_once(':')
                .map_or((place, None), |(host, port)| (host, Some(port))),
        };
        if host.is_empty() {
            return Err("the host is missing");
        }
        let port = port.map_or(Ok(6379), str::parse);
        let database = if path.is_empty() { Ok(0) } else { path.parse() };
        Ok(Self {
            host: host.to_owned(),
            port: port.map_err(|_| "the port is not a port")?,
            database: database.map_err(|_| "the path is not the number of a database")?,
            credentials: login.map(Credentials::parse).transpose()?,
        })
    }
}

impl FromStr for Url {
    type Err = String;

    fn from_str(url: &str) -> Result<Self, String> {
        const FORM: &str = "redis://[USER:PASSWORD@]HOST[:PORT][/DATABASE]";
        Self::parse(url).map_err(|why| format!("'{}' is not {FORM}: {why}", without_login(url)))
    }
}

/// The address without the password.
impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "redis://[{}]:{}", self.host, self.port)?;
        } else {
            write!(f, "redis://{}:{}", self.host, self.port)?;
        }
        match self.database {
            0 => Ok(()),
            database => write!(f, "/{database}"),
        }
    }
}

impl Credentials {
    /// `USER:PASSWORD` or `:PASSWORD`.
    fn parse(login: &str) -> Result<Self, &'static str> {
        let (user, password) = login.split_once(':').ok_or("the password is missing")?;
        let user = unescape(user)?;
        Ok(Self {
            user: (!user.is_empty()).then(|| user.into()),
            password: unescape(password)?.into(),
        })
    }
}

/// A URL that may be shown: a password may be in front of its last `@`.
fn without_login(url: &str) -> String {
    match url.rsplit_once('@') {
        Some((_, rest)) => format!("redis://***@{rest}"),
        None => url.to_owned(),
    }
}

/// A text whose characters may be written as `%40`.
fn unescape(text: &str) -> Result<String, &'static str> {
    const WRONG: &str = "a % in user or password without two hexadecimal digits (write it as %25)";
    let mut bytes = text.bytes();
    let mut plain = Vec::new();
    while let Some(byte) = bytes.next() {
        plain.push(if byte == b'%' {
            let mut digit = || char::from(bytes.next()?).to_digit(16);
            let code = digit().zip(digit()).map(|(high, low)| high * 16 + low);
            code.and_then(|code| u8::try_from(code).ok()).ok_or(WRONG)?
        } else {
            byte
        });
    }
    String::from_utf8(plain).map_err(|_| "user or password is not UTF-8")
}

/// Host and port of `redis://HOST[:PORT]`, for a subcommand with flags for the rest.
pub(crate) fn parse_url(url: &str) -> Result<(String, u16), String> {
    let plain = Url::parse(url).and_then(|url| match url {
        Url {
            credentials: Some(_),
            ..
        } => Err("log in with --user and --pass"),
        Url { database: 1.., .. } => Err("it has a path"),
        url => Ok((url.host, url.port)),
    });
    plain.map_err(|why| {
        let url = without_login(url);
        format!("'{url}' is not redis://HOST[:PORT]: {why}")
    })
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

    #[test]
    fn urls_with_everything() {
        let parsed: Url = "redis://me:p%40ss:w%25rd@[::1]:7000/3".parse().unwrap();
        assert_eq!(
            (parsed.host.as_str(), parsed.port, parsed.database),
            ("::1", 7000, 3)
        );
        let login = parsed.credentials.clone().unwrap();
        assert_eq!(login.user, Some("me".into()));
        assert_eq!(login.password, "p@ss:w%rd");
        assert_eq!(parsed.to_string(), "redis://[::1]:7000/3");
        let parsed: Url = "redis://:secret@b".parse().unwrap();
        assert_eq!(parsed.credentials.unwrap().user, None);
    }

    #[test]
    fn no_error_shows_a_password() {
        for wrong in [
            "redis://me:secret@",
            "redis://me:secret@a:b",
            "redis://me:secret@a/x",
            "redis://secret@a",
            "redis://:secret%@a",
            "redis://:secret%4@a",
            "redis://:secret%ff@a",
            "http://me:secret@a",
            "me:secret@a",
        ] {
            let error = wrong.parse::<Url>().unwrap_err();
            assert!(!error.contains("secret"), "{error}");
            assert!(!parse_url(wrong).unwrap_err().contains("secret"), "{wrong}");
        }
    }

    #[test]
    fn a_silent_server_is_not_waited_for_for_ever() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let target = Target {
            host: "127.0.0.1".to_owned(),
            port: listener.local_addr().unwrap().port(),
            protocol: Protocol::Resp2,
            credentials: None,
        };
        let bounds = Bounds {
            longest: 100,
            patience: Some(Duration::from_millis(20)),
        };
        let mut client = Client::connect_within(&target, bounds).unwrap();
        let error = client.call(&["PING"]).unwrap_err();
        assert!(matches!(error, ClientError::Silent), "{error}");
    }
}
