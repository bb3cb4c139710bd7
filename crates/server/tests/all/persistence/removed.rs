//! The AOF's files are removed, renamed, replaced or changed by somebody else while the server
//! writes them.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use everbloom_dev::wait_for;
use everbloom_files::storage::Storage;
use everbloom_resp::{Reply, encode_request};
use everbloom_server::Running;
use everbloom_server::window::misconf;
use everbloom_store::Fsync;
use everbloom_store::persistence::log::check_files;
use tempfile::tempdir;

use super::common::{copy, digest, last_increment, logging, run, start, until, with};
use super::crashing::CrashingDisk;
use super::hooked::{Hooked, Hooks};
use super::trouble::{LOG_TROUBLE, begin, start_on};
use crate::support::{Client, OfRunning};

/// What somebody does to the files of a data directory.
type Meddle = fn(&Path);

fn manifest(dir: &Path) -> PathBuf {
    dir.join("appendonlydir/appendonly.aof.manifest")
}

fn base(dir: &Path) -> PathBuf {
    dir.join("appendonlydir/appendonly.aof.2.base.rdb")
}

/// Puts a copy of a file, with a change to its bytes, in its place.
fn replace(path: &Path, change: fn(&mut Vec<u8>)) {
    let mut bytes = fs::read(path).unwrap();
    change(&mut bytes);
    let other = path.with_extension("other");
    fs::write(&other, bytes).unwrap();
    fs::rename(other, path).unwrap();
}

const MEDDLES: [(&str, Meddle); 12] = [
    ("increment removed", |dir| {
        fs::remove_file(last_increment(dir)).unwrap();
    }),
    ("increment renamed", |dir| {
        fs::rename(last_increment(dir), dir.join("away")).unwrap();
    }),
    ("increment replaced by a copy", |dir| {
        replace(&last_increment(dir), |_| {});
    }),
    ("increment emptied", |dir| {
        fs::write(last_increment(dir), "").unwrap();
    }),
    ("base removed", |dir| fs::remove_file(base(dir)).unwrap()),
    ("base emptied", |dir| fs::write(base(dir), "").unwrap()),
    ("manifest removed", |dir| {
        fs::remove_file(manifest(dir)).unwrap();
    }),
    ("manifest of another AOF", |dir| {
        let other = "file appendonly.aof.1.incr.aof seq 1 type i\n";
        fs::write(manifest(dir), other).unwrap();
    }),
    ("manifest damaged", |dir| {
        replace(&manifest(dir), |bytes| bytes.truncate(bytes.len() / 2));
    }),
    ("increment renamed to a higher number", |dir| {
        let higher = dir.join("appendonlydir/appendonly.aof.9.incr.aof");
        fs::rename(last_increment(dir), higher).unwrap();
    }),
    ("files of higher numbers, and no manifest", |dir| {
        let folder = dir.join("appendonlydir");
        let increment = folder.join("appendonly.aof.9.incr.aof");
        fs::copy(last_increment(dir), increment).unwrap();
        fs::copy(base(dir), folder.join("appendonly.aof.9.base.rdb")).unwrap();
        fs::copy(base(dir), folder.join("appendonly.aof.3.base.rdb")).unwrap();
        fs::remove_file(manifest(dir)).unwrap();
    }),
    ("folder renamed", |dir| {
        fs::rename(dir.join("appendonlydir"), dir.join("away")).unwrap();
    }),
];

/// A server with a base and an increment that both hold something.
fn with_base_and_increment(dir: &Path) -> (Running, Client) {
    let (running, mut client) = start(logging(dir));
    run(&mut client, &["SET a 1", "BF.ADD f x", "BGREWRITEAOF"]);
    until(&mut client, "aof_rewrites", "1");
    until(&mut client, "aof_rewrite_in_progress", "0");
    run(&mut client, &["SET b 2", "BF.ADD f y"]);
    (running, client)
}

