//! The steps of a seed.

mod extremes;
mod incidents;
mod stories;

use std::fmt;

use everbloom_dev::Random;

use crate::damage::Damage;
use crate::limits::Limits;
use crate::op::{BloomKind, Family, Op, Shape};

/// How many clients there are.
pub const CLIENTS: usize = 3;

/// What happens, in order, and under which settings.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The seed.
    pub seed: u64,
    /// The settings of every start.
    pub settings: Vec<(&'static str, String)>,
    /// The thresholds at which the code takes another way.
    pub limits: Limits,
    /// The steps.
    pub steps: Vec<Step>,
}

/// One step. Numbers that select something are taken modulo what there is.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// A client sends commands together.
    Send(usize, Vec<Op>),
    /// A client sends commands between MULTI and EXEC.
    Transaction(usize, Vec<Op>),
    /// The second thread that runs commands has these of a client, with MULTI and EXEC around them if so. It pauses
    /// before each command locks its keys.
    Second(usize, Vec<Op>, bool),
    /// A client watches a key until its next transaction.
    Watch(usize, String),
    /// A client goes away, whether it has its replies or not, and another one comes.
    Leave(usize),
    /// The clock moves by so many milliseconds.
    Pass(i64),
    /// The log's writer has its turn.
    Log,
    /// A background thread goes on to its next pause, this many times.
    Thread(usize, usize),
    /// What is due is begun: save points, rewrites, second tries.
    Attend,
    /// Expired keys are removed.
    Expire,
    /// The disk.
    Disk(Fault),
    /// The server ends and starts again.
    Restart(End),
    /// Somebody removes the manifest, or a file that it names, while the server runs.
    Remove(usize),
    /// The server is killed, and a start on damaged files is tried. Then it starts on the undamaged ones.
    Damage(Damage),
    /// The disk is well again, and what has failed is done again until the server says that all is well.
    Mend,
    /// Everything that must be true is checked.
    Check,
}

/// What happens to the disk.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Fault {
    /// It is full after so many bytes more.
    Full(u64),
    /// An fsync fails, and what it was to make last is lost.
    Loses,
    /// Every fsync fails.
    SyncsFail,
    /// The next fsync of a directory fails; a later one works.
    DirSyncFails,
    /// Writes and fsyncs of the log and of snapshots do not return.
    Hangs,
    /// All is well again.
    Heals,
}

/// How the server ends.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum End {
    /// It is asked to.
    Stop,
    /// The process is killed.
    Kill,
    /// The power fails; the number decides what is left of what was not synced.
    Power(u64),
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Step::Send(client, ops) => {
                let lines: Vec<String> = ops.iter().map(Op::to_string).collect();
                write!(f, "{client}> {}", lines.join(&format!("\n{client}> ")))
            }
            Step::Transaction(client, ops) => {
                let lines: Vec<String> = ops.iter().map(Op::to_string).collect();
                write!(f, "{client}> MULTI\n{client}> ")?;
                write!(
                    f,
                    "{}\n{client}> EXEC",
                    lines.join(&format!("\n{client}> "))
                )
            }
            Step::Watch(client, key) => write!(f, "{client}> WATCH {key}"),
            other => write!(f, "# {other:?}"),
        }
    }
}

impl Plan {
    /// The plan of a seed.
    pub fn of(seed: u64) -> Self {
        let mut random = Random(seed);
        let big = seed.is_multiple_of(8);
        let settings = settings(&mut random, big);
        let limits = Limits::draw(&mut random, big);
        let count = 20 + random.below(180);
        let mut draw = Draw { random, big };
        let mut steps: Vec<Step> = Vec::new();
        while steps.len() < count {
            match draw.random.chance(3) {
                true => steps.extend(draw.story()),
                false => steps.push(draw.step()),
            }
        }
        // Generators of their own, so that the other steps stay as they are.
        let mut draw = Draw {
            random: Random(!seed),
            big,
        };
        if draw.random.chance(20) {
            steps.extend(draw.merged_windows());
        }
        if big && draw.random.chance(50) {
            steps.extend(draw.dropped_under_a_reader());
        }
        if big && draw.random.chance(25) {
            steps.extend(draw.large_work());
        }
        if draw.random.chance(30) {
            steps.push(Step::Mend);
        }
        let mut draw = Draw {
            random: Random(seed.rotate_left(32) ^ !seed),
            big,
        };
        draw.put_incidents(&mut steps);
        let mut draw = Draw {
            random: Random(seed.rotate_left(16) ^ !seed),
            big,
        };
        draw.put_extremes(&mut steps);
        let mut draw = Draw {
            random: Random(seed.rotate_left(48) ^ !seed),
            big,
        };
        draw.put_hangs(&mut steps);
        draw.put_large_replies(&mut steps);
        draw.put_second_thread(&mut steps);
        steps.push(Step::Check);
        steps.push(Step::Restart(End::Stop));
        Plan {
            seed,
            settings,
            limits,
            steps,
        }
    }

