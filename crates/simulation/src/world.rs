//! Does the steps of a plan, and compares the server with the model.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};

use everbloom_files::Value as Stored;
use everbloom_resp::Reply;
use everbloom_server::Settings;
use everbloom_store::Fsync;
use everbloom_store::machine::Machine;

use crate::crashing::CrashingDisk;
use crate::machine::Simulated;
use crate::model::{Model, Value, is_refusal};
use crate::plan::{CLIENTS, End, Family, Fault, Op, Plan, Step, Words, family, item};
use crate::server::{Connection, Digests, Instance, settings};

/// The clock at the start of each run, in Unix milliseconds.
const START_MS: u64 = 1_800_000_000_000;

/// With `everysec`, what was acknowledged before this time survives a loss of power.
const SYNCED_MS: i64 = 3000;

/// Items have numbers below this one.
const MAX_ITEMS: u32 = 2400;

/// What went wrong, and at which step.
#[derive(Debug, Clone, PartialEq)]
pub struct Failure {
    /// The index of the step.
    pub step: usize,
    /// What went wrong.
    pub what: String,
}

type Verdict = Result<(), String>;

/// Plays a plan to its end or to the first failure.
///
/// # Errors
///
/// The failure.
pub fn play(plan: &Plan) -> Result<(), Failure> {
    let step = std::cell::Cell::new(0);
    let played = catch_unwind(AssertUnwindSafe(|| {
        let mut world = World::new(plan)?;
        for (index, what) in plan.steps.iter().enumerate() {
            step.set(index);
            world.step(what)?;
        }
        world.end();
        Ok(())
    }));
    let what = match played {
        Ok(Ok(())) => return Ok(()),
        Ok(Err(what)) => what,
        Err(panic) => {
            let text = panic.downcast_ref::<String>().cloned();
            let text = text.or_else(|| panic.downcast_ref::<&str>().map(|it| (*it).to_owned()));
            format!("it panics: {}", text.unwrap_or_default())
        }
    };
    Err(Failure {
        step: step.get(),
        what,
    })
}

/// The model after some command.
#[derive(Debug, Clone)]
struct Moment {
    model: Model,
    /// The journal's position that the command's reply waits for.
    position: u64,
    /// How many changes there were.
    changes: u64,
}

struct World {
    settings: Settings,
    machine: Simulated,
    disk: CrashingDisk,
    instance: Option<Instance>,
    clients: Vec<Connection>,
    /// What each client has sent and has no reply to yet.
    unanswered: Vec<Vec<Request>>,
    /// Asks in the name of the checks.
    checker: Connection,
    model: Model,
    /// The moments since the server started; the first is what it had loaded.
    moments: Vec<Moment>,
    /// The first moment that may be what is left after a loss of power.
    safe: usize,
    /// The latest clock that there was.
    latest: u64,
    /// Whether an fsync may have lost what it was to make last. The next process would read it,
    /// and could not know that it does not last. So this one ends with the power.
    has_lost: bool,
}

/// A request of a client.
#[derive(Debug, Clone)]
enum Request {
    One(Op),
    /// MULTI, or a command that is queued.
    Queued(Words),
    Exec(Vec<Op>),
}

impl Request {
    fn words(&self) -> Words {
        match self {
            Request::One(op) => op.words(),
            Request::Queued(words) => words.clone(),
            Request::Exec(_) => vec![b"EXEC".to_vec()],
        }
    }
}

impl World {
    fn new(plan: &Plan) -> Result<Self, String> {
        let mut world = World {
            settings: settings(&plan.settings),
            machine: Simulated::new(START_MS),
            disk: CrashingDisk::new(),
            instance: None,
            clients: Vec::new(),
            unanswered: Vec::new(),
            checker: Connection::new(),
            model: Model::default(),
            moments: Vec::new(),
            safe: 0,
            latest: START_MS,
            has_lost: false,
        };
        world.start()?;
        Ok(world)
    }

