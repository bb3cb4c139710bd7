//! What a start makes of the end of the log: what is torn is moved aside, what is damaged is refused.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use everbloom_resp::{Reply, encode_request};
use everbloom_server::{Running, Settings};
use everbloom_store::Fsync;
use everbloom_store::persistence::log::write_waiting;
use tempfile::tempdir;

use super::common::{
    digest, failure, files, info, last_increment, logging, run, start, until, with,
};
use super::crashing::CrashingDisk;
use super::trouble::{LOG_TROUBLE, begin, start_on};
use crate::support::Client;

/// The AOF of a server that has run these commands: its last file, and what that holds.
fn log_of(dir: &Path, lines: &[&str]) -> (PathBuf, Vec<u8>) {
    let (running, mut client) = start(logging(dir));
    run(&mut client, lines);
    drop(running);
    let file = last_increment(dir);
    let bytes = fs::read(&file).unwrap();
    (file, bytes)
}

#[test]
fn a_cut_log_is_cut_back_or_refused_as_the_setting_says() {
    let dir = tempdir().unwrap();
    let lines = ["SET a 1", "SET b 2", "MULTI", "SET c 3", "SET d 4", "EXEC"];
    let (file, whole) = log_of(dir.path(), &lines);
    let mut cuts = 0;
    for cut in [1, 5, 20, 60] {
        let kept = &whole[..whole.len() - cut];
        fs::write(&file, kept).unwrap();
        let before = files(dir.path());
        let strict = with(logging(dir.path()), |data| data.aof_load_truncated = false);
        let why = failure(strict);
        assert!(why.contains("appendonly.aof.1.incr.aof"), "{why}");
        assert_eq!(files(dir.path()), before);

        let (running, mut client) = start(logging(dir.path()));
        cuts += 1;
        let name = file.file_name().unwrap().to_str().unwrap();
        let beside = fs::read(file.with_file_name(format!("{name}.cut-{cuts}"))).unwrap();
        assert_eq!([fs::read(&file).unwrap(), beside].concat(), kept);
        let reply = client.line("EXISTS a b c d");
        assert_eq!(
            reply,
            Reply::Integer(2),
            "{cut}: a transaction is all or nothing"
        );
        run(&mut client, &["SET after 1"]);
        drop(running);
        let (running, mut client) = start(logging(dir.path()));
        assert_eq!(client.line("EXISTS a b c d after"), Reply::Integer(3));
        drop(running);
    }
}

/// `proto-max-bulk-len` was higher when the log was written. The rest of the value is missing, which
/// spares this test its 600 MB: the log ends torn, and is not damaged.
#[test]
fn a_log_may_have_longer_values_than_clients_may_send_now() {
    let dir = tempdir().unwrap();
    let (file, whole) = log_of(dir.path(), &["SET a 1"]);
    let long = b"*3\r\n$3\r\nSET\r\n$1\r\nb\r\n$600000000\r\nvalue";
    fs::write(&file, [&whole[..], long].concat()).unwrap();
    let (_running, mut client) = start(logging(dir.path()));
    assert_eq!(client.line("GET a"), Reply::bulk("1"));
    assert_eq!(fs::read(&file).unwrap(), whole);
}

/// `EXEC` as a log has it.
const EXEC: &[u8] = b"*1\r\n$4\r\nEXEC\r\n";

/// A log with a transaction and commands behind it, and where its `EXEC` is.
fn log_with_a_transaction(dir: &Path, last: &[&str]) -> (PathBuf, Vec<u8>, usize) {
    let transaction = ["SET a 1", "MULTI", "SET b 2", "EXEC"];
    let (file, good) = log_of(dir, &[&transaction[..], last].concat());
    let at = good.windows(EXEC.len()).position(|found| found == EXEC);
    (file, good, at.unwrap())
}

/// The transaction then has no end, and to cut it off would cut off all behind it.
#[test]
fn a_flipped_bit_in_exec_is_damage_and_no_torn_end() {
    let last: [&[&str]; 2] = [&["SET c 3"], &["SET c 3", "MULTI", "SET d 4", "EXEC"]];
    for (last, skip) in [(last[0], false), (last[0], true), (last[1], false)] {
        let dir = tempdir().unwrap();
        let (file, good, exec) = log_with_a_transaction(dir.path(), last);
        let settings = || {
            with(logging(dir.path()), |data| {
                data.rdb_skip_unknown_values = skip
            })
        };
        for (at, bit) in (exec..exec + EXEC.len()).flat_map(|at| (0..8).map(move |bit| (at, bit))) {
            let mut bad = good.clone();
            bad[at] ^= 1 << bit;
            fs::write(&file, &bad).unwrap();
            if bad.eq_ignore_ascii_case(&good) {
                let (_running, mut client) = start(settings());
                assert_eq!(client.line("EXISTS a b c"), Reply::Integer(3));
                continue;
            }
            let before = files(dir.path());
            let why = failure(settings());
            let place = why.split_once("incr.aof, byte ").unwrap().1;
            let place = place.split_once(':').unwrap().0.parse::<usize>().unwrap();
            assert!((exec..=exec + EXEC.len()).contains(&place), "{why}");
            assert_eq!(files(dir.path()), before, "{why}");
        }
    }
}

