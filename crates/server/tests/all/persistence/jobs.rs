//! Snapshots, rewrites and the log's beginning and end, while commands go on.

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use everbloom_dev::StopOnDrop;
use everbloom_resp::Reply;
use everbloom_server::{Running, Settings};
use tempfile::tempdir;

use super::common::{digest, failure, files, info, logging, run, snapshots, start, until, with};
use crate::support::{Client, OfRunning};

/// Lets clients write until `work` is done; returns how many additions and increments there were.
fn under_load(running: &Running, work: impl FnOnce()) -> i64 {
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let stop = StopOnDrop(&done);
        let writers: Vec<_> = (0..3)
            .map(|writer| {
                let done = &done;
                scope.spawn(move || {
                    let mut client = Client::of(running);
                    let mut count = 0;
                    while !done.load(Ordering::Relaxed) {
                        let db = count % 3;
                        for line in [
                            format!("SELECT {db}"),
                            format!("BF.ADD f{} {writer}:{count}", count % 7),
                            format!("CF.ADD c{} {writer}:{count}", count % 5),
                            format!("CF.ADD c{} {writer}:more:{count}", count % 5),
                            format!("CF.DEL c{} {writer}:{}", count % 5, count - 15),
                            format!(
                                "CF.INSERTNX c-large CAPACITY 1000000 ITEMS {writer}:{count} y"
                            ),
                            format!("CF.DEL c-large {writer}:{count}"),
                            "INCR n".into(),
                            format!("SET k{writer}:{} {count} EX 1000", count % 50),
                            format!("RENAME k{writer}:{} moved{writer}", count % 50),
                        ] {
                            client.send(&line.split(' ').collect::<Vec<_>>());
                        }
                        for _ in 0..10 {
                            let reply = client.reply();
                            assert!(!reply.is_error(), "{reply:?}");
                        }
                        count += 1;
                    }
                    count
                })
            })
            .collect();
        work();
        drop(stop);
        writers.into_iter().map(|w| w.join().unwrap()).sum()
    })
}

/// It would not be locked, and another server could use it.
#[test]
fn a_directory_that_has_vanished_is_not_made_again() {
    let dir = tempdir().unwrap();
    let (data, away) = (dir.path().join("data"), dir.path().join("away"));
    let (_running, mut client) = start(logging(&data));
    run(&mut client, &["SET a 1"]);
    fs::rename(&data, &away).unwrap();
    // The AOF is noticed to be gone, and cannot be rewritten.
    until(&mut client, "aof_last_write_status", "err");
    let why = client.error("SET a 2");
    assert!(why.contains("incr.aof was removed or renamed"), "{why}");
    until(&mut client, "aof_last_bgrewrite_status", "err");
    let why = client.line("SAVE");
    assert!(why.is_error(), "{why:?}");
    assert!(!data.exists());
    // Another of the same name is left alone.
    fs::create_dir(&data).unwrap();
    until(&mut client, "aof_rewrites_consecutive_failures", "2");
    assert!(client.line("SAVE").is_error());
    assert_eq!(files(&data), []);
    fs::remove_dir(&data).unwrap();
    fs::rename(&away, &data).unwrap();
    until(&mut client, "aof_rewrites", "1");
    until(&mut client, "aof_last_write_status", "ok");
}

/// The sum of the counters that [`under_load`] increments.
fn counted(client: &mut Client) -> i64 {
    let mut sum = 0;
    for db in 0..3 {
        client.line(&format!("SELECT {db}"));
        if let Reply::Bulk(n) = client.line("GET n") {
            sum += String::from_utf8(n).unwrap().parse::<i64>().unwrap();
        }
    }
    sum
}

#[test]
fn a_rewrite_under_load_loses_nothing() {
    let dir = tempdir().unwrap();
    let (running, mut client) = start(logging(dir.path()));
    run(&mut client, &["BF.RESERVE large 0.001 500000"]);
    let count = under_load(&running, || {
        for rewrite in 1..=4 {
            run(&mut client, &["BF.ADD large x", "BGREWRITEAOF"]);
            until(&mut client, "aof_rewrites", &rewrite.to_string());
        }
    });
    assert_eq!(counted(&mut client), count);
    let before = digest(&mut client);
    // Only the files of the last rewrite are left.
    let names: Vec<_> = files(&dir.path().join("appendonlydir"));
    assert_eq!(names.len(), 3, "{names:?}");
    drop(running);
    let (_running, mut client) = start(logging(dir.path()));
    assert_eq!(counted(&mut client), count);
    assert_eq!(digest(&mut client), before);
}

