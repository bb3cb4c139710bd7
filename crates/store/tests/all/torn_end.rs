//! The torn end of an AOF on a full disk: when a start's failed try to move it aside is repeated,
//! and what a try reads.

use std::io::{self, Read};
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use everbloom_files::storage::Storage;
use everbloom_resp::encode_request;
use everbloom_server::internals::{Replayer, registry};
use everbloom_server::{Server, Settings};
use everbloom_store::clock::Now;
use everbloom_store::machine::{Machine, Running, System, Work};
use everbloom_store::persistence::jobs::rewrite_in_background;
use everbloom_store::persistence::{Persistence, load, log};
use foldhash::quality::SeedableRandomState;

use crate::crashing::CrashingDisk;
use crate::hooked::{Hooked, Hooks};

/// A machine whose uptime is what the test says.
#[derive(Debug, Default)]
struct Stopwatch {
    system: System,
    uptime: Mutex<Duration>,
}

impl Machine for Stopwatch {
    fn now(&self) -> Now {
        self.system.now()
    }

    fn uptime(&self) -> Duration {
        *self.uptime.lock().unwrap()
    }

    fn key_hasher(&self) -> SeedableRandomState {
        self.system.key_hasher()
    }

    fn start(&self, name: &str, work: Work) -> io::Result<Box<dyn Running>> {
        self.system.start(name, work)
    }

    fn sleep(&self, time: Duration) {
        *self.uptime.lock().unwrap() += time;
    }
}

const MANIFEST: &str = "appendonlydir/appendonly.aof.manifest";
const INCREMENT: &str = "appendonlydir/appendonly.aof.1.incr.aof";
const COPY: &str = "appendonlydir/appendonly.aof.1.incr.aof.cut-1";
const TORN: &[u8] = b"*3\r\n$3\r\nSET\r\n$1\r\nb\r\n$5\r\nva";

/// How long a try takes on this disk.
const TRY: Duration = Duration::from_secs(5);

/// Notes the tries, and how much they read.
#[derive(Debug, Clone)]
struct Tries {
    machine: Arc<Stopwatch>,
    /// The machine's uptime at the beginning of each.
    began: Arc<Mutex<Vec<Duration>>>,
    /// The bytes that were read of the increment.
    read: Arc<AtomicUsize>,
}

impl Hooks for Tries {
    fn creating(&self, name: &str) {
        if name == COPY {
            self.began.lock().unwrap().push(self.machine.uptime());
            self.machine.sleep(TRY);
        }
    }

    fn read(&self, name: &str, file: Box<dyn Read + Send>) -> Box<dyn Read + Send> {
        match name {
            INCREMENT => Box::new(Counted(file, Arc::clone(&self.read))),
            _ => file,
        }
    }
}

struct Counted(Box<dyn Read + Send>, Arc<AtomicUsize>);

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.0.read(buffer)?;
        self.1.fetch_add(read, Relaxed);
        Ok(read)
    }
}

/// A disk with an AOF of 1 MB whose end is torn, and room for less than that end.
fn full_disk() -> CrashingDisk {
    let disk = CrashingDisk::new();
    disk.put(MANIFEST, b"file appendonly.aof.1.incr.aof seq 1 type i\n");
    let mut bytes = Vec::new();
    encode_request(&["SELECT", "0"], &mut bytes);
    encode_request(&["SET", "a", &"v".repeat(1 << 20)], &mut bytes);
    bytes.extend_from_slice(TORN);
    disk.put(INCREMENT, &bytes);
    disk.limit(TORN.len() - 1);
    disk
}

/// A server that has read the AOF of this disk and could not move its torn end aside.
fn start_behind_torn_end(storage: Arc<dyn Storage>, machine: &Arc<Stopwatch>) -> Arc<Server> {
    let mut settings = Settings::default();
    settings.data.appendonly = true;
    let persistence = Persistence::on_machine(storage, machine.clone(), &settings.data);
    let server = Server::new(settings, 1, registry().len(), Some(persistence));
    let store = &server.store;
    let persistence = store.persistence().unwrap();
    let loaded = load::load(store, persistence, &mut Replayer::new(&server)).unwrap();
    log::begin(store, persistence, loaded);
    assert!(!store.can_log());
    server
}

