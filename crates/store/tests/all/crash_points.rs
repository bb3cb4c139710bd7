//! The storage loses its power at every single operation of a scripted run: whatever it leaves
//! behind, the next start takes it up, and everything that was acknowledged is there, whole and in
//! order.
//!
//! A *life* is a run of the script up to operation `n` of the disk. What the disk may hold then is
//! chosen by a seed ([`CrashingDisk::survivors`]); each choice is a *point*. At every point a new
//! server starts on what is left, and its keys must be those of the script after `k` commands, with
//! `k` from the number that was acknowledged to the number that was sent. At some points more
//! happens: the power goes again during the start; the new server goes on, and loses its power,
//! too; only the process dies first, and the power goes later.
//!
//! Commands have a clock of their own, far ahead of the system's, so that every life has the same
//! expiries.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs
)]

#[path = "../../../files/tests/support/crashing.rs"]
mod crashing;

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crashing::CrashingDisk;
use everbloom_files::rdb::payload;
use everbloom_resp::{Batch, DecodeLimits, Limits, Reply, RequestParser, decode, encode_request};
use everbloom_server::internals::Client;
use everbloom_server::internals::Replayer;
use everbloom_server::internals::Session;
use everbloom_server::internals::Turn;
use everbloom_server::internals::execute;
use everbloom_server::internals::registry;
use everbloom_server::{Server, Settings};
use everbloom_store::Fsync;
use everbloom_store::clock::Now;
use everbloom_store::keyspace::SHARDS;
use everbloom_store::persistence::load::{self, LoadError};
use everbloom_store::persistence::{Persistence, jobs, log};

const DATABASES: usize = 4;
/// A day: the clock of the commands is so far ahead.
const AHEAD: u64 = 86_400_000;
/// How much that clock goes on from step to step.
const STEP_MS: u64 = 500;

type Command = Vec<Vec<u8>>;

/// The keys: database and name, with expiry, length and hash of the payload that DUMP would give.
type State = BTreeMap<(usize, String), (Option<u64>, usize, u64)>;

fn settings(appendonly: bool, appendfsync: Fsync) -> Settings {
    let mut settings = Settings::default();
    settings.data.appendonly = appendonly;
    settings.data.appendfsync = appendfsync;
    settings.data.databases = DATABASES;
    settings
}

fn words(line: &str) -> Command {
    line.split(' ')
        .map(|word| word.as_bytes().to_vec())
        .collect()
}

/// A server without sockets and the one client it has.
struct Machine {
    server: Arc<Server>,
    keeper: Option<JoinHandle<()>>,
    session: Session,
}

impl Machine {
    fn start(disk: &CrashingDisk, settings: Settings) -> Result<Self, LoadError> {
        let persistence = Persistence::on(Arc::new(disk.clone()), &settings.data);
        let server = Server::new(settings, 1, registry().len(), Some(persistence));
        let log = load::load(
            &server.store,
            server.store.persistence().unwrap(),
            &mut Replayer::new(&server),
        )?;
        let shared = Arc::clone(&server);
        let keeper = thread::spawn(move || {
            log::run(&shared.store, shared.store.persistence().unwrap(), log);
        });
        let client = Arc::new(Client::unlisted());
        Ok(Machine {
            server,
            keeper: Some(keeper),
            session: Session::new(client, true),
        })
    }

    /// Runs commands that came together; returns their replies.
    fn run(&mut self, commands: &[Command], now: Now) -> Vec<Reply> {
        let (mut bytes, mut batch, mut out) = (Vec::new(), Batch::default(), Vec::new());
        for command in commands {
            encode_request(command, &mut bytes);
        }
        let limits = Limits::default();
        RequestParser::new()
            .parse(&bytes, &limits, &mut batch)
            .unwrap();
        let mut args = Vec::new();
        batch.resolve(&bytes, &mut args);
        let mut settings = self.server.config.snapshot();
        let start = Instant::now();
        let mut turn = Turn {
            server: &self.server,
            stats: &self.server.workers[0],
            settings: &mut settings,
            session: &mut self.session,
            now,
            mark: start,
            begun: start,
            last: None,
            out: &mut out,
        };
        let mut next = 0;
        while next < batch.len() {
            turn.begun = turn.mark;
            let executed = execute(&mut turn, &batch, &args, next, None);
            assert!(executed.work.is_none(), "no value is large");
            next = executed.next;
        }
        let mut replies = Vec::new();
        let mut from = 0;
        while let Some((reply, used)) = decode(&out[from..], &DecodeLimits::default()).unwrap() {
            replies.push(reply);
            from += used;
        }
        replies
    }