/// No server writes these within a transaction. Without an `EXEC`, they were cut off with all that
/// follows.
#[test]
fn what_no_transaction_has_is_damage_whether_it_ends_or_not() {
    for (line, why) in [
        ("EXEB", "unknown command 'EXEB'"),
        ("LPUSH l 1", "unknown command 'LPUSH'"),
        ("EXEC now", "wrong number of arguments for 'exec'"),
        ("MULTI", "found MULTI"),
        ("MULTI now", "wrong number of arguments for 'multi'"),
        ("DISCARD", "found DISCARD"),
        ("DISCARD now", "wrong number of arguments for 'discard'"),
        ("SET k", "wrong number of arguments for 'set'"),
    ] {
        for end in [&b""[..], b"*3\r\n$3\r\nSE", EXEC] {
            let dir = tempdir().unwrap();
            let (file, good, exec) = log_with_a_transaction(dir.path(), &[]);
            let mut bad = good[..exec].to_vec();
            encode_request(&line.split(' ').collect::<Vec<_>>(), &mut bad);
            bad.extend_from_slice(end);
            fs::write(&file, bad).unwrap();
            let found = failure(logging(dir.path()));
            let place = format!("byte {exec}: ");
            assert!(found.contains(&place) && found.contains(why), "{found}");
        }
    }
}

/// To take the rest of the file for the argument that it announces would cut off 90 of 100 keys.
#[test]
fn a_damaged_length_in_the_middle_of_the_log_is_no_torn_end() {
    let dir = tempdir().unwrap();
    let value = "v".repeat(1000);
    let lines: Vec<String> = (0..100).map(|key| format!("SET k{key} {value}")).collect();
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let (file, good) = log_of(dir.path(), &lines);
    let good = String::from_utf8(good).unwrap();
    let at = good.match_indices("$1000").nth(10).unwrap().0;
    let (head, tail) = good.split_at(at);
    fs::write(
        &file,
        format!("{head}{}", tail.replacen("$1000", "$900000", 1)),
    )
    .unwrap();
    let before = files(dir.path());
    let why = failure(logging(dir.path()));
    let place = format!(
        "appendonly.aof.1.incr.aof, byte {}: expected a length",
        at + 1
    );
    assert!(why.contains(&place), "{why}");
    assert_eq!(files(dir.path()), before);
    fs::write(&file, good).unwrap();
    let (_running, mut client) = start(logging(dir.path()));
    assert_eq!(client.line("DBSIZE"), Reply::Integer(100));
}

/// A loss of power may leave zeros where the length of the file was on the disk and its bytes were
/// not.
#[test]
fn zeros_at_the_end_of_the_log_are_a_torn_end() {
    let dir = tempdir().unwrap();
    let (file, whole) = log_of(dir.path(), &["SET a 1"]);
    let mut value = Vec::new();
    encode_request(&["SET", "b", "value\0\0\0\0"], &mut value);
    for (number, torn) in [
        &b""[..],
        b"*3\r\n$3\r\nSE",
        &value[..value.len() - 4],
        b"#TS:17",
    ]
    .into_iter()
    .enumerate()
    {
        let end = [torn, &[0; 5000]].concat();
        fs::write(&file, [&whole[..], &end].concat()).unwrap();
        let strict = with(logging(dir.path()), |data| data.aof_load_truncated = false);
        let why = failure(strict);
        assert!(why.contains("in the middle of a row of zeros"), "{why}");
        let (_running, mut client) = start(logging(dir.path()));
        assert_eq!(client.line("KEYS *"), Reply::Array(vec![Reply::bulk("a")]));
        assert_eq!(fs::read(&file).unwrap(), whole);
        let name = file.file_name().unwrap().to_str().unwrap();
        let beside = file.with_file_name(format!("{name}.cut-{}", number + 1));
        assert_eq!(fs::read(beside).unwrap(), end);
    }
    // With a whole command behind them they are a hole.
    for torn in [&b""[..], &value[..value.len() - 4]] {
        fs::write(&file, [&whole[..], torn, &[0; 5000], &value].concat()).unwrap();
        let before = files(dir.path());
        let why = failure(logging(dir.path()));
        assert!(why.contains("found byte 0x00"), "{why}");
        assert_eq!(files(dir.path()), before);
    }
}