    fn instance(&self) -> &Instance {
        self.instance.as_ref().expect("the server runs")
    }

    fn now(&self) -> u64 {
        self.machine.now().ms
    }

    fn start(&mut self) -> Verdict {
        let instance = Instance::start(&self.disk, &self.machine, self.settings.clone())?;
        self.instance = Some(instance);
        self.clients = (0..CLIENTS).map(|_| Connection::new()).collect();
        self.unanswered = vec![Vec::new(); CLIENTS];
        self.checker = Connection::new();
        self.moments.clear();
        self.safe = 0;
        self.remember(0);
        Ok(())
    }

    /// Adds a moment.
    fn remember(&mut self, position: u64) {
        let changes = self.instance().server.store.journal.changes();
        // A reply that waits for nothing promises nothing of the changes before it.
        let before = self.moments.last().map_or(0, |moment| moment.position);
        let position = position.max(before);
        self.moments.push(Moment {
            model: self.model.clone(),
            position,
            changes,
        });
    }

    fn step(&mut self, step: &Step) -> Verdict {
        self.latest = self.latest.max(self.now());
        match step {
            Step::Send(client, ops) => self.send(*client, ops)?,
            Step::Transaction(client, ops) => self.transact(*client, ops)?,
            Step::Leave(client) => {
                self.clients[*client] = Connection::new();
                self.unanswered[*client].clear();
            }
            Step::Pass(ms) => self.pass(*ms)?,
            Step::Log => self.instance().log_turn(),
            Step::Thread(number, times) => {
                let threads = self.machine.threads();
                if let Some((number, _)) = threads.get(number % threads.len().max(1)) {
                    (0..*times).for_each(|_| self.machine.step(*number));
                }
            }
            Step::Attend => self.instance().attend(),
            Step::Expire => {
                self.instance().expire();
            }
            Step::Disk(fault) => match fault {
                Fault::Full(bytes) => self.disk.fail_writes_after(*bytes),
                Fault::Loses => {
                    self.disk.lose_at_next_sync();
                    self.has_lost = true;
                }
                Fault::SyncsFail => self.disk.fail_syncs(),
                Fault::Heals => self.disk.heal(),
            },
            Step::Restart(end) => self.restart(*end)?,
            Step::Check => self.check()?,
        }
        for client in 0..CLIENTS {
            self.go_on(client)?;
        }
        if let Some(name) = self.machine.has_panicked() {
            return Err(format!("the thread '{name}' panics"));
        }
        if self.instance().server.store.failure().is_some() {
            self.restart(End::Kill)?;
        }
        Ok(())
    }

    /// Ends all threads.
    fn end(&mut self) {
        self.disk.crash_now();
        self.instance().end_threads();
    }

    fn pass(&mut self, ms: i64) -> Verdict {
        if ms < 0 {
            // What has expired must not come back.
            if !self.instance().expire() {
                return Ok(());
            }
            let now = self.now();
            self.model.purge(now);
            let end = self.instance().server.store.journal.end();
            self.remember(end);
        }
        self.machine.pass(ms);
        let store = &self.instance().server.store;
        if ms >= SYNCED_MS && store.settings().appendfsync == Fsync::EverySecond {
            for _ in 0..3 {
                self.instance().log_turn();
                self.instance().finish("fsync");
                self.machine.pass(1001);
            }
            let store = &self.instance().server.store;
            let is_well = store.can_log() && store.failure().is_none();
            if is_well && store.journal.is_logging() && store.journal.backlog() == 0 {
                self.safe = self.moments.len() - 1;
            }
        }
        Ok(())
    }

