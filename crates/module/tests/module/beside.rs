//! The random sequences of the simulation to `everbloom serve`, to the module and to the library:
//! the same answers and the same bits, also in a replica and after a restart.

use std::collections::BTreeMap;

use everbloom::Layout;
use everbloom::host::LayeredFilter;
use everbloom_resp::Reply;
use everbloom_server::Running;
use everbloom_simulation::Plan;
use everbloom_simulation::model::Model;
use everbloom_simulation::op::{BloomKind, Family, Op, Shape, Words, family, item};
use everbloom_simulation::plan::Step;
use tempfile::TempDir;

use crate::exchange::{chunks, everbloom, in_dir};
use crate::replication::{check_equal, replica_of};
use crate::support::{Client, Host, elements, from_redis_7};

/// How many sequences are played, of some hundred commands each.
const SEEDS: usize = 8;

/// The clock of the model: no key expires while the test runs.
const NOW_MS: u64 = 0;

/// Items have numbers below this one.
const MAX_ITEMS: u32 = 2400;

/// What the clients of a seed send, without what depends on a clock or on a host's settings.
fn batches(seed: u64) -> impl Iterator<Item = (bool, Vec<Op>)> {
    let steps = Plan::of(seed).steps.into_iter();
    let batches = steps.filter_map(|step| match step {
        Step::Send(_, ops) => Some((false, ops)),
        Step::Transaction(_, ops) => Some((true, ops)),
        _ => None,
    });
    batches.map(|(together, ops)| {
        let ops = ops
            .into_iter()
            .filter(|op| !matches!(op, Op::Config(..) | Op::Other(_) | Op::Extreme(..)));
        let ops = ops
            .map(without_clock)
            .filter(move |op| !together || !op.is_conversation());
        (together, ops.collect())
    })
}

fn without_clock(op: Op) -> Op {
    match op {
        Op::PExpire(key, ms) => Op::PExpire(key, 3_600_000 + ms),
        Op::Reserve(
            key,
            Shape::Window {
                rate,
                capacity,
                generations,
                ..
            },
        ) => {
            let shape = Shape::Window {
                rate,
                capacity,
                seconds: 0,
                generations,
            };
            Op::Reserve(key, shape)
        }
        other => other,
    }
}

/// Both hosts, and what must be true of them.
struct Pair {
    dir: TempDir,
    running: Option<Running>,
    host: Host,
    clients: [Client; 2],
    model: Model,
    /// Of the keys whose filters the library can make, its own.
    library: BTreeMap<String, LayeredFilter>,
}

impl Pair {
    fn start() -> Option<Pair> {
        let host = Host::start(&["--appendonly", "yes"])?;
        let dir = tempfile::tempdir().unwrap();
        let (running, ours) = everbloom(in_dir(dir.path(), true));
        let clients = [ours, host.client()];
        Some(Pair {
            dir,
            running: Some(running),
            host,
            clients,
            model: Model::default(),
            library: BTreeMap::new(),
        })
    }

    fn begin(&mut self) {
        for client in &mut self.clients {
            client.ok("FLUSHALL");
        }
        self.model = Model::default();
        self.library.clear();
    }

    fn play(&mut self, together: bool, ops: &[Op]) {
        let mut group = Vec::new();
        for op in ops {
            match op {
                Op::DumpRestore(from, to) => {
                    self.run(together, &std::mem::take(&mut group));
                    self.exchange(op, from, to);
                }
                Op::ScanDump(..) => {}
                // Only the module copies filters.
                Op::Copy(from, _) if family(from) != Family::Text => {}
                Op::Remove(key, number) if !self.has(key, *number) => {}
                Op::Remove(..) => {
                    self.run(together, &std::mem::take(&mut group));
                    self.run(together, std::slice::from_ref(op));
                }
                op => group.push(op.clone()),
            }
        }
        self.run(together, &group);
    }

    /// Whether an item may be removed: one that was not added may be another one to the filter.
    fn has(&self, key: &str, number: u32) -> bool {
        let key = self.model.get(key, NOW_MS);
        key.is_some_and(|key| Model::must_find(&key.value, number, NOW_MS))
    }

    /// Sends commands together, and compares the replies.
    fn run(&mut self, together: bool, ops: &[Op]) {
        if ops.is_empty() {
            return;
        }
        let words: Vec<Words> = ops.iter().map(Op::words).collect();
        let [ours, theirs] = self.clients.each_mut().map(|client| match together {
            true => transaction(client, &words),
            false => pipeline(client, &words),
        });
        for (op, (ours, theirs)) in ops.iter().zip(ours.iter().zip(&theirs)) {
            assert_eq!(ours, theirs, "{op}");
            let verdict = self.model.apply(op, ours, NOW_MS);
            verdict.unwrap_or_else(|what| panic!("{op}: {what}"));
            self.apply_to_library(op, ours);
        }
    }

    /// Each host restores what the other one has dumped.
    fn exchange(&mut self, op: &Op, from: &str, to: &str) {
        if from == to {
            return;
        }
        let command = ["DUMP", from];
        let [ours, theirs] = self.clients.each_mut().map(|client| client.call(&command));
        let (Reply::Bulk(ours), Reply::Bulk(theirs)) = (&ours, &theirs) else {
            assert_eq!(ours, theirs, "{op}");
            return;
        };
        for (client, payload) in self.clients.iter_mut().zip([theirs, ours]) {
            let words = [
                b"RESTORE",
                to.as_bytes(),
                b"0",
                payload.as_slice(),
                b"REPLACE",
            ];
            assert_eq!(client.call(&words), Reply::OK, "{op}");
        }
        self.model.apply(op, &Reply::OK, NOW_MS).unwrap();
        self.move_in_library(from, to, true);
    }

