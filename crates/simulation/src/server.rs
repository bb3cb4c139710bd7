//! The real server on a simulated disk and machine, without sockets.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

use everbloom_files::Value;
use everbloom_files::rdb::payload;
use everbloom_resp::{Batch, DecodeLimits, Limits, Reply, RequestParser, decode, encode_request};
use everbloom_server::internals::{
    Client, Executed, Executor, Finished, Replayer, Session, Work, execute, registry,
};
use everbloom_server::{Server, Settings};
use everbloom_store::Fsync;
use everbloom_store::clock::Now;
use everbloom_store::keyspace::{DbSums, SHARDS};
use everbloom_store::limits::LOCKS_WITHOUT_PAUSE;
use everbloom_store::machine::{Machine, Running, before_next_lock};
use everbloom_store::persistence::{LogState, Persistence, load, log, schedule};

use crate::crashing::CrashingDisk;
use crate::machine::Simulated;
use crate::op::{Words, all_keys};
use crate::work::measure;

/// The server.
#[derive(Debug)]
pub struct Instance {
    /// The server itself.
    pub server: Arc<Server>,
    /// Its machine.
    pub machine: Simulated,
    /// Its disk.
    pub disk: CrashingDisk,
}

/// What is known of a key: when it expires, and a hash of the payload that DUMP gives.
pub type Digests = BTreeMap<String, (Option<u64>, u64)>;