    /// The same with other steps.
    pub fn with(&self, steps: Vec<Step>) -> Self {
        Plan {
            steps,
            ..self.clone()
        }
    }
}

/// How often each value of `appendfsync` is drawn.
const FSYNC: [&str; 4] = ["always", "everysec", "everysec", "no"];

/// No limit, or one that some filters reach.
fn max_memory(random: &mut Random, big: bool) -> String {
    let most = if big { 30_000_000 } else { 200_000 };
    match random.below(3) {
        0 => (most / 10 + random.below(most)).to_string(),
        _ => "0".into(),
    }
}

fn settings(random: &mut Random, big: bool) -> Vec<(&'static str, String)> {
    let appendfsync = random.pick(&FSYNC);
    let save = random.pick(&["", "", "1 1", "60 5"]);
    vec![
        (
            "appendonly",
            random.pick(&["yes", "yes", "yes", "no"]).into(),
        ),
        ("appendfsync", appendfsync.into()),
        ("save", save.into()),
        ("rdbcompression", random.pick(&["yes", "no"]).into()),
        ("maxmemory", max_memory(random, big)),
    ]
}

struct Draw {
    random: Random,
    /// Whether values are large.
    big: bool,
}

impl Draw {
    fn step(&mut self) -> Step {
        let client = self.random.below(CLIENTS);
        match self.random.below(100) {
            0..50 => Step::Send(client, self.ops(6)),
            50..55 => Step::Transaction(client, self.ops(4)),
            55..57 => {
                let family = self.any();
                Step::Watch(client, self.key(family))
            }
            57 => Step::Leave(client),
            58..66 => Step::Pass(self.pass()),
            66..76 => Step::Log,
            76..86 => Step::Thread(self.random.below(8), 1 + self.random.below(30)),
            86..89 => Step::Attend,
            89..92 => Step::Expire,
            92..95 => Step::Disk(self.fault()),
            95..97 => match self.random.below(10) {
                0 => Step::Damage(Damage::LinesMissing(1 + self.random.below(3))),
                _ => Step::Restart(self.end()),
            },
            _ => Step::Check,
        }
    }

    fn pass(&mut self) -> i64 {
        let random = &mut self.random;
        match random.below(20) {
            0..8 => random.below(1000) as i64,
            8..15 => random.below(5000) as i64,
            15..17 => random.below(60_000) as i64,
            17 => -(random.below(3000) as i64),
            18 => 7 * 86_400_000,
            _ => random.pick(&[365 * 86_400_000, -365 * 86_400_000, -86_400_000]),
        }
    }

    fn fault(&mut self) -> Fault {
        match self.random.below(10) {
            0..3 => Fault::Full(self.random.below(3000) as u64),
            3 => Fault::Loses,
            4 => Fault::SyncsFail,
            5 => Fault::DirSyncFails,
            _ => Fault::Heals,
        }
    }

    fn end(&mut self) -> End {
        match self.random.below(4) {
            0 => End::Stop,
            1 => End::Kill,
            _ => End::Power(self.random.below(20) as u64),
        }
    }

    fn ops(&mut self, most: usize) -> Vec<Op> {
        let count = 1 + self.random.below(most);
        (0..count).map(|_| self.op()).collect()
    }

    fn key(&mut self, family: Family) -> String {
        let (letter, count) = match family {
            Family::Text => ('s', 4),
            Family::Bloom => ('b', 4),
            Family::Window => ('w', 3),
            Family::Cuckoo => ('c', 2),
        };
        format!("{letter}{}", self.random.below(count))
    }

    fn any(&mut self) -> Family {
        let all = [Family::Text, Family::Bloom, Family::Window, Family::Cuckoo];
        self.random.pick(&all)
    }

    fn filter(&mut self) -> Family {
        self.random
            .pick(&[Family::Bloom, Family::Bloom, Family::Window, Family::Cuckoo])
    }

    fn len(&mut self) -> usize {
        let most = if self.big { 3 << 20 } else { 3000 };
        match self.random.below(10) {
            0..7 => self.random.below(50),
            _ => self.random.below(most),
        }
    }

