//! A client that sends bytes and reads replies.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};

use everbloom_resp::{DecodeLimits, Decoder, Reply, encode_request};

use crate::wait::{PATIENCE, wait_for};

/// A connection to a server. What has no `try_` in its name panics when the server is gone.
#[derive(Debug)]
pub struct Client {
    /// The socket, for what is no request.
    pub stream: TcpStream,
    decoder: Decoder,
    buf: Vec<u8>,
    chunk: Vec<u8>,
}

/// The longest string in a reply: benchmarks dump filters of gigabytes.
const MAX_BULK_BYTES: usize = 5 << 30;

impl Client {
    /// Connects to a server that listens.
    pub fn connect(addr: impl ToSocketAddrs) -> Client {
        Client::try_connect(addr).unwrap()
    }

    /// Connects, if somebody listens.
    pub fn try_connect(addr: impl ToSocketAddrs) -> io::Result<Client> {
        let stream = TcpStream::connect(addr)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        Ok(Client {
            stream,
            decoder: Decoder::new(DecodeLimits {
                max_bulk: MAX_BULK_BYTES,
                ..DecodeLimits::default()
            }),
            buf: Vec::new(),
            chunk: vec![0; 64 << 10],
        })
    }

    /// Sends a request.
    pub fn send<T: AsRef<[u8]>>(&mut self, args: &[T]) {
        self.try_send(args).unwrap();
    }

    /// Sends a request, if the server is still there.
    pub fn try_send<T: AsRef<[u8]>>(&mut self, args: &[T]) -> io::Result<()> {
        let mut out = Vec::new();
        encode_request(args, &mut out);
        self.stream.write_all(&out)
    }

    /// Sends a request and reads the reply.
    pub fn call<T: AsRef<[u8]>>(&mut self, args: &[T]) -> Reply {
        self.send(args);
        self.reply()
    }

    /// Sends a command line, its words separated by spaces, and reads the reply.
    pub fn line(&mut self, line: &str) -> Reply {
        self.call(&line.split(' ').collect::<Vec<_>>())
    }

    /// The reply to a command line that must not fail.
    pub fn ok(&mut self, line: &str) -> Reply {
        let reply = self.line(line);
        assert!(!reply.is_error(), "{line}: {reply:?}");
        reply
    }

    /// The reply to a command line, a number.
    pub fn number(&mut self, line: &str) -> i64 {
        let reply = self.line(line);
        let number = reply.as_integer();
        number.unwrap_or_else(|| panic!("{line}: {reply:?}"))
    }

    /// The reply to a command line, a string.
    pub fn text(&mut self, line: &str) -> String {
        let reply = self.line(line);
        let bytes = reply.as_bytes();
        let bytes = bytes.unwrap_or_else(|| panic!("{line}: {reply:?}"));
        String::from_utf8(bytes.to_vec()).unwrap()
    }

    /// The text of the reply to a command line, an error.
    pub fn error(&mut self, line: &str) -> String {
        let reply = self.line(line);
        let text = reply.as_error();
        text.unwrap_or_else(|| panic!("{line}: {reply:?}"))
            .to_owned()
    }

    /// The next reply.
    pub fn reply(&mut self) -> Reply {
        self.try_reply().expect("the server closed the connection")
    }

    /// The next reply; `None` once the server has closed the connection.
    pub fn try_reply(&mut self) -> Option<Reply> {
        let (reply, length) = self.decode()?;
        self.buf.drain(..length);
        Some(reply)
    }

    /// The next reply with its bytes; `None` once the server has closed the connection.
    pub fn raw_reply(&mut self) -> Option<(Reply, Vec<u8>)> {
        let (reply, length) = self.decode()?;
        Some((reply, self.buf.drain(..length).collect()))
    }

    /// The reply at the beginning of the buffer, and its length.
    fn decode(&mut self) -> Option<(Reply, usize)> {
        loop {
            if let Some(found) = self.decoder.decode(&self.buf).unwrap() {
                return Some(found);
            }
            let read = self.stream.read(&mut self.chunk);
            match read.map_err(|error| error.kind()) {
                Ok(0) => return None,
                Ok(n) => self.buf.extend_from_slice(&self.chunk[..n]),
                // In a process that was stopped and continued, waiting calls are interrupted.
                Err(ErrorKind::Interrupted) => {}
                Err(ErrorKind::WouldBlock | ErrorKind::TimedOut) => panic!("no answer"),
                Err(_) => return None,
            }
        }
    }

    /// A field of INFO.
    pub fn info(&mut self, field: &str) -> String {
        let text = self.text("INFO everything");
        let mut lines = text.lines();
        let value = lines.find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
        value
            .unwrap_or_else(|| panic!("no {field} in\n{text}"))
            .to_owned()
    }

    /// Waits until a field of INFO has a value.
    pub fn until(&mut self, field: &str, wanted: &str) {
        wait_for(&format!("{field}:{wanted}"), || self.info(field) == wanted);
    }

    /// One digest of all keys and values.
    pub fn digest(&mut self) -> String {
        self.text("DEBUG DIGEST")
    }

    /// Whether the server has loaded its data; `None` when it hangs up, or is silent for too long.
    pub fn is_loaded(&mut self) -> Option<bool> {
        self.try_send(&["PING"]).ok()?;
        self.stream.peek(&mut [0]).ok()?;
        let reply = self.try_reply()?;
        Some(
            !reply
                .as_error()
                .is_some_and(|text| text.starts_with("LOADING")),
        )
    }
}
