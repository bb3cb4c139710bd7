//! Commands that name many thousands of keys.
#![allow(clippy::unwrap_used)]

use std::io::Write;

use everbloom_dev::wait_for;
use everbloom_resp::{Reply, encode_request};
use everbloom_server::Settings;

use crate::support::{Client, OfRunning, server};

const KEYS: usize = 30_000;

fn send(client: &mut Client, words: &[&str], keys: usize) {
    let names: Vec<String> = (0..keys).map(|number| format!("key:{number}")).collect();
    let mut args = words.to_vec();
    args.extend(names.iter().map(String::as_str));
    let mut request = Vec::new();
    encode_request(&args, &mut request);
    client.stream.write_all(&request).unwrap();
}

/// A list that was searched for each key would take minutes here.
#[test]
fn a_change_of_any_of_many_watched_keys_is_noticed() {
    let running = server(Settings::default());
    let (mut watcher, mut other) = (Client::of(&running), Client::of(&running));
    let used = |client: &mut Client| client.info("used_memory").parse::<usize>().unwrap();
    let before = used(&mut other);
    for (changed, runs) in [
        ("key:0", false),
        ("key:29999", false),
        ("key:30000", true),
        ("last", false),
    ] {
        send(&mut watcher, &["WATCH", "last"], KEYS);
        assert_eq!(watcher.reply(), Reply::OK);
        assert!(used(&mut other) > before + KEYS * 100);
        other.ok(&format!("SET {changed} 1"));
        watcher.ok("MULTI");
        watcher.ok("SET done 1");
        let ran = watcher.line("EXEC").into_elements().is_some();
        assert_eq!(ran, runs, "{changed}");
    }
    send(&mut watcher, &["WATCH"], KEYS);
    assert_eq!(watcher.reply(), Reply::OK);
    watcher.ok("UNWATCH");
    wait_for("the watches are gone", || {
        used(&mut other) < before + 10_000
    });
    other.ok("SET key:1 2");
    watcher.ok("MULTI");
    assert!(watcher.line("EXEC").into_elements().is_some());
}

#[test]
fn requests_behind_a_long_list_run_after_it() {
    let running = server(Settings {
        io_threads: 1,
        ..Settings::default()
    });
    let mut client = Client::of(&running);
    for number in (0..KEYS).step_by(1000) {
        client.ok(&format!("SET key:{number} 1"));
    }
    for command in ["EXISTS", "DEL", "EXISTS"] {
        send(&mut client, &[command], KEYS);
    }
    send(&mut client, &["WATCH"], KEYS);
    client.stream.write_all(b"PING\r\n").unwrap();
    for expected in [30, 30, 0] {
        assert_eq!(client.reply(), Reply::Integer(expected));
    }
    assert_eq!(client.reply(), Reply::OK);
    assert_eq!(client.reply(), Reply::simple("PONG"));
}