    fn op(&mut self) -> Op {
        match self.random.below(100) {
            0..20 => self.text_op(),
            20..35 => self.key_op(),
            35..37 => self.other_op(),
            37..47 => {
                let family = self.filter();
                Op::Reserve(self.key(family), self.shape(family))
            }
            47..75 => {
                let family = self.filter();
                let (from, count) = self.items(family);
                Op::Add(self.key(family), from, count)
            }
            75..83 => {
                let family = self.filter();
                let from = self.random.below(2000) as u32;
                Op::Ask(self.key(family), from, 1 + self.random.below(20) as u32)
            }
            83..86 => Op::Remove(self.key(Family::Cuckoo), self.random.below(60) as u32),
            86..89 => Op::Advance(self.key(Family::Window), 1 + self.random.below(2) as u64),
            89..90 => {
                let family = self.random.pick(&[Family::Bloom, Family::Window]);
                Op::Clear(self.key(family))
            }
            90..93 => {
                let family = self
                    .random
                    .pick(&[Family::Bloom, Family::Window, Family::Cuckoo]);
                let sources = 1 + self.random.below(2);
                let sources = (0..sources).map(|_| self.key(family)).collect();
                Op::Merge(self.key(family), sources)
            }
            93 => Op::Shrink(self.key(Family::Bloom), 1 + self.random.below(500) as u64),
            94..96 => {
                let family = self.any();
                Op::DumpRestore(self.key(family), self.key(family))
            }
            _ => {
                let family = self.filter();
                Op::ScanDump(self.key(family), self.key(family))
            }
        }
    }

    fn text_op(&mut self) -> Op {
        let key = self.key(Family::Text);
        let byte = b'a' + self.random.below(26) as u8;
        let len = self.len();
        match self.random.below(8) {
            0 | 1 => Op::Set(key, byte, len),
            2 => Op::Append(key, byte, len),
            3 => Op::SetRange(key, self.len(), byte, len),
            4 => Op::SetBit(key, self.random.below(20_000), self.random.chance(70)),
            5 => Op::Get(key),
            6 => Op::GetRange(key, self.random.below(100), len),
            _ => Op::StrLen(key),
        }
    }

    fn key_op(&mut self) -> Op {
        let family = self.any();
        let key = self.key(family);
        match self.random.below(20) {
            0..3 => Op::Exists(key),
            3..6 => Op::Del(key),
            6..10 => Op::PExpire(key, 1 + self.random.below(20_000) as u64),
            10..12 => Op::Persist(key),
            12..15 => Op::Rename(key, self.key(family)),
            15..19 => Op::Copy(key, self.key(family)),
            _ => Op::Flush(self.random.pick(&["FLUSHALL", "FLUSHDB"])),
        }
    }

    fn other_op(&mut self) -> Op {
        match self.random.below(7) {
            0 => Op::Config("appendfsync", self.random.pick(&FSYNC).into()),
            2 => Op::Config("appendonly", self.random.pick(&["yes", "no"]).into()),
            1 => Op::Config("maxmemory", max_memory(&mut self.random, self.big)),
            _ => Op::Other(
                self.random
                    .pick(&["BGSAVE", "BGREWRITEAOF", "PING", "INFO"]),
            ),
        }
    }

    fn shape(&mut self, family: Family) -> Shape {
        let rate = self.random.pick(&["0.01", "0.01", "0.001", "0.1"]);
        let capacity = match (self.big, self.random.below(6)) {
            (true, 0..3) => 1_000_000 + self.random.below(1_000_000) as u64,
            (_, 5) => 1 + self.random.below(10_000) as u64,
            _ => 1 + self.random.below(300) as u64,
        };
        match family {
            Family::Window => Shape::Window {
                rate,
                capacity,
                seconds: self.random.pick(&[0, 1, 2, 5, 60]),
                generations: 1 + self.random.below(5) as u64,
            },
            Family::Cuckoo => Shape::Cuckoo {
                capacity: capacity.max(4),
                rate: self.random.pick(&[None, Some(rate)]),
            },
            _ => Shape::Bloom {
                rate,
                capacity,
                expansion: self.random.pick(&[0, 1, 2, 2, 4]),
                kind: self.random.pick(&[
                    BloomKind::Classic,
                    BloomKind::Blocked,
                    BloomKind::Valkey,
                ]),
            },
        }
    }

    fn items(&mut self, family: Family) -> (u32, u32) {
        if family == Family::Cuckoo {
            return (self.random.below(60) as u32, 1);
        }
        let from = self.random.below(2000) as u32;
        let count = match self.random.below(10) {
            0..4 => 1,
            4..8 => 1 + self.random.below(30),
            _ => 1 + self.random.below(400),
        };
        (from, count as u32)
    }
}