#[test]
fn meddled_files_are_noticed_and_written_again_from_memory() {
    let servers = MEDDLES.map(|(name, meddle)| {
        let dir = tempdir().unwrap();
        let (running, client) = with_base_and_increment(dir.path());
        meddle(dir.path());
        (name, dir, running, client)
    });
    for (name, dir, _running, mut client) in servers {
        println!("{name}");
        until(&mut client, "aof_rewrites", "2");
        until(&mut client, "aof_rewrite_in_progress", "0");
        until(&mut client, "aof_last_write_status", "ok");
        run(&mut client, &["SET c 3", "BF.ADD f z"]);
        assert_written_again(dir.path(), &mut client, name);
    }
}

/// What a kill leaves now holds all keys. Beside the files of the AOF there are only those that
/// somebody has put there, out of the way.
fn assert_written_again(dir: &Path, client: &mut Client, name: &str) {
    let before = digest(client);
    let killed = tempdir().unwrap();
    copy(dir, killed.path());
    let (_killed, mut client) = start(logging(killed.path()));
    assert_eq!(digest(&mut client), before, "{name}");
    let text = fs::read_to_string(manifest(dir)).unwrap();
    let named = text.lines().map(|line| line.split(' ').nth(1).unwrap());
    let strays: &[&str] = match name {
        "increment renamed to a higher number" => &["appendonly.aof.9.incr.aof.stray-1"],
        "files of higher numbers, and no manifest" => &[
            "appendonly.aof.3.base.rdb.stray-1",
            "appendonly.aof.9.base.rdb.stray-1",
            "appendonly.aof.9.incr.aof.stray-1",
        ],
        _ => &[],
    };
    let named: BTreeSet<String> = named
        .chain(["appendonly.aof.manifest"])
        .chain(strays.iter().copied())
        .map(String::from)
        .collect();
    let entries = fs::read_dir(dir.join("appendonlydir")).unwrap();
    let found = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    assert_eq!(found.collect::<BTreeSet<_>>(), named, "{name}");
}

/// A write that went to the place where the file ended would leave a hole before it, and the length
/// would be right.
#[test]
fn a_file_that_is_emptied_between_two_writes_is_noticed() {
    let dir = tempdir().unwrap();
    let (_running, mut client) = with_base_and_increment(dir.path());
    fs::write(last_increment(dir.path()), "").unwrap();
    run(&mut client, &["SET c 3"]);
    until(&mut client, "aof_rewrites", "2");
    until(&mut client, "aof_rewrite_in_progress", "0");
    until(&mut client, "aof_last_write_status", "ok");
    assert_written_again(dir.path(), &mut client, "emptied between two writes");
}

/// The lengths are those that the start has read.
#[test]
fn files_that_are_cut_right_after_a_start_are_noticed() {
    let meddles: [(&str, Meddle); 2] = [
        ("base emptied", |dir| fs::write(base(dir), "").unwrap()),
        ("earlier increment emptied", |dir| {
            let earlier = dir.join("appendonlydir/appendonly.aof.2.incr.aof");
            fs::write(earlier, "").unwrap();
        }),
    ];
    let servers = meddles.map(|(name, meddle)| {
        let dir = tempdir().unwrap();
        let (running, _client) = with_base_and_increment(dir.path());
        drop(running);
        // A rewrite that fails leaves one more increment.
        let further = "appendonlydir/appendonly.aof.3.incr.aof";
        let mut text = fs::read_to_string(manifest(dir.path())).unwrap();
        text.push_str("file appendonly.aof.3.incr.aof seq 3 type i\n");
        fs::write(manifest(dir.path()), text).unwrap();
        let mut bytes = Vec::new();
        encode_request(&["SELECT", "0"], &mut bytes);
        encode_request(&["SET", "c", "3"], &mut bytes);
        fs::write(dir.path().join(further), bytes).unwrap();
        let (running, mut client) = start(logging(dir.path()));
        meddle(dir.path());
        assert_eq!(client.line("EXISTS a b c f"), Reply::Integer(4));
        (name, dir, running, client)
    });
    for (name, dir, _running, mut client) in servers {
        until(&mut client, "aof_rewrites", "1");
        until(&mut client, "aof_rewrite_in_progress", "0");
        until(&mut client, "aof_last_write_status", "ok");
        assert_written_again(dir.path(), &mut client, name);
    }
}

