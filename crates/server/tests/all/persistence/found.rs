//! What a server makes of the files that it finds: those of Redis, damaged ones, another server's.

use std::fs;
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use everbloom::Layout;
use everbloom_resp::Reply;
use everbloom_server::{Server, Settings};
use serde_json::Value as Json;
use tempfile::tempdir;

use super::common::{
    copy, digest, failure, files, golden, info, last_increment, logging, run, snapshots, start,
    until, with,
};
use crate::support::Client;

/// Text, or base64 of what is none.
fn bytes(json: &Json) -> Vec<u8> {
    match json {
        Json::String(text) => text.clone().into_bytes(),
        other => BASE64_STANDARD
            .decode(other["b64"].as_str().unwrap())
            .unwrap(),
    }
}

fn strings(json: &Json) -> Vec<Vec<u8>> {
    json.as_array().unwrap().iter().map(bytes).collect()
}

/// Compares what a server answers with what RedisBloom answered.
fn check(client: &mut Client, recorded: &Path) {
    let json: Json = serde_json::from_slice(&fs::read(recorded).unwrap()).unwrap();
    for json in json["keys"].as_array().unwrap() {
        let key = bytes(&json["key"]);
        let name = key.escape_ascii().to_string();
        run(client, &[&format!("SELECT {}", json["db"])]);
        let expiry = json["expire_ms"].as_i64().unwrap_or(-1);
        let reply = client.call(&[b"PEXPIRETIME".as_slice(), &key]);
        assert_eq!(reply, Reply::Integer(expiry), "{name}");
        if json["type"] == "string" {
            let reply = client.call(&[b"GET".as_slice(), &key]);
            assert_eq!(reply, Reply::Bulk(bytes(&json["value"])), "{name}");
            continue;
        }
        let mut debug: Vec<_> = strings(&json["debug"])
            .into_iter()
            .map(Reply::Bulk)
            .collect();
        let (family, debug) = match json["type"].as_str() {
            Some("cuckoo") => ("CF", debug.remove(0)),
            _ => ("BF", Reply::Array(debug)),
        };
        let reply = client.call(&[format!("{family}.DEBUG").as_bytes(), &key]);
        assert_eq!(reply, debug, "{name}");
        for (items, expected) in [("present", 1), ("absent", 0)] {
            for item in strings(&json[items]) {
                let reply = client.call(&[format!("{family}.EXISTS").as_bytes(), &key, &item]);
                assert_eq!(reply, Reply::Integer(expected), "{name}");
            }
        }
    }
}

/// Such a log does not say what a filter is created with, and means RedisBloom's layout.
#[test]
fn redisblooms_filters_stay_classic_whatever_the_default_layout() {
    let dir = tempdir().unwrap();
    copy(&golden("aof/command-base"), dir.path());
    let mut settings = logging(dir.path());
    settings.bf.layout = Layout::Blocked;
    fs::write(
        last_increment(dir.path()),
        "BF.ADD k x\r\nBF.RESERVE l 0.01 10\r\n"
            .lines()
            .map(|line| {
                let words: Vec<String> = line
                    .split(' ')
                    .map(|word| format!("${}\r\n{word}\r\n", word.len()))
                    .collect();
                format!("*{}\r\n{}", words.len(), words.concat())
            })
            .collect::<String>(),
    )
    .unwrap();
    let (_running, mut client) = start(settings);
    for key in ["k", "l"] {
        let name = client.line(&format!("TYPE {key}"));
        assert_eq!(name, Reply::simple("MBbloom--"));
    }
    run(&mut client, &["BF.ADD new x"]);
    assert_eq!(client.line("TYPE new"), Reply::simple("everbloom"));
}

