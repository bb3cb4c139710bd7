//! A snapshot that fails: what is refused then, and how that ends.

use std::fs;
use std::path::Path;

use everbloom_server::window::misconf;
use tempfile::tempdir;

use super::common::{digest, info, logging, run, snapshots, start, until, with};

/// While a directory has the name of the file, no snapshot can be written. An AOF can.
fn block(dir: &Path) {
    fs::create_dir(dir.join("temp.rdb")).unwrap();
}

fn unblock(dir: &Path) {
    fs::remove_dir(dir.join("temp.rdb")).unwrap();
}

const REFUSED: &str = "MISCONF Redis is configured to save RDB snapshots";

#[test]
fn a_failed_snapshot_refuses_nothing_while_an_aof_holds_everything() {
    for job in ["SAVE", "BGSAVE"] {
        let dir = tempdir().unwrap();
        let settings = || with(logging(dir.path()), |data| data.save = vec![(3600, 1)]);
        let (running, mut client) = start(settings());
        let server = running.server();
        run(&mut client, &["SET a 1"]);
        block(dir.path());
        client.line(job);
        until(&mut client, "rdb_last_bgsave_status", "err");
        until(&mut client, "rdb_bgsave_in_progress", "0");
        run(&mut client, &["SET b 2", "BF.ADD f x", "PING"]);
        assert_eq!(misconf(server, &server.config.snapshot()), None);
        assert_eq!(info(&mut client, "aof_last_write_status"), "ok");
        // Without the AOF the snapshot counts again.
        run(&mut client, &["CONFIG SET appendonly no"]);
        assert!(client.error("SET c 3").starts_with(REFUSED));
        run(&mut client, &["CONFIG SET appendonly yes"]);
        until(&mut client, "aof_rewrites", "1");
        until(&mut client, "aof_rewrite_in_progress", "0");
        run(&mut client, &["SET c 3"]);
        // It is still said to have failed, and nothing but a good one ends that.
        assert_eq!(info(&mut client, "rdb_last_bgsave_status"), "err");
        unblock(dir.path());
        // A try that began while there was no AOF may still run.
        until(&mut client, "rdb_bgsave_in_progress", "0");
        run(&mut client, &["SAVE"]);
        assert_eq!(info(&mut client, "rdb_last_bgsave_status"), "ok");
        let before = digest(&mut client);
        drop(running);
        let (_running, mut client) = start(settings());
        assert_eq!(digest(&mut client), before);
    }
}

/// The save point is an hour away, so the failed snapshot itself is the reason for another.
#[test]
fn without_an_aof_a_failed_snapshot_is_tried_again_soon() {
    for job in ["SAVE", "BGSAVE"] {
        let dir = tempdir().unwrap();
        let settings = || with(snapshots(dir.path()), |data| data.save = vec![(3600, 1)]);
        let (running, mut client) = start(settings());
        run(&mut client, &["SET a 1"]);
        block(dir.path());
        client.line(job);
        until(&mut client, "rdb_last_bgsave_status", "err");
        assert!(client.error("SET b 2").starts_with(REFUSED));
        unblock(dir.path());
        until(&mut client, "rdb_last_bgsave_status", "ok");
        assert_eq!(info(&mut client, "rdb_saves"), "1");
        until(&mut client, "rdb_bgsave_in_progress", "0");
        run(&mut client, &["SET b 2", "SAVE"]);
        let before = digest(&mut client);
        drop(running);
        let (_running, mut client) = start(settings());
        assert_eq!(digest(&mut client), before);
    }
}

/// Nobody wants snapshots that have no save point.
#[test]
fn without_save_points_a_failed_snapshot_is_not_tried_again() {
    let dir = tempdir().unwrap();
    let (_running, mut client) = start(snapshots(dir.path()));
    block(dir.path());
    assert!(client.line("SAVE").is_error());
    unblock(dir.path());
    run(&mut client, &["SET a 1"]);
    std::thread::sleep(std::time::Duration::from_millis(1000));
    assert_eq!(info(&mut client, "rdb_last_bgsave_status"), "err");
    assert_eq!(info(&mut client, "rdb_saves"), "0");
}
