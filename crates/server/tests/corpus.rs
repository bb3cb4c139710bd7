//! The seeds of the fuzzers, replayed on every run of the tests: by the code that the fuzzers call,
//! and by a server that somebody sends them to. The module's tests send the same to a real host.
//!
//! `tests/corpus` holds, for each target, inputs that together reach every edge that fuzzing had
//! found; CONTRIBUTING.md says how it is made.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::indexing_slicing,
    missing_docs
)]

mod support;

#[allow(dead_code, reason = "the fuzz target uses all of it")]
#[path = "../../../fuzz/inputs/commands_vs_model/mod.rs"]
mod commands_vs_model;
#[allow(dead_code, reason = "the fuzz target uses all of it")]
#[path = "../../../fuzz/inputs/cuckoo_loadchunk.rs"]
mod cuckoo_loadchunk;
#[allow(dead_code, reason = "the fuzz target uses all of it")]
#[path = "../../../fuzz/inputs/cuckoo_vs_model.rs"]
mod cuckoo_vs_model;
#[allow(dead_code, reason = "the fuzz target uses all of it")]
#[path = "../../../fuzz/inputs/loadchunk.rs"]
mod loadchunk;
#[path = "../../../fuzz/inputs/rdb_load.rs"]
mod rdb_load;
#[path = "../../../fuzz/inputs/restore.rs"]
mod restore;
#[allow(dead_code, reason = "shared with the tests of the filters")]
#[path = "../../filters/tests/cuckoo/slow.rs"]
mod slow;

use std::fs;

use everbloom_dev::corpus::{Tally, seeds, work_with};
use everbloom_resp::Reply;
use everbloom_server::Settings;
use support::{Client, OfRunning, server};

fn settings() -> Settings {
    Settings {
        // A header may ask for as much as is allowed, and dumps of that take long.
        bf_max_filter_bytes: 16 << 20,
        enable_debug_command: "yes".into(),
        ..Settings::default()
    }
}

/// Both must have been tried, and errors of several kinds.
fn check_variety(target: &str, tally: &Tally) {
    assert!(tally.taken > 5, "{target}: {} were taken", tally.taken);
    assert!(!tally.errors.is_empty(), "{target}: nothing was refused");
}

#[test]
fn payloads_of_the_corpus() {
    let running = server(settings());
    let mut client = Client::of(&running);
    let (mut tally, mut loads) = (Tally::default(), 0);
    for (name, input) in seeds("restore") {
        for payload in restore::payloads(&input, 12) {
            let valid = restore::check(&payload);
            if tally.count(client.call(&[b"RESTORE", &b"k"[..], b"0", &payload])) {
                assert!(valid, "{name}: a payload that is taken is valid");
            } else {
                assert_eq!(client.number("EXISTS k"), 0, "{name}");
            }
            work_with(&mut client, "k");
        }
        let is_filter = restore::check_load(&input);
        let loaded = client.call(&[b"BF.LOAD", &b"k"[..], &input]);
        assert_eq!(loaded == Reply::OK, is_filter, "{name}");
        loads += usize::from(is_filter);
        work_with(&mut client, "k");
    }
    assert_eq!(client.line("PING"), Reply::simple("PONG"));
    check_variety("restore", &tally);
    assert!(loads > 1, "BF.LOAD took {loads}");
    tally.check_restore_errors();
}

#[test]
fn headers_and_chunks_of_the_corpus() {
    let running = server(settings());
    let mut client = Client::of(&running);
    let mut tally = Tally::default();
    for (name, input) in seeds("loadchunk") {
        let input = loadchunk::Input::read(&input).unwrap_or_else(|| panic!("{name} says nothing"));
        tally.load(&mut client, &input.requests());
    }
    assert_eq!(client.line("PING"), Reply::simple("PONG"));
    check_variety("loadchunk", &tally);
    let mut tally = Tally::default();
    for (name, input) in seeds("cuckoo_loadchunk") {
        let input = cuckoo_loadchunk::Input::read(&input);
        let input = input.unwrap_or_else(|| panic!("{name} says nothing"));
        tally.load(&mut client, &input.requests());
    }
    assert_eq!(client.line("PING"), Reply::simple("PONG"));
    check_variety("cuckoo_loadchunk", &tally);
}

#[test]
fn files_of_the_corpus() {
    let dir = tempfile::tempdir().unwrap();
    let mut tally = Tally::default();
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
            tally.errors.insert(why);
            continue;
        }
        assert!(whole, "{name}: a file that is loaded is whole");
        tally.taken += 1;
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
    check_variety("rdb_load", &tally);
}

/// Sequences that no server sees: they are for the models.
#[test]
fn sequences_of_the_corpus() {
    for (name, input) in seeds("commands_vs_model") {
        let input = commands_vs_model::Input::read(&input);
        input
            .unwrap_or_else(|| panic!("{name} says nothing"))
            .check();
    }
    for (name, input) in seeds("cuckoo_vs_model") {
        let input = cuckoo_vs_model::Input::read(&input);
        input
            .unwrap_or_else(|| panic!("{name} says nothing"))
            .check();
    }
}
