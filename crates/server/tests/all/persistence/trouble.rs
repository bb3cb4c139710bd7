//! While data is loaded, and while files cannot be written.

use std::io::{self, Read};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use everbloom_files::storage::{Disk, Storage};
use everbloom_resp::Reply;
use everbloom_server::{Running, Server, Settings};
use everbloom_store::Fsync;
use everbloom_store::persistence::Persistence;
use tempfile::tempdir;

use super::common::{digest, info, logging, run, snapshots, start, until, with};
use super::crashing::CrashingDisk;
use super::full::is_unanswered;
use super::hooked::{Hooked, Hooks};
use crate::support::{Client, OfRunning};

/// A server on a disk that is none.
pub(crate) fn start_on(disk: &CrashingDisk, settings: Settings) -> (Running, Client) {
    let running = begin(Arc::new(disk.clone()), settings);
    running.wait_until_loaded();
    assert_eq!(running.server().store.failure(), None);
    let client = Client::of(&running);
    (running, client)
}

pub(crate) fn begin(storage: Arc<dyn Storage>, settings: Settings) -> Running {
    let settings = Settings {
        bind: vec!["127.0.0.1".into()],
        port: 0,
        ..settings
    };
    let persistence = Persistence::on(storage, &settings.data);
    Server::start_on(settings, Some(persistence)).unwrap()
}

/// Files are read only once somebody has opened the gate.
#[derive(Debug)]
struct GatedReads(Arc<Gate>);

#[derive(Debug, Default)]
struct Gate {
    open: Mutex<bool>,
    opened: Condvar,
    reached: AtomicBool,
}

impl Gate {
    fn open(&self) {
        *self.open.lock().unwrap() = true;
        self.opened.notify_all();
    }

    /// Returns once the gate is open.
    fn pass(&self) {
        self.reached.store(true, Ordering::Relaxed);
        let mut open = self.open.lock().unwrap();
        while !*open {
            open = self.opened.wait(open).unwrap();
        }
    }