#[test]
fn an_aof_in_use_is_not_taken_for_a_meddled_one() {
    let dir = tempdir().unwrap();
    let (running, mut client) = with_base_and_increment(dir.path());
    // A manifest with the same lines is no harm, as an editor or a backup may leave it.
    replace(&manifest(dir.path()), |_| {});
    for round in 0..30 {
        run(&mut client, &[&format!("SET b {round}")]);
        let rewrites = round % 10 == 5;
        if rewrites {
            run(&mut client, &["BGREWRITEAOF"]);
        }
        check_files(&running.server().store);
        if rewrites {
            until(&mut client, "aof_rewrite_in_progress", "0");
        }
    }
    assert_eq!(client.info("aof_rewrites"), "4");
    assert_eq!(client.info("aof_last_write_status"), "ok");
}

const INCREMENT: &str = "appendonlydir/appendonly.aof.1.incr.aof";

#[test]
fn writes_are_refused_until_an_aof_without_its_file_is_rewritten() {
    let refuse = |fsync| {
        let settings = || with(logging("unused".as_ref()), |data| data.appendfsync = fsync);
        let disk = CrashingDisk::new();
        let (running, mut client) = start_on(&disk, settings());
        run(&mut client, &["SET a 1", "BF.ADD f x"]);
        // No room for the rewrite yet.
        disk.fail_writes_after(0);
        disk.remove(INCREMENT).unwrap();
        until(&mut client, "aof_last_write_status", "err");
        let why = client.error("SET b 2");
        assert!(why.starts_with(LOG_TROUBLE), "{why}");
        assert!(why.contains(INCREMENT) && why.contains("removed"), "{why}");
        let server = running.server();
        let ready = misconf(server, &server.config.snapshot());
        assert_eq!(ready.as_deref(), Some(why.as_str()));
        // The data is in memory alone, so it ends with `always` no more than without.
        assert_eq!(server.store.failure(), None);
        until(&mut client, "aof_last_bgrewrite_status", "err");
        assert_eq!(client.error("SET b 2"), why, "the reason stays the same");
        disk.heal();
        until(&mut client, "aof_rewrites", "1");
        until(&mut client, "aof_last_write_status", "ok");
        run(&mut client, &["SET b 2"]);
        let before = digest(&mut client);
        let (_killed, mut client) = start_on(&disk.after_kill(), settings());
        assert_eq!(digest(&mut client), before);
    };
    std::thread::scope(|scope| {
        for fsync in [Fsync::EverySecond, Fsync::Always, Fsync::No] {
            scope.spawn(move || refuse(fsync));
        }
    });
}

/// What of a failed write is in a file that somebody has emptied may be as long as the file was.
#[test]
fn a_file_that_is_emptied_before_a_part_of_a_write_is_noticed() {
    let settings = || logging("unused".as_ref());
    let disk = CrashingDisk::new();
    let (running, mut client) = start_on(&disk, settings());
    run(&mut client, &["SET a 1", "BF.ADD f x"]);
    disk.fail_writes_after(0);
    let mut waiting = Client::of(&running);
    waiting.send(&["SET", "b", &"x".repeat(1000)]);
    until(&mut client, "aof_last_write_status", "err");
    let before = disk.len(INCREMENT).unwrap() as u64;
    disk.append(INCREMENT).unwrap().truncate(0).unwrap();
    disk.fail_writes_after(before + 10);
    wait_for("the check", || {
        client.error("SET c 3").contains("was changed")
    });
    disk.heal();
    assert_eq!(waiting.reply(), Reply::OK);
    until(&mut client, "aof_last_write_status", "ok");
    let before = digest(&mut client);
    let (_killed, mut client) = start_on(&disk.after_kill(), settings());
    assert_eq!(digest(&mut client), before);
}