    /// Whether the replies to what has run may leave: waits for the disk as a connection does.
    fn acknowledged(&mut self) -> bool {
        let written = std::mem::take(&mut self.session.written);
        if written == 0 {
            return true;
        }
        let deadline = Instant::now() + Duration::from_secs(60);
        while self.server.store.journal.written() < written {
            self.server.store.journal.nudge();
            if self.server.store.failure().is_some() || !self.server.store.can_log() {
                return false;
            }
            assert!(
                Instant::now() < deadline,
                "the log is written or the server fails"
            );
            thread::sleep(Duration::from_micros(20));
        }
        true
    }

    /// Waits for work in the background.
    fn settle(&self) {
        while self.server.store.persistence().unwrap().is_busy()
            && self.server.store.failure().is_none()
        {
            thread::sleep(Duration::from_micros(100));
        }
    }

    fn state(&self) -> State {
        state_of(&self.server)
    }

    /// Ends the server in good order, as far as the disk lets it.
    fn stop(mut self) {
        self.end();
    }

    fn end(&mut self) {
        let Some(keeper) = self.keeper.take() else {
            return;
        };
        self.server.store.persistence().unwrap().end_jobs();
        self.server.store.journal.close();
        keeper.join().unwrap();
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        self.end();
    }
}

/// All keys, those included whose time has come.
fn state_of(server: &Server) -> State {
    let mut state = State::new();
    for index in 0..SHARDS {
        let shard = server.store.keyspace.shard(index).read();
        for (number, db) in shard.dbs().iter().enumerate() {
            for (_, entry) in db.iter(0) {
                let payload = payload::dump(&entry.value, false, usize::MAX).unwrap();
                let mut hasher = DefaultHasher::new();
                payload.hash(&mut hasher);
                let name = String::from_utf8_lossy(entry.key()).into_owned();
                let value = (entry.expires_at(), payload.len(), hasher.finish());
                state.insert((number, name), value);
            }
        }
    }
    state
}

/// Without what has expired at `ms`.
fn alive(state: &State, ms: u64) -> State {
    let alive = |at: Option<u64>| at.is_none_or(|at| at > ms);
    let kept = state.iter().filter(|(_, value)| alive(value.0));
    kept.map(|(key, value)| (key.clone(), *value)).collect()
}

/// What the two differ in.
fn difference(found: &State, wanted: &State) -> String {
    let mut text = String::new();
    for key in found
        .keys()
        .chain(wanted.keys().filter(|key| !found.contains_key(*key)))
    {
        let (found, wanted) = (found.get(key), wanted.get(key));
        if found != wanted {
            text.push_str(&format!("\n  {key:?}: found {found:?}, wanted {wanted:?}"));
        }
    }
    text
}

enum Step {
    /// Commands sent together, whose replies are then waited for.
    Send(Vec<Command>),
    Save,
    SaveInBackground,
    Rewrite,
    /// Begins a log.
    Begin,
    /// Switches the log off.
    End,
    /// Waits for what runs in the background.
    Settle,
}

struct Script {
    name: &'static str,
    /// Whether the server keeps a log from the start.
    appendonly: bool,
    /// Files that are there before.
    files: Vec<(&'static str, Vec<u8>)>,
    steps: Vec<Step>,
    start: Now,
}

impl Script {
    fn new(name: &'static str, appendonly: bool) -> Self {
        let mut start = Now::read();
        start.ms += AHEAD;
        Script {
            name,
            appendonly,
            files: Vec::new(),
            steps: Vec::new(),
            start,
        }
    }

    fn send(&mut self, line: &str) {
        self.steps.push(Step::Send(vec![words(line)]));
    }

    fn disk(&self) -> CrashingDisk {
        let disk = CrashingDisk::new();
        for (name, bytes) in &self.files {
            disk.put(name, bytes);
        }
        disk
    }

    fn settings(&self) -> Settings {
        settings(self.appendonly, Fsync::Always)
    }

    /// The time of a step.
    fn now(&self, step: usize) -> Now {
        let passed = STEP_MS * u64::try_from(step).unwrap();
        Now {
            ms: self.start.ms + passed,
            clock: self.start.clock,
        }
    }

    /// The keys after each command: at `k` those after `k` commands, each sent by itself.
    fn states(&self) -> Vec<State> {
        let mut machine = Machine::start(&self.disk(), self.settings()).unwrap();
        let mut states = vec![machine.state()];
        for (number, step) in self.steps.iter().enumerate() {
            if let Step::Send(commands) = step {
                for command in commands {
                    let reply = machine.run(std::slice::from_ref(command), self.now(number));
                    assert_eq!(reply.len(), 1, "{command:?}");
                    states.push(machine.state());
                }
            }
        }
        states
    }

