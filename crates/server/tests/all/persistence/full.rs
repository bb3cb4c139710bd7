//! A disk that is full: what is answered meanwhile, and the ways out.

use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Duration;

use everbloom_resp::Reply;
use everbloom_server::Settings;
use everbloom_store::Fsync;

use super::always::start_on as start_held;
use super::common::{digest, info, logging, run, until, with};
use super::crashing::CrashingDisk;
use super::held::{Brake, Operation, ReleaseAtEnd};
use super::trouble::{LOG_TROUBLE, start_on};
use crate::support::{Client, OfRunning};

/// Whether a client has got no reply, though it waited for a while.
pub(crate) fn is_unanswered(client: &Client) -> bool {
    let before = client.stream.read_timeout().unwrap();
    let some = Some(Duration::from_millis(200));
    client.stream.set_read_timeout(some).unwrap();
    let peeked = client.stream.peek(&mut [0]);
    client.stream.set_read_timeout(before).unwrap();
    peeked.is_err_and(|error| matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut))
}

fn settings() -> Settings {
    with(logging("unused".as_ref()), |data| {
        data.auto_aof_rewrite_percentage = 0;
    })
}

/// Refused as a write is while the log fails.
fn assert_refused(client: &mut Client, line: &str) {
    let reply = client.line(line);
    let refused = reply
        .as_error()
        .is_some_and(|text| text.starts_with(LOG_TROUBLE));
    assert!(refused, "{line}: {reply:?}");
}

#[test]
fn a_log_switched_off_is_no_trouble_and_one_switched_on_begins_afresh() {
    for fsync in [Fsync::EverySecond, Fsync::No] {
        let settings = || with(settings(), |data| data.appendfsync = fsync);
        let disk = CrashingDisk::new();
        let (running, mut client) = start_on(&disk, settings());
        run(&mut client, &["SET a 1", "BF.ADD f x"]);
        disk.limit(20);
        let mut waiting = Client::of(&running);
        waiting.send(&["SET", "b", "2"]);
        until(&mut client, "aof_last_write_status", "err");
        assert_refused(&mut client, "DEL a");
        assert!(is_unanswered(&waiting));
        // A rewrite for which there is no room fails, and is not in the way of what follows.
        run(&mut client, &["BGREWRITEAOF"]);
        until(&mut client, "aof_last_bgrewrite_status", "err");
        run(&mut client, &["CONFIG SET appendonly no"]);
        assert_eq!(waiting.reply(), Reply::OK);
        until(&mut client, "aof_last_write_status", "ok");
        run(&mut client, &["SET c 3", "DEL a", "BF.ADD f y", "PING"]);
        assert_eq!(info(&mut client, "aof_rewrite_in_progress"), "0");
        // Somebody removes the old log.
        disk.heal();
        run(&mut client, &["BGSAVE"]);
        until(&mut client, "rdb_bgsave_in_progress", "0");
        assert_eq!(info(&mut client, "rdb_last_bgsave_status"), "ok");
        run(&mut client, &["CONFIG SET appendonly yes"]);
        until(&mut client, "aof_rewrites", "1");
        run(&mut client, &["SET d 4"]);
        let before = digest(&mut client);
        let (_other, mut client) = start_on(&disk.after_kill(), settings());
        assert_eq!(digest(&mut client), before);
        assert_eq!(client.line("EXISTS a b c d"), Reply::Integer(3));
        drop(running);
    }
}