    fn apply_to_library(&mut self, op: &Op, reply: &Reply) {
        let failed = matches!(reply, Reply::Error(_));
        match op {
            Op::Reserve(
                key,
                Shape::Bloom {
                    rate,
                    capacity,
                    expansion,
                    kind,
                },
            ) if !failed => {
                let builder = LayeredFilter::builder();
                let builder = match kind {
                    BloomKind::Classic => builder.layout(Layout::Classic),
                    BloomKind::Blocked => builder.layout(Layout::Blocked).seed(7),
                    // The library makes none.
                    BloomKind::Valkey => return,
                };
                let builder = builder
                    .capacity(*capacity)
                    .error_rate(rate.parse().unwrap());
                let builder = match expansion {
                    0 => builder.fixed(),
                    factor => builder.expansion(*factor),
                };
                self.library.insert(key.clone(), builder.build().unwrap());
            }
            Op::Add(key, from, count) => self.add_to_library(key, *from, *count, reply),
            Op::Ask(key, from, count) => {
                let Some(filter) = self.library.get(key) else {
                    return;
                };
                let found = (*from..from + count).map(|n| filter.contains(&item(n)));
                let found = found.map(|found| Reply::Integer(found.into()));
                assert_eq!(*reply, Reply::Array(found.collect()), "{op}");
            }
            Op::Rename(from, to) if !failed => self.move_in_library(from, to, false),
            Op::Copy(from, to) if *reply == Reply::Integer(1) => {
                self.move_in_library(from, to, true);
            }
            Op::Flush(_) => self.library.clear(),
            Op::Merge(key, _) | Op::Clear(key) | Op::Shrink(key, _) if !failed => {
                self.library.remove(key);
            }
            Op::Del(key) => drop(self.library.remove(key)),
            _ => {}
        }
    }

    fn add_to_library(&mut self, key: &str, from: u32, count: u32, reply: &Reply) {
        let Some(filter) = self.library.get_mut(key) else {
            return;
        };
        let answers = match reply {
            Reply::Array(answers) => answers.as_slice(),
            one => std::slice::from_ref(one),
        };
        for (number, answer) in (from..from + count).zip(answers) {
            let added = match filter.try_insert(&item(number)) {
                Ok(added) => Reply::Integer(added.into()),
                Err(_) => {
                    assert!(
                        matches!(answer, Reply::Error(_)),
                        "{key} item{number}: {answer:?}"
                    );
                    continue;
                }
            };
            assert_eq!(*answer, added, "{key} item{number}");
        }
    }

    fn move_in_library(&mut self, from: &str, to: &str, stays: bool) {
        let filter = match stays {
            true => self.library.get(from).cloned(),
            false => self.library.remove(from),
        };
        match filter {
            Some(filter) => drop(self.library.insert(to.into(), filter)),
            None => drop(self.library.remove(to)),
        }
    }

    /// Compares every value.
    fn check(&mut self) {
        let keys: Vec<String> = self.model.keys.keys().cloned().collect();
        for key in keys {
            let [ours, theirs] = self.clients.each_mut().map(|client| value(client, &key));
            assert_eq!(ours, theirs, "{key}");
            if let Some(filter) = self.library.get(&key) {
                let asked = Op::Ask(key.clone(), 0, MAX_ITEMS).words();
                let answers = elements(self.clients[0].call(&asked));
                for (number, answer) in (0..MAX_ITEMS).zip(answers) {
                    let found = filter.contains(&item(number));
                    assert_eq!(answer, Reply::Integer(found.into()), "{key} item{number}");
                }
            }
        }
        let [ours, theirs] = self
            .clients
            .each_mut()
            .map(|client| client.number("DBSIZE"));
        let known = i64::try_from(self.model.keys.len()).unwrap();
        assert_eq!((ours, theirs), (known, known));
    }

    fn restart(&mut self) {
        self.host.restart("");
        drop(self.running.take());
        let (running, ours) = everbloom(in_dir(self.dir.path(), true));
        (self.running, self.clients) = (Some(running), [ours, self.host.client()]);
    }
}

fn pipeline(client: &mut Client, commands: &[Words]) -> Vec<Reply> {
    commands.iter().for_each(|words| client.send(words));
    commands.iter().map(|_| client.reply()).collect()
}

fn transaction(client: &mut Client, commands: &[Words]) -> Vec<Reply> {
    let (begin, end) = (vec![b"MULTI".to_vec()], vec![b"EXEC".to_vec()]);
    let all = [&[begin][..], commands, &[end][..]].concat();
    elements(pipeline(client, &all).pop().unwrap())
}

/// All that a host tells of a value.
fn value(client: &mut Client, key: &str) -> Vec<Reply> {
    match family(key) {
        Family::Text => vec![client.line(&format!("GET {key}"))],
        Family::Cuckoo => chunks(client, "CF", key),
        _ => chunks(client, "BF", key),
    }
}

#[test]
fn one_sequence_means_the_same_in_every_way_in() {
    if !from_redis_7() {
        return;
    }
    let Some(mut pair) = Pair::start() else {
        return;
    };
    let replica = replica_of(&pair.host, &[], &[]);
    // Each eighth has values of megabytes.
    for seed in (0..).filter(|seed| seed % 8 != 0).take(SEEDS) {
        pair.begin();
        for (together, ops) in batches(seed) {
            pair.play(together, &ops);
        }
        pair.check();
        check_equal(&pair.host, &[&replica]);
    }
    pair.restart();
    pair.check();
}