    /// Runs the script until the disk crashes.
    fn play(&self, disk: &CrashingDisk) -> Life {
        let mut life = Life {
            ms: self.start.ms,
            logged: self.appendonly,
            snapshots: vec![0],
            ..Life::default()
        };
        let mut machine = match Machine::start(disk, self.settings()) {
            Ok(machine) => machine,
            Err(problem) => {
                assert!(disk.crashed(), "{}: {problem}", self.name);
                return life;
            }
        };
        let mut rewrites_before = 0;
        for (number, step) in self.steps.iter().enumerate() {
            let now = self.now(number);
            let store = &machine.server.store;
            let rewrites = &store.persistence().unwrap().figures.rewrite.done;
            match step {
                Step::Send(commands) => {
                    life.sent += commands.len();
                    life.ms = now.ms;
                    assert_eq!(machine.run(commands, now).len(), commands.len());
                    // Work in the background may have met the end of the power meanwhile. Without a
                    // log, replies do not wait for the disk, and nobody would have got these.
                    if machine.acknowledged() && !disk.crashed() {
                        life.acknowledged = life.sent;
                    }
                }
                Step::Save => {
                    let tried = jobs::save(&machine.server.store);
                    life.snapshots.push(life.sent);
                    if tried.is_ok() {
                        life.snapshots = vec![life.sent];
                    }
                }
                Step::SaveInBackground => jobs::save_in_background(&machine.server.store).unwrap(),
                Step::Rewrite => jobs::rewrite_in_background(&machine.server.store).unwrap(),
                Step::Begin => jobs::turn_log(&machine.server.store, true).unwrap(),
                // The log holds all until here, and counts like a snapshot from now on.
                Step::End => {
                    jobs::turn_log(store, false).unwrap();
                    life.logged = false;
                    life.snapshots = vec![life.sent];
                    rewrites_before = rewrites.load(Ordering::Relaxed);
                }
                Step::Settle => machine.settle(),
            }
            if disk.crashed() {
                break;
            }
            assert_eq!(
                machine.server.store.failure(),
                None,
                "{}, step {number}",
                self.name
            );
        }
        let figures = &machine.server.store.persistence().unwrap().figures;
        life.logged |= figures.rewrite.done.load(Ordering::Relaxed) > rewrites_before;
        machine.stop();
        life
    }
}

/// What is known of a life when it ends.
#[derive(Debug, Default)]
struct Life {
    /// Commands whose replies have left.
    acknowledged: usize,
    sent: usize,
    /// The time of the last command.
    ms: u64,
    /// Whether there is a log for sure. Before, the last snapshot is what counts.
    logged: bool,
    /// After how many commands a snapshot was made: the last that was, then what was tried since.
    snapshots: Vec<usize>,
}

impl Life {
    /// How many commands may be in the keys that the next server finds.
    fn allows(&self, k: usize) -> bool {
        let by_snapshot = !self.logged && self.snapshots.contains(&k);
        by_snapshot || (self.acknowledged..=self.sent).contains(&k)
    }

    fn check(&self, found: &State, states: &[State], place: &str) {
        let found = alive(found, self.ms);
        let matches = |k: &usize| alive(&states[*k], self.ms) == found;
        if (0..states.len()).filter(matches).any(|k| self.allows(k)) {
            return;
        }
        let after: Vec<usize> = (0..states.len()).filter(matches).collect();
        let mut text = format!("{place}: {self:?}: the keys are those after {after:?} commands");
        let allowed = states.iter().enumerate().take(self.sent + 1);
        for (k, state) in allowed.skip(self.acknowledged) {
            let difference = difference(&found, &alive(state, self.ms));
            text.push_str(&format!("; compared with those after {k}:{difference}"));
        }
        panic!("{text}");
    }
}

/// What is started again keeps a log, whatever the first life did.
fn restart(disk: &CrashingDisk, place: &str) -> Machine {
    Machine::start(disk, settings(true, Fsync::Always)).unwrap_or_else(|problem| {
        let files: Vec<_> = disk
            .files()
            .into_iter()
            .map(|(n, b)| (n, b.len()))
            .collect();
        panic!("{place}: it does not start: {problem}; there are {files:?}")
    })
}

/// More commands, acknowledged, and the power goes: all must be there at the next start.
fn go_on(mut machine: Machine, disk: &CrashingDisk, seed: u64, place: &str) {
    let now = Now::read();
    for line in [
        "SELECT 1",
        "INCR later",
        "BF.MADD later.filter a b c",
        "APPEND s0 x",
    ] {
        machine.run(&[words(line)], now);
        assert!(machine.acknowledged(), "{place}: the next server fails");
    }
    let wanted = machine.state();
    disk.crash_now();
    machine.stop();
    for seed in [0, seed] {
        let disk = disk.survivors(seed);
        let found = restart(&disk, place).state();
        assert!(
            found == wanted,
            "{place}: what was acknowledged after the first start is not there after the second:{}",
            difference(&found, &wanted)
        );
    }
}

/// Lets the power go at operation `n`; returns how many points that were, 0 when the script came
/// to its end before.
fn cross(script: &Script, states: &[State], n: u64) -> u64 {
    let disk = script.disk();
    disk.crash_at(n);
    let life = script.play(&disk);
    if !disk.crashed() {
        assert_eq!(life.sent + 1, states.len());
        assert_eq!(life.acknowledged, life.sent);
    }
    for seed in [0, 1, 2 * n, 2 * n + 1] {
        let place = format!("{}, operation {n}, seed {seed}", script.name);
        let disk = disk.survivors(seed);
        let recovering = disk.survivors(0);
        let machine = restart(&disk, &place);
        life.check(&machine.state(), states, &place);
        if seed == 1 {
            go_on(machine, &disk, n, &place);
        } else if seed > 1 {
            drop(machine);
            // The power goes during the start.
            recovering.crash_at(1 + n % 16);
            drop(Machine::start(&recovering, settings(true, Fsync::Always)));
            let place = format!("{place}, and operation {} of the start", 1 + n % 16);
            let machine = restart(&recovering.survivors(seed), &place);
            life.check(&machine.state(), states, &place);
        }
    }
    let place = format!("{}, process killed at operation {n}", script.name);
    let killed = disk.after_kill();
    let machine = restart(&killed, &place);
    life.check(&machine.state(), states, &place);
    go_on(machine, &killed, n, &place);
    if disk.crashed() { 5 } else { 0 }
}

/// Crosses all operations of a script, on all processors; returns how many there were, and points.
fn cross_all(script: &Script) -> (u64, u64) {
    let states = script.states();
    let (next, end) = (AtomicU64::new(1), AtomicU64::new(u64::MAX));
    let points = AtomicU64::new(0);
    let workers = thread::available_parallelism().map_or(2, usize::from);
    thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                loop {
                    let n = next.fetch_add(1, Ordering::Relaxed);
                    if n >= end.load(Ordering::Relaxed) {
                        break;
                    }
                    match cross(script, &states, n) {
                        0 => drop(end.fetch_min(n, Ordering::Relaxed)),
                        crossed => drop(points.fetch_add(crossed, Ordering::Relaxed)),
                    }
                }
            });
        }
    });
    let (operations, points) = (end.into_inner() - 1, points.into_inner());
    println!(
        "{}: {} commands, {operations} operations, {points} points crossed",
        script.name,
        states.len() - 1
    );
    (operations, points)
}