    fn send(&mut self, client: usize, ops: &[Op]) -> Verdict {
        if self.clients[client].is_waiting() {
            return Ok(());
        }
        if let Some(op) = ops.iter().find(|op| op.is_conversation()) {
            return self.converse(op);
        }
        // An item that was not added may be another one to the filter, so it is not removed.
        let removes = |op: &&Op| matches!(op, Op::Remove(..));
        if let Some(op) = ops.iter().find(removes) {
            let Op::Remove(key, number) = op else {
                return Ok(());
            };
            let now = self.now();
            let known = self.model.get(key, now);
            if !known.is_some_and(|key| Model::must_find(&key.value, *number, now)) {
                return Ok(());
            }
            return self.run(client, vec![Request::One(op.clone())]);
        }
        self.run(client, ops.iter().cloned().map(Request::One).collect())
    }

    fn transact(&mut self, client: usize, ops: &[Op]) -> Verdict {
        let fits = |op: &&Op| !op.is_conversation() && !matches!(op, Op::Other(_) | Op::Remove(..));
        let ops: Vec<Op> = ops.iter().filter(fits).cloned().collect();
        if self.clients[client].is_waiting() {
            return Ok(());
        }
        let mut requests = vec![Request::Queued(vec![b"MULTI".to_vec()])];
        requests.extend(ops.iter().map(|op| Request::Queued(op.words())));
        requests.push(Request::Exec(ops));
        self.run(client, requests)
    }

    fn run(&mut self, client: usize, requests: Vec<Request>) -> Verdict {
        let words: Vec<Words> = requests.iter().map(Request::words).collect();
        self.unanswered[client] = requests;
        let instance = self.instance.as_ref().expect("the server runs");
        let progress = self.clients[client].send(instance, &words);
        self.take(
            client,
            &progress.replies,
            progress.position,
            progress.offloaded,
        )
    }

    fn go_on(&mut self, client: usize) -> Verdict {
        let instance = self.instance.as_ref().expect("the server runs");
        match self.clients[client].go_on(instance) {
            Some(progress) => self.take(
                client,
                &progress.replies,
                progress.position,
                progress.offloaded,
            ),
            None => Ok(()),
        }
    }

    /// Compares the replies with the model's.
    fn take(
        &mut self,
        client: usize,
        replies: &[Reply],
        position: u64,
        mut offloaded: bool,
    ) -> Verdict {
        for reply in replies {
            if self.unanswered[client].is_empty() {
                return Err(format!("a reply to nothing: {reply:?}"));
            }
            match self.unanswered[client].remove(0) {
                Request::One(op) => {
                    let past = std::mem::take(&mut offloaded);
                    self.apply(&op, reply, past)?;
                }
                Request::Queued(_) => {}
                Request::Exec(ops) => match reply {
                    Reply::Array(replies) if replies.len() == ops.len() => {
                        for (op, reply) in ops.iter().zip(replies) {
                            self.apply(op, reply, false)?;
                        }
                    }
                    refusal if is_refusal(refusal) => {}
                    other => return Err(format!("EXEC: {other:?}")),
                },
            }
            self.remember(position);
        }
        Ok(())
    }

    /// `past`: the reply may show the value as it was in the past.
    fn apply(&mut self, op: &Op, reply: &Reply, past: bool) -> Verdict {
        let now = self.now();
        let verdict = self.model.apply(op, reply, now);
        if past && verdict.is_err() && matches!(op, Op::Get(_) | Op::GetRange(..)) {
            let mut before = self.moments.iter().rev();
            let is_reply = |moment: &Moment| moment.model.clone().apply(op, reply, now).is_ok();
            if before.any(is_reply) {
                return Ok(());
            }
        }
        verdict.map_err(|what| format!("{op}: {what}"))
    }

    fn ask(&mut self, request: Words) -> Reply {
        let instance = self.instance.as_ref().expect("the server runs");
        self.checker.ask(instance, request).0
    }

    fn line(&mut self, line: &str) -> Reply {
        self.ask(
            line.split(' ')
                .map(|word| word.as_bytes().to_vec())
                .collect(),
        )
    }

