//! Files, payloads and memory of large filters follow what is used of them.
#![allow(clippy::unwrap_used, missing_docs)]

mod support;

use std::fs;

use everbloom_resp::Reply;
use everbloom_server::Settings;
use support::{Client, OfRunning, server};

const MEGABYTE: u64 = 1_000_000;
const FILTERS: [&str; 2] = ["classic", "blocked"];

/// The most memory that anything here may take for a while. Compressed, a filter has 8 MB: the
/// payload is there as it is built, in the reply's buffer, and as the client has it.
const LITTLE: u64 = 40 * MEGABYTE;

/// The memory that this process, in which the server is, had at most since the last time.
fn peak() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let mut lines = status.lines();
    let line = lines.find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let kilobytes: u64 = line.trim().trim_end_matches(" kB").parse().unwrap();
    fs::write("/proc/self/clear_refs", "5").unwrap();
    kilobytes << 10
}

/// How much more memory it takes, at its peak, to do something.
fn peak_of<R>(what: &str, work: impl FnOnce() -> R) -> R {
    peak();
    let before = peak();
    let result = work();
    let grown = peak().saturating_sub(before);
    assert!(grown < LITTLE, "{what}: {grown} bytes more");
    result
}

fn check(client: &mut Client, key: &str) {
    for item in ["a", "b", "c"] {
        assert_eq!(
            client.number(&format!("BF.EXISTS {key} {item}")),
            1,
            "{key}"
        );
    }
    assert_eq!(client.number(&format!("BF.EXISTS {key} d")), 0, "{key}");
}

#[test]
fn a_sparse_filter_takes_little_in_files_and_payloads() {
    let dir = tempfile::tempdir().unwrap();
    let mut settings = Settings::default();
    settings.data.dir = Some(dir.path().into());
    settings.data.appendonly = false;
    let running = server(settings.clone());
    running.wait_until_loaded();
    let mut client = Client::of(&running);
    for key in FILTERS {
        client.ok(&format!("BF.RESERVE {key} 0.001 300000000 LAYOUT {key}"));
        client.ok(&format!("BF.MADD {key} a b c"));
        let size = client.number(&format!("MEMORY USAGE {key}"));
        assert!(size > 590_000_000, "{size}");

        let payload = peak_of("DUMP", || client.ok(&format!("DUMP {key}")));
        let payload = payload.as_bytes().unwrap();
        assert!(payload.len() < 8_000_000, "{}", payload.len());
        let restored = peak_of("RESTORE", || {
            client.call(&[&b"RESTORE"[..], b"moved", b"0", payload, b"REPLACE"])
        });
        assert_eq!(restored, Reply::OK);
        check(&mut client, "moved");
        let again = client.ok("DUMP moved");
        assert!(again.as_bytes().unwrap() == payload, "{key}");
        client.ok("DEL moved");
    }
    peak_of("SAVE", || client.ok("SAVE"));
    let file = fs::metadata(dir.path().join("dump.rdb")).unwrap().len();
    assert!(file < 16 * MEGABYTE, "a file of {file} bytes");
    client.send(&["SHUTDOWN", "NOSAVE"]);
    running.wait().unwrap();

    let running = peak_of("loading", || {
        let running = server(settings);
        running.wait_until_loaded();
        running
    });
    let mut client = Client::of(&running);
    for key in FILTERS {
        check(&mut client, key);
    }
}
