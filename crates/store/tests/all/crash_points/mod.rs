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

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use everbloom_files::rdb::payload;
use everbloom_resp::{Batch, DecodeLimits, Limits, Reply, RequestParser, decode, encode_request};
use everbloom_server::internals::Client;
use everbloom_server::internals::Executor;
use everbloom_server::internals::Replayer;
use everbloom_server::internals::Session;
use everbloom_server::internals::execute;
use everbloom_server::internals::registry;
use everbloom_server::{Server, Settings};
use everbloom_store::Fsync;
use everbloom_store::clock::Now;
use everbloom_store::keyspace::SHARDS;
use everbloom_store::persistence::load::{self, LoadError};
use everbloom_store::persistence::{Persistence, jobs, log};

use crate::crashing::CrashingDisk;

mod full_disk;
mod machine;
mod power;

use machine::Machine;

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
            36 if b == 0 => format!("CF.MERGE c{a} c{b}"),
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