    /// Copies a value in several requests.
    fn converse(&mut self, op: &Op) -> Verdict {
        let (Op::DumpRestore(from, to) | Op::ScanDump(from, to)) = op else {
            return Ok(());
        };
        if from == to {
            return Ok(());
        }
        let reply = match op {
            Op::DumpRestore(..) => self.dump_and_restore(from, to),
            _ => self.scan_and_load(from, to)?,
        };
        let copied = reply == Reply::OK;
        let now = self.now();
        self.model.apply(op, &reply, now)?;
        let end = self.instance().server.store.journal.end();
        self.remember(end);
        if copied { self.check_key(to) } else { Ok(()) }
    }

    fn dump_and_restore(&mut self, from: &str, to: &str) -> Reply {
        let Reply::Bulk(payload) = self.line(&format!("DUMP {from}")) else {
            return Reply::Null;
        };
        let mut words: Words = ["RESTORE", to, "0"].map(|it| it.as_bytes().to_vec()).into();
        words.extend([payload, b"REPLACE".to_vec()]);
        self.ask(words)
    }

    fn scan_and_load(&mut self, from: &str, to: &str) -> Result<Reply, String> {
        let prefix = match family(from) {
            Family::Text => return Ok(Reply::Null),
            Family::Cuckoo => "CF",
            _ => "BF",
        };
        if is_refusal(&self.line(&format!("DEL {to}"))) {
            return Ok(Reply::Null);
        }
        self.model.keys.remove(to);
        let end = self.instance().server.store.journal.end();
        self.remember(end);
        let (mut iterator, mut loaded) = (0, Reply::Null);
        loop {
            let piece = self.line(&format!("{prefix}.SCANDUMP {from} {iterator}"));
            let Reply::Array(piece) = piece else {
                return match self.model.get(from, self.now()) {
                    Some(_) => Err(format!("SCANDUMP {from} {iterator}: {piece:?}")),
                    None => Ok(Reply::Null),
                };
            };
            let [Reply::Integer(next), Reply::Bulk(bytes)] = piece.as_slice() else {
                // RedisBloom gives nothing of a cuckoo filter without items.
                return Ok(loaded);
            };
            if *next == 0 {
                return Ok(loaded);
            }
            let command = format!("{prefix}.LOADCHUNK {to} {next}");
            let mut words: Words = command
                .split(' ')
                .map(|it| it.as_bytes().to_vec())
                .collect();
            words.push(bytes.clone());
            loaded = self.ask(words);
            let end = self.instance().server.store.journal.end();
            if loaded != Reply::OK {
                return match is_refusal(&loaded) {
                    true => Ok(loaded),
                    false => Err(format!("LOADCHUNK {to} {next}: {loaded:?}")),
                };
            }
            self.model.forget(to);
            self.remember(end);
            iterator = *next;
        }
    }

    /// Ends the server and starts it again, and finds the moment that it has loaded.
    fn restart(&mut self, end: End) -> Verdict {
        let before = self.end_server(end);
        self.disk.heal();
        let moments = std::mem::take(&mut self.moments);
        self.start()?;
        let (first, digests) = before;
        let found = self.found_index(&moments, first)?;
        self.model = moments[found].model.clone();
        // Whether an expired item was lost cannot be seen, even if the clock goes back later.
        let now = self.now();
        self.model.drop_forgotten(now);
        self.drop_doubtful();
        self.moments.clear();
        self.remember(0);
        if let Some(before) = digests {
            let after = self.instance().digests();
            let now = self.now();
            for (key, digest) in &before {
                let alive = digest.0.is_none_or(|at| at > now);
                if alive && self.model.get(key, now).is_some() && after.get(key) != Some(digest) {
                    return Err(format!("{key} has another digest after a restart"));
                }
            }
        }
        self.check()
    }

