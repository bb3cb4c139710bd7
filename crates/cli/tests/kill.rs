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
use std::io::Write;
use std::path::Path;
use std::thread;
use std::time::Duration;

use everbloom_dev::Client;
use everbloom_resp::{Reply, encode_request};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use support::{Server, folder};

const CLIENTS: usize = 4;

/// Starts a server on what the last one left, and waits until it has loaded.
fn start(folder: &Path, fsync: &str) -> Server {
    let mut words = vec!["--appendfsync", fsync, "--save", "", "--io-threads", "2"];
    words.extend(["--auto-aof-rewrite-min-size", "1mb"]);
    Server::on(folder, &words)
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
    let Ok(mut client) = Client::try_connect(("127.0.0.1", port)) else {
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
        if client.stream.write_all(&out).is_err() {
            return done;
        }
        while waiting > 0 {
            // Each command of a batch has a reply. The last one acknowledges the batch.
            for _ in 0..BATCH + 3 {
                match client.try_reply() {
                    Some(Reply::Error(error)) => panic!("{error}"),
                    Some(_) => {}
                    None => return done,
                }
            }
            done.acknowledged += 1;
            waiting -= 1;
        }
        if random.random_bool(0.01) {
            let _ = client.try_send(&["BGREWRITEAOF"]);
            if client.try_reply().is_none() {
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
    let whole = match client.line(&format!("GET count:{number}")) {
        Reply::Bulk(text) => String::from_utf8(text).unwrap().parse().unwrap(),
        Reply::Null => 0,
        other => panic!("{other:?}"),
    };
    assert!(whole <= sent, "client {number}: {whole} of {sent}");
    let items = usize::try_from(client.number(&format!("BF.CARD {filter}"))).unwrap();
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
        let mut request = vec!["BF.MEXISTS", &filter];
        request.extend(items_in.iter().map(String::as_str));
        let reply = client.call(&request);
        let Reply::Array(found) = reply else {
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

/// Plays rounds. A reply leaves when its change is written, so every acknowledged change must be
/// there, with `everysec` as with `always`.
fn play(fsync: &str, rounds: u32, longest: u64) {
    let folder = folder(&format!("kill-{fsync}-{longest}"));
    for round in 0..rounds {
        let mut random = StdRng::seed_from_u64(round.into());
        let server = start(&folder, fsync);
        let mut control = server.client();
        control.line("FLUSHALL");
        // Names of this round: FLUSHALL itself may be what the kill undoes.
        let names: Vec<String> = (0..CLIENTS)
            .map(|number| format!("{round}-{number}"))
            .collect();
        for name in &names {
            // So low a rate, and so few layers, that no item is a false positive.
            control.line(&format!("BF.RESERVE filter:{name} 0.000000001 100000"));
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
        drop(server);
        let done: Vec<Done> = clients
            .into_iter()
            .map(|client| client.join().unwrap())
            .collect();

        let server = start(&folder, fsync);
        let mut control = server.client();
        for (name, done) in names.iter().zip(&done) {
            let there = survived(&mut control, name, done.sent);
            assert!(
                there >= done.acknowledged,
                "client {name}: {there} batches are there of {} acknowledged",
                done.acknowledged
            );
        }
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
