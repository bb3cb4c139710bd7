//! What was there before an end in order is there after it.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use everbloom_commands::CuckooDefaults;
use everbloom_resp::Reply;
use everbloom_server::Settings;
use everbloom_store::Fsync;
use tempfile::tempdir;

use super::common::{digest, info, logging, run, snapshots, start, until, with};
use crate::support::Client;

/// Something of everything. The databases change often, for the log must say so each time.
const LINES: &[&str] = &[
    "SET plain v",
    "SET number 12",
    "INCR number",
    "APPEND plain w",
    "SET empty ",
    "SET expiring 1 PX 100000000",
    "PEXPIREAT number 99999999999999",
    "SET persistent 1 EX 1000",
    "PERSIST persistent",
    "SET gone 1",
    "DEL gone",
    "BF.RESERVE f 0.001 10 EXPANSION 3",
    "BF.MADD f a b c d e f g h i j k l m n o p q r s t u v w x y z",
    "BF.ADD byadd x",
    "BF.INSERT byinsert CAPACITY 7 ERROR 0.2 NONSCALING ITEMS a b",
    "BF.RESERVE large 0.0001 300000",
    "BF.ADD large x",
    "BF.RESERVE blocked 0.001 2 LAYOUT BLOCKED EXPANSION 3",
    "BF.MADD blocked a b c d e f g h i j k l m n o p q r s t u v w x y z \
     1 2 3 4 5 6 7 8 9 10 11 12",
    "BF.INSERT seeded LAYOUT BLOCKED SEED 7 CAPACITY 7 NONSCALING ITEMS a b",
    "BF.RESERVE blocked-large 0.0001 300000 LAYOUT BLOCKED",
    "BF.ADD blocked-large x",
    "CONFIG SET bf-default-layout blocked",
    "BF.ADD blocked-by-default x",
    "CONFIG SET bf-default-layout classic",
    "BF.RESERVE today 0.001 1000 LAYOUT BLOCKED SEED 7",
    "BF.MADD today a b c d",
    "BF.MERGE all-days today",
    "BF.CLEAR today",
    "BF.MADD today e f",
    "BF.MERGE all-days today",
    "BF.SHRINK all-days 50",
    "EXPIRE all-days 1000",
    "BF.MERGE all-days today",
    "CF.RESERVE c 4 EXPANSION 2",
    "CF.INSERT c ITEMS a b c d e f g h i j k l m n o p q r s t u v w x y z",
    "CF.DEL c a",
    "CF.DEL c nobody",
    "CF.ADD c z",
    "CF.COMPACT c",
    "CF.RESERVE rated 100 ERROR 0.001",
    "CF.INSERT rated ITEMS a b c",
    "CF.MERGE merged c",
    "CF.MERGE rates rated",
    "CF.DEL rates b",
    "CF.ADDNX cuckoo-by-add x",
    "CF.RESERVE full 4 EXPANSION 0",
    "CF.INSERT full ITEMS foo foo foo foo foo foo",
    "CF.RESERVE cuckoo-large 300000 BUCKETSIZE 4 MAXITERATIONS 500",
    "CF.INSERTNX cuckoo-large ITEMS x y x",
    "CF.RESERVE keyed 6 ERROR 0.001 SEED 7",
    "CF.INSERT keyed ITEMS a b c d e f g h i j k l m n o p q r s t u v w x y z",
    "CF.INSERT keyed ITEMS 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23",
    "CF.RESERVE keyed-random 6 ERROR 0.001",
    "CF.ADD keyed-random x",
    "CF.DEL keyed a",
    "CF.DEL keyed nobody",
    "CF.COMPACT keyed",
    "CF.ADDNX keyed after",
    "COPY keyed keyed-copied",
    "CF.DEL keyed-copied z",
    "CF.RESERVE keyed-fixed 5 ERROR 0.5 EXPANSION 0 SEED 7",
    "CF.RESERVE keyed-large 300000 ERROR 0.0001 SEED 7",
    "CF.INSERTNX keyed-large ITEMS x y x",
    "CONFIG SET cf-bucket-size 4",
    "CONFIG SET cf-max-expansions 100",
    "CF.RESERVE many 8",
    "CF.INSERT many CAPACITY 16 ITEMS m m m m m m m m m m m m m m m m m m m m",
    "CF.ADD cuckoo-by-default x",
    "CONFIG SET cf-bucket-size 2",
    "CONFIG SET cf-max-expansions 32",
    "SELECT 3",
    "SET plain three",
    "BF.ADD f 3",
    "SELECT 15",
    "SET last 1",
    "MULTI",
    "SET in-transaction 1",
    "SELECT 7",
    "BF.ADD in-transaction x",
    "INCRBY n 5",
    "EXEC",
    "SET after-exec 1",
    "SELECT 0",
    "RENAME byadd renamed",
    "COPY plain copied DB 2",
    "MOVE empty 4",
    "SELECT 9",
    "SET flushed 1",
    "FLUSHDB",
    "SELECT 1",
    "SET swapped 1",
    "BF.ADD swapped-filter 1",
    "SWAPDB 1 5",
    "SELECT 0",
    "MSET m1 1 m2 2",
    "GETDEL m1",
    "GETEX m2 EX 50000",
    "SETRANGE range 5 x",
    "SETBIT bits 3 1",
    "SETBIT bits 8000000 1",
    "SETBIT bits 4 0",
    "SETBIT number 2 1",
    "BITOP NOT inverted range",
    "BITOP XOR inverted inverted number none",
    "SET joined 1",
    "BITOP AND joined none",
    "BITFIELD fields SET u7 3 100 INCRBY i5 #4 -3 OVERFLOW FAIL INCRBY u2 100 9",
    "BITFIELD fields OVERFLOW SAT INCRBY u7 3 100 GET u8 0",
    "BITFIELD grown OVERFLOW FAIL SET u8 800 256",
];