/// A seeded series of numbers: a linear congruential generator.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, n: u64) -> u64 {
        let step = self.0.wrapping_mul(6_364_136_223_846_793_005);
        self.0 = step.wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }

    fn items(&mut self) -> String {
        let count = 1 + self.below(6);
        let items: Vec<String> = (0..count)
            .map(|_| format!("i{}", self.below(3000)))
            .collect();
        items.join(" ")
    }

    /// One command of the mix.
    fn line(&mut self) -> String {
        let (a, b) = (self.below(6), self.below(6));
        let items = self.items();
        match self.below(43) {
            0..=2 => format!("BF.ADD f{a} i{}", self.below(3000)),
            3..=6 => format!("BF.MADD f{a} {items}"),
            7 => format!("BF.RESERVE f{a} 0.01 {} EXPANSION {}", 5 + b, 1 + b % 3),
            8 => format!("BF.RESERVE x{a} 0.001 20 NONSCALING"),
            9 | 10 => format!("BF.MADD x{a} {items}"),
            11 => format!("BF.INSERT f{a} CAPACITY 9 ERROR 0.02 EXPANSION 1 ITEMS {items}"),
            12 => format!("BF.INSERT x{a} CAPACITY 4 NONSCALING ITEMS {items}"),
            13 => format!("BF.INSERT f{a} NOCREATE ITEMS {items}"),
            14 => format!("BF.MADD big {items}"),
            15 => format!("SET s{a} value-{}", self.below(1000)),
            16 => format!("SET s{a} brief PX {}", 600 + 700 * b),
            17 => format!("INCR n{a}"),
            18 => format!("INCRBY n{a} 10"),
            19 => format!("APPEND s{a} +{b}"),
            20 => format!("PEXPIRE f{a} {}", 900 + 900 * b),
            21 => format!("EXPIRE x{a} 4000"),
            22 => format!("PERSIST f{a}"),
            23 => format!("DEL f{a} s{b}"),
            24 => format!("RENAME f{a} x{b}"),
            25 => format!("COPY big f{a} REPLACE"),
            26 => format!("COPY x{a} s{b} DB {} REPLACE", self.below(4)),
            27 => format!("SWAPDB {} {}", self.below(4), self.below(4)),
            28 => format!("SELECT {}", self.below(4)),
            29 | 30 => format!("CF.ADD c{a} i{}", self.below(40)),
            31 => format!("CF.INSERT c{a} CAPACITY 8 ITEMS {items}"),
            32 | 33 => format!("CF.DEL c{a} i{}", self.below(40)),
            34 => format!("CF.INSERTNX z{a} NOCREATE ITEMS {items}"),
            35 => format!("CF.RESERVE z{a} 8 BUCKETSIZE 1 EXPANSION {}", b % 3),
            36 => format!("CF.COMPACT c{a}"),
            37 => format!("CF.DEL z{a} i{}", self.below(3000)),
            38 => format!("BF.INSERT w{a} CAPACITY 9 SEED 1 WINDOW ITEMS ITEMS {items}"),
            39 => format!(
                "BF.INSERT t{a} CAPACITY 9 SEED 1 WINDOW SECONDS 1 GENERATIONS 2 ITEMS {items}"
            ),
            40 => format!("BF.ADVANCE {}{a}", if b < 3 { "w" } else { "t" }),
            41 => format!("BF.MERGE t{a} t{b}"),
            42 => format!("BF.CLEAR {}{a}", ["f", "w", "t"][b as usize % 3]),
            _ => format!("MSET s{a} 1 s{b} 2 n{a} 3"),
        }
    }

    /// Some steps of the mix.
    fn mix(&mut self, script: &mut Script, steps: usize) {
        for _ in 0..steps {
            let commands = match self.below(12) {
                0 => {
                    let mut lines = vec![words("MULTI")];
                    lines.extend((0..4).map(|_| words(&self.line())));
                    lines.push(words("EXEC"));
                    lines
                }
                1 => {
                    // A run of one command on one key, which is executed as one.
                    let start = match self.below(3) {
                        0 => "BF.ADD f1",
                        1 => "CF.ADD c1",
                        _ => "CF.DEL c1",
                    };
                    let run = (0..5).map(|_| words(&format!("{start} i{}", self.below(60))));
                    run.collect()
                }
                2 => (0..4).map(|_| words(&self.line())).collect(),
                _ => vec![words(&self.line())],
            };
            script.steps.push(Step::Send(commands));
        }
    }
}