const FIRST: &str = "appendonlydir/appendonly.aof.1.incr.aof";
const TORN: &[u8] = b"*3\r\n$3\r\nSET\r\n$1\r\nb\r\n$5\r\nva";

/// A disk with a log whose end is torn, and room for less than that end.
fn full_disk_with_a_torn_end() -> CrashingDisk {
    let disk = CrashingDisk::new();
    let (running, mut client) = start_on(&disk, logging("unused".as_ref()));
    run(&mut client, &["SET a 1", "BF.ADD f x"]);
    drop(running);
    let whole = disk.contents(FIRST).unwrap();
    disk.put(FIRST, &[&whole[..], TORN].concat());
    disk.limit(TORN.len() - 1);
    disk
}

/// Serves the keys and refuses writes, from the first command on.
fn start_refusing(disk: &CrashingDisk, settings: Settings) -> (Running, Client) {
    let (running, mut client) = start_on(disk, settings);
    for line in ["SET c 3", "BF.ADD f y", "DEL a"] {
        let text = client.error(line);
        assert!(text.starts_with(LOG_TROUBLE), "{line}: {text}");
        assert!(text.contains("the torn end of appendonlydir/"), "{text}");
    }
    assert_eq!(info(&mut client, "aof_last_write_status"), "err");
    assert_eq!(client.line("EXISTS a b f"), Reply::Integer(2));
    assert_eq!(client.line("BF.EXISTS f x"), Reply::Integer(1));
    (running, client)
}

#[test]
fn a_torn_end_for_which_there_is_no_room_refuses_writes_until_there_is() {
    let disk = full_disk_with_a_torn_end();
    let settings = || logging("unused".as_ref());
    let before = disk.files();
    for _ in 0..3 {
        let (running, _) = start_refusing(&disk, settings());
        running.server().stop();
        assert!(running.wait().is_err());
        assert_eq!(disk.files(), before, "a try leaves nothing behind");
    }
    let (running, mut client) = start_refusing(&disk, settings());
    // The new file would be behind one whose end is torn.
    run(&mut client, &["BGREWRITEAOF"]);
    until(&mut client, "aof_last_bgrewrite_status", "err");
    disk.heal();
    until(&mut client, "aof_last_write_status", "ok");
    assert_eq!(disk.contents(&format!("{FIRST}.cut-1")).unwrap(), TORN);
    run(&mut client, &["SET c 3", "BF.ADD f z"]);
    let before = digest(&mut client);
    drop(running);
    let (_running, mut client) = start_on(&disk.survivors(0), settings());
    assert_eq!(digest(&mut client), before);
    assert_eq!(client.line("EXISTS a b c f"), Reply::Integer(3));
}

/// After a failed fsync a rewrite begins the file that follows.
#[test]
fn a_torn_end_before_an_empty_file_is_moved_aside_later_too() {
    let disk = full_disk_with_a_torn_end();
    disk.heal();
    let manifest = "appendonlydir/appendonly.aof.manifest";
    let second = FIRST.replace(".1.", ".2.");
    let named = [
        disk.contents(manifest).unwrap(),
        b"file appendonly.aof.2.incr.aof seq 2 type i\n".to_vec(),
    ];
    disk.put(manifest, &named.concat());
    disk.put(&second, b"");
    disk.limit(TORN.len() - 1);
    let settings = || logging("unused".as_ref());
    let (running, mut client) = start_refusing(&disk, settings());
    disk.heal();
    until(&mut client, "aof_last_write_status", "ok");
    run(&mut client, &["SET c 3"]);
    drop(running);
    assert!(!disk.contents(FIRST).unwrap().ends_with(TORN));
    assert!(
        disk.contents(&second)
            .unwrap()
            .ends_with(b"SET\r\n$1\r\nc\r\n$1\r\n3\r\n")
    );
    let (_running, mut client) = start_on(&disk.survivors(0), settings());
    assert_eq!(client.line("EXISTS a b c f"), Reply::Integer(3));
}

#[test]
fn a_log_with_a_torn_end_can_be_switched_off() {
    let disk = full_disk_with_a_torn_end();
    let (running, mut client) = start_refusing(&disk, logging("unused".as_ref()));
    run(&mut client, &["CONFIG SET appendonly no"]);
    until(&mut client, "aof_last_write_status", "ok");
    run(&mut client, &["SET c 3"]);
    disk.heal();
    run(&mut client, &["CONFIG SET appendonly yes"]);
    until(&mut client, "aof_rewrites", "1");
    run(&mut client, &["SET d 4"]);
    drop(running);
    // The torn end went with its file.
    let files = disk.files().into_keys();
    let old: Vec<String> = files.filter(|name| name.starts_with(FIRST)).collect();
    assert!(old.is_empty(), "{old:?}");
    let (_running, mut client) = start_on(&disk, logging("unused".as_ref()));
    assert_eq!(client.line("EXISTS a b c d f"), Reply::Integer(4));
}

