//! `kill -9` at random moments under load. After a restart, all acknowledged changes are there, and
//! no change is there by halves.
//!
//! Each client writes its own keys, one pipelined batch after the other. The log has the effects in
//! order, so a prefix of what a client sent must survive: all items of a filter up to some number,
//! none behind it, and counts that agree exactly.
//!
//! Bytes that the system has taken survive the end of the process. So this test does not show
//! whether they are forced to the disk. The crash points in the server's tests show that.
//!
//! `EVERBLOOM_KILL_ROUNDS` sets the number of rounds.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::expect_used,
    clippy::indexing_slicing
)]

mod support;

use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use everbloom_resp::{DecodeLimits, Reply, decode, encode_request};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

const CLIENTS: usize = 4;

struct Client {
    stream: TcpStream,
    buf: Vec<u8>,
}

impl Client {
    fn connect(port: u16) -> Option<Client> {
        let stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
        stream
            .set_read_timeout(Some(Duration::from_secs(60)))
            .ok()?;
        Some(Client {
            stream,
            buf: Vec::new(),
        })
    }

    fn send(&mut self, bytes: &[u8]) -> Option<()> {
        self.stream.write_all(bytes).ok()
    }

    /// The next reply, or `None` when the server is gone.
    fn reply(&mut self) -> Option<Reply> {
        let mut chunk = [0; 16 << 10];
        loop {
            if let Some((reply, used)) = decode(&self.buf, &DecodeLimits::default()).unwrap() {
                self.buf.drain(..used);
                return Some(reply);
            }
            match self.stream.read(&mut chunk) {
                Ok(read) if read > 0 => self.buf.extend_from_slice(&chunk[..read]),
                // A read with a timeout ends like this when the test was stopped and continued.
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                _ => return None,
            }
        }
    }

    fn call(&mut self, line: &str) -> Reply {
        let mut out = Vec::new();
        encode_request(&line.split(' ').collect::<Vec<_>>(), &mut out);
        self.send(&out).unwrap();
        self.reply().unwrap()
    }

    /// Whether the server has loaded its data, or `None` when it hangs up.
    fn is_loaded(&mut self) -> Option<bool> {
        self.send(b"PING\r\n")?;
        Some(self.reply()? == Reply::Simple("PONG".into()))
    }
}

/// A server on a data directory, killed when dropped.
struct Killed {
    child: Child,
    port: u16,
}

impl Killed {
    /// Starts a server on a port of its own choice, and waits until it has loaded its data.
    fn start(folder: &Path, fsync: &str) -> Killed {
        let path = folder.join("log");
        let log = fs::File::create(&path).unwrap();
        let child = Command::new(support::EVERBLOOM)
            .args(["serve", "--bind", "127.0.0.1", "--port", "0"])
            .args(["--appendfsync", fsync, "--save", "", "--io-threads", "2"])
            .args(["--auto-aof-rewrite-min-size", "1mb"])
            .current_dir(folder)
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap();
        let mut server = Killed { child, port: 0 };
        let deadline = Instant::now() + Duration::from_secs(30);
        while Instant::now() < deadline && server.child.try_wait().unwrap().is_none() {
            let log = fs::read_to_string(&path).unwrap();
            if let Some(port) = port_in(&log) {
                server.port = port;
                match Client::connect(port).and_then(|mut client| client.is_loaded()) {
                    Some(true) => return server,
                    Some(false) => {}
                    None => break,
                }
            }
            thread::sleep(Duration::from_millis(2));
        }
        let log = fs::read_to_string(&path).unwrap();
        panic!("the server did not start again:\n{log}");
    }

    fn kill(self) {
        drop(self);
    }
}

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The port in the line in which a server says where it listens.
fn port_in(log: &str) -> Option<u16> {
    let (_, rest) = log.split_once("listens on 127.0.0.1:")?;
    rest.split_once(',')?.0.parse().ok()
}

/// What one client did in a round.
struct Done {
    /// Batches sent.
    sent: usize,
    /// Batches acknowledged.
    acknowledged: usize,
}

const BATCH: usize = 16;

/// Sends batches until the server is gone, one or a few at a time.
fn load(port: u16, name: &str, seed: u64) -> Done {
    let mut random = StdRng::seed_from_u64(seed);
    let mut done = Done {
        sent: 0,
        acknowledged: 0,
    };
    let Some(mut client) = Client::connect(port) else {
        return done;
    };
    let mut waiting = 0;
    loop {
        let mut out = Vec::new();
        for _ in 0..random.random_range(1..=4) {
            encode_batch(name, done.sent, &mut out);
            done.sent += 1;
            waiting += 1;
        }
        if client.send(&out).is_none() {
            return done;
        }
        while waiting > 0 {
            // Each command of a batch has a reply. The last one acknowledges the batch.
            for _ in 0..BATCH + 3 {
                match client.reply() {
                    Some(Reply::Error(error)) => panic!("{error}"),
                    Some(_) => {}
                    None => return done,
                }
            }
            done.acknowledged += 1;
            waiting -= 1;
        }
        if random.random_bool(0.01) {
            let _ = client.send(b"BGREWRITEAOF\r\n");
            if client.reply().is_none() {
                return done;
            }
        }
    }
}