/// The commands that load a filter of several layers or tables in pieces.
fn load_chunks(family: &str, key: &str) -> Vec<Command> {
    let mut machine = Machine::start(&CrashingDisk::new(), settings(false, Fsync::No)).unwrap();
    let now = Now::read();
    let (reserve, add) = match family {
        "BF" => ("BF.RESERVE source 0.01 30", "BF.MADD source"),
        _ => ("CF.RESERVE source 16", "CF.INSERT source ITEMS"),
    };
    machine.run(&[words(reserve)], now);
    for batch in 0..10 {
        let items: Vec<String> = (0..10).map(|i| format!("c{}", batch * 10 + i)).collect();
        machine.run(&[words(&format!("{add} {}", items.join(" ")))], now);
    }
    let mut commands = Vec::new();
    let mut iterator = 0;
    loop {
        let reply = machine.run(
            &[words(&format!("{family}.SCANDUMP source {iterator}"))],
            now,
        );
        let [Reply::Array(parts)] = reply.as_slice() else {
            panic!("{reply:?}");
        };
        let [Reply::Integer(next), data] = parts.as_slice() else {
            panic!("{parts:?}");
        };
        if *next == 0 {
            return commands;
        }
        let data = data.as_bytes().unwrap().to_vec();
        let mut command = words(&format!("{family}.LOADCHUNK {key} {next}"));
        command.push(data);
        commands.push(command);
        iterator = *next;
    }
}

fn with_log() -> Script {
    let mut script = Script::new("a log from the start", true);
    let mut numbers = Numbers(1);
    script.send("BF.RESERVE big 0.01 60000");
    script.send("CF.RESERVE cuckoo 4000");
    script.send("CF.INSERT cuckoo ITEMS a a a a a a a a");
    numbers.mix(&mut script, 80);
    script.steps.push(Step::Rewrite);
    numbers.mix(&mut script, 60);
    script.steps.push(Step::Settle);
    let cuckoo = load_chunks("CF", "loaded-cuckoo");
    assert!(cuckoo.len() > 5, "{}", cuckoo.len());
    for command in load_chunks("BF", "loaded").into_iter().chain(cuckoo) {
        script.steps.push(Step::Send(vec![command]));
    }
    script.steps.push(Step::Save);
    numbers.mix(&mut script, 40);
    script.steps.push(Step::SaveInBackground);
    numbers.mix(&mut script, 30);
    script.steps.push(Step::Settle);
    script.send("FLUSHDB");
    script.send("BF.RESERVE big 0.01 60000");
    numbers.mix(&mut script, 20);
    script.steps.push(Step::Rewrite);
    // What the snapshot captures goes away under it.
    for line in [
        "COPY big other",
        "BF.MADD big a b c",
        "CF.DEL cuckoo a",
        "CF.INSERT cuckoo CAPACITY 4 ITEMS a b c d e f",
        "CF.COMPACT cuckoo",
        "RENAME cuckoo moved-cuckoo",
        "RENAME big moved",
        "DEL moved",
    ] {
        script.send(line);
    }
    script.send("SWAPDB 0 1");
    script.send("FLUSHDB");
    numbers.mix(&mut script, 20);
    script.steps.push(Step::Settle);
    script.steps.push(Step::Rewrite);
    script.steps.push(Step::Settle);
    numbers.mix(&mut script, 10);
    script
}