#[test]
fn a_log_begun_under_load_has_everything() {
    let dir = tempdir().unwrap();
    let (running, mut client) = start(snapshots(dir.path()));
    run(
        &mut client,
        &["BF.RESERVE large 0.001 500000", "SET before 1"],
    );
    let count = under_load(&running, || {
        for _ in 0..2 {
            run(&mut client, &["CONFIG SET appendonly yes"]);
            until(&mut client, "aof_rewrite_in_progress", "0");
            assert_eq!(info(&mut client, "aof_enabled"), "1");
            run(&mut client, &["CONFIG SET appendonly no"]);
            assert_eq!(info(&mut client, "aof_enabled"), "0");
        }
        run(&mut client, &["CONFIG SET appendonly yes"]);
        until(&mut client, "aof_rewrite_in_progress", "0");
    });
    assert_eq!(counted(&mut client), count);
    let before = digest(&mut client);
    drop(running);
    let (_running, mut client) = start(logging(dir.path()));
    assert_eq!(counted(&mut client), count);
    assert_eq!(digest(&mut client), before);
}

#[test]
fn a_log_that_ended_is_complete_and_stays_as_it_was() {
    let dir = tempdir().unwrap();
    let (running, mut client) = start(logging(dir.path()));
    run(&mut client, &["SET a 1", "BF.ADD f x"]);
    let before = digest(&mut client);
    run(&mut client, &["CONFIG SET appendonly no", "SET b 1"]);
    drop(running);
    let (running, mut client) = start(logging(dir.path()));
    assert_eq!(digest(&mut client), before);
    drop(running);

    // A server without a log, begun beside the files of an earlier one, does not write over them
    // before it has a complete one of its own.
    let old = files(&dir.path().join("appendonlydir"));
    let (running, mut client) = start(snapshots(dir.path()));
    assert_eq!(client.line("DBSIZE"), Reply::Integer(0));
    run(&mut client, &["SET c 1"]);
    assert_eq!(files(&dir.path().join("appendonlydir")), old);
    run(&mut client, &["CONFIG SET appendonly yes"]);
    until(&mut client, "aof_rewrites", "1");
    run(&mut client, &["SET d 1"]);
    let before = digest(&mut client);
    let new = files(&dir.path().join("appendonlydir"));
    assert!(
        old.iter()
            .all(|(path, _)| path.ends_with("appendonly.aof.manifest")
                || !new.iter().any(|(other, _)| other == path))
    );
    drop(running);
    let (_running, mut client) = start(logging(dir.path()));
    assert_eq!(digest(&mut client), before);
}

/// A backup that is put in place, or a snapshot of a server that never read the log, may lack what
/// the log holds. So the start refuses, and the one that is left is read.
#[test]
fn a_log_and_a_snapshot_that_may_both_be_needed_stop_the_start() {
    for restored in [true, false] {
        let dir = tempdir().unwrap();
        let [snapshot, log, away] =
            ["dump.rdb", "appendonlydir", "away"].map(|n| dir.path().join(n));
        let (running, mut client) = start(logging(dir.path()));
        run(&mut client, &["SET old 1", "SAVE"]);
        let backup = fs::read(&snapshot).unwrap();
        run(&mut client, &["SET logged 1"]);
        if restored {
            run(
                &mut client,
                &["CONFIG SET appendonly no", "SET new 1", "SAVE"],
            );
            drop(running);
            fs::write(&snapshot, backup).unwrap();
        } else {
            drop(running);
            let (_running, mut client) = start(snapshots(dir.path()));
            run(&mut client, &["SET new 1", "SAVE"]);
        }
        let before = files(dir.path());
        let why = failure(logging(dir.path()));
        for name in [
            "appendonlydir/appendonly.aof.1.incr.aof, last written 20",
            "dump.rdb, last",
        ] {
            assert!(why.contains(name), "{why}");
        }
        assert_eq!(files(dir.path()), before);
        fs::rename(&snapshot, &away).unwrap();
        let (running, mut client) = start(logging(dir.path()));
        assert_eq!(client.line("EXISTS old logged new"), Reply::Integer(2));
        drop(running);
        // From now on it is newer than any snapshot.
        fs::rename(&away, &snapshot).unwrap();
        let (running, mut client) = start(logging(dir.path()));
        assert_eq!(client.line("EXISTS old logged new"), Reply::Integer(2));
        drop(running);
        fs::remove_dir_all(&log).unwrap();
        let (_running, mut client) = start(logging(dir.path()));
        let found = client.line("EXISTS old new");
        assert_eq!(found, Reply::Integer(if restored { 1 } else { 2 }));
    }
}