#[test]
fn redisblooms_logs_are_served() {
    for log in ["aof/rdb-base", "aof/command-base"] {
        let dir = tempdir().unwrap();
        copy(&golden(log), dir.path());
        let settings = || logging(dir.path());
        let recorded = golden(log).join("expected.json");
        // As found, as left behind, and rewritten.
        for _ in 0..2 {
            let (running, mut client) = start(settings());
            check(&mut client, &recorded);
            drop(running);
        }
        let (running, mut client) = start(settings());
        let before = digest(&mut client);
        run(&mut client, &["BGREWRITEAOF"]);
        until(&mut client, "aof_rewrites", "1");
        drop(running);
        let (_running, mut client) = start(logging(dir.path()));
        check(&mut client, &recorded);
        assert_eq!(digest(&mut client), before);
    }
}

#[test]
fn redisblooms_snapshots_are_served_and_adopted_by_a_log() {
    for name in ["bloom", "plain", "old-encodings", "cuckoo"] {
        let recorded = golden(&format!("rdb/{name}.json"));
        let dir = tempdir().unwrap();
        let file = golden(&format!("rdb/{name}.rdb"));
        fs::copy(file, dir.path().join("dump.rdb")).unwrap();
        let (running, mut client) = start(snapshots(dir.path()));
        check(&mut client, &recorded);
        let before = digest(&mut client);
        drop(running);
        for _ in 0..2 {
            let (running, mut client) = start(logging(dir.path()));
            check(&mut client, &recorded);
            assert_eq!(digest(&mut client), before);
            drop(running);
            // From now on the log is what counts.
            let _ = fs::remove_file(dir.path().join("dump.rdb"));
        }
    }
}

#[test]
fn an_old_style_log_is_adopted() {
    let dir = tempdir().unwrap();
    let text = "*2\r\n$6\r\nSELECT\r\n$1\r\n2\r\n*3\r\n$3\r\nSET\r\n$1\r\na\r\n$1\r\n1\r\n";
    fs::write(dir.path().join("appendonly.aof"), text).unwrap();
    for _ in 0..2 {
        let (running, mut client) = start(logging(dir.path()));
        run(&mut client, &["SELECT 2"]);
        assert_eq!(client.line("GET a"), Reply::bulk("1"));
        drop(running);
    }
}

#[test]
fn values_of_other_types_are_refused_unless_they_may_be_left_out() {
    let dir = tempdir().unwrap();
    let foreign = golden("rdb/valkey-9.rdb");
    fs::copy(foreign, dir.path().join("dump.rdb")).unwrap();
    for settings in [snapshots, logging] {
        let before = data_files(dir.path());
        let why = failure(settings(dir.path()));
        assert!(
            why.starts_with("dump.rdb: it holds values of types"),
            "{why}"
        );
        assert!(why.contains(" of type list"), "{why}");
        assert!(why.contains("--rdb-unknown-values skip"), "{why}");
        assert_eq!(data_files(dir.path()), before);
    }
}

#[test]
fn commands_of_other_types_are_refused_unless_they_may_be_left_out() {
    let dir = tempdir().unwrap();
    let text =
        "*3\r\n$3\r\nSET\r\n$1\r\na\r\n$1\r\n1\r\n*3\r\n$5\r\nLPUSH\r\n$1\r\nl\r\n$1\r\n1\r\n";
    let manifest = "file appendonly.aof.1.incr.aof seq 1 type i\n";
    let log = dir.path().join("appendonlydir");
    fs::create_dir(&log).unwrap();
    fs::write(log.join("appendonly.aof.manifest"), manifest).unwrap();
    fs::write(log.join("appendonly.aof.1.incr.aof"), text).unwrap();
    let why = failure(logging(dir.path()));
    let place = "appendonlydir/appendonly.aof.1.incr.aof, byte 27: unknown command 'LPUSH'";
    assert!(why.starts_with(place), "{why}");
    let skipping = with(logging(dir.path()), |data| {
        data.rdb_skip_unknown_values = true
    });
    let (_running, mut client) = start(skipping);
    assert_eq!(client.line("GET a"), Reply::bulk("1"));
}