fn with_log_begun_later() -> Script {
    let mut script = Script::new("a log begun at run time", false);
    let mut numbers = Numbers(2);
    script.send("BF.RESERVE big 0.01 60000");
    numbers.mix(&mut script, 30);
    script.steps.push(Step::Save);
    numbers.mix(&mut script, 10);
    script.steps.push(Step::Begin);
    numbers.mix(&mut script, 30);
    script.steps.push(Step::Settle);
    numbers.mix(&mut script, 20);
    script.steps.push(Step::Rewrite);
    numbers.mix(&mut script, 20);
    script.steps.push(Step::Settle);
    numbers.mix(&mut script, 5);
    script
}

/// What is newer is read: the log that has ended, or a snapshot that was made since.
fn with_log_switched_off() -> Script {
    let mut script = Script::new("a log switched off and on again", true);
    let mut numbers = Numbers(4);
    numbers.mix(&mut script, 10);
    script.steps.push(Step::Save);
    numbers.mix(&mut script, 5);
    script.steps.push(Step::End);
    numbers.mix(&mut script, 3);
    for _ in 0..2 {
        script.steps.push(Step::Save);
        numbers.mix(&mut script, 3);
    }
    script.steps.push(Step::Begin);
    numbers.mix(&mut script, 5);
    script.steps.push(Step::Settle);
    numbers.mix(&mut script, 5);
    script.steps.push(Step::End);
    numbers.mix(&mut script, 3);
    script.steps.push(Step::Save);
    numbers.mix(&mut script, 3);
    script
}

fn with_log_of_old_style() -> Script {
    let mut script = Script::new("a log of the old style, with a torn end", true);
    let mut numbers = Numbers(3);
    let mut old = Vec::new();
    for line in [
        "SELECT 1",
        "SET s1 old",
        "BF.ADD f1 old",
        "SELECT 0",
        "SET n1 5",
    ] {
        encode_request(&words(line), &mut old);
    }
    old.extend_from_slice(b"*3\r\n$3\r\nSET\r\n$1");
    script.files.push(("appendonly.aof", old));
    numbers.mix(&mut script, 10);
    script.steps.push(Step::Rewrite);
    numbers.mix(&mut script, 10);
    script.steps.push(Step::Settle);
    script
}

/// Other programs may begin a log with an increment.
fn with_log_without_base() -> Script {
    let mut script = Script::new("a log without a base", true);
    let mut numbers = Numbers(5);
    let mut increment = Vec::new();
    encode_request(&words("SELECT 0"), &mut increment);
    encode_request(&words("SET n1 5"), &mut increment);
    let manifest = b"file appendonly.aof.1.incr.aof seq 1 type i\n".to_vec();
    script.files.extend([
        ("appendonlydir/appendonly.aof.1.incr.aof", increment),
        ("appendonlydir/appendonly.aof.manifest", manifest),
    ]);
    numbers.mix(&mut script, 3);
    script.steps.push(Step::Rewrite);
    numbers.mix(&mut script, 10);
    script.steps.push(Step::Settle);
    numbers.mix(&mut script, 2);
    script
}

#[test]
fn nothing_acknowledged_is_lost_at_any_operation() {
    let started = Instant::now();
    let (mut operations, mut points) = (0, 0);
    for script in [
        with_log(),
        with_log_begun_later(),
        with_log_switched_off(),
        with_log_of_old_style(),
        with_log_without_base(),
    ] {
        let crossed = cross_all(&script);
        operations += crossed.0;
        points += crossed.1;
    }
    let took = started.elapsed().as_secs_f64();
    println!("{operations} operations, {points} points crossed in {took:.1} s");
    assert!(points >= 2000, "{points} points are too few to speak of");
}

fn is_refused(replies: &[Reply]) -> bool {
    matches!(replies, [Reply::Error(text)] if text.starts_with("MISCONF"))
}

/// After a crash, in whatever way, the keys must be those of one of these moments.
fn check_survivors(disk: &CrashingDisk, seeds: Range<u64>, states: &[State], place: &str) {
    for seed in seeds {
        let found = restart(&disk.survivors(seed), place).state();
        if !states.contains(&found) {
            let difference = difference(&found, states.last().unwrap());
            panic!(
                "{place}, seed {seed}: the keys are those of no moment; compared with the \
                 last:{difference}"
            );
        }
    }
}