/// Without a manifest nobody knows what they are. They may be the only copy.
#[test]
fn files_without_a_manifest_are_kept_when_another_aof_begins() {
    let dir = tempdir().unwrap();
    let (running, _client) = with_base_and_increment(dir.path());
    drop(running);
    let [base, increment] = [base(dir.path()), last_increment(dir.path())];
    fs::remove_file(manifest(dir.path())).unwrap();
    let bytes = [&base, &increment].map(|path| fs::read(path).unwrap());
    let without = with(logging(dir.path()), |data| data.appendonly = false);
    let (_running, mut client) = start(without);
    run(&mut client, &["CONFIG SET appendonly yes"]);
    until(&mut client, "aof_rewrites", "1");
    until(&mut client, "aof_rewrite_in_progress", "0");
    for (path, bytes) in [base, increment].iter().zip(bytes) {
        let aside = format!("{}.stray-1", path.display());
        assert_eq!(fs::read(aside).unwrap(), bytes);
    }
}

/// A write that fails is cut off again. That must not make a file longer that somebody has emptied
/// for its room: it would look as it was written.
#[test]
fn a_file_that_is_emptied_while_the_disk_is_full_is_noticed() {
    let settings = || logging("unused".as_ref());
    let disk = CrashingDisk::new();
    let (running, mut client) = start_on(&disk, settings());
    run(&mut client, &["SET a 1", "BF.ADD f x"]);
    disk.fail_writes_after(0);
    let mut waiting = Client::of(&running);
    waiting.send(&["SET", "b", "2"]);
    until(&mut client, "aof_last_write_status", "err");
    disk.append(INCREMENT).unwrap().truncate(0).unwrap();
    wait_for("the check", || {
        client.error("SET c 3").contains("was changed")
    });
    assert_eq!(disk.len(INCREMENT), Some(0));
    disk.heal();
    assert_eq!(waiting.reply(), Reply::OK);
    until(&mut client, "aof_last_write_status", "ok");
    let before = digest(&mut client);
    let (_killed, mut client) = start_on(&disk.after_kill(), settings());
    assert_eq!(digest(&mut client), before);
}

/// Removes the file that is written, and puts one of a higher number there. Returns whether the
/// process was killed at operation `n` of the disk after that.
fn kill_during_the_rewrite(n: u64) -> bool {
    let settings = || logging("unused".as_ref());
    let disk = CrashingDisk::new();
    let (running, mut client) = start_on(&disk, settings());
    run(&mut client, &["SET a 1", "BF.ADD f x"]);
    let higher = INCREMENT.replace(".1.", ".9.");
    let put = disk.contents(INCREMENT).unwrap();
    disk.put(&higher, &put);
    disk.remove(INCREMENT).unwrap();
    disk.crash_at(disk.operations() + n);
    check_files(&running.server().store);
    wait_for("the rewrite", || {
        disk.crashed() || client.info("aof_rewrites") == "1"
    });
    let killed = disk.after_kill();
    killed.heal();
    let running = begin(Arc::new(killed.clone()), settings());
    running.wait_until_loaded();
    if running.server().store.health.is_loading() {
        // Before the rewrite has ended, the file that was put there is named.
        let why = running.wait().unwrap_err();
        let is_named = why.contains("expected a line for") && why.contains(&higher);
        assert!(is_named, "{n}: {why}");
    } else {
        let mut client = Client::of(&running);
        assert_eq!(client.line("EXISTS a f"), Reply::Integer(2), "{n}");
        let aside = killed.contents(&format!("{higher}.stray-1"));
        assert_eq!(aside.or(killed.contents(&higher)), Some(put), "{n}");
    }
    disk.crashed()
}

#[test]
fn a_rewrite_of_a_meddled_aof_may_end_at_any_moment() {
    let killed = std::thread::scope(|scope| {
        let kills = (1..=48).map(|n| scope.spawn(move || kill_during_the_rewrite(n)));
        let kills: Vec<_> = kills.collect();
        kills
            .into_iter()
            .map(|kill| kill.join().unwrap())
            .collect::<Vec<bool>>()
    });
    assert_eq!((killed[0], killed[20], killed[47]), (true, true, false));
}

