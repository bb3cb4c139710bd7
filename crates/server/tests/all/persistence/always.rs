//! With `appendfsync always`, a reply leaves when the fsync of its change has returned, not before;
//! otherwise when the change is written. The disk of these tests holds every fsync until it is told
//! to go on.

use std::io::{self, ErrorKind, Read, Write};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use everbloom_files::storage::{FileStatus, Storage, StorageFile, Syncing};
use everbloom_resp::{Reply, encode_request};
use everbloom_server::{Running, Server, Settings};
use everbloom_store::Fsync;
use everbloom_store::persistence::Persistence;

use super::common::{info, logging, run, with};
use super::crashing::CrashingDisk;
use crate::support::{Client, OfRunning};

/// What holds the fsyncs of a disk.
#[derive(Debug, Default)]
struct Brake {
    state: Mutex<Held>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Held {
    on: bool,
    /// Fsyncs that have begun since it is on.
    begun: usize,
}

impl Brake {
    fn set(&self, on: bool) {
        *self.state.lock().unwrap() = Held { on, begun: 0 };
        self.changed.notify_all();
    }

    /// Returns once an fsync is held.
    fn wait_until_reached(&self) {
        let state = self.state.lock().unwrap();
        let (state, _) = self
            .changed
            .wait_timeout_while(state, Duration::from_secs(30), |state| state.begun == 0)
            .unwrap();
        let begun = state.begun;
        drop(state);
        assert!(begun > 0, "no fsync");
    }

    fn pass(&self) {
        let mut state = self.state.lock().unwrap();
        state.begun += 1;
        self.changed.notify_all();
        drop(self.changed.wait_while(state, |state| state.on).unwrap());
    }
}

/// Lets everything go on at the end of a test, also of one that failed.
struct ReleaseAtEnd(Arc<Brake>);

impl Drop for ReleaseAtEnd {
    fn drop(&mut self) {
        self.0.set(false);
    }
}

#[derive(Debug)]
struct HeldDisk(CrashingDisk, Arc<Brake>);

#[derive(Debug)]
struct HeldFile(Box<dyn StorageFile>, Arc<Brake>);

impl Write for HeldFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }
    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl StorageFile for HeldFile {
    fn sync(&mut self) -> io::Result<()> {
        self.1.pass();
        self.0.sync()
    }
    fn sync_elsewhere(&self) -> io::Result<Syncing> {
        let (sync, brake) = (self.0.sync_elsewhere()?, Arc::clone(&self.1));
        Ok(Box::new(move || {
            brake.pass();
            sync()
        }))
    }
    fn truncate(&mut self, len: u64) -> io::Result<()> {
        self.0.truncate(len)
    }
    fn status(&self) -> io::Result<FileStatus> {
        self.0.status()
    }
}

impl HeldDisk {
    fn held(&self, file: Box<dyn StorageFile>) -> Box<dyn StorageFile> {
        Box::new(HeldFile(file, Arc::clone(&self.1)))
    }
}

impl Storage for HeldDisk {
    fn create(&self, name: &str) -> io::Result<Box<dyn StorageFile>> {
        Ok(self.held(self.0.create(name)?))
    }
    fn append(&self, name: &str) -> io::Result<Box<dyn StorageFile>> {
        Ok(self.held(self.0.append(name)?))
    }
    fn read(&self, name: &str) -> io::Result<(Box<dyn Read + Send>, u64)> {
        self.0.read(name)
    }
    fn status(&self, name: &str) -> io::Result<FileStatus> {
        self.0.status(name)
    }
    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.0.rename(from, to)
    }
    fn remove(&self, name: &str) -> io::Result<()> {
        self.0.remove(name)
    }
    fn create_dir(&self, name: &str) -> io::Result<()> {
        self.0.create_dir(name)
    }
    fn sync_dir(&self, name: &str) -> io::Result<()> {
        self.0.sync_dir(name)
    }
    fn list(&self, name: &str) -> io::Result<Vec<String>> {
        self.0.list(name)
    }
}

fn start(brake: &Arc<Brake>, appendfsync: Fsync) -> Running {
    start_on(&CrashingDisk::new(), brake, appendfsync)
}

fn start_on(disk: &CrashingDisk, brake: &Arc<Brake>, appendfsync: Fsync) -> Running {
    let settings = Settings {
        bind: vec!["127.0.0.1".into()],
        port: 0,
        // One event loop: what it owes one client has left before it hears another one again.
        io_threads: 1,
        ..logging("unused".as_ref())
    };
    let settings = with(settings, |data| data.appendfsync = appendfsync);
    let storage = Arc::new(HeldDisk(disk.clone(), Arc::clone(brake)));
    let persistence = Persistence::on(storage, &settings.data);
    let running = Server::start_on(settings, Some(persistence)).unwrap();
    running.wait_until_loaded();
    running
}