    /// Ends the server. Returns the first moment that may be on the disk, and the digests that must
    /// be there.
    fn end_server(&mut self, end: End) -> (usize, Option<Digests>) {
        let end = match std::mem::take(&mut self.has_lost) {
            true => End::Power(0),
            false => end,
        };
        let last = self.moments.len() - 1;
        let instance = self.instance.take().expect("the server runs");
        let store = &instance.server.store;
        if end == End::Stop {
            let digests = instance.digests();
            let logging = store.journal.is_logging();
            instance.stop();
            if logging && store.failure().is_none() {
                return (last, Some(digests));
            }
        } else {
            self.disk.crash_now();
            instance.end_threads();
        }
        let first = self.first_kept(&instance, end);
        self.disk = match end {
            End::Power(seed) => self.disk.survivors(seed),
            End::Kill | End::Stop => self.disk.after_kill(),
        };
        (first, None)
    }

    /// The first moment that may be on the disk.
    fn first_kept(&self, instance: &Instance, end: End) -> usize {
        let store = &instance.server.store;
        let persistence = store.persistence().expect("a disk");
        if !store.journal.is_logging() {
            let saved = &persistence.figures;
            let relaxed = std::sync::atomic::Ordering::Relaxed;
            if saved.save.done.load(relaxed) == 0 {
                return 0;
            }
            let changes = saved.saved_changes.load(relaxed);
            return self
                .moments
                .partition_point(|moment| moment.changes < changes);
        }
        let written = store.journal.written();
        let is_written = |moment: &Moment| moment.position <= written;
        let acknowledged = self.moments.iter().rposition(is_written).unwrap_or(0);
        match (end, store.settings().appendfsync) {
            (End::Power(_), Fsync::EverySecond | Fsync::No) => self.safe,
            _ => acknowledged,
        }
    }

    /// The moment that the server has loaded: the last that fits.
    fn found_index(&mut self, moments: &[Moment], first: usize) -> Result<usize, String> {
        let now = self.now();
        let found = self.found();
        let mut why = String::new();
        for (index, moment) in moments.iter().enumerate().skip(first).rev() {
            match self.fits(&moment.model, &found, now) {
                Ok(()) => return Ok(index),
                Err(reason) if why.is_empty() => why = reason,
                Err(_) => {}
            }
        }
        let last = moments.len() - 1;
        Err(format!(
            "what the server has loaded is none of the moments {first} to {last}; the last: {why}"
        ))
    }

    /// The keys of the server, and which items its filters have.
    fn found(&mut self) -> Vec<Found> {
        let mut found = Vec::new();
        self.instance().each(|key, expires_at, value| {
            found.push(Found {
                key: key.to_owned(),
                expires_at,
                text: match value {
                    Stored::Text(text) => Some(text.to_vec()),
                    Stored::Filter(_) => None,
                },
                items: BTreeSet::new(),
            });
        });
        let now = self.now();
        found.retain(|it| it.expires_at.is_none_or(|at| at > now));
        for it in found.iter_mut().filter(|it| it.text.is_none()) {
            it.items = self.items_of(&it.key);
        }
        found
    }

    fn items_of(&mut self, key: &str) -> BTreeSet<u32> {
        let reply = self.ask(Op::Ask(key.into(), 0, MAX_ITEMS).words());
        let Reply::Array(answers) = reply else {
            return BTreeSet::new();
        };
        let there = answers.iter().map(|it| *it == Reply::Integer(1));
        (0..MAX_ITEMS)
            .zip(there)
            .filter(|it| it.1)
            .map(|it| it.0)
            .collect()
    }

    /// Whether the keys of the server are those of a model.
    fn fits(&self, model: &Model, found: &[Found], now: u64) -> Verdict {
        // The clock may have gone back since they expired.
        let doubtful = |at: Option<u64>| at.is_some_and(|at| at <= self.latest);
        for (key, _) in model.alive(now).filter(|it| !doubtful(it.1.expires_at)) {
            if !found.iter().any(|it| it.key == *key) {
                return Err(format!("{key} is missing"));
            }
        }
        for it in found.iter().filter(|it| !doubtful(it.expires_at)) {
            let Some(key) = model.get(&it.key, now) else {
                return Err(format!("{} is there", it.key));
            };
            if key.expires_at != it.expires_at {
                let (is, must) = (it.expires_at, key.expires_at);
                return Err(format!("{} expires at {is:?}, not at {must:?}", it.key));
            }
            match &key.value {
                Value::Text(text) if it.text.as_ref() != Some(text) => {
                    return Err(format!("{} has another text", it.key));
                }
                Value::Text(_) => {}
                value => {
                    let missing = |number: &u32| {
                        Model::must_find(value, *number, now) && !it.items.contains(number)
                    };
                    if let Some(number) = (0..MAX_ITEMS).find(missing) {
                        return Err(format!("item{number} of {} is missing", it.key));
                    }
                }
            }
        }
        Ok(())
    }

