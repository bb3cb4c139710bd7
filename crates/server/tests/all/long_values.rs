//! Values of megabytes: other clients are answered meanwhile, and every reply is right.
#![allow(clippy::unwrap_used, clippy::panic, missing_docs)]

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use crate::support::{Client, OfRunning, server};
use everbloom_dev::{Random, StopOnDrop};
use everbloom_resp::{Reply, encode_request};
use everbloom_server::Settings;

const LEN: usize = 8_000_000;

fn noise(len: usize) -> Vec<u8> {
    let mut random = Random(1);
    (0..len / 8)
        .flat_map(|_| random.number().to_le_bytes())
        .collect()
}

/// A server with the string `a` and the filter `f`.
fn filled() -> (everbloom_server::Running, Client) {
    let running = server(Settings {
        io_threads: 1,
        ..Settings::default()
    });
    let mut client = Client::of(&running);
    client.call(&[b"SET".as_slice(), b"a", &noise(LEN)]);
    client.ok("BF.RESERVE f 0.01 10000000 NONSCALING");
    client.call(&[b"BF.LOADCHUNK".as_slice(), b"f", b"8000001", &noise(LEN)]);
    (running, client)
}

#[test]
fn a_long_reply_is_that_of_the_same_command_in_a_transaction() {
    let (_running, mut client) = filled();
    for line in [
        "GET a",
        "GETRANGE a 1 -2",
        "DUMP a",
        "DUMP f",
        "BF.SCANDUMP f 1",
        "BF.SCANDUMP f 4000000",
    ] {
        client.ok("MULTI");
        client.ok(line);
        let Reply::Array(wanted) = client.ok("EXEC") else {
            panic!("an array");
        };
        assert!([client.line(line)] == wanted[..], "{line}");
    }
}

#[test]
fn requests_behind_a_long_one_see_what_it_left() {
    let (_running, mut client) = filled();
    let Reply::Bulk(payload) = client.ok("DUMP f") else {
        panic!("a payload");
    };
    let mut out = Vec::new();
    for line in [
        "GETRANGE a 0 2999999",
        "SETRANGE a 0 changed",
        "GETRANGE a 0 2999999",
        "COPY a b",
        "SETRANGE a 0 CHANGED",
        "GETRANGE b 0 6",
        "STRLEN a",
        "EXISTS b c",
    ] {
        encode_request(&line.split(' ').collect::<Vec<_>>(), &mut out);
    }
    let restore: &[&[u8]] = &[b"RESTORE", b"c", b"0", &payload];
    encode_request(restore, &mut out);
    encode_request(restore, &mut out);
    encode_request(&["EXISTS", "c"], &mut out);
    let (mut sender, sent) = (client.stream.try_clone().unwrap(), out);
    let sender = thread::spawn(move || std::io::Write::write_all(&mut sender, &sent).unwrap());
    let (first, old) = (noise(LEN), Reply::Integer(8_000_000));
    let mut changed = first[..3_000_000].to_vec();
    assert!(client.reply() == Reply::bulk(changed.clone()));
    assert_eq!(client.reply(), old);
    changed[..7].copy_from_slice(b"changed");
    assert!(client.reply() == Reply::bulk(changed.clone()));
    assert_eq!(client.reply(), Reply::Integer(1));
    assert_eq!(client.reply(), old);
    assert_eq!(client.reply(), Reply::bulk("changed"));
    assert_eq!(client.reply(), old);
    assert_eq!(client.reply(), Reply::Integer(1));
    assert_eq!(client.reply(), Reply::OK);
    let busy = "BUSYKEY Target key name already exists.";
    assert_eq!(client.reply(), Reply::error(busy));
    assert_eq!(client.reply(), Reply::Integer(1));
    assert!(client.line("DUMP c") == Reply::Bulk(payload));
    sender.join().unwrap();
}

/// Somebody writes one byte all over the string, again and again, so that a copy that is of one
/// moment has one value up to a place and the one before behind it.
#[test]
fn a_value_that_changes_all_the_time_is_read_as_it_was_at_one_moment() {
    let (running, mut client) = filled();
    let mut other = Client::of(&running);
    client.call(&[b"SET".as_slice(), b"a", &vec![0; 3_000_000]]);
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let _stop = StopOnDrop(&stop);
        scope.spawn(|| {
            for round in 1..=200_u8 {
                for place in ["0", "1500000", "2999999"] {
                    if stop.load(Ordering::Relaxed) {
                        return;
                    }
                    other.call(&[b"SETRANGE".as_slice(), b"a", place.as_bytes(), &[round]]);
                }
            }
        });
        for round in 0..20 {
            let copy = format!("copy{round}");
            client.ok(&format!("COPY a {copy}"));
            for line in ["GET a".to_owned(), format!("GET {copy}")] {
                let Reply::Bulk(bytes) = client.ok(&line) else {
                    panic!("bytes");
                };
                let [first, middle, last] = [0, 1_500_000, 2_999_999].map(|at| bytes[at]);
                let torn = first < middle || middle < last || first - last > 1;
                assert!(!torn, "{line}: {first} {middle} {last}");
            }
            client.ok(&format!("DEL {copy}"));
        }
    });
}