/// The settings of a plan.
pub fn settings(plan: &[(&'static str, String)]) -> Settings {
    let mut settings = Settings {
        slowlog_log_slower_than: 0,
        // A forged header asks for no more than that.
        bf_max_filter_bytes: 64 << 20,
        ..Settings::default()
    };
    let data = &mut settings.data;
    for (name, value) in plan {
        match *name {
            "appendonly" => data.appendonly = value == "yes",
            "appendfsync" => {
                data.appendfsync = match value.as_str() {
                    "always" => Fsync::Always,
                    "everysec" => Fsync::EverySecond,
                    _ => Fsync::No,
                }
            }
            "save" => {
                let numbers: Vec<u64> = value.split(' ').flat_map(str::parse).collect();
                data.save = numbers
                    .chunks_exact(2)
                    .map(|pair| (pair[0], pair[1]))
                    .collect();
            }
            "rdbcompression" => data.rdbcompression = value == "yes",
            "maxmemory" => settings.maxmemory = value.parse().unwrap(),
            other => panic!("unknown setting {other}"),
        }
    }
    settings
}

impl Instance {
    /// Starts a server on what the disk has.
    pub fn start(
        disk: &CrashingDisk,
        machine: &Simulated,
        settings: Settings,
    ) -> Result<Self, String> {
        let shared = Arc::new(machine.clone());
        let persistence = Persistence::on_machine(Arc::new(disk.clone()), shared, &settings.data);
        let server = Server::new(settings, 1, registry().len(), Some(persistence));
        let persistence = server.store.persistence().unwrap();
        let log = load::load(&server.store, persistence, &mut Replayer::new(&server));
        let log = log.map_err(|problem| format!("the server does not start: {problem}"))?;
        log::begin(&server.store, persistence, log);
        Ok(Instance {
            machine: machine.clone(),
            disk: disk.clone(),
            server,
        })
    }

    /// Its files.
    pub fn persistence(&self) -> &Persistence {
        self.server.store.persistence().unwrap()
    }

    /// The log's writer writes what waits. While the disk hangs, a thread does that. Returns whether it has
    /// returned.
    pub fn write_log(&self) -> bool {
        if !self.disk.hangs() {
            log::write_waiting(&self.server.store, self.persistence());
            return true;
        }
        self.finish("fsync");
        // Another one would wait for the lock of these.
        if !self.runs("write") && !self.runs("log") {
            let server = Arc::clone(&self.server);
            self.on_thread("log", move || {
                if let Some(persistence) = server.store.persistence() {
                    log::write_waiting(&server.store, persistence);
                }
            });
        }
        !self.runs("write") && !self.runs("log")
    }

    /// Writes what waits if that is quick, as the thread of a connection does.
    fn write_log_now(&self) {
        if !self.disk.hangs() {
            log::write_now(&self.server.store);
            return;
        }
        let server = Arc::clone(&self.server);
        self.on_thread("write", move || log::write_now(&server.store));
    }

    /// Runs something on a thread, to its end or until it waits for the disk.
    fn on_thread(&self, name: &str, run: impl FnOnce() + Send + 'static) {
        let thread = self.machine.start(name, Box::new(run));
        thread.expect("a thread of the machine");
        self.finish(name);
    }

    /// Whether a thread of this name has not ended.
    pub fn runs(&self, name: &str) -> bool {
        let threads = self.machine.threads();
        threads.iter().any(|thread| thread.1 == name)
    }

    /// Lets the threads go on that a disk that hung has kept.
    pub fn end_hang(&self) {
        for name in ["fsync", "write", "log", "commands"] {
            self.finish(name);
        }
    }

    /// Whether there is a log that has all changes.
    pub fn keeps_log(&self) -> bool {
        let is_on = self.persistence().log_state() == LogState::On;
        is_on && self.server.store.journal.is_logging()
    }

    /// Where no log is kept and one is wanted, it must be being begun, or writes are refused.
    pub fn check_log(&self) -> Result<(), String> {
        let store = &self.server.store;
        let is_known = store.journal.is_logging()
            || !store.settings().appendonly
            || self.persistence().is_busy()
            || self.persistence().is_log_awaited()
            || store.health.is_log_failing()
            || store.failure().is_some();
        match is_known {
            true => Ok(()),
            false => Err("appendonly is yes, there is no log, and nothing says so".into()),
        }
    }

    /// Starts what is due.
    pub fn attend(&self) {
        schedule::attend(&self.server.store);
    }

    /// Removes expired keys and generations. Returns whether all are gone.
    pub fn expire(&self) -> bool {
        /// A step of a few keys may look only at times that are out of date.
        const IDLE_CALLS: u32 = 100;
        let store = &self.server.store;
        let mut idle = 0;
        while idle < IDLE_CALLS && store.keyspace.may_have_expired(self.machine.now().ms) {
            match store.remove_expired(self.machine.now()).any() {
                true => idle = 0,
                false => idle += 1,
            }
        }
        !store.keyspace.may_have_expired(self.machine.now().ms)
    }

    /// What windows need not remember is gone once it was removed, unless the log cannot take that.
    pub fn check_forgotten(&self) -> Result<(), String> {
        let (store, now) = (&self.server.store, self.machine.now().ms);
        if !store.can_log() || store.journal.backlog() > 0 {
            return Ok(());
        }
        let mut left = None;
        self.each(|key, expires_at, value| {
            let is_alive = expires_at.is_none_or(|at| at > now);
            if is_alive && value.outdated_at().is_some_and(|at| at <= now) {
                left = Some(key.to_owned());
            }
        });
        match left {
            None => Ok(()),
            Some(key) => Err(format!("{key} keeps a generation that has expired")),
        }
    }

    /// Lets all threads of this name go on to their ends.
    pub fn finish(&self, name: &str) {
        let threads = self.machine.threads();
        for (number, _) in threads.iter().filter(|thread| thread.1 == name) {
            self.machine.finish(*number);
        }
    }

    /// Lets the threads of this name go on to their next pause.
    fn step(&self, name: &str) {
        let threads = self.machine.threads();
        for (number, _) in threads.iter().filter(|thread| thread.1 == name) {
            self.machine.step(*number, 1);
        }
    }

    /// Cancels all threads, and lets them go on to their ends.
    pub fn end_threads(&self) {
        self.persistence().end_jobs();
        self.finish("work");
        self.finish("second");
        self.end_hang();
    }

    /// Ends as it does when it is asked to.
    pub fn stop(&self) {
        let store = &self.server.store;
        self.server.stop();
        store.journal.close();
        while log::write_waiting(store, self.persistence()) {}
        self.end_threads();
        if store.failure().is_none() {
            schedule::save_at_end(store, self.server.save_at_end());
        }
    }

    /// The keys with hashes of their values, those included that have expired.
    pub fn digests(&self) -> Digests {
        let mut digests = Digests::new();
        self.each(|key, expires_at, value| {
            digests.insert(key.to_owned(), (expires_at, digest(value)));
        });
        digests
    }

    /// The digest of a key's value.
    pub fn digest_of(&self, name: &str) -> Option<u64> {
        let mut found = None;
        self.each(|key, _, value| {
            if key == name {
                found = Some(digest(value));
            }
        });
        found
    }

    /// Looks at the value of a key.
    pub fn look<R>(&self, name: &[u8], look: impl FnOnce(&Value) -> R) -> Option<R> {
        let keyspace = &self.server.store.keyspace;
        let key = keyspace.key(0, name);
        let shard = keyspace.shard(key.shard()).read();
        let entry = shard.db(0).peek(key, self.machine.now().ms)?;
        Some(look(&entry.value))
    }

    /// Visits all keys. It looks only where they can be; [`Instance::check_totals`] looks everywhere.
    pub fn each(&self, mut visit: impl FnMut(&str, Option<u64>, &Value)) {
        let keyspace = &self.server.store.keyspace;
        let shards = all_keys().map(|key| keyspace.key(0, key.as_bytes()).shard());
        for index in shards.collect::<BTreeSet<usize>>() {
            let shard = keyspace.shard(index).read();
            for db in shard.dbs() {
                for (_, entry) in db.iter(0) {
                    let key = String::from_utf8_lossy(entry.key());
                    visit(&key, entry.expires_at(), &entry.value);
                }
            }
        }
    }

    /// Compares the totals that the keyspace keeps with those of a walk.
    pub fn check_totals(&self) -> Result<(), String> {
        let keyspace = &self.server.store.keyspace;
        let (mut memory, mut keys) = (0, 0);
        for index in 0..SHARDS {
            let shard = keyspace.shard(index).read();
            for db in shard.dbs() {
                let mut walked = DbSums::default();
                if !db.is_empty() {
                    db.iter(0)
                        .for_each(|(_, entry)| walked.add(DbSums::of(entry)));
                }
                if walked != *db.sums() {
                    return Err(format!(
                        "{:?} is counted, and there is {walked:?}",
                        db.sums()
                    ));
                }
                memory += db.memory();
                keys += db.len();
            }
        }
        let mut visited = 0;
        self.each(|_, _, _| visited += 1);
        if visited != keys {
            return Err(format!("{keys} keys are there, {visited} of them known"));
        }
        let counted = keyspace.memory();
        if memory != counted.cast_signed() {
            return Err(format!(
                "{counted} bytes are counted, and there are {memory}"
            ));
        }
        Ok(())
    }
}

/// A connection.
#[derive(Debug)]
pub struct Connection {
    /// `None` while a thread runs its commands.
    session: Option<Session>,
    waiting: Option<Waiting>,
    /// Whether the second thread runs its commands, until all have run.
    on_second: bool,
}

/// What a connection waits for with requests of which some have not run yet.
#[derive(Debug)]
enum Waiting {
    /// That its client reads the replies.
    Client(Batches),
    /// The thread that does the work of a command.
    Work(Batches, Receiver<Finished>, Box<dyn Running>),
    /// The thread that runs its commands.
    Commands(Receiver<Ran>, Box<dyn Running>),
}

/// Requests that came together, and the number of the next that has not run to its end.
#[derive(Debug)]
struct Batches {
    bytes: Vec<u8>,
    next: usize,
}

/// What has come of the requests of a connection.
#[derive(Debug, Default)]
pub struct Progress {
    /// The replies that it has now.
    pub replies: Vec<Reply>,
    /// The journal's position that they wait for.
    pub position: u64,
    /// Whether the first of them was made by a thread.
    pub offloaded: bool,
    /// Whether the second thread ran the commands.
    pub on_second: bool,
    /// How many bytes more than before there were at most.
    pub taken: usize,
}

impl Connection {
    /// A new connection.
    pub fn new() -> Self {
        Connection {
            session: Some(Session::new(Arc::new(Client::unlisted()), true)),
            waiting: None,
            on_second: false,
        }
    }

    /// Whether it waits for a thread, or for its client.
    pub fn is_waiting(&self) -> bool {
        self.waiting.is_some()
    }

    /// Whether it ends once its replies are sent.
    pub fn is_closing(&self) -> bool {
        self.session.as_ref().is_some_and(|it| it.closing)
    }

    /// Whether its commands wait for the disk.
    pub fn waits_for_disk(&self) -> bool {
        matches!(self.waiting, Some(Waiting::Commands(..))) && !self.on_second
    }

    /// Whether the second thread runs one of its commands.
    pub fn is_on_second(&self) -> bool {
        matches!(self.waiting, Some(Waiting::Commands(..))) && self.on_second
    }

    /// Lets the second thread run requests. After each command the turn of the connection is over, and before a
    /// command locks its keys, other threads may go on.
    pub fn send_to_second(&mut self, instance: &Instance, requests: &[Words]) -> Progress {
        self.on_second = true;
        self.send(instance, requests)
    }

    /// Runs requests that came together.
    pub fn send(&mut self, instance: &Instance, requests: &[Words]) -> Progress {
        let mut bytes = Vec::new();
        for request in requests {
            encode_request(request, &mut bytes);
        }
        self.run(instance, Batches { bytes, next: 0 }, None)
    }

    /// Goes on if the thread that it waits for has ended.
    pub fn go_on(&mut self, instance: &Instance) -> Option<Progress> {
        match self.waiting.take()? {
            Waiting::Client(batches) => Some(self.run(instance, batches, None)),
            Waiting::Work(batches, finished, thread) => match finished.try_recv() {
                Ok(finished) => Some(self.run(instance, batches, Some(finished))),
                Err(_) => {
                    self.waiting = Some(Waiting::Work(batches, finished, thread));
                    None
                }
            },
            Waiting::Commands(ran, thread) => match ran.try_recv() {
                Ok(ran) => Some(self.take(instance, ran)),
                Err(_) => {
                    self.waiting = Some(Waiting::Commands(ran, thread));
                    None
                }
            },
        }
    }

    /// Runs a request to its end, with its work. Returns the reply, and how many bytes more than before
    /// there were at most until another thread went on.
    pub fn ask(&mut self, instance: &Instance, request: Vec<u8>) -> (Reply, usize) {
        let batches = Batches {
            bytes: request,
            next: 0,
        };
        let mut progress = self.run(instance, batches, None);
        while self.is_waiting() {
            instance.finish("work");
            let more = self.go_on(instance).expect("the work has ended");
            progress.replies.extend(more.replies);
        }
        (progress.replies.remove(0), progress.taken)
    }

    /// Runs requests; on a thread while the disk hangs, which some commands wait for.
    fn run(
        &mut self,
        instance: &Instance,
        batches: Batches,
        finished: Option<Finished>,
    ) -> Progress {
        let session = self.session.take().expect("its commands have ended");
        let (server, now) = (Arc::clone(&instance.server), instance.machine.now());
        let on_second = self.on_second;
        let time = match on_second {
            true => Duration::ZERO,
            // However slow this machine is, a turn does not end by time.
            false => Duration::from_secs(3600),
        };
        let run = move || run_commands(&server, now, session, batches, finished, time);
        if !instance.disk.hangs() && !on_second {
            return self.take(instance, run());
        }
        let ((sender, ran), machine) = (mpsc::channel(), instance.machine.clone());
        let run = move || {
            if on_second {
                LOCKS_WITHOUT_PAUSE.set(0);
                before_next_lock(move || machine.sleep(Duration::ZERO));
            }
            // Nobody waits for it when the client has gone.
            let _ = sender.send(run());
        };
        let name = if on_second { "second" } else { "commands" };
        let thread = instance.machine.start(name, Box::new(run)).unwrap();
        match on_second {
            true => instance.step(name),
            false => instance.finish(name),
        }
        self.waiting = Some(Waiting::Commands(ran, thread));
        self.go_on(instance).unwrap_or_default()
    }

    /// Takes what its commands have come to.
    fn take(&mut self, instance: &Instance, ran: Ran) -> Progress {
        let mut session = ran.session;
        let position = std::mem::take(&mut session.written);
        self.session = Some(session);
        self.waiting = match ran.work {
            Some((work, request)) => {
                let (sender, finished) = mpsc::channel();
                let work = move || {
                    let args: Vec<&[u8]> = request.iter().map(Vec::as_slice).collect();
                    let _ = sender.send(work.run(&args));
                };
                let thread = instance.machine.start("work", Box::new(work)).unwrap();
                Some(Waiting::Work(ran.batches, finished, thread))
            }
            None => ran.is_left.then_some(Waiting::Client(ran.batches)),
        };
        let on_second = self.on_second;
        self.on_second &= self.waiting.is_some();
        if position > 0 {
            instance.write_log_now();
        }
        Progress {
            replies: ran.replies,
            position,
            offloaded: ran.offloaded,
            on_second,
            taken: ran.taken,
        }
    }
}

/// What the commands of a batch have come to.
#[derive(Debug)]
struct Ran {
    session: Session,
    batches: Batches,
    /// Whether there are requests that have not run.
    is_left: bool,
    /// The work of the next request, and its words.
    work: Option<(Work, Words)>,
    replies: Vec<Reply>,
    offloaded: bool,
    taken: usize,
}

fn run_commands(
    server: &Arc<Server>,
    now: Now,
    mut session: Session,
    batches: Batches,
    finished: Option<Finished>,
    time: Duration,
) -> Ran {
    let offloaded = finished.is_some();
    let (mut batch, mut out, mut args) = (Batch::default(), Vec::new(), Vec::new());
    let mut parser = RequestParser::new();
    let bytes = &batches.bytes;
    parser.parse(bytes, &Limits::default(), &mut batch).unwrap();
    batch.resolve(bytes, &mut args);
    let mut settings = server.config.snapshot();
    let start = Instant::now();
    let mut executor = Executor {
        server,
        stats: &server.workers[0],
        settings: &mut settings,
        session: &mut session,
        now,
        mark: start,
        until: start + time,
        last: None,
        out: &mut out,
    };
    // A batch with many replies goes on when its client has read them.
    let run = || execute(&mut executor, &batch, &args, batches.next, finished);
    let (Executed { next, work }, taken) = measure(run);
    let mut replies = Vec::new();
    decode_all(&mut out, &mut replies);
    let request = |args: &[&[u8]]| args.iter().map(|arg| arg.to_vec()).collect();
    Ran {
        is_left: next < batch.len(),
        work: work.map(|work| (work, request(&args[batch.range(next)]))),
        session,
        batches: Batches { next, ..batches },
        replies,
        offloaded,
        taken,
    }
}

impl Default for Connection {
    fn default() -> Self {
        Connection::new()
    }
}

/// The checksum of the payload that DUMP gives.
fn digest(value: &Value) -> u64 {
    let payload = payload::dump(value, false, usize::MAX).unwrap();
    u64::from_le_bytes(*payload.last_chunk().unwrap())
}

fn decode_all(out: &mut Vec<u8>, replies: &mut Vec<Reply>) {
    let mut from = 0;
    while let Some((reply, used)) = decode(&out[from..], &DecodeLimits::default()).unwrap() {
        replies.push(reply);
        from += used;
    }
    assert_eq!(from, out.len(), "whole replies");
    out.clear();
}