/// Such a server ends when it cannot write its log.
#[test]
fn with_always_a_torn_end_for_which_there_is_no_room_refuses_the_start() {
    let disk = full_disk_with_a_torn_end();
    let before = disk.files();
    for _ in 0..3 {
        let settings = with(logging("unused".as_ref()), |data| {
            data.appendfsync = Fsync::Always;
        });
        let running = begin(Arc::new(disk.clone()), settings);
        let why = running.wait().unwrap_err();
        assert!(why.contains("the torn end of appendonlydir/"), "{why}");
        assert!(why.contains("the server did not start"), "{why}");
        assert_eq!(disk.files(), before);
    }
}

/// Starts three times on a disk with little room. Returns whether each try failed. None may leave a
/// file that the manifest does not name.
fn fails_to_start(disk: &CrashingDisk, room: usize) -> bool {
    disk.limit(room);
    let before = names(disk);
    let mut after_first = None;
    for _ in 0..3 {
        let running = begin(Arc::new(disk.clone()), logging("unused".as_ref()));
        running.wait_until_loaded();
        running.server().stop();
        if running.wait().is_ok() {
            return false;
        }
        let manifest = disk.contents("appendonlydir/appendonly.aof.manifest");
        let manifest = String::from_utf8(manifest.unwrap_or_default()).unwrap();
        for name in names(disk) {
            let file = name.trim_start_matches("appendonlydir/");
            let is_needed = manifest.contains(file) || file.ends_with(".manifest");
            let beside = format!("{room} bytes of room: {name} beside {manifest}");
            assert!(is_needed || before.contains(&name), "{beside}");
        }
        let first = after_first.get_or_insert_with(|| disk.files());
        assert!(disk.files() == *first, "{room} bytes of room");
    }
    true
}

fn names(disk: &CrashingDisk) -> Vec<String> {
    disk.files().into_keys().collect()
}

/// With little room it refuses to start, with more it refuses writes.
#[test]
fn an_old_style_log_with_a_torn_end_on_a_full_disk_leaves_no_file_behind() {
    let mut log = Vec::new();
    encode_request(&["SELECT", "0"], &mut log);
    encode_request(&["SET", "a", "1"], &mut log);
    log.extend_from_slice(b"*3\r\n$3\r\nSET\r\n$1\r\nb\r\n$500\r\n");
    log.extend_from_slice(&[b'v'; 300]);
    for room in (0..300).step_by(11) {
        let disk = CrashingDisk::new();
        disk.put("appendonly.aof", &log);
        assert!(fails_to_start(&disk, room), "{room}");
        disk.heal();
        let (running, mut client) = start_on(&disk, logging("unused".as_ref()));
        run(&mut client, &["SET c 3"]);
        drop(running);
        let (_running, mut client) = start_on(&disk, logging("unused".as_ref()));
        assert_eq!(client.line("EXISTS a b c"), Reply::Integer(2));
    }
}

#[test]
fn a_log_that_cannot_be_begun_on_a_full_disk_leaves_no_file_behind() {
    let disk = CrashingDisk::new();
    let snapshots = with(logging("unused".as_ref()), |data| data.appendonly = false);
    let (running, mut client) = start_on(&disk, snapshots);
    run(&mut client, &["SET a 1", "BF.ADD f x", "SAVE"]);
    drop(running);
    let rooms = (0..).step_by(13);
    let refused = rooms.take_while(|room| fails_to_start(&disk.after_kill(), *room));
    let refused = refused.count();
    assert!(refused > 20, "{refused}");
}

#[test]
fn a_rewrite_that_fails_on_a_full_disk_leaves_no_file_behind() {
    let disk = CrashingDisk::new();
    let (running, mut client) = start_on(&disk, logging("unused".as_ref()));
    run(&mut client, &["SET a 1"]);
    let before = names(&disk);
    disk.limit(0);
    run(&mut client, &["BGREWRITEAOF"]);
    until(&mut client, "aof_last_bgrewrite_status", "err");
    until(&mut client, "aof_rewrite_in_progress", "0");
    // The writer of the AOF has tried to switch to a new file by then.
    let store = &running.server().store;
    assert!(write_waiting(store, store.persistence().unwrap()));
    assert_eq!(names(&disk), before);
}
