//! The seeds of the fuzzers, replayed on every run of the tests: by the code that the fuzzers call,
//! and by a server that somebody sends them to. The module's tests send the same to a real host.
//!
//! `tests/corpus` holds, for each target, inputs that together reach every edge that fuzzing had
//! found; CONTRIBUTING.md says how it is made.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs
)]

mod support;

#[allow(dead_code, reason = "the fuzz target uses all of it")]
#[path = "../../../fuzz/inputs/loadchunk.rs"]
mod loadchunk;
#[path = "../../../fuzz/inputs/rdb_load.rs"]
mod rdb_load;
#[path = "../../../fuzz/inputs/restore.rs"]
mod restore;
#[path = "../../../fuzz/inputs/seeds.rs"]
mod seeds;

use std::collections::BTreeSet;
use std::fs;

use everbloom_resp::Reply;
use everbloom_server::Settings;
use seeds::seeds;
use support::{Client, server};

/// Runs what looks at all of a value, and takes it away.
fn work_with(client: &mut Client, key: &str) {
    for command in [
        "TYPE k",
        "GET k",
        "BF.EXISTS k x",
        "BF.INFO k",
        "BF.STATS k",
        "BF.DEBUG k",
        "BF.SCANDUMP k 0",
        "BF.SCANDUMP k 1",
        "MEMORY USAGE k",
        "DEBUG DIGEST-VALUE k",
        "COPY k k2 REPLACE",
        "BF.MADD k a b c d e f g",
        "DUMP k",
        "DEL k k2",
    ] {
        let words = command.split(' ');
        let words = words.map(|word| if word == "k" { key } else { word });
        client.call(&words.collect::<Vec<_>>());
    }
}

fn settings() -> Settings {
    Settings {
        // A header may ask for as much as is allowed, and dumps of that take long.
        bf_max_filter_bytes: 16 << 20,
        enable_debug_command: "yes".into(),
        ..Settings::default()
    }
}

/// Both must have been tried, and errors of several kinds.
fn check_variety(target: &str, taken: usize, errors: &BTreeSet<String>) {
    assert!(taken > 5, "{target}: {taken} were taken");
    assert!(!errors.is_empty(), "{target}: nothing was refused");
}

#[test]
fn payloads_of_the_corpus() {
    let running = server(settings());
    let mut client = Client::of(&running);
    let (mut taken, mut errors) = (0, BTreeSet::new());
    for (name, input) in seeds("restore") {
        for payload in restore::payloads(&input, 12) {
            let valid = restore::check(&payload);
            match client.call(&[b"RESTORE", &b"k"[..], b"0", &payload]) {
                Reply::Error(text) => {
                    assert_eq!(client.line("EXISTS k"), Reply::Integer(0), "{name}");
                    errors.insert(text.into_owned());
                }
                reply => {
                    assert_eq!(reply, Reply::OK, "{name}");
                    assert!(valid, "{name}: a payload that is taken is valid");
                    taken += 1;
                }
            }
            work_with(&mut client, "k");
        }
    }
    assert_eq!(client.line("PING"), Reply::simple("PONG"));
    check_variety("restore", taken, &errors);
    assert_eq!(
        errors.iter().map(String::as_str).collect::<Vec<_>>(),
        [
            "ERR Bad data format",
            "ERR DUMP payload version or checksum are wrong"
        ]
    );
}

#[test]
fn headers_and_chunks_of_the_corpus() {
    let running = server(settings());
    let mut client = Client::of(&running);
    let (mut taken, mut errors) = (0, BTreeSet::new());
    for (name, input) in seeds("loadchunk") {
        let input = loadchunk::Input::read(&input).unwrap_or_else(|| panic!("{name} says nothing"));
        for request in input.requests() {
            let reply = client.call(&request);
            if request[0] != b"BF.LOADCHUNK" {
                continue;
            }
            match reply {
                Reply::Error(text) => drop(errors.insert(text.into_owned())),
                reply => {
                    assert_eq!(reply, Reply::OK, "{name}");
                    taken += 1;
                }
            }
        }
        work_with(&mut client, "k");
    }
    assert_eq!(client.line("PING"), Reply::simple("PONG"));
    check_variety("loadchunk", taken, &errors);
}

#[test]
fn files_of_the_corpus() {
    let dir = tempfile::tempdir().unwrap();
    let (mut taken, mut errors) = (0, BTreeSet::new());
    for (name, input) in seeds("rdb_load") {
        let Some(file) = rdb_load::file(&input) else {
            continue;
        };
        let (_, whole) = rdb_load::check(&file);
        fs::write(dir.path().join("dump.rdb"), &file).unwrap();
        let mut settings = Settings {
            io_threads: 1,
            ..settings()
        };
        settings.data.dir = Some(dir.path().into());
        let running = server(settings);
        running.wait_until_loaded();
        if let Some(why) = running.server().store.failure() {
            assert!(running.wait().is_err());
            errors.insert(why);
            continue;
        }
        assert!(whole, "{name}: a file that is loaded is whole");
        taken += 1;
        let mut client = Client::of(&running);
        let Reply::Array(keys) = client.line("KEYS *") else {
            panic!("{name}: no keys")
        };
        for key in keys.iter().filter_map(Reply::as_bytes) {
            if let Ok(key) = std::str::from_utf8(key) {
                work_with(&mut client, key);
            }
        }
        assert_eq!(client.line("PING"), Reply::simple("PONG"), "{name}");
    }
    check_variety("rdb_load", taken, &errors);
}
