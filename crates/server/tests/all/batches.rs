//! Pipelined requests on filters are executed together, and answered as if they came one by one.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    missing_docs
)]

use std::io::Write;

use crate::support::{Client, OfRunning, server};
use everbloom_dev::Random;
use everbloom_resp::{Reply, encode_request};
use everbloom_server::Settings;
use tempfile::tempdir;

/// Keys of every kind: filters, some of them full and unable to grow, strings, and none.
const SETTING: &[&str] = &[
    "BF.RESERVE full 0.01 3 NONSCALING",
    "BF.MADD full a b c",
    "BF.RESERVE large 0.001 200000",
    "BF.RESERVE blocked 0.01 200000 LAYOUT BLOCKED SEED 7",
    "BF.ADD grown x",
    "CF.RESERVE cfull 4 EXPANSION 0",
    "CF.INSERT cfull ITEMS 1 2 3 4 5 6",
    "CF.RESERVE clarge 200000 BUCKETSIZE 4",
    "CF.RESERVE cgrown 16",
    "CF.INSERT cgrown ITEMS 1 1 1 1 1 1 1 1 1 1 1",
    "SET text v",
    "BF.ADD expiring x",
    "PEXPIREAT expiring 1",
];
const KEYS: [&str; 15] = [
    "cfull", "clarge", "cgrown", "full", "large", "blocked", "grown", "text", "expiring", "n1",
    "n2", "n3", "n4", "n5", "n6",
];

/// The requests of one pipeline: stretches of one command, over several keys or on one.
fn pipeline(random: &mut Random) -> Vec<[String; 3]> {
    let mut requests = Vec::new();
    while requests.len() < 150 {
        let command = random.pick(&[
            "BF.ADD",
            "BF.EXISTS",
            "bf.add",
            "GET",
            "CF.ADD",
            "CF.EXISTS",
            "CF.DEL",
        ]);
        let one = random.chance(30).then(|| random.pick(&KEYS));
        for _ in 0..=random.below(100) {
            let key = one.unwrap_or_else(|| random.pick(&KEYS)).to_owned();
            let item = random.below(300).to_string();
            requests.push([command.to_owned(), key, item]);
        }
    }
    requests
}

fn words(request: &[String; 3]) -> &[String] {
    // GET takes no item: between two batches it must not be taken for one of them.
    let count = if request[0] == "GET" { 2 } else { 3 };
    &request[..count]
}

fn settings() -> Settings {
    Settings {
        enable_debug_command: "yes".into(),
        ..Settings::default()
    }
}

fn prepared(client: &mut Client) {
    for line in SETTING {
        assert!(!client.line(line).is_error(), "{line}");
    }
}

#[test]
fn pipelines_over_many_keys_are_answered_as_one_by_one() {
    let dir = tempdir().unwrap();
    let logging = || {
        let mut settings = settings();
        settings.data.dir = Some(dir.path().into());
        settings.data.appendonly = true;
        settings
    };
    let (together, alone) = (server(logging()), server(settings()));
    together.wait_until_loaded();
    let (mut pipelined, mut single) = (Client::of(&together), Client::of(&alone));
    prepared(&mut pipelined);
    prepared(&mut single);
    let mut random = Random(1);
    for round in 0..40 {
        let requests = pipeline(&mut random);
        let mut bytes = Vec::new();
        for request in &requests {
            encode_request(words(request), &mut bytes);
        }
        pipelined.stream.write_all(&bytes).unwrap();
        for request in &requests {
            let expected = single.call(words(request));
            assert_eq!(pipelined.reply(), expected, "round {round}: {request:?}");
        }
    }
    assert_eq!(pipelined.digest(), single.digest());
    let digest = pipelined.digest();
    drop(together);
    let again = server(logging());
    again.wait_until_loaded();
    assert_eq!(Client::of(&again).digest(), digest, "the log has it all");
}

/// Requests of one pipeline.
const REQUESTS: usize = 5000;

/// Locks are taken in one order, whatever the order of the keys.
#[test]
fn clients_with_the_same_keys_in_another_order_do_not_wait_for_each_other() {
    let running = server(settings());
    let threads: Vec<_> = (0..4_u64)
        .map(|seed| {
            let mut client = Client::of(&running);
            std::thread::spawn(move || {
                let mut random = Random(seed);
                let mut new = 0;
                for _ in 0..20 {
                    // So many that the workers are at it at the same time.
                    let mut bytes = Vec::new();
                    for _ in 0..REQUESTS {
                        let key = format!("k{}", random.below(200));
                        let item = random.below(5000).to_string();
                        encode_request(&["BF.ADD", &key, &item], &mut bytes);
                    }
                    client.stream.write_all(&bytes).unwrap();
                    for _ in 0..REQUESTS {
                        new += match client.reply() {
                            Reply::Integer(new) => new,
                            other => panic!("{other:?}"),
                        };
                    }
                }
                new
            })
        })
        .collect();
    let told: i64 = threads.into_iter().map(|one| one.join().unwrap()).sum();
    let mut client = Client::of(&running);
    let counted: i64 = (0..200)
        .map(|key| client.number(&format!("BF.CARD k{key}")))
        .sum();
    assert_eq!(told, counted, "each new item was told to one client");
}