/// With `everysec`, the disk takes `room` more bytes and is healed later.
fn fill_and_heal(room: u64) {
    let place = format!("{room} bytes of room");
    let mut start = Now::read();
    start.ms += AHEAD;
    let disk = CrashingDisk::new();
    let mut machine = Machine::start(&disk, settings(true, Fsync::EverySecond)).unwrap();
    let mut numbers = Numbers(room + 10);
    let mut states = vec![machine.state()];
    let mut send = |machine: &mut Machine, states: &mut Vec<State>| {
        let before = states.last().unwrap().clone();
        let refused = is_refused(&machine.run(&[words(&numbers.line())], start));
        states.push(machine.state());
        assert!(!refused || *states.last().unwrap() == before, "{place}");
    };
    for _ in 0..30 {
        send(&mut machine, &mut states);
    }
    disk.fail_writes_after(room);
    let until = Instant::now() + Duration::from_secs(30);
    while !is_refused(&machine.run(&[words("INCR full")], start)) {
        states.push(machine.state());
        send(&mut machine, &mut states);
        assert!(Instant::now() < until, "{place}: writes are refused");
        thread::sleep(Duration::from_millis(1));
    }
    let reply = machine.run(&[words("BF.EXISTS f1 i1")], start);
    assert!(!reply[0].is_error(), "{place}: {reply:?}");
    check_survivors(&disk, 0..8, &states, &format!("{place}, full"));
    // A rewrite fails, and costs nothing.
    jobs::rewrite_in_background(&machine.server.store).unwrap();
    machine.settle();
    let figures = |machine: &Machine| {
        let figures = &machine.server.store.persistence().unwrap().figures;
        figures.rewrite.done.load(Ordering::Relaxed)
    };
    assert_eq!(figures(&machine), 0, "{place}");
    disk.heal();
    let until = Instant::now() + Duration::from_secs(30);
    while is_refused(&machine.run(&[words("INCR healed")], start)) {
        assert!(Instant::now() < until, "{place}: writes are taken again");
        thread::sleep(Duration::from_millis(1));
    }
    states.push(machine.state());
    for _ in 0..10 {
        send(&mut machine, &mut states);
    }
    // What was written of a failed write is not in the way of what came after it.
    assert!(machine.acknowledged(), "{place}: it is written at last");
    check_survivors(&disk, 0..8, &states, &format!("{place}, healed"));
    let before = states.len() - 1;
    jobs::rewrite_in_background(&machine.server.store).unwrap();
    for _ in 0..10 {
        send(&mut machine, &mut states);
    }
    machine.settle();
    assert_eq!(figures(&machine), 1, "{place}");
    check_survivors(
        &disk,
        0..8,
        &states[before..],
        &format!("{place}, rewritten"),
    );
    let last = states.split_off(states.len() - 1);
    machine.stop();
    check_survivors(&disk, 0..3, &last, &format!("{place}, at the end"));
}

#[test]
fn a_full_disk_refuses_writes_and_loses_none_that_was_accepted() {
    thread::scope(|scope| {
        for room in [0, 1, 40, 300, 2000] {
            scope.spawn(move || fill_and_heal(room));
        }
    });
}

#[test]
fn with_always_a_write_that_does_not_reach_the_disk_is_never_acknowledged() {
    let mut start = Now::read();
    start.ms += AHEAD;
    for room in [None, Some(0), Some(1), Some(40), Some(300), Some(2000)] {
        let disk = CrashingDisk::new();
        let mut machine = Machine::start(&disk, settings(true, Fsync::Always)).unwrap();
        let mut numbers = Numbers(room.unwrap_or(1) + 20);
        let mut states = vec![machine.state()];
        let mut acknowledged = 0;
        loop {
            if states.len() == 30 {
                room.map_or_else(|| disk.fail_syncs(), |room| disk.fail_writes_after(room));
            }
            machine.run(&[words(&numbers.line())], start);
            states.push(machine.state());
            if !machine.acknowledged() {
                break;
            }
            acknowledged = states.len() - 1;
            assert!(states.len() < 2000, "{room:?}: the server fails at last");
        }
        assert!(machine.server.store.failure().is_some());
        machine.stop();
        let place = format!("{room:?} bytes of room");
        check_survivors(&disk, 0..20, &states[acknowledged..], &place);
    }
}

/// What happens to the disk and to the log in a life with a full disk.
#[derive(Clone, Copy, Debug)]
enum Event {
    /// So many commands of the mix, each by itself.
    Send(usize),
    /// From now on there is room for so many bytes more.
    Fill(usize),
    /// Changes of one small value, until writes are refused.
    Pile,
    /// There is room again.
    Heal,
    /// Waits until writes are taken.
    Taken,
    /// The log is switched on or off.
    Log(bool),
    /// A rewrite, and its end.
    Rewrite,
}

use Event::{Fill, Heal, Log, Pile, Rewrite, Send as Sent, Taken};

const FULL_DISKS: [(&str, &[Event]); 4] = [
    (
        "a full disk that comes back",
        &[
            Sent(6),
            Fill(30),
            Sent(4),
            Rewrite,
            Heal,
            Taken,
            Sent(4),
            Rewrite,
            Sent(2),
        ],
    ),
    (
        "a log switched off on a full disk",
        &[
            Sent(6),
            Fill(30),
            Sent(3),
            Log(false),
            Sent(3),
            Heal,
            Log(true),
            Sent(3),
            Rewrite,
        ],
    ),
    (
        "a disk that its own log has filled",
        &[Sent(3), Fill(20_000), Pile, Rewrite, Taken, Sent(3)],
    ),
    (
        "a log switched off while all is well",
        &[
            Sent(6),
            Log(false),
            Sent(3),
            Fill(0),
            Sent(1),
            Heal,
            Log(true),
            Sent(4),
        ],
    ),
];