/// Whether bytes have come that were not read.
fn is_answered(client: &Client) -> bool {
    client.stream.set_nonblocking(true).unwrap();
    let peeked = client.stream.peek(&mut [0]);
    client.stream.set_nonblocking(false).unwrap();
    match peeked {
        Ok(bytes) => bytes > 0,
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::WouldBlock);
            false
        }
    }
}

fn send(client: &mut Client, lines: &[&str]) {
    let mut out = Vec::new();
    for line in lines {
        encode_request(&line.split(' ').collect::<Vec<_>>(), &mut out);
    }
    client.stream.write_all(&out).unwrap();
}

#[test]
fn replies_wait_for_the_fsync() {
    let brake = Arc::new(Brake::default());
    let running = start(&brake, Fsync::Always);
    let _release = ReleaseAtEnd(Arc::clone(&brake));
    let mut other = Client::of(&running);
    run(&mut other, &["SET a 1", "BF.RESERVE f 0.0001 1000"]);
    let scenes = [
        &["SET a 2"][..],
        &["BF.ADD f x"],
        &["BF.MADD f m n"],
        &["FLUSHDB", "BF.RESERVE f 0.0001 1000"],
        // A run, a transaction, a read behind a change: nothing of it overtakes the change.
        &["BF.ADD f p", "BF.ADD f q", "BF.ADD f r"],
        &["MULTI", "BF.MADD f s t", "INCR a", "EXEC"],
        &["DEL a", "PING"],
    ];
    for (scene, lines) in scenes.into_iter().enumerate() {
        let mut client = Client::of(&running);
        brake.set(true);
        send(&mut client, lines);
        brake.wait_until_reached();
        // Who changes nothing is answered, and while that happens the reply could leave, too.
        for _ in 0..10 {
            run(&mut other, &["BF.EXISTS f x", "GET a"]);
        }
        assert!(!is_answered(&client), "{lines:?}");
        // So it is for those that come while the disk is at work.
        let mut late = Client::of(&running);
        send(&mut late, &[&format!("BF.ADD late {scene}")]);
        for _ in 0..10 {
            run(&mut other, &["BF.CARD f"]);
        }
        assert!(!is_answered(&late) && !is_answered(&client), "{lines:?}");
        brake.set(false);
        for line in lines {
            assert!(!client.reply().is_error(), "{line}");
        }
        assert_eq!(late.reply(), Reply::Integer(1));
    }
}

/// What the file of the log holds.
fn logged(disk: &CrashingDisk) -> String {
    let file = "appendonlydir/appendonly.aof.1.incr.aof";
    String::from_utf8_lossy(&disk.contents(file).unwrap()).into_owned()
}

#[test]
fn what_is_answered_is_written_also_during_an_fsync() {
    for appendfsync in [Fsync::EverySecond, Fsync::No] {
        let (brake, disk) = (Arc::new(Brake::default()), CrashingDisk::new());
        let running = start_on(&disk, &brake, appendfsync);
        let _release = ReleaseAtEnd(Arc::clone(&brake));
        let mut client = Client::of(&running);
        let mut answered = 0;
        let mut write = |client: &mut Client| {
            for _ in 0..50 {
                answered += 1;
                run(client, &[&format!("SET a before:{answered}:after")]);
                let wanted = format!("before:{answered}:after");
                assert!(logged(&disk).contains(&wanted), "{wanted}");
            }
        };
        brake.set(true);
        write(&mut client);
        if appendfsync == Fsync::EverySecond {
            brake.wait_until_reached();
            write(&mut client);
            assert_eq!(info(&mut client, "aof_pending_bio_fsync"), "1");
        }
    }
}

#[test]
fn an_fsync_that_takes_too_long_is_waited_for() {
    let brake = Arc::new(Brake::default());
    let running = start(&brake, Fsync::EverySecond);
    let _release = ReleaseAtEnd(Arc::clone(&brake));
    let (mut client, mut other) = (Client::of(&running), Client::of(&running));
    brake.set(true);
    run(&mut client, &["SET a 1"]);
    brake.wait_until_reached();
    std::thread::sleep(Duration::from_millis(2100));
    send(&mut client, &["SET a 2"]);
    std::thread::sleep(Duration::from_millis(200));
    assert_eq!(other.line("GET a"), Reply::bulk("2"));
    assert!(!is_answered(&client), "it was written beside a late fsync");
    assert_eq!(info(&mut other, "aof_delayed_fsync"), "1");
    brake.set(false);
    assert!(!client.reply().is_error());
    run(&mut client, &["SET a 3"]);
    assert_eq!(info(&mut other, "aof_delayed_fsync"), "1");
}