fn fill(client: &mut Client) {
    run(client, LINES);
    for (from, to) in [
        ("f", &b"restored"[..]),
        ("blocked", b"blocked-restored"),
        ("c", b"cuckoo-restored"),
        ("keyed", b"keyed-restored"),
    ] {
        let Reply::Bulk(payload) = client.line(&format!("DUMP {from}")) else {
            panic!("a payload")
        };
        let restore: [&[u8]; 4] = [b"RESTORE", to, b"77777777", &payload];
        assert_eq!(client.call(&restore), Reply::OK);
    }
}

/// Details that a digest alone would not explain.
fn check(client: &mut Client) {
    for (db, line, expected) in [
        (0, "GET plain", Reply::bulk("vw")),
        // The bits of 13 are 0x31 0x33, and SETBIT made one of them 1.
        (0, "GET number", Reply::bulk([0x31, 0x33])),
        (0, "BITCOUNT bits", Reply::Integer(2)),
        (0, "STRLEN bits", Reply::Integer(1_000_001)),
        (0, "STRLEN inverted", Reply::Integer(6)),
        (0, "EXISTS joined", Reply::Integer(0)),
        (
            0,
            "BITFIELD_RO fields GET u7 3 GET i5 #4 GET u2 100",
            Reply::Array([127, -3, 0].map(Reply::Integer).to_vec()),
        ),
        (0, "STRLEN grown", Reply::Integer(101)),
        (0, "PEXPIRETIME number", Reply::Integer(99_999_999_999_999)),
        (0, "TTL persistent", Reply::Integer(-1)),
        (0, "EXISTS gone byadd empty m1", Reply::Integer(0)),
        (0, "BF.CARD f", Reply::Integer(26)),
        (0, "BF.CARD restored", Reply::Integer(26)),
        (0, "BF.EXISTS renamed x", Reply::Integer(1)),
        (0, "BF.EXISTS large x", Reply::Integer(1)),
        (0, "TYPE large", Reply::simple("MBbloom--")),
        (0, "TYPE blocked", Reply::simple("everbloom")),
        (0, "BF.CARD blocked", Reply::Integer(38)),
        (
            0,
            "BF.INFO blocked FILTERS",
            Reply::Array(vec![Reply::Integer(4)]),
        ),
        (
            0,
            "BF.INFO seeded CAPACITY",
            Reply::Array(vec![Reply::Integer(7)]),
        ),
        (0, "BF.EXISTS blocked-large x", Reply::Integer(1)),
        (0, "TYPE blocked-by-default", Reply::simple("everbloom")),
        (0, "BF.EXISTS blocked-by-default x", Reply::Integer(1)),
        (0, "BF.CARD blocked-restored", Reply::Integer(38)),
        (0, "TYPE c", Reply::simple("MBbloomCF")),
        (0, "CF.EXISTS c b", Reply::Integer(1)),
        (0, "CF.COUNT full foo", Reply::Integer(4)),
        (0, "CF.EXISTS cuckoo-large y", Reply::Integer(1)),
        (0, "CF.COUNT many m", Reply::Integer(20)),
        (0, "CF.DEL nobody x", Reply::error("Not found")),
        (
            0,
            "CF.DEBUG cuckoo-restored",
            Reply::bulk(
                "bktsize:2 buckets:2 items:26 deletes:0 filters:3 max_iterations:20 expansion:2",
            ),
        ),
        (2, "GET copied", Reply::bulk("vw")),
        (3, "BF.EXISTS f 3", Reply::Integer(1)),
        (4, "EXISTS empty", Reply::Integer(1)),
        (5, "BF.CARD swapped-filter", Reply::Integer(1)),
        (7, "GET n", Reply::bulk("5")),
        (7, "GET after-exec", Reply::bulk("1")),
        (9, "DBSIZE", Reply::Integer(0)),
        (15, "GET in-transaction", Reply::bulk("1")),
    ] {
        client.line(&format!("SELECT {db}"));
        assert_eq!(client.line(line), expected, "{db}: {line}");
    }
    client.line("SELECT 0");
    check_keyed(client);
}

