//! Files of valkey-bloom: a host with our module starts on them, and keeps what they hold.

use std::fs;

use everbloom_resp::Reply;
use serde_json::Value as Json;

use crate::golden::{folder, for_the_host};
use crate::support::{Client, Host, elements};

/// Compares the absent items with what the original answered: false positives, too.
fn check(client: &mut Client) {
    let told = fs::read_to_string(folder().join("valkey-bloom/filters.jsonl")).unwrap();
    for line in told.lines() {
        let told: Json = serde_json::from_str(line).unwrap();
        let key = told["key"].as_str().unwrap();
        assert_eq!(
            client.ok(&format!("TYPE {key}")),
            Reply::simple("bloomfltr")
        );
        let card = told["card"].as_i64().unwrap();
        assert_eq!(client.number(&format!("BF.CARD {key}")), card, "{key}");
        let mut ask = vec!["BF.MEXISTS".to_owned(), key.to_owned()];
        ask.extend((0..2000).map(|number| format!("absent:{number}")));
        let answers = elements(client.call(&ask)).into_iter();
        let digits = answers.map(|answer| answer.as_integer().unwrap().to_string());
        assert_eq!(digits.collect::<String>(), told["absent_exists"], "{key}");
    }
}

#[test]
fn a_host_starts_on_a_file_of_valkey_bloom() {
    let file = fs::read(folder().join("valkey-bloom/dump.rdb")).unwrap();
    let Some(host) = Host::on_keys(&for_the_host(&file), &[]) else {
        return;
    };
    let mut host = host.unwrap();
    let mut client = host.client();
    assert_eq!(client.number("DBSIZE"), 19);
    check(&mut client);
    let digest = client.digest();
    // Our own version of the type holds the same, and so does a log.
    host.restart("SAVE");
    let mut client = host.client();
    assert_eq!(client.digest(), digest);
    check(&mut client);
    client.ok("CONFIG SET aof-use-rdb-preamble no");
    client.ok("CONFIG SET appendonly yes");
    client.until("aof_rewrite_in_progress", "0");
    assert_eq!(client.number("BF.ADD err-1e-9 new-item"), 1);
    client.ok("DEBUG LOADAOF");
    assert_eq!(client.number("BF.EXISTS err-1e-9 new-item"), 1);
    assert_eq!(client.number("BF.CARD big-scaled"), 98_433);
}

/// The other order of fields cannot be seen from within a host.
#[test]
fn a_file_in_the_other_order_stops_the_start() {
    let file = fs::read(folder().join("valkey-bloom/dump-capfirst.rdb")).unwrap();
    if let Some(started) = Host::on_keys(&for_the_host(&file), &[]) {
        assert!(started.is_err());
    }
}
