//! Pipelined SETBITs and GETBITs are executed together, and answered as if they came one by one.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, missing_docs)]

use std::io::Write;
use std::path::Path;
use std::time::Duration;

use crate::support::{Client, OfRunning, server};
use everbloom_dev::Random;
use everbloom_resp::{Reply, encode_request};
use everbloom_server::{Running, Settings};
use tempfile::tempdir;

const KEYS: [&str; 7] = ["a", "b", "c", "text", "filter", "n1", "n2"];
const SETTING: &[&str] = &["SETBIT a 100000 1", "SET text hello", "BF.ADD filter x"];

fn settings() -> Settings {
    Settings {
        enable_debug_command: "yes".into(),
        ..Settings::default()
    }
}

/// Stretches of one command, on one key or on several, and lines between them that end a batch.
fn pipeline(random: &mut Random) -> Vec<Vec<String>> {
    let mut requests = Vec::new();
    while requests.len() < 200 {
        let command = random.pick(&["SETBIT", "GETBIT", "setbit", "GET", "BF.EXISTS"]);
        let one = random.chance(50).then(|| random.pick(&KEYS));
        for _ in 0..=random.below(120) {
            let key = one.unwrap_or_else(|| random.pick(&KEYS));
            let offset = match random.below(50) {
                0 => "x".to_owned(),
                1 => random.below(100_000).to_string(),
                _ => random.below(400).to_string(),
            };
            let bit = random.pick(&["0", "1", "1", "1", "1", "1", "2"]);
            let words: &[&str] = match command {
                "GET" => &[command, key],
                "GETBIT" | "BF.EXISTS" => &[command, key, &offset],
                // Now and then a word too many.
                _ if random.chance(1) => &[command, key, &offset, bit, "more"],
                _ => &[command, key, &offset, bit],
            };
            requests.push(words.iter().map(|word| (*word).to_owned()).collect());
        }
    }
    requests
}

/// Sends requests in one piece.
fn send(client: &mut Client, requests: &[Vec<String>]) {
    let mut bytes = Vec::new();
    for request in requests {
        encode_request(request, &mut bytes);
    }
    client.stream.write_all(&bytes).unwrap();
}

/// What INFO counted, which must not depend on batches.
fn figures(client: &mut Client) -> Vec<String> {
    let fields = [
        "keyspace_hits",
        "keyspace_misses",
        "expired_keys",
        "total_error_replies",
        "rdb_changes_since_last_save",
    ];
    fields.map(|field| client.info(field)).to_vec()
}

/// A server with a log in this folder.
fn logging(dir: &Path) -> Running {
    let mut settings = settings();
    settings.data.dir = Some(dir.into());
    settings.data.appendonly = true;
    let running = server(settings);
    running.wait_until_loaded();
    running
}

#[test]
fn pipelines_are_answered_counted_and_logged_as_one_by_one() {
    let dir = tempdir().unwrap();
    let (together, alone) = (logging(dir.path()), server(settings()));
    let (mut pipelined, mut single) = (Client::of(&together), Client::of(&alone));
    for line in SETTING {
        assert!(!pipelined.line(line).is_error() && !single.line(line).is_error());
    }
    let mut random = Random(1);
    for round in 0..40 {
        let requests = pipeline(&mut random);
        for client in [&mut pipelined, &mut single] {
            client.ok("CONFIG RESETSTAT");
        }
        send(&mut pipelined, &requests);
        for request in &requests {
            let expected = single.call(request);
            assert_eq!(pipelined.reply(), expected, "round {round}: {request:?}");
        }
        assert_eq!(
            figures(&mut pipelined),
            figures(&mut single),
            "round {round}"
        );
    }
    let digest = pipelined.digest();
    assert_eq!(single.digest(), digest);
    drop(together);
    let again = logging(dir.path());
    assert_eq!(Client::of(&again).digest(), digest, "the log has it all");
}

#[test]
fn a_key_that_has_expired_is_another_in_the_log_too() {
    let dir = tempdir().unwrap();
    let running = logging(dir.path());
    let mut client = Client::of(&running);
    client.ok("DEBUG SET-ACTIVE-EXPIRE 0");
    client.ok("SETBIT k 5 1");
    client.ok("PEXPIRE k 1");
    std::thread::sleep(Duration::from_millis(5));
    let words = |line: &str| line.split(' ').map(str::to_owned).collect();
    send(&mut client, &["SETBIT k 9 1", "SETBIT k 5 0"].map(words));
    assert_eq!(
        [client.reply(), client.reply()],
        [Reply::Integer(0), Reply::Integer(0)]
    );
    assert_eq!(client.info("expired_keys"), "1");
    drop(running);
    let again = logging(dir.path());
    let mut client = Client::of(&again);
    assert_eq!(client.line("GET k"), Reply::bulk(*b"\x00\x40"));
    assert_eq!(client.number("TTL k"), -1);
}

/// A key that one of the requests lets grow may leave no memory for the next.
#[test]
fn memory_that_is_used_up_ends_a_batch() {
    let requests = |keys: [&str; 4]| {
        let offsets = ["9", "16000000", "9", "10"];
        let lines = keys.into_iter().zip(offsets);
        let line = |(key, offset): (&str, &str)| ["SETBIT", key, offset, "1"].map(str::to_owned);
        lines.map(|words| line(words).to_vec()).collect::<Vec<_>>()
    };
    for keys in [["k"; 4], ["k", "l", "k", "m"]] {
        let running = server(settings());
        let mut client = Client::of(&running);
        let used: u64 = client.info("used_memory").parse().unwrap();
        client.ok(&format!("CONFIG SET maxmemory {}", used + 1_000_000));
        send(&mut client, &requests(keys));
        let replies: Vec<Reply> = (0..4).map(|_| client.reply()).collect();
        let set = Reply::Integer(0);
        assert_eq!(replies[..2], [set.clone(), set], "{keys:?}");
        for reply in &replies[2..] {
            let text = reply
                .as_error()
                .unwrap_or_else(|| panic!("{keys:?}: {replies:?}"));
            assert!(text.starts_with("OOM "), "{text}");
        }
    }
}

#[test]
fn watchers_are_told_when_a_batch_has_changed_something() {
    let running = server(settings());
    let (mut one, mut other) = (Client::of(&running), Client::of(&running));
    one.ok("SETBIT k 5 1");
    for (requests, changed) in [
        (["SETBIT k 5 1", "SETBIT k 6 0"], false),
        (["SETBIT k 5 1", "SETBIT k 6 1"], true),
        (["GETBIT k 5", "GETBIT k 6"], false),
    ] {
        one.ok("WATCH k");
        let words = requests.map(|line| line.split(' ').map(str::to_owned).collect());
        send(&mut other, &words);
        other.reply();
        other.reply();
        one.ok("MULTI");
        one.ok("PING");
        assert_eq!(one.line("EXEC").is_null(), changed, "{requests:?}");
    }
}