#[test]
fn damage_stops_the_start_and_names_the_place() {
    let dir = tempdir().unwrap();
    let (running, mut client) = start(logging(dir.path()));
    run(&mut client, &["BF.ADD f x", "SET a 1", "BGREWRITEAOF"]);
    until(&mut client, "aof_rewrites", "1");
    run(&mut client, &["SET b 2", "SET c 3", "SAVE"]);
    drop(running);
    let increment = last_increment(dir.path());
    let base = files(dir.path())
        .into_iter()
        .find(|(path, _)| path.to_string_lossy().ends_with("base.rdb"))
        .unwrap()
        .0;
    let manifest = dir.path().join("appendonlydir/appendonly.aof.manifest");
    let snapshot = dir.path().join("dump.rdb");
    for (file, settings) in [
        (&increment, logging(dir.path())),
        (&base, logging(dir.path())),
        (&manifest, logging(dir.path())),
        (&snapshot, snapshots(dir.path())),
    ] {
        let good = fs::read(file).unwrap();
        let mut bad = good.clone();
        bad[good.len() / 2] ^= 0x80;
        fs::write(file, &bad).unwrap();
        let before = files(dir.path());
        let why = failure(settings.clone());
        let name = file.file_name().unwrap().to_str().unwrap();
        assert!(why.contains(name), "{why}");
        assert!(why.contains("byte") || why.contains("line"), "{why}");
        assert_eq!(files(dir.path()), before, "{why}");
        fs::write(file, &good).unwrap();
        let (running, mut client) = start(settings);
        assert_eq!(client.line("EXISTS a b c f"), Reply::Integer(4));
        drop(running);
    }
    // A file that the manifest names and that is not there.
    fs::remove_file(&increment).unwrap();
    let why = failure(logging(dir.path()));
    let name = increment.file_name().unwrap().to_str().unwrap();
    assert!(why.contains(name), "{why}");
}

/// The only file of the log whose name ends like this.
fn log_file(dir: &Path, end: &str) -> PathBuf {
    let mut found = files(&dir.join("appendonlydir")).into_iter();
    found
        .find(|(path, _)| path.to_string_lossy().ends_with(end))
        .unwrap()
        .0
}

/// The files of a data directory without its lock.
fn data_files(dir: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = files(dir);
    found.retain(|(path, _)| !path.ends_with("everbloom.lock"));
    found
}

/// The start is refused, names the file, and changes nothing.
fn assert_refused(settings: Settings, file: &Path, what: &str) {
    let dir = settings.data.dir.clone().unwrap();
    let before = data_files(&dir);
    let why = failure(settings);
    let name = file.file_name().unwrap().to_str().unwrap();
    assert!(why.contains(name) && why.contains("byte"), "{what}: {why}");
    assert_eq!(data_files(&dir), before, "{what}: {why}");
}

/// A file system may do this to a file at a loss of power. A base and a snapshot get their names
/// when they are complete, so that nothing of them is a torn end.
#[test]
fn a_base_or_snapshot_that_is_empty_cut_or_zeros_is_damage() {
    for last_command in ["PING", "SET b 2"] {
        let dir = tempdir().unwrap();
        let (running, mut client) = start(logging(dir.path()));
        run(&mut client, &["BF.MADD f x y z", "SET a 1", "BGREWRITEAOF"]);
        until(&mut client, "aof_rewrites", "1");
        run(&mut client, &["SAVE", last_command]);
        drop(running);
        let base = log_file(dir.path(), ".base.rdb");
        let alone = tempdir().unwrap();
        let snapshot = alone.path().join("dump.rdb");
        fs::copy(dir.path().join("dump.rdb"), &snapshot).unwrap();
        for (file, settings) in [
            (&base, logging(dir.path())),
            (&snapshot, logging(alone.path())),
            (&snapshot, snapshots(alone.path())),
        ] {
            let whole = fs::read(file).unwrap();
            for len in [0, 1, 4, 5, 9, whole.len() / 2, whole.len() - 1] {
                for end in [vec![], vec![0; whole.len() - len]] {
                    let bad = [&whole[..len], &end].concat();
                    if bad == whole {
                        // The checksum ends in a zero.
                        continue;
                    }
                    fs::write(file, bad).unwrap();
                    let what = format!("{len} bytes, {} zeros", end.len());
                    assert_refused(settings.clone(), file, &what);
                }
            }
            fs::write(file, &whole).unwrap();
        }
        let (_running, mut client) = start(logging(dir.path()));
        assert_eq!(client.line("EXISTS f a"), Reply::Integer(2));
    }
}