/// A life with a full disk, with `everysec`.
struct Full {
    disk: CrashingDisk,
    machine: Machine,
    now: Now,
    numbers: Numbers,
    states: Vec<State>,
    /// How many commands at least must survive the end of the process.
    safe: usize,
    logging: bool,
}

impl Full {
    /// Sends a command, and sees whether it is acknowledged and logged.
    fn send(&mut self, line: &str) -> bool {
        let refused = is_refused(&self.machine.run(&[words(line)], self.now));
        self.states.push(self.machine.state());
        let last = self.states.len() - 1;
        if refused {
            assert!(self.states[last] == self.states[last - 1], "{line}");
            return false;
        }
        let logged = self.machine.acknowledged() && !self.disk.crashed();
        if logged && self.logging {
            self.safe = last;
        }
        logged
    }

    fn happen(&mut self, event: Event) {
        let store = Arc::clone(&self.machine.server);
        let store = &store.store;
        match event {
            Sent(count) => {
                for _ in 0..count {
                    let line = self.numbers.line();
                    self.send(&line);
                }
            }
            Fill(bytes) => self.disk.limit(bytes),
            Pile => {
                let line = format!("SET piled {}", "v".repeat(3000));
                while self.send(&line) {}
            }
            Heal => self.disk.heal(),
            Taken => self.wait_for("writes are taken", |full| {
                full.machine.server.store.can_log()
            }),
            Log(on) => {
                // A command that it has refused is none that was ever acknowledged.
                self.wait_for("the one before has ended", |full| !full.is_busy());
                self.logging = false;
                jobs::turn_log(store, on).unwrap();
                self.wait_for("it is on or off", |full| !full.is_busy());
                let begun = on && store.journal.is_logging() && !self.disk.crashed();
                if begun {
                    (self.logging, self.safe) = (true, self.states.len() - 1);
                }
            }
            Rewrite => {
                jobs::rewrite_in_background(store).unwrap();
                self.wait_for("the rewrite ends", |full| !full.is_busy());
            }
        }
    }

    fn is_busy(&self) -> bool {
        self.machine.server.store.persistence().unwrap().is_busy()
    }

    fn wait_for(&self, what: &str, done: impl Fn(&Full) -> bool) {
        let until = Instant::now() + Duration::from_secs(30);
        while !done(self) && !self.disk.crashed() {
            assert!(Instant::now() < until, "{what}");
            thread::sleep(Duration::from_micros(100));
        }
    }
}

/// A life that ends at operation `n`; false when it came to its end before.
fn cross_full((name, events): (&str, &[Event]), n: u64) -> bool {
    let disk = CrashingDisk::new();
    disk.crash_at(n);
    let place = format!("{name}, operation {n}");
    let Ok(machine) = Machine::start(&disk, settings(true, Fsync::EverySecond)) else {
        assert!(disk.crashed(), "{place}");
        return true;
    };
    let mut now = Now::read();
    now.ms += AHEAD;
    let states = vec![machine.state()];
    let mut full = Full {
        disk: disk.clone(),
        machine,
        now,
        numbers: Numbers(30),
        states,
        safe: 0,
        logging: true,
    };
    for event in events {
        full.happen(*event);
        if disk.crashed() {
            break;
        }
    }
    let Full {
        machine,
        states,
        safe,
        ..
    } = full;
    let crashed = disk.crashed();
    // Before the end of the server in good order.
    let killed = disk.after_kill();
    killed.heal();
    for (disk, states) in [
        (killed.survivors(0), &states[..]),
        (killed, &states[safe..]),
    ] {
        let machine = restart(&disk, &place);
        let found = machine.state();
        let last = difference(&found, states.last().unwrap());
        assert!(
            states.contains(&found),
            "{place}, {safe} are safe; the last:{last}"
        );
        go_on(machine, &disk, n, &place);
    }
    machine.stop();
    crashed
}

const FULL_AT_ONCE: usize = 4;

#[test]
fn a_full_disk_and_a_log_switched_off_are_crash_points() {
    thread::scope(|scope| {
        for life in FULL_DISKS {
            // They wait more than they work.
            for first in 1..=FULL_AT_ONCE {
                scope.spawn(move || {
                    let numbers = (first..).step_by(FULL_AT_ONCE);
                    let crossed = numbers.take_while(|n| cross_full(life, *n as u64)).count();
                    assert!(
                        crossed > 5,
                        "{}: {crossed} operations of each {FULL_AT_ONCE}",
                        life.0
                    );
                });
            }
        }
    });
}