#[test]
fn the_tries_are_further_and_further_apart_and_read_the_torn_end_alone() {
    let (disk, machine) = (full_disk(), Arc::new(Stopwatch::default()));
    let tries = Tries {
        machine: Arc::clone(&machine),
        began: Arc::default(),
        read: Arc::default(),
    };
    let storage = Arc::new(Hooked {
        disk: disk.clone(),
        hooks: tries.clone(),
    });
    let server = start_behind_torn_end(storage, &machine);
    let store = &server.store;
    let persistence = store.persistence().unwrap();

    tries.read.store(0, Relaxed);
    while tries.began.lock().unwrap().len() < 9 {
        assert!(log::write_waiting(store, persistence));
        machine.sleep(Duration::from_millis(100));
    }
    let began = tries.began.lock().unwrap().clone();
    let pauses = began.windows(2).map(|pair| pair[1] - pair[0] - TRY);
    let pauses: Vec<u64> = pauses.map(|pause| pause.as_secs()).collect();
    assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 60, 60]);
    assert_eq!(tries.read.load(Relaxed), 8 * TORN.len());

    // A stop does not wait for the next try.
    disk.heal();
    store.journal.close();
    assert!(!log::write_waiting(store, persistence));
    assert_eq!(store.failure(), None);
    assert_eq!(disk.contents(COPY).unwrap(), TORN);
}

/// What somebody does to the AOF while its torn end waits for room.
type Meddle = fn(&CrashingDisk);

/// Cuts this many bytes off, in place.
fn cut(disk: &CrashingDisk, bytes: usize) {
    let len = disk.len(INCREMENT).unwrap() - bytes;
    let mut file = disk.append(INCREMENT).unwrap();
    file.truncate(len as u64).unwrap();
}

/// People are asked to make room, and told that `redis-check-aof --fix` cuts a torn end off.
#[test]
fn a_file_that_somebody_cuts_or_removes_before_its_torn_end_is_moved_is_written_again() {
    let meddles: [(&str, Meddle); 4] = [
        ("cut within what is whole", |disk| cut(disk, TORN.len() + 9)),
        ("emptied", |disk| cut(disk, disk.len(INCREMENT).unwrap())),
        ("removed", |disk| disk.remove(INCREMENT).unwrap()),
        ("left without its manifest", |disk| {
            disk.remove(MANIFEST).unwrap();
        }),
    ];
    for (name, meddle) in meddles {
        let (disk, machine) = (full_disk(), Arc::new(Stopwatch::default()));
        let server = start_behind_torn_end(Arc::new(disk.clone()), &machine);
        let store = &server.store;
        let persistence = store.persistence().unwrap();
        meddle(&disk);
        let len = disk.len(INCREMENT);
        disk.heal();
        for _ in 0..3 {
            machine.sleep(Duration::from_secs(1));
            assert!(log::write_waiting(store, persistence));
        }
        assert_eq!(disk.len(INCREMENT), len, "{name}: not made longer");
        assert!(!store.can_log() && !persistence.log_holds_all(), "{name}");

        rewrite_in_background(store).unwrap();
        while persistence.is_busy() {
            assert!(log::write_waiting(store, persistence));
            thread::yield_now();
        }
        assert!(log::write_waiting(store, persistence));
        assert!(store.can_log() && persistence.log_holds_all(), "{name}");
        // The torn end went with its file.
        assert_eq!(
            [INCREMENT, COPY].map(|it| disk.len(it)),
            [None; 2],
            "{name}"
        );
    }
}

/// A torn end that somebody else has cut off is moved no more, and nothing else is amiss.
#[test]
fn a_torn_end_that_somebody_has_cut_off_is_gone() {
    let (disk, machine) = (full_disk(), Arc::new(Stopwatch::default()));
    let server = start_behind_torn_end(Arc::new(disk.clone()), &machine);
    let store = &server.store;
    let persistence = store.persistence().unwrap();
    cut(&disk, TORN.len());
    let len = disk.len(INCREMENT);
    machine.sleep(Duration::from_secs(1));
    assert!(log::write_waiting(store, persistence));
    assert!(store.can_log() && persistence.log_holds_all());
    assert_eq!(disk.len(INCREMENT), len);
    assert_eq!(disk.contents(COPY), None);
}

/// Cuts the file within what is whole, once its torn end is being copied.
#[derive(Debug)]
struct Cutting(CrashingDisk);

impl Hooks for Cutting {
    fn creating(&self, name: &str) {
        if name == COPY {
            cut(&self.0, TORN.len() + 9);
        }
    }
}

#[test]
fn a_file_that_is_cut_while_its_torn_end_is_copied_is_not_made_longer() {
    let (disk, machine) = (full_disk(), Arc::new(Stopwatch::default()));
    let len = disk.len(INCREMENT).unwrap();
    disk.heal();
    let storage = Arc::new(Hooked {
        disk: disk.clone(),
        hooks: Cutting(disk.clone()),
    });
    let server = start_behind_torn_end(storage, &machine);
    let store = &server.store;
    let persistence = store.persistence().unwrap();
    machine.sleep(Duration::from_secs(1));
    assert!(log::write_waiting(store, persistence));
    assert!(!store.can_log() && !persistence.log_holds_all());
    assert_eq!(disk.len(INCREMENT), Some(len - TORN.len() - 9));
}
