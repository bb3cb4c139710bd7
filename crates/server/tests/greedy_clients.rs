//! Clients that want more than their share: the server stays up, within its memory, and answers
//! the others.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    missing_docs
)]

mod support;

use std::fs;
use std::io::Write;
use std::sync::Mutex;
use std::thread;
use std::time::Duration;

use everbloom_dev::wait_for;
use everbloom_resp::Reply;
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

#[test]
fn announcing_a_long_argument_costs_nothing_before_it_comes() {
    let _alone = ALONE.lock();
    let running = server(Settings::default());
    let mut other = Client::of(&running);
    let (resident_before, used_before) = (resident(), used_memory(&mut other));
    let clients: Vec<Client> = (0..400)
        .map(|_| {
            let mut client = Client::of(&running);
            let head = b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$512000000\r\n";
            client.stream.write_all(head).unwrap();
            client
        })
        .collect();
    thread::sleep(Duration::from_millis(300));
    let most = clients.len() * 40_000;
    let used = used_memory(&mut other) - used_before;
    assert!(used < most, "{used} bytes are counted");
    let grown = resident().saturating_sub(resident_before);
    assert!(grown < most, "{grown} bytes more");
}

#[test]
fn what_came_of_a_long_argument_is_counted() {
    let _alone = ALONE.lock();
    let running = server(Settings::default());
    let mut other = Client::of(&running);
    let used_before = used_memory(&mut other);
    let mut client = Client::of(&running);
    let head = b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$20000000\r\n";
    client.stream.write_all(head).unwrap();
    client.stream.write_all(&vec![b'x'; 10 * MEGABYTE]).unwrap();
    wait_for("the bytes are counted", || {
        used_memory(&mut other) > used_before + 10 * MEGABYTE
    });
    assert!(used_memory(&mut other) < used_before + 25 * MEGABYTE);
    client.stream.write_all(&vec![b'x'; 10 * MEGABYTE]).unwrap();
    client.stream.write_all(b"\r\n").unwrap();
    assert_eq!(client.reply(), Reply::OK);
    assert_eq!(client.number("STRLEN k"), 20_000_000);
}