/// Cuckoo filters with a chosen error rate.
fn check_keyed(client: &mut Client) {
    let debug = "bktsize:4 buckets:8 items:49 deletes:0 filters:2 max_iterations:500 expansion:2";
    for (line, expected) in [
        ("TYPE keyed", Reply::simple("everblmCF")),
        ("CF.EXISTS keyed a", Reply::Integer(0)),
        ("CF.EXISTS keyed z", Reply::Integer(1)),
        ("CF.EXISTS keyed-copied z", Reply::Integer(0)),
        ("CF.EXISTS keyed-large y", Reply::Integer(1)),
        ("CF.DEBUG keyed-restored", Reply::bulk(debug)),
    ] {
        assert_eq!(client.line(line), expected, "{line}");
    }
}

#[test]
fn a_log_keeps_everything() {
    for appendfsync in [Fsync::Always, Fsync::EverySecond, Fsync::No] {
        let dir = tempdir().unwrap();
        let settings = || with(logging(dir.path()), |data| data.appendfsync = appendfsync);
        let (running, mut client) = start(settings());
        fill(&mut client);
        check(&mut client);
        let before = digest(&mut client);
        drop(running);
        // The second time from the log of the first, the third from a rewritten one.
        for _ in 0..2 {
            let (running, mut client) = start(settings());
            assert_eq!(digest(&mut client), before, "{appendfsync:?}");
            check(&mut client);
            run(&mut client, &["BGREWRITEAOF"]);
            until(&mut client, "aof_rewrites", "1");
            drop(running);
        }
        let (_running, mut client) = start(settings());
        assert_eq!(digest(&mut client), before);
    }
}

#[test]
fn a_snapshot_keeps_everything() {
    for save in ["SAVE", "BGSAVE", "SHUTDOWN SAVE"] {
        let dir = tempdir().unwrap();
        let (running, mut client) = start(snapshots(dir.path()));
        fill(&mut client);
        let before = digest(&mut client);
        client.send(&save.split(' ').collect::<Vec<_>>());
        match save {
            "SHUTDOWN SAVE" => assert_eq!(client.try_reply(), None),
            _ => assert!(!client.reply().is_error()),
        }
        if save == "BGSAVE" {
            until(&mut client, "rdb_saves", "1");
            assert_eq!(info(&mut client, "rdb_changes_since_last_save"), "0");
            // Without a save point the end saves nothing.
            run(&mut client, &["SET unsaved 1"]);
        }
        running.wait_or_stop(save);
        let (_running, mut client) = start(snapshots(dir.path()));
        check(&mut client);
        assert_eq!(digest(&mut client), before, "{save}");
    }
}

trait WaitOrStop {
    fn wait_or_stop(self, save: &str);
}

impl WaitOrStop for everbloom_server::Running {
    /// SHUTDOWN has stopped it already.
    fn wait_or_stop(self, save: &str) {
        if !save.starts_with("SHUTDOWN") {
            self.server().stop();
        }
        assert_eq!(self.wait(), Ok(()));
    }
}

#[test]
fn the_end_saves_where_save_points_say_so() {
    for (shutdown, kept) in [(None, 1), (Some("NOSAVE"), 0), (Some("SAVE"), 1)] {
        let dir = tempdir().unwrap();
        let settings = with(snapshots(dir.path()), |data| data.save = vec![(3600, 1)]);
        let (running, mut client) = start(settings);
        run(&mut client, &["SET k v"]);
        match shutdown {
            None => running.server().stop(),
            Some(word) => client.send(&["SHUTDOWN", word]),
        }
        assert_eq!(running.wait(), Ok(()));
        let (_running, mut client) = start(snapshots(dir.path()));
        let reply = client.line("EXISTS k");
        assert_eq!(reply, Reply::Integer(kept), "{shutdown:?}");
    }
}

#[test]
fn keys_that_expired_meanwhile_are_gone() {
    for settings in [logging, snapshots] {
        let dir = tempdir().unwrap();
        let (running, mut client) = start(settings(dir.path()));
        run(&mut client, &["DEBUG SET-ACTIVE-EXPIRE 0"]);
        run(&mut client, &["SET short 1 PX 300", "SET long 1 PX 300000"]);
        run(&mut client, &["BF.ADD f x", "PEXPIRE f 300", "SAVE"]);
        drop(running);
        thread::sleep(Duration::from_millis(350));
        let (_running, mut client) = start(settings(dir.path()));
        let reply = client.line("EXISTS short long f");
        assert_eq!(reply, Reply::Integer(1));
        assert_eq!(client.line("EXISTS long"), Reply::Integer(1));
    }
}