#[test]
fn a_log_is_not_begun_or_ended_where_it_cannot_be() {
    let dir = tempdir().unwrap();
    let (_running, mut client) = start(logging(dir.path()));
    run(&mut client, &["MULTI", "CONFIG SET appendonly no"]);
    let Reply::Array(replies) = client.line("EXEC") else {
        panic!("an array")
    };
    assert!(replies[0].is_error(), "{replies:?}");
    // One bad value, and nothing is done.
    let reply = client.line("CONFIG SET appendonly no hz x");
    assert!(reply.is_error());
    assert_eq!(info(&mut client, "aof_enabled"), "1");

    let (_running, mut client) = start(Settings::default());
    let Reply::Error(text) = client.line("CONFIG SET appendonly yes") else {
        panic!("an error")
    };
    assert_eq!(
        text,
        "ERR CONFIG SET failed (possibly related to argument 'appendonly') - Unable to turn on \
         AOF: the server has no data directory"
    );
    let shown = client.line("CONFIG GET appendonly");
    let pair = ["appendonly", "no"].map(Reply::bulk);
    assert_eq!(shown, Reply::Array(pair.into()));
}

/// As in Redis: the log begins when the snapshot has ended.
#[test]
fn a_log_is_begun_after_a_snapshot_that_is_being_made() {
    let dir = tempdir().unwrap();
    let (_running, mut client) = start(snapshots(dir.path()));
    let big = "x".repeat(1 << 20);
    for number in 0..64 {
        client.call(&["SET", &number.to_string(), &big]);
    }
    run(&mut client, &["BGSAVE", "CONFIG SET appendonly yes"]);
    until(&mut client, "aof_enabled", "1");
    assert_eq!(info(&mut client, "aof_rewrite_scheduled"), "0");
}

#[test]
fn snapshots_are_made_when_a_save_point_is_reached() {
    let dir = tempdir().unwrap();
    let (running, mut client) = start(snapshots(dir.path()));
    assert_eq!(client.call(&["CONFIG", "SET", "save", "1 2"]), Reply::OK);
    run(&mut client, &["SET a 1"]);
    thread::sleep(std::time::Duration::from_millis(2500));
    assert_eq!(info(&mut client, "rdb_saves"), "0", "one change is too few");
    run(&mut client, &["SET b 1"]);
    until(&mut client, "rdb_saves", "1");
    assert_eq!(info(&mut client, "rdb_changes_since_last_save"), "0");
    run(&mut client, &["CONFIG SET save "]);
    drop(running);
    let (_running, mut client) = start(snapshots(dir.path()));
    assert_eq!(client.line("DBSIZE"), Reply::Integer(2));
}

#[test]
fn a_log_that_has_grown_is_rewritten() {
    let dir = tempdir().unwrap();
    let settings = || {
        with(logging(dir.path()), |data| {
            data.auto_aof_rewrite_min_size = 20_000
        })
    };
    let (running, mut client) = start(settings());
    let value = "x".repeat(1000);
    let line = format!("SET k {value}");
    for _ in 0..10 {
        run(&mut client, &[&line]);
    }
    thread::sleep(std::time::Duration::from_millis(300));
    assert_eq!(info(&mut client, "aof_rewrites"), "0", "it is small");
    for _ in 0..15 {
        run(&mut client, &[&line]);
    }
    until(&mut client, "aof_rewrites", "1");
    until(&mut client, "aof_rewrite_in_progress", "0");
    let size: u64 = info(&mut client, "aof_current_size").parse().unwrap();
    assert!(size < 3000, "{size}");
    let before = digest(&mut client);
    drop(running);
    let (_running, mut client) = start(settings());
    assert_eq!(digest(&mut client), before);
}

#[test]
fn what_waits_for_its_turn_gets_it() {
    let dir = tempdir().unwrap();
    let (_running, mut client) = start(logging(dir.path()));
    run(&mut client, &["SET a 1", "MULTI", "BGSAVE", "BGREWRITEAOF"]);
    let replies = [
        "Background saving scheduled",
        "Background append only file rewriting scheduled",
    ];
    let replies = replies.map(Reply::simple).to_vec();
    assert_eq!(client.line("EXEC"), Reply::Array(replies));
    until(&mut client, "aof_rewrites", "1");
    until(&mut client, "rdb_saves", "1");
    let Reply::Integer(at) = client.line("LASTSAVE") else {
        panic!("a time")
    };
    assert_eq!(at.to_string(), info(&mut client, "rdb_last_save_time"));
    assert!(client.line("SAVE") == Reply::OK);
}
