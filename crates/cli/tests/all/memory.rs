//! The memory that the process holds, as the system counts it.
#![cfg(all(target_os = "linux", target_env = "gnu"))]

use std::fs;

use everbloom_dev::{Client, wait_for};

use crate::support::Server;

/// Resident megabytes of a server.
fn resident(server: &Server) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", server.pid())).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    let number = line.unwrap().split_whitespace().nth(1).unwrap();
    number.parse::<u64>().unwrap() / 1024
}

/// Sets keys through one connection, which one worker serves.
fn set_keys(client: &mut Client, keys: usize) {
    const BATCH: usize = 1000;
    let value = "v".repeat(400);
    for first in (0..keys).step_by(BATCH) {
        for key in first..first + BATCH {
            client.send(&["SET", &key.to_string(), &value]);
        }
        for _ in 0..BATCH {
            assert!(!client.reply().is_error());
        }
    }
}

/// Each cycle goes through another worker, whose allocations would get memory of their own.
#[test]
fn memory_that_was_freed_goes_back() {
    let words = ["--io-threads", "8", "--save", "", "--appendonly", "no"];
    let server = Server::with(&words);
    let empty = resident(&server);
    for cycle in 0..4 {
        let mut client = server.client();
        set_keys(&mut client, 250_000);
        let full = resident(&server);
        assert!(full > empty + 100, "{full} MB hold 100 MB of values");
        assert!(full < empty + 250, "cycle {cycle}: {full} MB");
        client.ok("FLUSHALL");
        wait_for("memory that goes back", || resident(&server) < empty + 60);
    }
}
