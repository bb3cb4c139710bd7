//! Clients that want more than their share: the server stays up, within its memory, and answers
//! the others.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    missing_docs
)]

mod maxmemory_clients;
mod replies;
mod requests;
#[path = "../support/mod.rs"]
mod support;

use std::fs;
use std::io::Write;
use std::sync::Mutex;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use everbloom_dev::wait_for;
use everbloom_resp::{Reply, encode_request};
use everbloom_server::Settings;
use support::{Client, OfRunning, server};

/// The tests here look at the memory of the process, in which the server is, too.
static ALONE: Mutex<()> = Mutex::new(());

const MEGABYTE: usize = 1_000_000;

/// Bytes of memory that this process has.
fn resident() -> usize {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .unwrap();
    let kilobytes: usize = line.trim().trim_end_matches(" kB").parse().unwrap();
    kilobytes << 10
}

fn used_memory(client: &mut Client) -> usize {
    client.info("used_memory").parse().unwrap()
}

fn set(client: &mut Client, key: &str, len: usize) {
    let value = vec![b'x'; len];
    assert_eq!(client.call(&[b"SET", key.as_bytes(), &value]), Reply::OK);
}

fn requests(count: usize, args: &[&str]) -> Vec<u8> {
    let mut out = Vec::new();
    for _ in 0..count {
        encode_request(args, &mut out);
    }
    out
}

/// A server that may take so much memory.
fn limited(megabytes: usize) -> everbloom_server::Running {
    server(Settings {
        maxmemory: (megabytes * MEGABYTE) as u64,
        ..Settings::default()
    })
}
