//! Keys that expire while the log cannot be written.

use std::thread::sleep;
use std::time::Duration;

use everbloom_resp::Reply;
use everbloom_server::Settings;

use super::common::{info, logging, run, until};
use super::crashing::CrashingDisk;
use super::trouble::start_on;
use crate::support::{Client, OfRunning};

/// Waits until DBSIZE says so.
fn until_keys(client: &mut Client, wanted: i64) {
    while client.line("DBSIZE") != Reply::Integer(wanted) {
        sleep(Duration::from_millis(1));
    }
}

/// Commands that read expired keys, and what each answers when there is no such key.
fn reads() -> Vec<(&'static str, Reply)> {
    let (none, no) = (Reply::Null, Reply::Integer(0));
    vec![
        ("GET text", none.clone()),
        ("MGET text", Reply::Array(vec![none.clone()])),
        ("STRLEN text", no.clone()),
        ("GETRANGE text 0 -1", Reply::bulk("")),
        ("GETBIT text 1", no.clone()),
        ("BITCOUNT text", no.clone()),
        ("BITPOS text 1", Reply::Integer(-1)),
        ("EXISTS text filter cuckoo", no.clone()),
        ("TOUCH text filter", no.clone()),
        ("TYPE filter", Reply::simple("none")),
        ("TTL text", Reply::Integer(-2)),
        ("PTTL filter", Reply::Integer(-2)),
        ("EXPIRETIME text", Reply::Integer(-2)),
        ("PEXPIRETIME cuckoo", Reply::Integer(-2)),
        ("DUMP filter", none.clone()),
        ("OBJECT ENCODING text", none.clone()),
        ("MEMORY USAGE filter", none),
        ("BF.EXISTS filter x", no.clone()),
        ("BF.MEXISTS filter x", Reply::Array(vec![no.clone()])),
        ("BF.CARD filter", no.clone()),
        ("CF.EXISTS cuckoo x", no.clone()),
        ("CF.COUNT cuckoo x", no),
        ("KEYS *", Reply::Array(vec![Reply::bulk("lasting")])),
        ("RANDOMKEY", Reply::bulk("lasting")),
    ]
}

#[test]
fn expired_keys_stay_unseen_while_their_removal_cannot_be_logged() {
    const MANY: i64 = 500;
    let disk = CrashingDisk::new();
    let settings = || Settings {
        hz: 500,
        ..logging("unused".as_ref())
    };
    let (running, mut client) = start_on(&disk, settings());
    run(
        &mut client,
        &[
            "DEBUG SET-ACTIVE-EXPIRE 0",
            "SET lasting 1",
            "SET text abc",
            "BF.ADD filter x",
            "CF.ADD cuckoo x",
        ],
    );
    for key in ["text", "filter", "cuckoo"] {
        run(&mut client, &[&format!("PEXPIRE {key} 1")]);
    }
    for number in 0..MANY {
        run(&mut client, &[&format!("SET due:{number:01000} 1 PX 1")]);
    }
    until(&mut client, "aof_buffer_length", "0");
    disk.fail_writes_after(20);
    // Its reply waits for the log.
    let mut waiting = Client::of(&running);
    waiting.send(&["SET", "other", "2"]);
    until(&mut client, "aof_last_write_status", "err");
    let there = client.line("DBSIZE");
    run(&mut client, &["DEBUG SET-ACTIVE-EXPIRE 1"]);
    // Some hundred looks for expired keys.
    sleep(Duration::from_millis(300));
    assert_eq!(client.line("DBSIZE"), there, "keys were removed");
    assert_eq!(info(&mut client, "expired_keys"), "0");
    run(&mut client, &["DEBUG SET-ACTIVE-EXPIRE 0"]);
    client.line("DEL other");
    let seen = |reply: &Reply| reply != &Reply::bulk("other");
    for (line, wanted) in reads() {
        let mut reply = client.line(line);
        if let Reply::Array(names) = &mut reply {
            names.retain(seen);
        }
        if line == "RANDOMKEY" && !seen(&reply) {
            continue;
        }
        assert_eq!(reply, wanted, "{line}");
    }
    let Reply::Array(step) = client.line("SCAN 0 COUNT 100000") else {
        panic!("an array");
    };
    let [_, Reply::Array(names)] = &step[..] else {
        panic!("{step:?}");
    };
    let names: Vec<_> = names.iter().filter(|name| seen(name)).collect();
    assert_eq!(names, [&Reply::bulk("lasting")]);
    run(&mut client, &["DEBUG SET-ACTIVE-EXPIRE 1"]);
    disk.heal();
    until(&mut client, "aof_last_write_status", "ok");
    client.line("DEL other");
    until_keys(&mut client, 1);
    until(&mut client, "expired_keys", &(MANY + 3).to_string());
    drop(running);
    let (_running, mut client) = start_on(&disk, settings());
    assert_eq!(client.line("DBSIZE"), Reply::Integer(1));
}
