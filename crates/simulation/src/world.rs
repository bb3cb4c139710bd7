//! Does the steps of a plan, and compares the server with the model.
//!
//! - `checks`: every value, and the totals
//! - `statements`: INFO, CONFIG GET and `/ready` tell the truth
//! - `owners`: readers, jobs and locks end with their owners
//! - `bounds`: no command takes more memory than its kind may
//! - `copies`: copies that take several requests
//! - `extremes`: numbers at the ends of a type's range
//! - `forged`: filters whose header a client has forged
//! - `replies`: replies that are larger than a limit
//! - `restart`: what is loaded after an end
//! - `second`: a second thread that runs commands
//! - `stall`: a disk that hangs

mod bounds;
mod checks;
mod copies;
mod extremes;
mod forged;
mod owners;
mod replies;
mod restart;
mod second;
mod stall;
mod statements;

use std::panic::{AssertUnwindSafe, catch_unwind};

use everbloom_resp::{Reply, encode_request};
use everbloom_server::Settings;
use everbloom_store::Fsync;
use everbloom_store::machine::Machine;

use crate::crashing::CrashingDisk;
use crate::machine::Simulated;
use crate::model::{Model, is_refusal};
use crate::op::{Op, Words, words_of};
use crate::plan::{CLIENTS, End, Plan, Step};
use crate::server::{Connection, Instance, Progress, settings};

use stall::Hang;
use statements::Statements;

/// The clock at the start of each run, in Unix milliseconds.
const START_MS: u64 = 1_800_000_000_000;

/// With `everysec`, what was acknowledged before this time survives a loss of power.
const SYNCED_MS: i64 = 3000;

/// Items have numbers below this one.
const MAX_ITEMS: u32 = 2500;

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
    let _limits = plan.limits.set();
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
    /// The clock then.
    at: u64,
}

struct World {
    settings: Settings,
    machine: Simulated,
    disk: CrashingDisk,
    instance: Option<Instance>,
    clients: Vec<Connection>,
    /// What each client has sent and has no reply to yet.
    unanswered: Vec<Vec<Request>>,
    /// The keys that each client watches.
    watched: Vec<Vec<Watched>>,
    /// Asks in the name of the checks.
    checker: Connection,
    model: Model,
    /// The moments since the server started; the first is what it had loaded.
    moments: Vec<Moment>,
    /// The first moment that may be what is left after a loss of power.
    safe: usize,
    /// With `appendfsync always`, how much was written when that was set.
    always_since: Option<u64>,
    /// How many changes there were when the log was switched off, that one included.
    off_since: Option<u64>,
    /// What the server says of itself, and what must be true of that.
    statements: Statements,
    /// The moments that a log beside the snapshot may hold, which a start without a log does not read.
    beside: Vec<Moment>,
    /// The latest clock that there was.
    latest: u64,
    /// Whether an fsync may have lost what it was to make last. The next process would read it,
    /// and could not know that it does not last. So this one ends with the power.
    has_lost: bool,
    /// What is known of a disk that hangs.
    hang: Hang,
    /// Whether the replies that are compared are those of the second thread.
    on_second: bool,
}

/// A key that a client watches.
#[derive(Debug, Clone)]
struct Watched {
    key: String,
    /// Whether it was there.
    was_there: bool,
    /// Whether it has changed since; `None` if only the server can know.
    changed: Option<bool>,
}

/// A request of a client.
#[derive(Debug, Clone)]
enum Request {
    One(Op),
    Watch(String),
    /// MULTI, or a command that is queued.
    Queued(Words),
    Exec(Vec<Op>),
}

fn switches_log(op: &Op) -> bool {
    matches!(op, Op::Config("appendonly", _))
}

impl Request {
    fn transaction(ops: Vec<Op>) -> Vec<Request> {
        let mut requests = vec![Request::Queued(vec![b"MULTI".to_vec()])];
        requests.extend(ops.iter().map(|op| Request::Queued(op.words())));
        requests.push(Request::Exec(ops));
        requests
    }