/// A batch: single adds, then a transaction of a batched add and a counter.
fn encode_batch(client: &str, number: usize, out: &mut Vec<u8>) {
    let filter = format!("filter:{client}");
    for at in 0..BATCH - 1 {
        encode_request(&["BF.ADD", &filter, &item(number, at)], out);
    }
    encode_request(&["MULTI"], out);
    encode_request(
        &[
            "BF.MADD",
            &filter,
            &item(number, BATCH - 1),
            &item(number, BATCH),
        ],
        out,
    );
    encode_request(&["INCR", &format!("count:{client}")], out);
    encode_request(&["EXEC"], out);
}

fn item(batch: usize, at: usize) -> String {
    format!("item:{batch}:{at}")
}

/// Checks that a prefix of what the client sent is there, and returns how many whole batches.
fn survived(client: &mut Client, number: &str, sent: usize) -> usize {
    let filter = format!("filter:{number}");
    let whole = match client.call(&format!("GET count:{number}")) {
        Reply::Bulk(text) => String::from_utf8(text).unwrap().parse().unwrap(),
        Reply::Null => 0,
        other => panic!("{other:?}"),
    };
    assert!(whole <= sent, "client {number}: {whole} of {sent}");
    let Reply::Integer(items) = client.call(&format!("BF.CARD {filter}")) else {
        panic!()
    };
    let items = usize::try_from(items).unwrap();
    let all: Vec<String> = (0..sent)
        .flat_map(|batch| (0..=BATCH).map(move |at| item(batch, at)))
        .collect();
    assert!(
        items >= whole * (BATCH + 1),
        "client {number}: {items} items, {whole} batches"
    );
    // The rest is single adds of one more batch. Its transaction is whole or not there.
    assert!(
        items - whole * (BATCH + 1) < BATCH,
        "client {number}: half a transaction"
    );
    for (first, items_in) in all.chunks(1000).enumerate() {
        let mut out = Vec::new();
        let mut request = vec!["BF.MEXISTS", &filter];
        request.extend(items_in.iter().map(String::as_str));
        encode_request(&request, &mut out);
        client.send(&out).unwrap();
        let reply = client.reply();
        let Some(Reply::Array(found)) = reply else {
            panic!("client {number}: {reply:?} to BF.MEXISTS");
        };
        for (at, found) in found.iter().enumerate() {
            let at = first * 1000 + at;
            assert_eq!(
                found == &Reply::Integer(1),
                at < items,
                "client {number}, item {at}"
            );
        }
    }
    whole
}

fn rounds() -> u32 {
    std::env::var("EVERBLOOM_KILL_ROUNDS")
        .ok()
        .and_then(|n| n.parse().ok())
        .unwrap_or(200)
}

fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("kill-{name}"));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// Plays rounds. A reply leaves when its change is written, so every acknowledged change must be
/// there, with `everysec` as with `always`.
fn play(fsync: &str, rounds: u32, longest: u64) {
    let folder = folder(&format!("{fsync}-{longest}"));
    for round in 0..rounds {
        let mut random = StdRng::seed_from_u64(round.into());
        let server = Killed::start(&folder, fsync);
        let mut control = Client::connect(server.port).unwrap();
        control.call("FLUSHALL");
        // Each round has its own names, because the kill may undo the FLUSHALL.
        let names: Vec<String> = (0..CLIENTS)
            .map(|number| format!("{round}-{number}"))
            .collect();
        for name in &names {
            // The error rate is so low, and the layers so few, that no item is a false positive.
            control.call(&format!("BF.RESERVE filter:{name} 0.000000001 100000"));
        }
        let port = server.port;
        let clients: Vec<_> = names
            .iter()
            .enumerate()
            .map(|(number, name)| {
                let (name, seed) = (name.clone(), u64::from(round) << 8 | number as u64);
                thread::spawn(move || load(port, &name, seed))
            })
            .collect();
        thread::sleep(Duration::from_millis(random.random_range(1..longest)));
        server.kill();
        let done: Vec<Done> = clients
            .into_iter()
            .map(|client| client.join().unwrap())
            .collect();

        let server = Killed::start(&folder, fsync);
        let mut control = Client::connect(server.port).unwrap();
        for (name, done) in names.iter().zip(&done) {
            let there = survived(&mut control, name, done.sent);
            assert!(
                there >= done.acknowledged,
                "client {name}: {there} batches are there of {} acknowledged",
                done.acknowledged
            );
        }
        server.kill();
    }
    let _ = fs::remove_dir_all(folder);
}

#[test]
fn always_means_every_acknowledged_change() {
    play("always", rounds(), 250);
}

#[test]
fn everysec_means_every_acknowledged_change_too() {
    play("everysec", rounds(), 250);
}

#[test]
fn everysec_over_rounds_longer_than_a_second() {
    play("everysec", rounds() / 20 + 1, 2500);
}
