//! A client as small as it can be: requests and replies over TCP.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

/// A reply. Those that nobody looks into are only read.
#[derive(Debug)]
pub enum Reply {
    Text(String),
    Bulk(Vec<u8>),
    Null,
    Array(Vec<Reply>),
}

impl Reply {
    /// The bytes of a bulk reply.
    pub fn bytes(self) -> Result<Vec<u8>> {
        match self {
            Reply::Bulk(bytes) => Ok(bytes),
            other => bail!("expected bytes, got {other:?}"),
        }
    }
}

/// One connection.
pub struct Client {
    stream: BufReader<TcpStream>,
    port: u16,
}

impl Client {
    pub fn new(port: u16) -> Result<Self> {
        let stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_nodelay(true)?;
        Ok(Self {
            stream: BufReader::with_capacity(64 << 10, stream),
            port,
        })
    }

    /// The first one to a server, once that has read its files.
    pub fn of_ready(port: u16) -> Result<Self> {
        let mut client = Self::new(port)?;
        let deadline = Instant::now() + Duration::from_secs(20);
        while let Err(problem) = client.line("PING") {
            ensure!(
                Instant::now() < deadline,
                "the server does not get ready: {problem}"
            );
            thread::sleep(Duration::from_millis(10));
        }
        Ok(client)
    }

    /// Another connection to the same server.
    pub fn another(&self) -> Result<Self> {
        Self::new(self.port)
    }

    /// Sends a request and returns its reply. A reply that is an error is one here, too.
    pub fn call(&mut self, args: &[&[u8]]) -> Result<Reply> {
        self.send(&request(args))?;
        self.reply()
    }

    /// The same for words that are text: `INFO memory`.
    pub fn line(&mut self, line: &str) -> Result<Reply> {
        let args: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
        self.call(&args).with_context(|| line.to_owned())
    }

    pub fn send(&mut self, requests: &[u8]) -> Result<()> {
        Ok(self.stream.get_mut().write_all(requests)?)
    }

    pub fn reply(&mut self) -> Result<Reply> {
        let mut line = String::new();
        self.stream.read_line(&mut line)?;
        let line = line.trim_end();
        let rest = line.get(1..).context("the server hung up")?;
        let length = || rest.parse::<i64>().context("not a length");
        Ok(match line.as_bytes()[0] {
            b'+' | b':' => Reply::Text(rest.to_owned()),
            b'$' => match usize::try_from(length()?) {
                Err(_) => Reply::Null,
                Ok(length) => {
                    let mut bytes = vec![0; length + 2];
                    self.stream.read_exact(&mut bytes)?;
                    bytes.truncate(length);
                    Reply::Bulk(bytes)
                }
            },
            b'*' => {
                let items = usize::try_from(length()?).unwrap_or(0);
                Reply::Array((0..items).map(|_| self.reply()).collect::<Result<_>>()?)
            }
            _ => bail!("{line}"),
        })
    }

    /// A field of INFO.
    pub fn info(&mut self, field: &str) -> Result<String> {
        let text = String::from_utf8(self.line("INFO everything")?.bytes()?)?;
        let mut lines = text.lines().filter_map(|line| line.split_once(':'));
        let found = lines.find(|(name, _)| *name == field);
        Ok(found.context("no such field")?.1.to_owned())
    }
}

pub fn request(args: &[&[u8]]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", args.len()).into_bytes();
    for arg in args {
        bytes.extend_from_slice(format!("${}\r\n", arg.len()).as_bytes());
        bytes.extend_from_slice(arg);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes
}

/// Reads a page over HTTP.
pub fn get(port: u16, path: &str) -> Result<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    )?;
    let mut page = String::new();
    stream.read_to_string(&mut page)?;
    ensure!(page.starts_with("HTTP/1.1 200"), "{path}: {page}");
    Ok(page)
}
