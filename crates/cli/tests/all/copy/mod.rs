//! `everbloom copy` and `everbloom compare`, between servers of ours and Redis with the module.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::expect_used,
    clippy::indexing_slicing
)]

mod bad_servers;
mod destination;
mod differences;
mod files;
mod interrupted;
mod kinds;
mod output;
mod valkey;
mod windows;

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::ops::Range;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use crate::support::{EVERBLOOM, Outcome, Server, folder, root, run};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use everbloom_dev::{Client, Redis, StopOnDrop, module, wait_for};
use everbloom_resp::{Reply, encode};
use serde_json::Value as Json;

/// Held by the tests that need the machine for themselves: what they interrupt must take a while.
static QUIET: Mutex<()> = Mutex::new(());

fn url(port: u16) -> String {
    format!("redis://127.0.0.1:{port}")
}

fn command(subcommand: &str, from: &str, to: &str, more: &[&str]) -> Command {
    let mut command = Command::new(EVERBLOOM);
    command.arg(subcommand).args(more).args([from, to]);
    command.env_remove("REDISCLI_AUTH");
    command
}

fn copy(from: u16, to: u16, more: &[&str]) -> Outcome {
    run(&mut command("copy", &url(from), &url(to), more))
}

fn compare(from: u16, to: u16, more: &[&str]) -> Outcome {
    run(&mut command("compare", &url(from), &url(to), more))
}

#[track_caller]
fn assert_code(outcome: &Outcome, code: i32) {
    assert_eq!(outcome.status.code(), Some(code), "{outcome:?}");
}

/// A server that keeps nothing.
fn server() -> Server {
    Server::with(&["--save", "", "--appendonly", "no"])
}

/// redis-server with the module.
fn redis(more: &[&str]) -> Option<Redis> {
    let path = module().to_str().unwrap();
    Redis::start(&[&["--loadmodule", path], more].concat())
}

fn add(client: &mut Client, key: &str, items: Range<u32>) {
    add_by(client, &["BF.MADD", key], items);
}

/// The same for a cuckoo filter.
fn insert(client: &mut Client, key: &str, items: Range<u32>) {
    add_by(client, &["CF.INSERT", key, "ITEMS"], items);
}

fn add_by(client: &mut Client, command: &[&str], items: Range<u32>) {
    for item in items.clone().step_by(1000) {
        let mut words: Vec<_> = command.iter().map(|word| (*word).to_owned()).collect();
        words.extend((item..items.end.min(item + 1000)).map(|item| format!("item:{item}")));
        assert!(!client.call(&words).is_error());
    }
}

/// Filters of all kinds, and a key that is none.
fn fill(client: &mut Client) {
    client.ok("BF.RESERVE one 0.01 1000");
    client.ok("BF.RESERVE layers 0.01 10");
    client.ok("BF.RESERVE full 0.01 10 NONSCALING");
    client.ok("BF.RESERVE blocked 0.001 10 LAYOUT BLOCKED");
    // Two pieces in one layer.
    client.ok("BF.RESERVE large 0.01 15000000");
    client.ok("BF.RESERVE empty 0.01 100");
    for (key, count) in [
        ("one", 500),
        ("layers", 3000),
        ("full", 8),
        ("blocked", 2000),
        ("large", 9),
    ] {
        add(client, key, 0..count);
    }
    for name in [&b"\xff\x00 \"name\r\n"[..], b"", b"a}b", b"{tag}", b"100%"] {
        client.call(&[b"BF.ADD", name, b"item"]);
    }
    client.ok("CF.ADD cuckoo item");
    client.ok("CF.RESERVE tables 64 BUCKETSIZE 4 EXPANSION 2 MAXITERATIONS 7");
    client.ok("CF.RESERVE hollow 100 BUCKETSIZE 1 EXPANSION 0");
    client.ok("CF.RESERVE keyed 64 ERROR 0.001");
    client.ok("CF.RESERVE hollow-keyed 100 ERROR 0.01 SEED 7 EXPANSION 0");
    // Two pieces in one table.
    client.ok("CF.RESERVE wide 30000000");
    client.ok("CF.RESERVE wide-keyed 15000000 ERROR 0.001");
    for (key, count) in [
        ("tables", 3000),
        ("keyed", 3000),
        ("wide", 9),
        ("wide-keyed", 9),
    ] {
        insert(client, key, 0..count);
    }
    client.ok("CF.DEL tables item:7");
    client.ok("CF.DEL keyed item:7");
    client.ok("BF.ADD short item");
    client.ok("PEXPIRE short 1000000");
    client.ok("SET text value");
}

const FILLED: usize = 19;

/// What a client sees of a key.
fn seen(client: &mut Client, key: &[u8]) -> Vec<Reply> {
    let commands = [
        "TYPE", "BF.INFO", "BF.CARD", "BF.DEBUG", "CF.INFO", "CF.DEBUG",
    ];
    commands
        .map(|command| client.call(&[command.as_bytes(), key]))
        .to_vec()
}

fn keys(client: &mut Client) -> Vec<Vec<u8>> {
    let keys = client.ok("KEYS *").into_elements().unwrap();
    let mut keys: Vec<_> = keys
        .iter()
        .map(|key| key.as_bytes().unwrap().to_vec())
        .collect();
    keys.sort();
    keys
}
