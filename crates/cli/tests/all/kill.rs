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
//! The last tests fill the disk before: what could not be logged must not be acknowledged.
//!
//! `EVERBLOOM_KILL_ROUNDS` sets the number of rounds. Without it there are few, and CI plays all.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::expect_used,
    clippy::indexing_slicing
)]

use std::fs;
use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use crate::support::{Server, folder};
use everbloom::CuckooFilter;
use everbloom_dev::{Client, StopOnDrop, peers, wait_for};
use everbloom_resp::{Reply, encode_request};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

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
    let mut random = SmallRng::seed_from_u64(seed);
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
            for _ in 0..REQUESTS {
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

/// Single commands of a batch on the client's cuckoo filter: half of them add items, and the others
/// delete these.
const CUCKOO: usize = 8;

/// Requests of a batch. Each has a reply.
const REQUESTS: usize = BATCH + CUCKOO + 5;

/// A batch: single commands, then a transaction of batched adds and a counter. In it the cuckoo
/// filter gets an item for good and one that the next batch deletes.
fn encode_batch(client: &str, number: usize, out: &mut Vec<u8>) {
    let filter = format!("filter:{client}");
    for at in 0..BATCH - 1 {
        encode_request(&["BF.ADD", &filter, &item(number, at)], out);
    }
    let cuckoo = format!("cuckoo:{client}");
    for at in 0..CUCKOO {
        let (name, item) = single(number, at);
        encode_request(&[name, &cuckoo, &item], out);
    }
    encode_request(&["MULTI"], out);
    let [last, kept, passing] = three(number);
    encode_request(&["CF.DEL", &cuckoo, &last], out);
    encode_request(&["CF.INSERT", &cuckoo, "ITEMS", &kept, &passing], out);
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

/// A single command on the cuckoo filter: its name and its item.
fn single(batch: usize, at: usize) -> (&'static str, String) {
    let name = if at < CUCKOO / 2 { "CF.ADD" } else { "CF.DEL" };
    (name, format!("single:{batch}:{}", at % (CUCKOO / 2)))
}

/// The items of a batch's transaction on the cuckoo filter: the one that it deletes, and the two
/// that it adds.
fn three(batch: usize) -> [String; 3] {
    let last = format!("passing:{}", batch.wrapping_sub(1));
    [last, format!("kept:{batch}"), format!("passing:{batch}")]
}

fn new_cuckoo() -> CuckooFilter {
    let builder = CuckooFilter::builder().slots(64).expansion(2);
    builder.build().unwrap()
}

/// Checks that the cuckoo filter is, slot by slot, what whole batches made of it, and perhaps some
/// of the next one's single commands.
fn check_cuckoo(client: &mut Client, number: &str, whole: usize) {
    let mut filter = new_cuckoo();
    for batch in 0..whole {
        (0..CUCKOO).for_each(|at| act(&mut filter, batch, at));
        let [last, kept, passing] = three(batch);
        filter.remove(&last);
        filter.insert(&kept).unwrap();
        filter.insert(&passing).unwrap();
    }
    let found = dump(client, &format!("cuckoo:{number}"));
    let found_after = (0..=CUCKOO).find(|after| {
        if let Some(at) = after.checked_sub(1) {
            act(&mut filter, whole, at);
        }
        found == slots(&filter)
    });
    assert!(
        found_after.is_some(),
        "client {number}: the cuckoo filter is not what {whole} batches made of it"
    );
}

fn act(filter: &mut CuckooFilter, batch: usize, at: usize) {
    match single(batch, at) {
        ("CF.ADD", item) => filter.insert(&item).unwrap(),
        (_, item) => assert!(filter.remove(&item)),
    }
}

/// How many items it holds, and all its slots.
fn slots(filter: &CuckooFilter) -> (u64, Vec<u8>) {
    let mut slots = Vec::new();
    while let Some(chunk) = filter.stream_chunk(slots.len() as u64, usize::MAX) {
        slots.extend_from_slice(&chunk);
    }
    (filter.len(), slots)
}

/// The same of a filter of the server, which gives nothing of one without items.
fn dump(client: &mut Client, key: &str) -> (u64, Vec<u8>) {
    let items = client.text(&format!("CF.DEBUG {key}"));
    let items = items
        .split(' ')
        .find_map(|word| word.strip_prefix("items:"));
    let (mut slots, mut position) = (Vec::new(), 1);
    loop {
        let piece = client.ok(&format!("CF.SCANDUMP {key} {position}"));
        let piece = piece.into_elements().unwrap();
        position = piece[0].as_integer().unwrap();
        if position == 0 {
            break;
        }
        slots.extend_from_slice(piece[1].as_bytes().unwrap());
    }
    let items = items.unwrap().parse().unwrap();
    if items == 0 {
        slots = self::slots(&new_cuckoo()).1;
    }
    (items, slots)
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
    check_cuckoo(client, number, whole);
    whole
}

fn rounds() -> u32 {
    const ALL: u32 = 200;
    const FEW: u32 = 30;
    let set = std::env::var("EVERBLOOM_KILL_ROUNDS").ok();
    if let Some(rounds) = set.and_then(|rounds| rounds.parse().ok()) {
        return rounds;
    }
    if std::env::var_os("EVERBLOOM_REQUIRE_PEERS").is_some() {
        return ALL;
    }
    peers::skip(&format!(
        "{FEW} of {ALL} rounds: EVERBLOOM_KILL_ROUNDS={ALL} plays all"
    ));
    FEW
}

/// Plays rounds. A reply leaves when its change is written, so every acknowledged change must be
/// there, with `everysec` as with `always`.
fn play(fsync: &str, rounds: u32, longest: u64) {
    let folder = folder(&format!("kill-{fsync}-{longest}"));
    for round in 0..rounds {
        let mut random = SmallRng::seed_from_u64(round.into());
        let server = start(&folder, fsync);
        let mut control = server.client();
        control.line("FLUSHALL");
        // Names of this round: FLUSHALL itself may be what the kill undoes.
        let names: Vec<String> = (0..CLIENTS)
            .map(|number| format!("{round}-{number}"))
            .collect();
        for (number, name) in names.iter().enumerate() {
            // So low a rate, and so few layers, that no item is a false positive. The items of a
            // window enter several generations, and none is forgotten during a round.
            let words = ["100000", "2000000 WINDOW SECONDS 60 GENERATIONS 60"][number % 2];
            control.ok(&format!("BF.RESERVE filter:{name} 0.000000001 {words}"));
            control.ok(&format!("CF.RESERVE cuckoo:{name} 64 EXPANSION 2"));
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

/// Adds items in pipelines of 200 until a client is refused, or the server is gone; returns how
/// many were acknowledged.
fn add(port: u16, client: usize, refused: &AtomicBool) -> usize {
    // The others may have filled the disk, and the server may be gone, before this one starts.
    let Ok(mut connection) = Client::try_connect(("127.0.0.1", port)) else {
        return 0;
    };
    let mut acknowledged = 0;
    while !refused.load(Ordering::Relaxed) {
        let mut out = Vec::new();
        for at in acknowledged..acknowledged + 200 {
            encode_request(&["BF.ADD", "seen", &format!("{client}:{at}")], &mut out);
        }
        if connection.stream.write_all(&out).is_err() {
            return acknowledged;
        }
        for _ in 0..200 {
            match connection.try_reply() {
                Some(Reply::Integer(_)) => acknowledged += 1,
                Some(Reply::Error(text)) if text.starts_with("MISCONF") => {
                    refused.store(true, Ordering::Relaxed);
                    return acknowledged;
                }
                Some(other) => panic!("{other:?}"),
                None => return acknowledged,
            }
        }
    }
    acknowledged
}

/// Whether the server cannot write its log, or is gone. No client needs to have been refused: the
/// replies of all may wait for the log.
fn is_full(port: u16) -> bool {
    let Ok(mut control) = Client::try_connect(("127.0.0.1", port)) else {
        return true;
    };
    let asked = control.try_send(&["INFO", "persistence"]);
    match asked.ok().and_then(|()| control.try_reply()) {
        Some(Reply::Bulk(text)) => {
            String::from_utf8_lossy(&text).contains("aof_last_write_status:err")
        }
        _ => true,
    }
}

/// A server whose log has grown up to the limit of its disk, and how many items of each of 32
/// clients it has acknowledged. `then` is called when the disk is full.
fn fill<T>(folder: &Path, fsync: &str, then: impl FnOnce(Server) -> T) -> (T, Vec<usize>) {
    let words = ["--appendfsync", fsync, "--save", "", "--io-threads", "2"];
    let server = Server::on_small_disk(folder, 1024, &words);
    let (port, refused) = (server.port, AtomicBool::new(false));
    // So low a rate that a missing item is not hidden by a false positive.
    server.client().ok("BF.RESERVE seen 0.0000001 100000");
    thread::scope(|scope| {
        let refused = &refused;
        let clients = (0..32).map(|client| scope.spawn(move || add(port, client, refused)));
        let clients: Vec<_> = clients.collect();
        // A log that is switched off refuses nobody.
        let stop = StopOnDrop(refused);
        wait_for("a full disk", || is_full(port));
        let done = then(server);
        drop(stop);
        let acknowledged = clients.into_iter().map(|client| client.join().unwrap());
        (done, acknowledged.collect())
    })
}

/// Checks that everything acknowledged is there.
fn check_acknowledged(server: &Server, acknowledged: &[usize]) {
    let mut control = server.client();
    let mut missing = 0;
    for (client, &count) in acknowledged.iter().enumerate() {
        let items: Vec<String> = (0..count).map(|at| format!("{client}:{at}")).collect();
        for items in items.chunks(1000) {
            let mut request = vec!["BF.MEXISTS", "seen"];
            request.extend(items.iter().map(String::as_str));
            let found = control.call(&request).into_elements().unwrap();
            missing += found.iter().filter(|&f| *f != Reply::Integer(1)).count();
        }
    }
    let all: usize = acknowledged.iter().sum();
    assert!(all > 10_000, "{all} are too few to speak of");
    assert_eq!(
        missing, 0,
        "so many of {all} acknowledged items are missing"
    );
}

#[test]
fn a_full_disk_loses_nothing_acknowledged() {
    for fsync in ["everysec", "no", "always"] {
        let folder = folder(&format!("full-{fsync}"));
        let ((), acknowledged) = fill(&folder, fsync, |server| {
            // Clients whose changes wait for the log have time to be told a lie.
            thread::sleep(Duration::from_millis(300));
            drop(server);
        });
        check_acknowledged(&Server::on(&folder, &[]), &acknowledged);
    }
}

#[test]
fn a_full_disk_does_not_keep_the_server_from_ending() {
    let folder = folder("full-end");
    let (code, acknowledged) = fill(&folder, "everysec", |mut server| {
        server.signal("TERM");
        server.wait()
    });
    assert_eq!(code, Some(1), "it says that the end of the log is missing");
    check_acknowledged(&Server::on(&folder, &[]), &acknowledged);
}

#[test]
fn a_rewrite_makes_room_for_a_log_that_has_filled_its_disk() {
    let folder = folder("full-rewrite");
    let (server, acknowledged) = fill(&folder, "everysec", |server| {
        let mut control = server.client();
        assert!(control.error("FLUSHALL").starts_with("MISCONF"));
        control.ok("BGREWRITEAOF");
        control.until("aof_rewrites", "1");
        control.until("aof_last_write_status", "ok");
        control.ok("SET more 1");
        server
    });
    check_acknowledged(&server, &acknowledged);
    drop(server);
    let server = Server::on(&folder, &[]);
    check_acknowledged(&server, &acknowledged);
    assert_eq!(server.client().number("EXISTS more"), 1);
}

#[test]
fn a_log_that_is_switched_off_gives_its_file_back() {
    let folder = folder("full-off");
    let (server, acknowledged) = fill(&folder, "everysec", |server| {
        server.client().ok("CONFIG SET appendonly no");
        server
    });
    let mut control = server.client();
    control.until("aof_last_write_status", "ok");
    #[cfg(target_os = "linux")]
    for open in fs::read_dir(format!("/proc/{}/fd", server.pid())).unwrap() {
        let name = fs::read_link(open.unwrap().path()).unwrap_or_default();
        assert!(!name.to_string_lossy().contains(".aof"), "{name:?} is open");
    }
    fs::remove_dir_all(folder.join("everbloom-data/appendonlydir")).unwrap();
    control.ok("SET more 1");
    control.ok("BGSAVE");
    control.until("rdb_bgsave_in_progress", "0");
    assert_eq!(control.info("rdb_last_bgsave_status"), "ok");
    control.ok("CONFIG SET appendonly yes");
    control.until("aof_rewrites", "1");
    control.ok("SET even-more 1");
    check_acknowledged(&server, &acknowledged);
    drop(server);
    let server = Server::on(&folder, &[]);
    check_acknowledged(&server, &acknowledged);
    assert_eq!(server.client().number("EXISTS more even-more"), 2);
}