/// A key that had expired before a command made it anew must not take the new one with it.
#[test]
fn a_key_made_anew_after_its_expiry_stays() {
    let dir = tempdir().unwrap();
    let (running, mut client) = start(logging(dir.path()));
    run(&mut client, &["DEBUG SET-ACTIVE-EXPIRE 0"]);
    run(
        &mut client,
        &["SET n 5 PX 20", "BF.ADD f x", "PEXPIRE f 20"],
    );
    thread::sleep(Duration::from_millis(30));
    run(&mut client, &["INCR n", "BF.ADD f y"]);
    let before = digest(&mut client);
    drop(running);
    let (_running, mut client) = start(logging(dir.path()));
    assert_eq!(client.line("GET n"), Reply::bulk("1"));
    assert_eq!(
        client.line("BF.MEXISTS f x y"),
        client.line("BF.MEXISTS f x y")
    );
    assert_eq!(client.line("BF.CARD f"), Reply::Integer(1));
    assert_eq!(digest(&mut client), before);
}

#[test]
fn flushall_is_kept() {
    let dir = tempdir().unwrap();
    let (running, mut client) = start(logging(dir.path()));
    fill(&mut client);
    run(&mut client, &["FLUSHALL", "SELECT 4", "SET k v"]);
    let before = digest(&mut client);
    drop(running);
    let (_running, mut client) = start(logging(dir.path()));
    assert_eq!(digest(&mut client), before);
}

/// Settings that would refuse now what was accepted then.
#[test]
fn narrower_limits_lose_nothing() {
    let dir = tempdir().unwrap();
    let (running, mut client) = start(logging(dir.path()));
    fill(&mut client);
    let before = digest(&mut client);
    drop(running);
    let narrow = || Settings {
        maxmemory: 1,
        bf_max_filter_bytes: 1,
        cf: CuckooDefaults {
            initial_size: 100,
            bucket_size: 50,
            max_iterations: 1,
            expansion: 0,
            max_expansions: 1,
        },
        proto_max_bulk_len: 1 << 20,
        ..logging(dir.path())
    };
    for _ in 0..2 {
        let (running, mut client) = start(narrow());
        assert_eq!(digest(&mut client), before);
        run(&mut client, &["BGREWRITEAOF"]);
        until(&mut client, "aof_rewrites", "1");
        drop(running);
    }
}

/// Filters whose bits no item has touched take no memory, so more of them fit than the machine has.
#[test]
fn filters_larger_than_the_machine_are_there_again() {
    const BYTES: u64 = 5_000_000_000;
    let dir = tempdir().unwrap();
    let wide = || Settings {
        maxmemory: 1 << 50,
        ..logging(dir.path())
    };
    let (running, mut client) = start(wide());
    let total: u64 = info(&mut client, "total_system_memory").parse().unwrap();
    let keys: Vec<String> = (0..=total / BYTES)
        .map(|key| format!("large:{key}"))
        .collect();
    for key in &keys {
        run(
            &mut client,
            &[
                &format!("BF.RESERVE {key} 0.00000001 1073741824"),
                &format!("BF.ADD {key} item"),
            ],
        );
    }
    drop(running);
    let (_running, mut client) = start(wide());
    for key in &keys {
        assert_eq!(
            client.line(&format!("BF.EXISTS {key} item")),
            Reply::Integer(1)
        );
        let capacity = client.line(&format!("BF.INFO {key} CAPACITY"));
        assert_eq!(
            capacity,
            Reply::Array(vec![Reply::Integer(1 << 30)]),
            "{key}"
        );
    }
}

/// All that is below a folder.
fn all_below(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let below = |path: PathBuf| match path.is_dir() {
        true => [all_below(&path), vec![path]].concat(),
        false => vec![path],
    };
    entries.flat_map(below).collect()
}

#[test]
fn nobody_else_reads_what_clients_stored() {
    let dir = tempdir().unwrap();
    let data = dir.path().join("data");
    let (_running, mut client) = start(logging(&data));
    run(&mut client, &["SET a 1", "SAVE", "BGREWRITEAOF"]);
    until(&mut client, "aof_rewrite_in_progress", "0");
    let mut all = all_below(&data);
    all.push(data);
    assert!(all.len() > 6, "{all:?}");
    for path in all {
        let found = fs::metadata(&path).unwrap().permissions().mode() & 0o777;
        let expected = if path.is_dir() { 0o700 } else { 0o600 };
        assert_eq!(found, expected, "{}: {found:o}", path.display());
    }
}
