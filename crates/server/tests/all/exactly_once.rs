//! Of any number of clients that add the same new item at the same time, exactly one gets 1.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

use std::io::Write;
use std::thread;

use crate::support::{Client, OfRunning, server};
use everbloom_resp::{Reply, encode_request};
use everbloom_server::Settings;

const CLIENTS: usize = 8;
const ITEMS: usize = 100_000;

/// Which of the items the client was told it had added, sending `depth` commands at a time.
fn add_all(mut client: Client, depth: usize) -> Vec<bool> {
    let mut added = Vec::with_capacity(ITEMS);
    for first in (0..ITEMS).step_by(depth) {
        let batch = first..(first + depth).min(ITEMS);
        let mut out = Vec::new();
        for item in batch.clone() {
            encode_request(&["BF.ADD", "once", &format!("item:{item}")], &mut out);
        }
        client.stream.write_all(&out).unwrap();
        for _ in batch {
            match client.reply() {
                Reply::Integer(answer) => added.push(answer == 1),
                other => panic!("{other:?}"),
            }
        }
    }
    added
}

#[test]
fn every_item_is_answered_1_exactly_once() {
    let running = server(Settings {
        io_threads: 4,
        ..Settings::default()
    });
    let mut control = Client::of(&running);
    // So low a rate that no item is a false positive: then every one must be answered 1.
    assert_eq!(
        control.line("BF.RESERVE once 0.0000000001 100000"),
        Reply::OK
    );
    let answers: Vec<Vec<bool>> = thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|n| {
                let client = Client::of(&running);
                let depth = [1, 7, 100, 1000][n % 4].max(if n < 4 { 16 } else { 1 });
                scope.spawn(move || add_all(client, depth))
            })
            .collect();
        clients
            .into_iter()
            .map(|client| client.join().unwrap())
            .collect()
    });
    for item in 0..ITEMS {
        let ones = answers.iter().filter(|answers| answers[item]).count();
        assert_eq!(ones, 1, "item:{item}");
    }
    assert_eq!(
        control.line("BF.CARD once"),
        Reply::Integer(i64::try_from(ITEMS).unwrap())
    );
}
