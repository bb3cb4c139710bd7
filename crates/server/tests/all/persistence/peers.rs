//! Redis's own tools and server on what we leave behind.

use std::process::Command;

use everbloom_dev::peers::output;
use everbloom_resp::Reply;
use tempfile::tempdir;

use super::common::{files, info, logging, run, snapshots, start, until};
use crate::support::{Client, Redis};

/// Runs a tool of Redis, or says loudly that it is not there.
fn tool(name: &str, args: &[&str]) -> Option<(bool, String)> {
    let output = output(Command::new(name).args(args))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    Some((output.status.success(), text))
}

const STRINGS: &[&str] = &[
    "SET text some-text",
    "SET number 12345",
    "SET repeated aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    "SET expiring 1 PX 100000000",
    "SELECT 3",
    "SET text other",
    "MULTI",
    "INCR n",
    "SELECT 5",
    "APPEND text x",
    "EXEC",
    "SELECT 0",
    "DEL number",
    "SETRANGE range 3 abc",
];

#[test]
fn redis_check_aof_accepts_our_logs() {
    let dir = tempdir().unwrap();
    let (running, mut client) = start(logging(dir.path()));
    // The base has no filters: the tool does not know the module's type there. In the increments
    // filters are commands like any other.
    run(&mut client, STRINGS);
    run(&mut client, &["BGREWRITEAOF"]);
    until(&mut client, "aof_rewrites", "1");
    run(&mut client, STRINGS);
    run(
        &mut client,
        &[
            "BF.ADD f x",
            "BF.RESERVE g 0.01 100",
            "BF.INSERT h ITEMS a b",
        ],
    );
    drop(running);
    let manifest = dir.path().join("appendonlydir/appendonly.aof.manifest");
    let Some((fine, text)) = tool("redis-check-aof", &[manifest.to_str().unwrap()]) else {
        return;
    };
    assert!(fine, "{text}");
    assert!(
        text.contains("All AOF files and manifest are valid"),
        "{text}"
    );
}

/// Strings only: the tool has no modules, and refuses a file with a value of a module.
#[test]
fn redis_check_rdb_accepts_our_snapshots() {
    let dir = tempdir().unwrap();
    let (_running, mut client) = start(snapshots(dir.path()));
    run(&mut client, STRINGS);
    run(&mut client, &["SAVE"]);
    let file = dir.path().join("dump.rdb");
    let Some((fine, text)) = tool("redis-check-rdb", &[file.to_str().unwrap()]) else {
        return;
    };
    assert!(fine, "{text}");
    assert!(text.contains("Checksum OK"), "{text}");
    assert!(text.contains("keys read"), "{text}");
}

/// Every key with its value and its expiry.
fn contents(client: &mut Client) -> Vec<String> {
    let mut found = Vec::new();
    for db in 0..16 {
        run(client, &[&format!("SELECT {db}")]);
        let Reply::Array(keys) = client.line("KEYS *") else {
            panic!("an array")
        };
        for key in keys {
            let Reply::Bulk(key) = key else {
                panic!("a key")
            };
            let ask = |client: &mut Client, command: &str| {
                let reply = client.call(&[command.as_bytes(), &key]);
                format!("{reply:?}")
            };
            let (value, at) = (ask(client, "GET"), ask(client, "PEXPIRETIME"));
            found.push(format!("{db} {} {value} {at}", key.escape_ascii()));
        }
    }
    run(client, &["SELECT 0"]);
    found.sort();
    found
}

/// There and back: ours, then Redis, then ours again.
#[test]
fn redis_serves_our_directory_and_we_serve_redisses() {
    for appendonly in ["yes", "no"] {
        let dir = tempdir().unwrap();
        let settings = || match appendonly {
            "yes" => logging(dir.path()),
            _ => snapshots(dir.path()),
        };
        let (running, mut client) = start(settings());
        run(&mut client, STRINGS);
        if appendonly == "yes" {
            run(&mut client, &["BGREWRITEAOF"]);
            until(&mut client, "aof_rewrites", "1");
            run(
                &mut client,
                &["SET later 1", "SELECT 2", "SET later 2", "SELECT 0"],
            );
        } else {
            run(&mut client, &["SAVE"]);
        }
        let ours = contents(&mut client);
        drop(running);
        let path = dir.path().to_str().unwrap();
        let Some(redis) = Redis::start(&["--dir", path, "--appendonly", appendonly]) else {
            return;
        };
        let mut client = Client::connect(redis.addr);
        assert_eq!(contents(&mut client), ours, "{:?}", files(dir.path()));
        run(
            &mut client,
            &[
                "SET of-redis 1",
                "SELECT 4",
                "RPUSH l 1",
                "DEL l",
                "SET of-redis 2",
            ],
        );
        if appendonly == "yes" {
            run(&mut client, &["BGREWRITEAOF"]);
            until(&mut client, "aof_rewrite_in_progress", "0");
            assert_eq!(info(&mut client, "aof_last_bgrewrite_status"), "ok");
            run(&mut client, &["SET of-redis 3"]);
        } else {
            run(&mut client, &["SAVE"]);
        }
        let theirs = contents(&mut client);
        client.send(&["SHUTDOWN", "NOSAVE"]);
        assert_eq!(client.try_reply(), None);
        drop(redis);
        let (_running, mut client) = start(settings());
        assert_eq!(contents(&mut client), theirs);
    }
}