/// A log directory whose base has commands, and whose increment is empty.
fn with_base_of_commands(dir: &Path, name: &str, text: &[u8]) {
    let log = dir.join("appendonlydir");
    fs::create_dir(&log).unwrap();
    let manifest =
        format!("file {name} seq 1 type b\nfile appendonly.aof.1.incr.aof seq 1 type i\n");
    fs::write(log.join("appendonly.aof.manifest"), manifest).unwrap();
    fs::write(log.join(name), text).unwrap();
    fs::write(log.join("appendonly.aof.1.incr.aof"), "").unwrap();
}

/// With `aof-use-rdb-preamble no`, Redis leaves such a base of an empty database.
#[test]
fn a_base_of_commands_may_be_empty_and_never_torn() {
    let text =
        b"*3\r\n$3\r\nSET\r\n$1\r\na\r\n$1\r\n1\r\n*3\r\n$3\r\nSET\r\n$1\r\nb\r\n$1\r\n1\r\n";
    let name = "appendonly.aof.1.base.aof";
    for (len, keys) in [(0, 0), (text.len(), 2)] {
        let dir = tempdir().unwrap();
        with_base_of_commands(dir.path(), name, &text[..len]);
        let (_running, mut client) = start(logging(dir.path()));
        assert_eq!(client.line("DBSIZE"), Reply::Integer(keys));
    }
    let dir = tempdir().unwrap();
    with_base_of_commands(dir.path(), name, &text[..50]);
    let file = log_file(dir.path(), ".base.aof");
    assert_refused(logging(dir.path()), &file, "torn");
    // Redis leaves this if `aof-use-rdb-preamble` is switched on during a rewrite.
    let name = "appendonly.aof.1.base.rdb";
    let dir = tempdir().unwrap();
    with_base_of_commands(dir.path(), name, text);
    let (_running, mut client) = start(logging(dir.path()));
    assert_eq!(client.line("DBSIZE"), Reply::Integer(2));
    for len in [0, 1, 50] {
        let dir = tempdir().unwrap();
        with_base_of_commands(dir.path(), name, &text[..len]);
        let file = log_file(dir.path(), ".base.rdb");
        assert_refused(
            logging(dir.path()),
            &file,
            &format!("{len} bytes of commands"),
        );
    }
    // An old-style log was being written before it became the base.
    let dir = tempdir().unwrap();
    with_base_of_commands(dir.path(), "appendonly.aof", &text[..50]);
    let (_running, mut client) = start(logging(dir.path()));
    assert_eq!(client.line("DBSIZE"), Reply::Integer(1));
}

#[test]
fn a_second_server_is_kept_out() {
    let dir = tempdir().unwrap();
    let (running, _) = start(logging(dir.path()));
    let settings = || Settings {
        port: 0,
        ..logging(dir.path())
    };
    let why = Server::start(settings()).unwrap_err().to_string();
    assert!(why.contains("is in use by another server"), "{why}");
    drop(running);
    drop(start(settings()));
}

#[test]
fn a_directory_that_cannot_be_made_is_named() {
    let dir = tempdir().unwrap();
    let file = dir.path().join("file");
    fs::write(&file, "").unwrap();
    let settings = Settings {
        port: 0,
        ..logging(&file.join("data"))
    };
    let why = Server::start(settings).unwrap_err().to_string();
    assert!(
        why.contains("cannot be written") && why.contains("file/data"),
        "{why}"
    );
}

#[test]
fn a_missing_directory_is_made() {
    let dir = tempdir().unwrap();
    let data = dir.path().join("a");
    let (_running, mut client) = start(logging(&data));
    run(&mut client, &["SET a 1"]);
    assert_eq!(info(&mut client, "aof_enabled"), "1");
    assert!(data.join("appendonlydir/appendonly.aof.manifest").exists());
}