    fn words(&self) -> Words {
        match self {
            Request::One(op) => op.words(),
            Request::Watch(key) => vec![b"WATCH".to_vec(), key.clone().into_bytes()],
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
            watched: Vec::new(),
            checker: Connection::new(),
            model: Model::default(),
            moments: Vec::new(),
            safe: 0,
            always_since: None,
            off_since: None,
            statements: Statements::default(),
            beside: Vec::new(),
            latest: START_MS,
            has_lost: false,
            hang: Hang::default(),
            on_second: false,
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
        self.instance = Some(self.start_instance()?);
        self.statements = Statements::at_start(&self.settings, &self.disk);
        self.clients = (0..CLIENTS).map(|_| Connection::new()).collect();
        self.unanswered = vec![Vec::new(); CLIENTS];
        self.watched = vec![Vec::new(); CLIENTS];
        self.checker = Connection::new();
        self.moments.clear();
        self.safe = 0;
        self.always_since = None;
        self.off_since = None;
        self.hang = Hang::default();
        self.remember(0);
        self.note_always();
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
            at: self.now(),
        });
    }

    fn step(&mut self, step: &Step) -> Verdict {
        self.latest = self.latest.max(self.now());
        let mut left = None;
        match step {
            Step::Send(client, ops) => self.send(*client, ops)?,
            Step::Transaction(client, ops) => self.transact(*client, ops)?,
            Step::Second(client, ops, is_transaction) => {
                self.run_on_second(*client, ops, *is_transaction)?;
            }
            Step::Watch(client, key) if !self.clients[*client].is_waiting() => {
                self.run(*client, vec![Request::Watch(key.clone())])?;
            }
            Step::Watch(..) => {}
            Step::Leave(client) => {
                self.finish_second()?;
                self.watched[*client].clear();
                self.clients[*client] = Connection::new();
                self.unanswered[*client].clear();
            }
            Step::Pass(ms) => self.pass(*ms)?,
            Step::Log => left = self.write_log()?,
            Step::Thread(number, times) => {
                let threads = self.machine.threads();
                if let Some((number, _)) = threads.get(number % threads.len().max(1)) {
                    self.machine.step(*number, *times);
                }
            }
            Step::Attend => {
                let is_idle = !self.instance().persistence().is_busy();
                self.instance().attend();
                self.check_stall()?;
                if is_idle {
                    self.check_save_points()?;
                }
            }
            Step::Expire => {
                self.instance().expire();
                self.instance().check_forgotten()?;
            }
            Step::Disk(fault) => self.set_fault(*fault),
            Step::Restart(end) => self.restart(*end, None)?,
            Step::Remove(number) => self.remove_log_file(*number),
            Step::Damage(damage) => self.restart(End::Kill, Some(*damage))?,
            Step::Mend => self.mend()?,
            Step::Check => self.check()?,
        }
        for client in 0..CLIENTS {
            self.go_on(client)?;
        }
        self.note_always();
        if let Some(name) = self.machine.has_panicked() {
            return Err(format!("the thread '{name}' panics"));
        }
        self.check_owners()?;
        self.check_statements(left)?;
        self.check_stall_is_over(left)?;
        if self.instance().server.store.failure().is_some() {
            self.restart(End::Kill, None)?;
        }
        Ok(())
    }

    /// Ends all threads.
    fn end(&mut self) {
        self.disk.crash_now();
        self.instance().end_threads();
    }

    fn pass(&mut self, ms: i64) -> Verdict {
        // A command takes no time.
        self.finish_second()?;
        if ms < 0 {
            // What has expired must not come back.
            if !self.instance().expire() {
                return Ok(());
            }
            let now = self.now();
            self.model.purge(now);
            self.model.see(now);
            let end = self.instance().server.store.journal.end();
            self.remember(end);
        }
        self.machine.pass(ms);
        self.statements.pass(ms);
        let store = &self.instance().server.store;
        let is_synced = ms >= SYNCED_MS && !self.disk.hangs();
        if is_synced && store.settings().appendfsync == Fsync::EverySecond {
            for _ in 0..3 {
                self.instance().write_log();
                self.instance().finish("fsync");
                self.machine.pass(1001);
            }
            let store = &self.instance().server.store;
            let is_well = store.can_log() && store.failure().is_none();
            if is_well && self.instance().keeps_log() && store.journal.backlog() == 0 {
                self.safe = self.moments.len() - 1;
            }
        }
        Ok(())
    }

    /// With `appendfsync always`, what is written since that was set is on the disk.
    fn note_always(&mut self) {
        let store = &self.instance().server.store;
        let written = store.journal.written();
        if store.settings().appendfsync != Fsync::Always || !self.instance().keeps_log() {
            self.always_since = None;
            return;
        }
        let since = *self.always_since.get_or_insert(written);
        let synced = |moment: &Moment| (since + 1..=written).contains(&moment.position);
        if let Some(synced) = self.moments.iter().rposition(synced) {
            self.safe = self.safe.max(synced);
        }
    }

    fn send(&mut self, client: usize, ops: &[Op]) -> Verdict {
        if self.clients[client].is_waiting() {
            return Ok(());
        }
        self.mend_before_switch(ops)?;
        match ops.iter().find(|op| op.is_conversation()) {
            Some(Op::Forge(from, to, changes)) => return self.load_forged(from, to, changes),
            Some(Op::Extreme(key, line)) => return self.run_extreme(key, line),
            Some(Op::ReadMany(key, how, limit, percent)) => {
                return self.read_many(key, *how, *limit, *percent);
            }
            Some(op) => return self.converse(op),
            None => {}
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

    /// A log that is switched off without one of its files is never whole again.
    fn mend_before_switch(&mut self, ops: &[Op]) -> Verdict {
        match self.statements.is_log_removed() && ops.iter().any(switches_log) {
            true => self.mend(),
            false => Ok(()),
        }
    }

    fn transact(&mut self, client: usize, ops: &[Op]) -> Verdict {
        let fits = |op: &&Op| !op.is_conversation() && !matches!(op, Op::Other(_) | Op::Remove(..));
        let ops: Vec<Op> = ops.iter().filter(fits).cloned().collect();
        if self.clients[client].is_waiting() {
            return Ok(());
        }
        self.mend_before_switch(&ops)?;
        self.run(client, Request::transaction(ops))
    }

    fn run(&mut self, client: usize, requests: Vec<Request>) -> Verdict {
        let words: Vec<Words> = requests.iter().map(Request::words).collect();
        self.unanswered[client] = requests;
        let work = match words.as_slice() {
            [alone] => self.work_before(alone),
            _ => None,
        };
        let instance = self.instance.as_ref().expect("the server runs");
        let progress = self.clients[client].send(instance, &words);
        self.check_waits_for_no_disk(client)?;
        if let Some(work) = work {
            self.check_work(&words[0], work, progress.taken)?;
        }
        self.take(client, &progress)
    }

    fn go_on(&mut self, client: usize) -> Verdict {
        let instance = self.instance.as_ref().expect("the server runs");
        match self.clients[client].go_on(instance) {
            Some(progress) => self.take(client, &progress),
            None => Ok(()),
        }
    }

    /// Compares the replies with the model's.
    fn take(&mut self, client: usize, progress: &Progress) -> Verdict {
        self.on_second = progress.on_second;
        let mut offloaded = progress.offloaded;
        for reply in &progress.replies {
            if self.unanswered[client].is_empty() {
                return Err(format!("a reply to nothing: {reply:?}"));
            }
            match self.unanswered[client].remove(0) {
                Request::One(op) => {
                    let past = std::mem::take(&mut offloaded);
                    self.apply(&op, reply, past)?;
                    let alone = progress.replies.len() == 1 && self.unanswered[client].is_empty();
                    if let (Op::Copy(from, to), Reply::Integer(1), true) = (&op, reply, alone) {
                        self.check_copy(from, to)?;
                    }
                    if alone {
                        self.check_forged(&op, reply)?;
                    }
                }
                Request::Watch(key) => self.watch(client, key),
                Request::Queued(_) => {}
                Request::Exec(ops) => self.executed(client, &ops, reply)?,
            }
            self.remember(progress.position);
        }
        Ok(())
    }

    fn watch(&mut self, client: usize, key: String) {
        let was_there = self.model.get(&key, self.now()).is_some();
        self.watched[client].push(Watched {
            key,
            was_there,
            changed: Some(false),
        });
    }

    /// Notes what an operation does to watched keys.
    fn note_change(&mut self, op: &Op, reply: &Reply) {
        for watched in self.watched.iter_mut().flatten() {
            match op {
                Op::Flush(_) if is_refusal(reply) => {}
                Op::Flush(_) if watched.was_there => watched.changed = Some(true),
                // A filter for which there is no memory was opened to be changed, as in RedisBloom.
                op if op.changes().contains(&watched.key.as_str()) => watched.changed = None,
                _ => {}
            }
        }
    }

    /// Compares the reply to EXEC with the model's.
    fn executed(&mut self, client: usize, ops: &[Op], reply: &Reply) -> Verdict {
        let now = self.now();
        let watched = std::mem::take(&mut self.watched[client]);
        let expires = |watched: &Watched| {
            let key = self.model.keys.get(&watched.key);
            watched.was_there && key.is_none_or(|key| key.expires_at.is_some())
        };
        let is_sure = |watched: &Watched| watched.changed == Some(false) && !expires(watched);
        let changed = match &watched {
            all if all.iter().any(|watched| watched.changed == Some(true)) => Some(true),
            all if all.iter().all(is_sure) => Some(false),
            _ => None,
        };
        match reply {
            Reply::Array(_) if changed == Some(true) => {
                Err("EXEC runs, and the watched key has changed".into())
            }
            Reply::Array(replies) if replies.len() == ops.len() => {
                let mut both = ops.iter().zip(replies);
                both.try_for_each(|(op, reply)| self.apply(op, reply, false))?;
                self.check_slowlog(ops)
            }
            Reply::Null | Reply::NullArray if changed != Some(false) => Ok(()),
            refusal if is_refusal(refusal) => Ok(()),
            other => Err(format!("EXEC at {now}: {other:?}, watched {watched:?}")),
        }
    }

    /// `past`: another thread made the reply, so it may say what was true when that read the value.
    fn apply(&mut self, op: &Op, reply: &Reply, past: bool) -> Verdict {
        let now = self.now();
        self.note_change(op, reply);
        self.check_acceptance(op, reply, past)?;
        if let Op::Config("appendonly", to) = op
            && *reply == Reply::OK
        {
            // Who has switched the log on begins the next server with it.
            self.settings.data.appendonly |= *to == "yes";
            if *to == "no" {
                self.off_since = Some(self.instance().server.store.journal.changes());
            }
        }
        let changes_nothing = match op {
            Op::Get(_) | Op::GetRange(..) => true,
            Op::Copy(..) => *reply == Reply::Integer(0),
            _ => false,
        };
        if past && changes_nothing {
            let is_reply = |index: usize| {
                let moment = &self.moments[index];
                // A key may have expired before the next moment.
                let mut times = [moment.at, self.until(&self.moments, index)].into_iter();
                times.any(|at| moment.model.clone().apply(op, reply, at).is_ok())
            };
            if (0..self.moments.len()).rev().any(is_reply) {
                return Ok(());
            }
        }
        let verdict = self.model.apply(op, reply, now);
        verdict.map_err(|what| format!("{op}: {what}"))
    }

    fn ask(&mut self, request: Words) -> Reply {
        let mut bytes = Vec::new();
        encode_request(&request, &mut bytes);
        self.ask_encoded(bytes)
    }

    /// The same, if it takes no more than its bound.
    fn ask_bounded(&mut self, request: &Words) -> Result<Reply, String> {
        let work = self.work_before(request);
        let mut bytes = Vec::new();
        encode_request(request, &mut bytes);
        let instance = self.instance.as_ref().expect("the server runs");
        let (reply, taken) = self.checker.ask(instance, bytes);
        match work {
            Some(work) => self.check_work(request, work, taken).map(|()| reply),
            None => Ok(reply),
        }
    }

    fn ask_encoded(&mut self, request: Vec<u8>) -> Reply {
        let instance = self.instance.as_ref().expect("the server runs");
        self.checker.ask(instance, request).0
    }

    fn line(&mut self, line: &str) -> Reply {
        self.ask(words_of(line))
    }
}