/// Copies a filter in pieces.
fn copy_in_pieces(client: &mut Client, family: &str, from: &str, to: &str) -> usize {
    let (mut iterator, mut longest) = ("0".to_owned(), 0);
    loop {
        let Reply::Array(piece) = client.ok(&format!("{family}.SCANDUMP {from} {iterator}")) else {
            panic!("an iterator and a piece");
        };
        let [Reply::Integer(next), Reply::Bulk(bytes)] = &piece[..] else {
            return longest;
        };
        if *next == 0 {
            return longest;
        }
        longest = longest.max(bytes.len());
        iterator = next.to_string();
        let load = format!("{family}.LOADCHUNK");
        let words: &[&[u8]] = &[load.as_bytes(), to.as_bytes(), iterator.as_bytes(), bytes];
        assert_eq!(client.call(words), Reply::OK);
    }
}

/// How many of the items of these rounds are missing.
fn missing(client: &mut Client, key: &str, rounds: std::ops::Range<u32>) -> usize {
    let mut missing = 0;
    for round in rounds {
        let items: Vec<String> = (0..500).map(|item| format!("{round}-{item}")).collect();
        let Reply::Array(found) = client.ok(&format!("BF.MEXISTS {key} {}", items.join(" ")))
        else {
            panic!("answers");
        };
        missing += found.iter().filter(|it| **it != Reply::Integer(1)).count();
    }
    missing
}

/// Each generation of the window takes more than what is read at once.
#[test]
fn a_window_that_has_dropped_generations_is_copied_with_all_its_items() {
    let running = server(Settings::default());
    let mut client = Client::of(&running);
    client.ok("BF.RESERVE w 0.01 4000000 WINDOW ITEMS GENERATIONS 4");
    for round in 0..7 {
        let items: Vec<String> = (0..500).map(|item| format!("{round}-{item}")).collect();
        client.ok(&format!("BF.MADD w {}", items.join(" ")));
        client.ok("BF.ADVANCE w");
    }
    assert!(copy_in_pieces(&mut client, "BF", "w", "copy") > 1 << 20);
    for key in ["w", "copy"] {
        assert_eq!(missing(&mut client, key, 3..7), 0, "{key}");
        assert!(missing(&mut client, key, 0..3) > 1400, "{key}");
    }
    // What an iterator stands for may be dropped while a client copies.
    let outdated = client.error("BF.SCANDUMP w 1");
    client.ok("MULTI");
    client.ok("BF.SCANDUMP w 1");
    let Reply::Array(replies) = client.line("EXEC") else {
        panic!("replies");
    };
    assert_eq!(replies, [Reply::error(outdated.clone())]);
    assert!(outdated.contains("begin again"), "{outdated}");
}

/// The figures of INFO for look-ups of keys.
fn hits(client: &mut Client) -> (i64, i64) {
    let Reply::Bulk(info) = client.ok("INFO stats") else {
        panic!("a text");
    };
    let info = String::from_utf8(info).unwrap();
    let figure = |name: &str| {
        let line = info.lines().find_map(|line| line.strip_prefix(name));
        line.unwrap().trim_start_matches(':').parse().unwrap()
    };
    (figure("keyspace_hits"), figure("keyspace_misses"))
}

#[test]
fn a_look_up_is_counted_once_whatever_the_size() {
    let (_running, mut client) = filled();
    client.ok("SET short x");
    client.ok("BF.ADD small x");
    client.ok("CF.ADD cuckoo x");
    client.ok("CF.RESERVE large 8000000");
    client.ok("CF.ADD large x");
    client.ok("CF.RESERVE keyed 4000000 ERROR 0.001");
    client.ok("CF.ADD keyed x");
    for line in [
        "GET a",
        "GET short",
        "GETRANGE a 0 -1",
        "GETRANGE a 0 3",
        "DUMP a",
        "DUMP f",
        "DUMP small",
        "BF.SCANDUMP f 0",
        "BF.SCANDUMP f 1",
        "BF.SCANDUMP small 1",
        "CF.SCANDUMP cuckoo 1",
        "CF.SCANDUMP large 1",
        "CF.SCANDUMP keyed 1",
        "DUMP keyed",
        "COPY short c",
        "COPY a d",
        "COPY f g",
        "COPY keyed h",
    ] {
        let (hits_before, misses) = hits(&mut client);
        client.ok(line);
        assert_eq!(hits(&mut client), (hits_before + 1, misses), "{line}");
    }
    for line in [
        "GET none",
        "DUMP none",
        "GETRANGE none 0 1",
        "CF.SCANDUMP none 1",
    ] {
        let (hits_before, misses) = hits(&mut client);
        client.line(line);
        assert_eq!(hits(&mut client), (hits_before, misses + 1), "{line}");
    }
}
