//! BF.CLEAR, BF.MERGE and BF.SHRINK on keys: what the commands themselves do not see.
#![allow(clippy::unwrap_used, missing_docs)]

use crate::support::{Client, OfRunning, server};
use everbloom_resp::Reply;
use everbloom_server::Settings;

#[test]
fn a_key_keeps_its_expiry() {
    let running = server(Settings::default());
    let mut client = Client::of(&running);
    for line in [
        "BF.RESERVE f 0.01 1000 LAYOUT BLOCKED SEED 1",
        "BF.RESERVE new 0.01 1000 LAYOUT BLOCKED SEED 1",
        "EXPIRE f 1000",
        "BF.CLEAR f",
        "BF.MERGE f new",
        "BF.SHRINK f 10",
        "BF.MERGE made f",
    ] {
        client.ok(line);
    }
    assert!((990..=1000).contains(&client.number("TTL f")));
    assert_eq!(client.number("TTL made"), -1);
    assert_eq!(client.number("TTL new"), -1);
    client.ok("SET text x");
    assert!(client.error("BF.MERGE f text").starts_with("WRONGTYPE"));
    assert!(client.error("BF.MERGE text f").starts_with("WRONGTYPE"));
}

#[test]
fn they_count_as_changes_and_run_in_transactions() {
    let running = server(Settings::default());
    let mut client = Client::of(&running);
    let mut other = Client::of(&running);
    client.ok("BF.MADD f a b c");
    for line in ["BF.CLEAR f", "BF.MERGE f f"] {
        client.ok("WATCH f");
        other.ok(line);
        client.ok("MULTI");
        client.ok("BF.CARD f");
        assert_eq!(client.line("EXEC"), Reply::NullArray, "{line}");
    }
    client.ok("BF.MADD f a b c");
    for line in [
        "MULTI",
        "BF.MERGE g f",
        "BF.CLEAR f",
        "BF.ADD f d",
        "BF.CARD g",
    ] {
        client.ok(line);
    }
    let Reply::Array(replies) = client.ok("EXEC") else {
        unreachable!("an array of replies");
    };
    assert_eq!(replies[2..], [Reply::Integer(1), Reply::Integer(3)]);
    assert_eq!(client.number("BF.EXISTS f a"), 0);
}

/// Values of all shards, in any order of their keys.
#[test]
fn clients_that_merge_in_opposite_orders_do_not_wait_for_each_other() {
    let running = server(Settings::default());
    let clients = ["a b c", "c b a", "b c a", "a c b"].map(|keys| {
        let mut client = Client::of(&running);
        std::thread::spawn(move || {
            for key in keys.split(' ') {
                client.ok(&format!("BF.MADD {key} {keys}"));
            }
            for _ in 0..500 {
                client.ok(&format!("BF.MERGE {keys}"));
            }
        })
    });
    clients
        .into_iter()
        .for_each(|client| client.join().unwrap());
}