    /// Returns once somebody waits at the gate.
    fn wait_until_reached(&self) {
        while !self.reached.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// Opens the gate at the end of a test that failed, so that its server can end.
struct OpenAtEnd(Arc<Gate>);

impl Drop for OpenAtEnd {
    fn drop(&mut self) {
        self.0.open();
    }
}

struct GatedFile(Box<dyn Read + Send>, Arc<Gate>);

impl Read for GatedFile {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        self.1.pass();
        self.0.read(buf)
    }
}

impl Hooks for GatedReads {
    fn read(&self, _: &str, file: Box<dyn Read + Send>) -> Box<dyn Read + Send> {
        Box::new(GatedFile(file, Arc::clone(&self.0)))
    }
}

/// A base of the log is created only once somebody has opened the gate.
#[derive(Debug)]
struct GatedBases(Arc<Gate>);

impl Hooks for GatedBases {
    fn creating(&self, name: &str) {
        if name.ends_with("temp.base.rdb") {
            self.0.pass();
        }
    }
}

/// A server without a log on a disk with such a gate, and what opens its gate.
fn begin_gated(disk: &CrashingDisk, settings: Settings) -> (Running, Arc<Gate>) {
    let gate = Arc::new(Gate::default());
    let storage = Hooked {
        disk: disk.clone(),
        hooks: GatedBases(Arc::clone(&gate)),
    };
    let running = begin(Arc::new(storage), settings);
    running.wait_until_loaded();
    (running, gate)
}

#[test]
fn clients_are_told_that_data_is_loaded() {
    let dir = tempdir().unwrap();
    let (running, mut client) = start(snapshots(dir.path()));
    run(&mut client, &["SET a 1", "SAVE"]);
    drop(running);
    let gate = Arc::new(Gate::default());
    let storage = Hooked {
        disk: Disk::new(dir.path()),
        hooks: GatedReads(Arc::clone(&gate)),
    };
    let running = begin(Arc::new(storage), snapshots(dir.path()));
    let _open = OpenAtEnd(Arc::clone(&gate));
    gate.wait_until_reached();
    let mut client = Client::of(&running);
    let loading = Reply::error("LOADING Redis is loading the dataset in memory");
    for line in [
        "GET a",
        "SET a 2",
        "BF.ADD f x",
        "BF.EXISTS f x",
        "DBSIZE",
        "KEYS *",
        "SAVE",
        "BGSAVE",
        "BGREWRITEAOF",
        "PING",
        "FLUSHALL",
        "DUMP a",
    ] {
        assert_eq!(client.line(line), loading, "{line}");
    }
    // A run of one command is refused like the command.
    for item in ["x", "y", "z"] {
        client.send(&["BF.ADD", "f", item]);
    }
    for _ in 0..3 {
        assert_eq!(client.reply(), loading);
    }
    run(
        &mut client,
        &[
            "HELLO 2",
            "CLIENT SETNAME me",
            "SELECT 1",
            "SELECT 0",
            "CONFIG GET port",
            "COMMAND COUNT",
        ],
    );
    run(&mut client, &["LASTSAVE", "INFO", "DEBUG SLEEP 0", "TIME"]);
    assert_eq!(info(&mut client, "loading"), "1");
    assert!(
        info(&mut client, "loading_total_bytes")
            .parse::<u64>()
            .unwrap()
            > 0
    );
    assert_eq!(info(&mut client, "loading_loaded_bytes"), "0");
    assert!(client.line("CONFIG SET appendonly yes").is_error());
    gate.open();
    running.wait_until_loaded();
    assert_eq!(client.line("GET a"), Reply::bulk("1"));
    assert_eq!(info(&mut client, "loading"), "0");
    assert_eq!(info(&mut client, "rdb_last_load_keys_loaded"), "1");
}

/// What is half loaded is not saved over what it is loaded from.
#[test]
fn a_server_stopped_while_it_loads_leaves_the_file_alone() {
    let dir = tempdir().unwrap();
    let (running, mut client) = start(snapshots(dir.path()));
    run(&mut client, &["SET a 1", "SAVE"]);
    drop(running);
    let file = std::fs::read(dir.path().join("dump.rdb")).unwrap();
    let gate = Arc::new(Gate::default());
    let storage = Hooked {
        disk: Disk::new(dir.path()),
        hooks: GatedReads(Arc::clone(&gate)),
    };
    let settings = with(snapshots(dir.path()), |data| data.save = vec![(1, 1)]);
    let running = begin(Arc::new(storage), settings);
    let _open = OpenAtEnd(Arc::clone(&gate));
    let mut client = Client::of(&running);
    assert!(client.line("SHUTDOWN SAVE").is_error());
    client.send(&["SHUTDOWN"]);
    assert_eq!(client.try_reply(), None);
    gate.open();
    assert_eq!(running.wait(), Ok(()));
    assert_eq!(std::fs::read(dir.path().join("dump.rdb")).unwrap(), file);
}

pub(crate) const LOG_TROUBLE: &str = "MISCONF Errors writing to the AOF file: ";

#[test]
fn writes_are_refused_while_the_log_cannot_be_written() {
    let disk = CrashingDisk::new();
    let settings = || logging("unused".as_ref());
    let (running, mut client) = start_on(&disk, settings());
    run(&mut client, &["SET a 1", "BF.ADD f x"]);
    until(&mut client, "aof_buffer_length", "0");
    // Room for half a command. Whether it will be in the log, nobody knows yet.
    disk.fail_writes_after(20);
    let mut waiting = Client::of(&running);
    waiting.send(&["SET", "b", "2"]);
    until(&mut client, "aof_last_write_status", "err");
    for line in ["SET c 3", "BF.ADD f y", "PING", "DEL a"] {
        let Reply::Error(text) = client.line(line) else {
            panic!("{line} was not refused")
        };
        assert!(text.starts_with(LOG_TROUBLE), "{text}");
        assert!(text.len() > LOG_TROUBLE.len(), "{text}");
    }
    assert_eq!(client.line("GET b"), Reply::bulk("2"));
    assert_eq!(client.line("BF.EXISTS f y"), Reply::Integer(0));
    assert!(is_unanswered(&waiting));
    disk.heal();
    until(&mut client, "aof_last_write_status", "ok");
    assert_eq!(waiting.reply(), Reply::OK);
    run(&mut client, &["SET d 4", "BF.ADD f z", "PING"]);
    let before = digest(&mut client);
    drop(running);
    let (_running, mut client) = start_on(&disk, settings());
    assert_eq!(digest(&mut client), before);
    assert_eq!(client.line("EXISTS a b c d"), Reply::Integer(3));
}

#[test]
fn failing_syncs_are_trouble_too() {
    let disk = CrashingDisk::new();
    let (_running, mut client) = start_on(&disk, logging("unused".as_ref()));
    disk.fail_syncs();
    run(&mut client, &["SET a 1"]);
    until(&mut client, "aof_last_write_status", "err");
    assert!(client.line("SET b 1").is_error());
    disk.heal();
    until(&mut client, "aof_last_write_status", "ok");
    run(&mut client, &["SET b 1"]);
    assert_eq!(info(&mut client, "aof_rewrites"), "1");
}

/// The next fsync works, and would say nothing of what the one before has lost.
#[test]
fn after_a_failed_fsync_the_log_is_rewritten_from_memory() {
    let disk = CrashingDisk::new();
    let (_running, mut client) = start_on(&disk, logging("unused".as_ref()));
    run(&mut client, &["BF.RESERVE f 0.001 300000"]);
    disk.lose_at_next_sync();
    run(&mut client, &["SET a 1", "BF.ADD f x"]);
    // No room for the rewrite yet.
    disk.limit(0);
    until(&mut client, "aof_last_write_status", "err");
    assert!(client.line("SET b 2").is_error());
    disk.heal();
    until(&mut client, "aof_rewrites", "1");
    until(&mut client, "aof_last_write_status", "ok");
    run(&mut client, &["SET b 2"]);
    // As after a loss of power: what no fsync has brought to the disk is gone.
    let (_other, mut client) = start_on(&disk.survivors(0), logging("unused".as_ref()));
    assert_eq!(client.line("GET a"), Reply::bulk("1"));
    assert_eq!(client.line("BF.EXISTS f x"), Reply::Integer(1));
}

/// The next start reads the log, which lacks what the fsync has lost, and not the snapshot.
#[test]
fn a_server_stops_only_once_a_lost_log_is_rewritten() {
    for save in [vec![], vec![(3600, 1)]] {
        let settings = || with(logging("unused".as_ref()), |data| data.save = save.clone());
        let disk = CrashingDisk::new();
        let (running, mut client) = start_on(&disk, settings());
        disk.lose_at_next_sync();
        run(&mut client, &["SET a 1"]);
        // No room for the rewrite.
        disk.limit(0);
        until(&mut client, "aof_last_write_status", "err");
        assert!(client.line("SHUTDOWN").is_error());
        disk.heal();
        client.send(&["SHUTDOWN"]);
        assert_eq!(client.try_reply(), None);
        assert_eq!(running.wait(), Ok(()));
        let (_other, mut client) = start_on(&disk.survivors(0), settings());
        assert_eq!(client.line("GET a"), Reply::bulk("1"));
    }
}

#[test]
fn a_lost_log_is_rewritten_also_if_always_is_set_meanwhile() {
    let disk = CrashingDisk::new();
    let (running, mut client) = start_on(&disk, logging("unused".as_ref()));
    disk.lose_at_next_sync();
    run(&mut client, &["SET a 1"]);
    disk.limit(0);
    until(&mut client, "aof_last_write_status", "err");
    run(&mut client, &["CONFIG SET appendfsync always"]);
    // Longer than the writer of the log waits.
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(running.server().store.failure(), None);
    disk.heal();
    until(&mut client, "aof_rewrites", "1");
    until(&mut client, "aof_last_write_status", "ok");
    run(&mut client, &["SET b 2"]);
    let (_other, mut client) = start_on(&disk.survivors(0), logging("unused".as_ref()));
    assert_eq!(client.line("EXISTS a b"), Reply::Integer(2));
}

/// The disk is full before there is a first base. So no log is kept, and the snapshot counts.
#[test]
fn with_always_a_log_that_cannot_be_begun_does_not_end_the_server() {
    let settings = || {
        with(snapshots("unused".as_ref()), |data| {
            data.appendfsync = Fsync::Always;
            data.save = vec![(3600, 1)];
        })
    };
    let disk = CrashingDisk::new();
    let (running, gate) = begin_gated(&disk, settings());
    let _open = OpenAtEnd(Arc::clone(&gate));
    let (mut client, mut waiting) = (Client::of(&running), Client::of(&running));
    run(&mut client, &["SET a 1", "CONFIG SET appendonly yes"]);
    gate.wait_until_reached();
    disk.fail_writes_after(0);
    waiting.send(&["SET", "b", "2"]);
    until(&mut client, "aof_last_write_status", "err");
    assert!(is_unanswered(&waiting));
    assert_eq!(running.server().store.failure(), None);
    gate.open();
    assert_eq!(waiting.reply(), Reply::OK, "no log is kept");
    run(&mut client, &["CONFIG SET appendonly no"]);
    disk.heal();
    client.send(&["SHUTDOWN"]);
    assert_eq!(client.try_reply(), None);
    assert_eq!(running.wait(), Ok(()));
    let (_other, mut client) = start_on(&disk, settings());
    assert_eq!(client.line("EXISTS a b"), Reply::Integer(2));
}

#[test]
fn a_log_switched_off_before_it_has_begun_has_not_failed() {
    let disk = CrashingDisk::new();
    let (running, gate) = begin_gated(&disk, snapshots("unused".as_ref()));
    let _open = OpenAtEnd(Arc::clone(&gate));
    let mut client = Client::of(&running);
    run(&mut client, &["SET a 1", "CONFIG SET appendonly yes"]);
    gate.wait_until_reached();
    run(&mut client, &["CONFIG SET appendonly no"]);
    gate.open();
    until(&mut client, "aof_rewrite_in_progress", "0");
    assert_eq!(info(&mut client, "aof_rewrites"), "0");
    assert_eq!(info(&mut client, "aof_last_bgrewrite_status"), "ok");
    let failures = info(&mut client, "aof_rewrites_consecutive_failures");
    assert_eq!(failures, "0");
}

#[test]
fn with_always_a_server_that_cannot_log_ends_and_answers_nobody() {
    let disk = CrashingDisk::new();
    let settings = || {
        with(logging("unused".as_ref()), |data| {
            data.appendfsync = Fsync::Always;
        })
    };
    let (running, mut client) = start_on(&disk, settings());
    run(&mut client, &["SET a 1"]);
    disk.fail_writes_after(0);
    client.send(&["SET", "b", "2"]);
    assert_eq!(client.try_reply(), None, "it is not on the disk");
    let why = running.wait().unwrap_err();
    assert!(why.starts_with("appendfsync is always"), "{why}");
    disk.heal();
    let (_running, mut client) = start_on(&disk, settings());
    assert_eq!(client.line("EXISTS a b"), Reply::Integer(1));
}

#[test]
fn writes_are_refused_after_a_snapshot_failed() {
    let disk = CrashingDisk::new();
    let settings = || {
        with(snapshots("unused".as_ref()), |data| {
            data.save = vec![(3600, 1)];
        })
    };
    let (running, mut client) = start_on(&disk, settings());
    run(&mut client, &["SET a 1"]);
    // What is queued while all is well is refused when it comes to it.
    let mut patient = Client::of(&running);
    patient.line("MULTI");
    assert_eq!(patient.line("SET a 2"), Reply::simple("QUEUED"));
    disk.fail_writes_after(0);
    assert!(client.line("SAVE").is_error());
    let refused = patient.line("EXEC");
    let start = "EXECABORT Transaction discarded because of: MISCONF Redis is configured";
    assert!(
        refused.as_error().unwrap().starts_with(start),
        "{refused:?}"
    );
    for line in ["SET b 2", "BF.ADD f x", "PING"] {
        let Reply::Error(text) = client.line(line) else {
            panic!("{line} was not refused")
        };
        let start = "MISCONF Redis is configured to save RDB snapshots, but it's currently unable";
        assert!(text.starts_with(start), "{text}");
    }
    assert_eq!(info(&mut client, "rdb_last_bgsave_status"), "err");
    assert_eq!(client.line("GET a"), Reply::bulk("1"));
    // A server whose keys cannot be saved does not stop.
    let refusal = Reply::error("ERR Errors trying to SHUTDOWN. Check logs.");
    assert_eq!(client.line("SHUTDOWN"), refusal);
    run(
        &mut client,
        &["CONFIG SET stop-writes-on-bgsave-error no", "SET b 2"],
    );
    run(&mut client, &["CONFIG SET stop-writes-on-bgsave-error yes"]);
    disk.heal();
    // One may be running: it is tried again.
    client.line("BGSAVE");
    until(&mut client, "rdb_last_bgsave_status", "ok");
    run(&mut client, &["SET c 3"]);
    drop(running);
    let (_running, mut client) = start_on(&disk, settings());
    assert_eq!(client.line("EXISTS a b c"), Reply::Integer(3));
}

/// Until there is a first base, no log is kept. All places say so, and nothing more is acknowledged.
#[test]
fn a_log_that_cannot_be_begun_refuses_writes_until_it_is_begun() {
    let disk = CrashingDisk::new();
    let off = || snapshots("unused".as_ref());
    let (running, mut client) = start_on(&disk, off());
    run(&mut client, &["SET a 1"]);
    disk.fail_writes_after(0);
    run(&mut client, &["CONFIG SET appendonly yes"]);
    until(&mut client, "aof_last_bgrewrite_status", "err");
    assert_eq!(info(&mut client, "aof_enabled"), "0");
    assert_eq!(info(&mut client, "aof_last_write_status"), "err");
    let text = client.error("SET b 1");
    let begins = format!("{LOG_TROUBLE}the log could not be begun: ");
    assert!(text.starts_with(&begins), "{text}");
    assert_eq!(client.line("EXISTS a b"), Reply::Integer(1));
    // There are no save points, so the keys would be lost.
    assert!(client.line("SHUTDOWN").is_error());
    // Switched off, it is no trouble any more.
    run(&mut client, &["CONFIG SET appendonly no", "SET b 1"]);
    assert_eq!(info(&mut client, "aof_last_write_status"), "ok");
    run(&mut client, &["CONFIG SET appendonly yes"]);
    until(&mut client, "aof_rewrites_consecutive_failures", "2");
    assert!(client.line("SET c 1").is_error());
    disk.heal();
    until(&mut client, "aof_last_bgrewrite_status", "ok");
    assert_eq!(info(&mut client, "aof_enabled"), "1");
    assert_eq!(info(&mut client, "aof_last_write_status"), "ok");
    run(&mut client, &["SET c 1"]);
    drop(running);
    let (_running, mut client) = start_on(&disk, logging("unused".as_ref()));
    assert_eq!(client.line("EXISTS a b c"), Reply::Integer(3));
}

#[test]
fn a_rewrite_that_fails_leaves_the_log_as_it_was() {
    let disk = CrashingDisk::new();
    let settings = || logging("unused".as_ref());
    let (running, mut client) = start_on(&disk, settings());
    run(
        &mut client,
        &[
            "CONFIG SET rdbcompression no",
            "SET a 1",
            "BF.RESERVE f 0.001 300000",
            "BF.ADD f x",
        ],
    );
    until(&mut client, "aof_buffer_length", "0");
    // Room for the new increment's name in the manifest, and not for the base.
    disk.fail_writes_after(10_000);
    run(&mut client, &["BGREWRITEAOF"]);
    until(&mut client, "aof_last_bgrewrite_status", "err");
    disk.heal();
    until(&mut client, "aof_last_write_status", "ok");
    run(&mut client, &["SET b 1"]);
    let before = digest(&mut client);
    drop(running);
    let (_running, mut client) = start_on(&disk, settings());
    assert_eq!(digest(&mut client), before);
    run(&mut client, &["BGREWRITEAOF"]);
    until(&mut client, "aof_rewrites", "1");
}