/// The log of many changes of little data fills the disk, and there is room for the data.
#[test]
fn a_disk_filled_by_its_own_log_is_rescued_by_a_rewrite() {
    let disk = CrashingDisk::new();
    let (running, mut client) = start_on(&disk, settings());
    disk.limit(100_000);
    let value = "v".repeat(5000);
    let mut number = 0;
    loop {
        client.send(&["SET", "a", &format!("{number}-{value}")]);
        if is_unanswered(&client) {
            break;
        }
        assert_eq!(client.reply(), Reply::OK);
        number += 1;
    }
    let mut other = Client::of(&running);
    until(&mut other, "aof_last_write_status", "err");
    assert_refused(&mut other, "FLUSHALL");
    // What is acknowledged is there after a kill, and nothing of what is not.
    let (_killed, mut after) = start_on(&disk.after_kill(), settings());
    let text = after.text("GET a");
    assert!(text.starts_with(&format!("{}-", number - 1)), "{number}");
    run(&mut other, &["BGREWRITEAOF"]);
    until(&mut other, "aof_rewrites", "1");
    assert_eq!(client.reply(), Reply::OK, "the base has it");
    until(&mut other, "aof_last_write_status", "ok");
    assert_eq!(info(&mut other, "aof_last_bgrewrite_status"), "ok");
    run(&mut other, &["SET b 2", "BF.ADD f x"]);
    let before = digest(&mut other);
    for disk in [disk.after_kill(), disk.survivors(1)] {
        let (_after, mut client) = start_on(&disk, settings());
        assert_eq!(digest(&mut client), before);
    }
}

/// No room for the manifest that would name a new file: the rewrite fails, and nothing else.
#[test]
fn a_rewrite_that_gets_no_new_file_leaves_the_log_at_work() {
    let disk = CrashingDisk::new();
    let (_running, mut client) = start_on(&disk, settings());
    run(&mut client, &["SET a 1"]);
    disk.limit(150);
    run(&mut client, &["BGREWRITEAOF"]);
    until(&mut client, "aof_last_bgrewrite_status", "err");
    assert_eq!(info(&mut client, "aof_last_write_status"), "ok");
    run(&mut client, &["SET b 2"]);
    let before = digest(&mut client);
    let (_after, mut client) = start_on(&disk.after_kill(), settings());
    assert_eq!(digest(&mut client), before);
}

/// Clients that wait for the log in vain give up, come again and send more.
#[test]
fn what_waits_for_a_log_that_fails_stays_within_bounds() {
    let disk = CrashingDisk::new();
    let (running, mut control) = start_on(&disk, settings());
    disk.limit(20);
    let value = "v".repeat(1000);
    let mut waiting = Vec::new();
    for number in 0..300 {
        let mut client = Client::of(&running);
        for at in 0..10 {
            client.send(&["SET", &format!("{number}-{at}"), &value]);
        }
        // Every third stays, the others go.
        if number % 3 == 0 {
            waiting.push(client);
        }
        if number == 9 {
            until(&mut control, "aof_last_write_status", "err");
        }
    }
    until(&mut control, "total_connections_received", "301");
    let bytes: usize = info(&mut control, "aof_buffer_length").parse().unwrap();
    let most = 10 * 10 * (value.len() + 100);
    assert!(bytes > 0 && bytes <= most, "{bytes}");
    // And the server ends at once, though they wait.
    let server = Arc::clone(running.server());
    server.stop();
    let why = running.wait().unwrap_err();
    assert!(why.starts_with("the end of the log could not be"), "{why}");
}

/// Two clients add the same item. "It was there already" is a promise, too.
#[test]
fn an_item_that_was_there_is_acknowledged_when_it_is_in_the_log() {
    let brake = Arc::new(Brake::default());
    let running = start_held(&CrashingDisk::new(), &brake, Fsync::Always);
    let _release = ReleaseAtEnd(Arc::clone(&brake));
    let mut clients = [(); 4].map(|()| Client::of(&running));
    let [first, reader, others @ ..] = &mut clients;
    run(first, &["BF.ADD f before", "SET a 1"]);
    brake.hold(Operation::Sync);
    first.send(&["BF.ADD", "f", "x"]);
    brake.wait_until_reached();
    others[0].send(&["BF.ADD", "f", "x"]);
    others[1].send(&["SETNX", "a", "2"]);
    for client in others.iter().chain([&*first]) {
        assert!(is_unanswered(client));
    }
    // Who only looks does not wait.
    assert_eq!(reader.line("BF.EXISTS f x"), Reply::Integer(1));
    assert_eq!(reader.line("GET a"), Reply::bulk("1"));
    brake.release();
    assert_eq!(first.reply(), Reply::Integer(1));
    for client in others {
        assert_eq!(client.reply(), Reply::Integer(0));
    }
}
