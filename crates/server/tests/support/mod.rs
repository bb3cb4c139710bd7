//! What the socket tests share: a plain client, a server of ours, and Debian's redis-server.
#![allow(
    dead_code,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::expect_used,
    clippy::panic,
    missing_docs,
    unreachable_pub
)]

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use everbloom_resp::{DecodeLimits, Reply, decode, encode_request};
use everbloom_server::{Running, Server, Settings};

/// Our server on a port of its own.
pub fn server(settings: Settings) -> Running {
    let settings = Settings {
        bind: vec!["127.0.0.1".into()],
        port: 0,
        ..settings
    };
    Server::start(settings).unwrap()
}

/// A client that sends bytes and reads replies.
pub struct Client {
    pub stream: TcpStream,
    buf: Vec<u8>,
}

impl Client {
    pub fn connect(addr: SocketAddr) -> Self {
        let stream = TcpStream::connect(addr).unwrap();
        stream.set_nodelay(true).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(30)))
            .unwrap();
        Client {
            stream,
            buf: Vec::new(),
        }
    }

    pub fn of(running: &Running) -> Self {
        Client::connect(running.addr().unwrap())
    }

    pub fn send<T: AsRef<[u8]>>(&mut self, args: &[T]) {
        let mut out = Vec::new();
        encode_request(args, &mut out);
        self.stream.write_all(&out).unwrap();
    }

    /// Sends a command line, its words separated by spaces, and reads the reply.
    pub fn line(&mut self, line: &str) -> Reply {
        self.call(&line.split(' ').collect::<Vec<_>>())
    }

    pub fn call<T: AsRef<[u8]>>(&mut self, args: &[T]) -> Reply {
        self.send(args);
        self.reply()
    }

    pub fn reply(&mut self) -> Reply {
        self.try_reply().expect("the server closed the connection")
    }

    /// The next reply with its bytes; `None` once the server has closed the connection.
    pub fn raw_reply(&mut self) -> Option<(Reply, Vec<u8>)> {
        let mut chunk = vec![0; 64 << 10];
        loop {
            if let Some((reply, used)) = decode(&self.buf, &DecodeLimits::default()).unwrap() {
                return Some((reply, self.buf.drain(..used).collect()));
            }
            match self.stream.read(&mut chunk) {
                Ok(0) => return None,
                Ok(n) => self.buf.extend_from_slice(&chunk[..n]),
                // A test that was suspended goes on.
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => panic!("the server does not answer: {error}"),
            }
        }
    }

    pub fn try_reply(&mut self) -> Option<Reply> {
        self.raw_reply().map(|(reply, _)| reply)
    }
}

/// Debian's redis-server, ended when dropped.
pub struct Redis {
    child: Child,
    pub addr: SocketAddr,
}

impl Redis {
    /// Starts one, or says loudly that there is none: then the test must skip, unless peers are
    /// required.
    pub fn start(extra: &[&str]) -> Option<Redis> {
        let port = TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap()
            .port();
        let spawned = Command::new("redis-server")
            .args([
                "--port",
                &port.to_string(),
                "--bind",
                "127.0.0.1",
                "--save",
                "",
            ])
            .args(["--appendonly", "no", "--loglevel", "warning"])
            .args(extra)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let Ok(child) = spawned else {
            let required = std::env::var_os("EVERBLOOM_REQUIRE_PEERS").is_some();
            assert!(!required, "redis-server is required and was not found");
            eprintln!("SKIPPED: redis-server was not found");
            return None;
        };
        let redis = Redis {
            child,
            addr: ([127, 0, 0, 1], port).into(),
        };
        let deadline = Instant::now() + Duration::from_secs(10);
        while TcpStream::connect(redis.addr).is_err() {
            assert!(Instant::now() < deadline, "redis-server does not listen");
            std::thread::sleep(Duration::from_millis(20));
        }
        Some(redis)
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