    /// Removes the keys of which the model cannot know whether they have expired.
    fn drop_doubtful(&mut self) {
        let mut keys = Vec::new();
        self.instance().each(|key, expires_at, _| {
            if expires_at.is_some_and(|at| at <= self.latest) {
                keys.push(key.to_owned());
            }
        });
        let model = self.model.keys.iter();
        let expired = model.filter(|it| it.1.expires_at.is_some_and(|at| at <= self.latest));
        keys.extend(expired.map(|it| it.0.clone()));
        for key in keys {
            self.model.keys.remove(&key);
            self.line(&format!("DEL {key}"));
        }
    }

    /// Checks everything.
    fn check(&mut self) -> Verdict {
        for family in ["s", "b", "w", "c"] {
            for number in 0..4 {
                self.check_key(&format!("{family}{number}"))?;
            }
        }
        self.instance().check_totals()?;
        let waiting = self.clients.iter().any(Connection::is_waiting);
        if self.machine.threads().is_empty() && !waiting {
            let mut read = None;
            self.instance().each(|key, _, value| {
                if value.capture().ids().next().is_some() {
                    read = Some(key.to_owned());
                }
            });
            if let Some(key) = read {
                return Err(format!("{key} has a reader, and nobody reads it"));
            }
        }
        Ok(())
    }

    fn check_key(&mut self, key: &str) -> Verdict {
        let now = self.now();
        let Some(known) = self.model.get(key, now).cloned() else {
            let reply = self.line(&format!("EXISTS {key}"));
            return match reply {
                Reply::Integer(0) => Ok(()),
                other => Err(format!("EXISTS {key}: {other:?}, and it must be gone")),
            };
        };
        match &known.value {
            Value::Text(text) => {
                let reply = self.line(&format!("GET {key}"));
                if reply != Reply::Bulk(text.clone()) {
                    return Err(format!("GET {key} is not what it must be"));
                }
                Ok(())
            }
            value => self.check_filter(key, value, now),
        }
    }

    fn check_filter(&mut self, key: &str, value: &Value, now: u64) -> Verdict {
        let there = self.items_of(key);
        let must = |number: &u32| Model::must_find(value, *number, now);
        if let Some(number) = (0..MAX_ITEMS).find(|number| must(number) && !there.contains(number))
        {
            return Err(format!(
                "item{number} of {key} is missing ({})",
                items_text(number)
            ));
        }
        let Value::Window(window) = value else {
            return Ok(());
        };
        let forgotten = window.items.iter();
        let forgotten: Vec<u32> = forgotten
            .filter(|(_, addition)| window.has_forgotten(addition, now))
            .map(|(number, _)| *number)
            .collect();
        let found = forgotten
            .iter()
            .filter(|number| there.contains(number))
            .count();
        if forgotten.len() >= 20 && found * 2 > forgotten.len() {
            let all = forgotten.len();
            return Err(format!(
                "{key} must have forgotten {all} items, and finds {found}"
            ));
        }
        Ok(())
    }
}

fn items_text(number: u32) -> String {
    String::from_utf8_lossy(&item(number)).into_owned()
}

/// A key of the server.
struct Found {
    key: String,
    expires_at: Option<u64>,
    text: Option<Vec<u8>>,
    items: BTreeSet<u32>,
}