const HIGHER: &str = "appendonlydir/appendonly.aof.9.incr.aof";

/// Somebody puts a file there once the rewrite of a lost log has chosen the number of its own.
#[derive(Debug)]
struct Putting(CrashingDisk);

impl Hooks for Putting {
    fn creating(&self, name: &str) {
        if name == INCREMENT.replace(".1.", ".2.") {
            self.0.put(HIGHER, b"what somebody put there");
        }
    }
}

/// Returns whether the process was killed at operation `n` of the disk after the log was lost.
fn kill_once_a_file_of_a_higher_number_is_there(n: u64) -> bool {
    let settings = || logging("unused".as_ref());
    let disk = CrashingDisk::new();
    let hooks = Putting(disk.clone());
    let running = begin(
        Arc::new(Hooked {
            disk: disk.clone(),
            hooks,
        }),
        settings(),
    );
    running.wait_until_loaded();
    let mut client = Client::of(&running);
    run(&mut client, &["SET a 1", "BF.ADD f x"]);
    disk.lose_at_next_sync();
    disk.crash_at(disk.operations() + n);
    wait_for("the rewrite", || {
        disk.crashed() || client.info("aof_rewrites") != "0"
    });
    let killed = disk.after_kill();
    killed.heal();
    // It might be that of the log, renamed. So it stays where a start asks for it.
    assert_eq!(killed.contents(&format!("{HIGHER}.stray-1")), None, "{n}");
    let running = begin(Arc::new(killed.clone()), settings());
    running.wait_until_loaded();
    if running.server().store.health.is_loading() {
        let why = running.wait().unwrap_err();
        let is_named = why.contains("expected a line for") && why.contains(HIGHER);
        assert!(is_named, "{n}: {why}");
        // Nothing else is amiss.
        killed.rename(HIGHER, "away").unwrap();
        let (_running, mut client) = start_on(&killed, settings());
        assert_eq!(client.line("EXISTS a f"), Reply::Integer(2), "{n}");
    } else {
        let mut client = Client::of(&running);
        assert_eq!(client.line("EXISTS a f"), Reply::Integer(2), "{n}");
    }
    disk.crashed()
}

#[test]
fn a_file_of_a_higher_number_does_not_become_history() {
    let killed = std::thread::scope(|scope| {
        let kills =
            (1..=40).map(|n| scope.spawn(move || kill_once_a_file_of_a_higher_number_is_there(n)));
        let kills: Vec<_> = kills.collect();
        kills
            .into_iter()
            .map(|kill| kill.join().unwrap())
            .collect::<Vec<bool>>()
    });
    assert_eq!((killed[0], killed[39]), (true, false));
}

/// The files are looked at once more, however short the time since they were removed.
#[test]
fn a_server_that_stops_rewrites_an_aof_that_was_just_removed() {
    let dir = tempdir().unwrap();
    let (running, mut client) = with_base_and_increment(dir.path());
    let before = digest(&mut client);
    fs::remove_dir_all(dir.path().join("appendonlydir")).unwrap();
    client.send(&["SHUTDOWN"]);
    assert_eq!(client.try_reply(), None);
    assert_eq!(running.wait(), Ok(()));
    let (running, mut client) = start(logging(dir.path()));
    assert_eq!(digest(&mut client), before);
    // So it is for a signal.
    fs::remove_file(last_increment(dir.path())).unwrap();
    assert_eq!(running.server().save_before_stop(), Ok(()));
    running.server().stop();
    assert_eq!(running.wait(), Ok(()));
    let (running, mut client) = start(logging(dir.path()));
    assert_eq!(digest(&mut client), before);
    // Where nobody asks first, the exit code says that the data is gone.
    assert_eq!(client.line("SET a 2"), Reply::OK);
    fs::remove_file(last_increment(dir.path())).unwrap();
    running.server().stop();
    let why = running.wait().unwrap_err();
    assert!(why.contains("incr.aof was removed"), "{why}");
}
