//! A command in dispatch: its row, one call of it, what that comes to, and the registry of all rows.
//! These name each other, so they are together.
//!
//! A worker runs each command to its end, while its other connections wait. So a command that must
//! copy or read megabytes returns [`Work`]. Its connection waits for a thread that does it, and the
//! worker serves the others. The result of the work is the reply, or the rest of the command, which
//! runs under the locks of its keys.

use std::collections::HashMap;
use std::fmt;
use std::ops::{Deref, Range};
use std::sync::Arc;
use std::time::{Duration, Instant};

use everbloom::hash::Key;
use everbloom_commands::flags::DENYOOM;
use everbloom_commands::{Action, Answers, Args, CommandError, Context, Function, KeySource};
use everbloom_files::{Text, Value};
use everbloom_resp::Reply;
use everbloom_store::clock::Now;
use everbloom_store::keyspace::{Entry, KeyRef, View};

use crate::config::Settings;
use crate::error;
use crate::limits::{MAX_KEYS_AT_ONCE, WORK_BYTES};
use crate::locked::Locked;
use crate::server::Server;
use crate::session::Session;
use crate::stats::WorkerStats;

/// A command of the server, as a row of the registry.
pub type Command = everbloom_commands::Command<Handler>;

/// What a command needs to run, and the function that runs it. An error is a reply, too: it refuses
/// a call that has changed nothing.
#[derive(Debug, Clone, Copy)]
pub enum Handler {
    /// The one key of a command on filters.
    Filter(Function),
    /// The one key of a command on a string that has the same shape.
    Text(Action<Text>),
    /// No key: only the connection and the server.
    Plain(fn(&mut Call<'_>) -> Result<Reply, Reply>),
    /// No key is locked: for a command that another thread may run.
    PlainOrWork(fn(&mut Call<'_>) -> Result<Outcome, Reply>),
    /// Its keys, one after another: it answers with the number of those that this is true for. A
    /// long list is left to another thread, which locks a few keys at a time.
    Count(CountFn),
    /// Its keys, for reading.
    Read(fn(&Call<'_>, View<'_>) -> Result<Reply, Reply>),
    /// Its one key, of whose value it answers with some bytes.
    Select(SelectFn),
    /// Its keys, for changes.
    Write(fn(&Call<'_>, &mut Locked<'_>) -> Result<Reply, Reply>),
    /// Its one key, for changes. It answers with the string that the key holds, before it changes
    /// anything: there may be no memory for the answer.
    Exchange(ExchangeFn),
    /// Its keys, one of which gets a value that may be large.
    Make(fn(&Call<'_>, &mut Locked<'_>) -> Result<Outcome, Reply>),
    /// All keys, for reading one shard at a time with [`View::with_shard`].
    ReadEach(fn(&Call<'_>, View<'_>) -> Result<Reply, Reply>),
    /// All keys, for changes.
    WriteAll(fn(&Call<'_>, &mut Locked<'_>) -> Result<Reply, Reply>),
    /// All keys of the commands queued since MULTI; dispatch itself runs them.
    Exec,
}

/// A function that is given a request and the value of its key, and says what it answers with. When
/// that is much, the function is called once more, at the moment at which it is read.
pub type SelectFn = fn(&[&[u8]], Option<&Value>) -> Result<Selected, Reply>;

/// What a command that [counts](Handler::Count) does with each key.
#[derive(Debug, Clone, Copy)]
pub enum CountFn {
    /// Looks it up.
    Read(LookUpFn),
    /// Changes it. The log repeats the command with the keys that were named together.
    Write(ChangeFn),
}

/// A function that looks up a key.
pub type LookUpFn = for<'v> fn(View<'v>, KeyRef<'_>) -> Option<&'v Entry>;

/// A function that changes a key, and says whether there was anything to change.
pub type ChangeFn = fn(&mut Locked<'_>, KeyRef<'_>) -> bool;

/// A function that answers a request, and changes its key then.
pub type ExchangeFn = fn(&Call<'_>, &mut Locked<'_>, &mut dyn Answers) -> Result<(), Reply>;

/// What a command on a value answers with.
#[derive(Debug)]
pub enum Selected {
    /// This reply.
    Reply(Reply),
    /// These bytes of the value: of a string, or of one array of a filter, all of which are laid
    /// end to end. The number of a piece of a dump comes before them.
    Bytes(Option<i64>, Range<u64>),
    /// All of the value, as the payload of DUMP.
    Payload,
}

/// One call of a command.
#[derive(Debug)]
pub struct Call<'a> {
    /// The server.
    pub server: &'a Arc<Server>,
    /// All commands.
    pub registry: &'static Registry,
    /// The connection.
    pub session: &'a mut Session,
    /// The figures of the worker that runs the call.
    pub stats: &'a WorkerStats,
    /// The current settings.
    pub settings: &'a Settings,
    /// The command; once it runs, its subcommand.
    pub command: &'static Command,
    /// All arguments, the name first.
    pub args: &'a [&'a [u8]],
    /// The time of the call.
    pub now: Now,
    /// Whether its connection can wait for another thread. A log cannot, and a transaction keeps
    /// its keys locked.
    pub can_wait: bool,
}

impl<'a> Call<'a> {
    /// The limits and settings for commands on filters.
    pub fn context(&self) -> Context {
        let (server, settings) = (self.server, self.settings);
        Context {
            defaults: settings.bf,
            cuckoo: settings.cf,
            max_filter_bytes: server.max_filter_bytes(settings),
            free_bytes: server.free_memory(settings),
            max_string_bytes: settings.proto_max_bulk_len,
            protocol: self.session.protocol,
            keys: KeySource(Key::random),
            now_ms: self.now.ms,
            classic_only: false,
            has_replicas: false,
        }
    }

    /// The arguments after the name, or after both names of a subcommand.
    #[inline]
    pub fn args(&self) -> Args<'a> {
        let names = usize::from(self.command.name.contains('|'));
        let args = self.args.get(names..).unwrap_or_default();
        Args::new(self.command.name, args)
    }

    /// Names a key of the session's database.
    #[inline]
    pub fn key<'k>(&self, name: &'k [u8]) -> KeyRef<'k> {
        self.server.store.keyspace.key(self.session.db, name)
    }

    /// All keys that it names.
    pub fn keys(&self) -> impl Iterator<Item = KeyRef<'a>> {
        let names = self.command.keys.of(self.args);
        names.map(|name| self.key(name))
    }

    /// The entry of a key for a command that reads. Redis counts only these look-ups as hits and
    /// misses.
    pub fn look_up<'v>(&self, view: View<'v>, key: KeyRef<'_>) -> Option<&'v Entry> {
        let entry = view.get(key);
        self.count_look_ups(entry.is_some(), 1);
        entry
    }

    /// Like [`Call::look_up`], for a command that only inspects a key.
    pub fn peek<'v>(&self, view: View<'v>, key: KeyRef<'_>) -> Option<&'v Entry> {
        let entry = view.peek(key);
        self.count_look_ups(entry.is_some(), 1);
        entry
    }

    /// Whether work on so many bytes is left to another thread.
    pub fn leaves(&self, bytes: u64) -> bool {
        self.can_wait && bytes > WORK_BYTES.get_u64()
    }

    /// Whether its list of keys is so long that it is left to another thread.
    pub fn leaves_keys(&self) -> bool {
        self.can_wait && self.args.len() > MAX_KEYS_AT_ONCE
    }

    /// Counts look-ups of one key as hits or misses.
    pub fn count_look_ups(&self, found: bool, times: usize) {
        let counter = if found {
            &self.stats.keyspace_hits
        } else {
            &self.stats.keyspace_misses
        };
        counter.add(times as u64);
    }
}

/// What a command comes to.
#[derive(Debug)]
pub enum Outcome {
    /// The reply.
    Reply(Reply),
    /// Work for another thread. Only the call of a connection that can [wait](Call::can_wait) comes
    /// to it.
    Work(Work),
}

impl Outcome {
    /// The reply to a call that cannot wait.
    pub fn into_reply(self) -> Reply {
        match self {
            Outcome::Reply(reply) => reply,
            Outcome::Work(_) => Reply::error("ERR the command has to wait"),
        }
    }
}

impl From<Reply> for Outcome {
    fn from(reply: Reply) -> Self {
        Outcome::Reply(reply)
    }
}

impl From<Work> for Outcome {
    fn from(work: Work) -> Self {
        Outcome::Work(work)
    }
}

/// Work for another thread. Nothing is locked meanwhile.
pub struct Work {
    run: Run,
    /// How long the same command has worked before.
    took: Duration,
}

/// What is done, with the arguments of the request.
type Run = Box<dyn FnOnce(&[&[u8]]) -> Done + Send>;

/// The result of work.
pub enum Done {
    /// The reply.
    Reply(Reply),
    /// The reply, encoded.
    Encoded(Vec<u8>),
    /// The rest of the command.
    Rest(Rest),
    /// The rest of the command, which needs no lock.
    Unlocked(UnlockedRest),
}

/// The rest of a command that changes only its connection.
pub type UnlockedRest = Box<dyn FnOnce(&mut Call<'_>) -> Reply + Send>;

/// The rest of a command whose work is done. It runs once, while the keys of the command are
/// locked. What it has is dropped behind the locks.
pub type Rest = Box<dyn FnMut(&Call<'_>, &mut Locked<'_>) -> Result<Outcome, Reply> + Send>;

/// Work that is done.
#[derive(Debug)]
pub struct Finished {
    /// Its result.
    pub done: Done,
    /// How long it took.
    pub took: Duration,
}

impl Work {
    /// Work on the arguments of the request.
    pub fn new(run: impl FnOnce(&[&[u8]]) -> Done + Send + 'static) -> Self {
        Work {
            run: Box::new(run),
            took: Duration::ZERO,
        }
    }

    /// Does the work of this request.
    pub fn run(self, request: &[&[u8]]) -> Finished {
        let begun = Instant::now();
        let done = (self.run)(request);
        Finished {
            done,
            took: self.took + begun.elapsed(),
        }
    }

    /// Refuses it: there is no memory to begin.
    pub fn refused(self) -> Finished {
        Finished {
            done: Done::Reply(CommandError::OutOfMemory.into()),
            took: self.took,
        }
    }

    /// The same work of a command that has worked for so long before.
    pub fn behind(self, took: Duration) -> Self {
        Work { took, ..self }
    }
}

impl fmt::Debug for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("work")
    }
}

impl fmt::Debug for Done {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Done::Reply(reply) => reply.fmt(f),
            Done::Encoded(reply) => write!(f, "{} bytes", reply.len()),
            Done::Rest(_) | Done::Unlocked(_) => f.write_str("the rest of the command"),
        }
    }
}

/// A command or a subcommand, with its index in the registry.
#[derive(Debug)]
pub struct Registered {
    /// The index, by which statistics are kept.
    pub index: usize,
    /// Its row.
    pub row: Command,
    /// Its subcommands.
    pub subcommands: Vec<Registered>,
}

impl Deref for Registered {
    type Target = Command;

    fn deref(&self) -> &Command {
        &self.row
    }
}

impl Registered {
    /// A command and its subcommands, with the next indices.
    fn new(row: Command, next: &mut usize) -> Self {
        let index = *next;
        *next += 1;
        let subcommands = row.subcommands.iter();
        Registered {
            index,
            subcommands: subcommands.map(|row| Registered::new(*row, next)).collect(),
            row,
        }
    }

    /// Whether it works on the value of one key, and replies at once.
    #[inline]
    pub fn is_on_value(&self) -> bool {
        use Function::{Bloom, Cuckoo};
        matches!(
            self.handler,
            Handler::Filter(Bloom(_) | Cuckoo(_)) | Handler::Text(_)
        )
    }

    /// Whether room for an answer to each argument is made before it runs. Without, a command that
    /// takes memory or looks up many items is refused while it has changed nothing; one that frees
    /// memory must run.
    #[inline]
    pub fn reserves_answers(&self) -> bool {
        self.is_on_value() || self.row.flags.has(DENYOOM)
    }

    /// The subcommand that a call of this command names, or this command if it has none. It itself
    /// answers HELP, too.
    #[inline]
    pub fn of_call(&self, args: &[&[u8]]) -> Result<&Registered, Reply> {
        match args.get(1) {
            Some(word) if !self.subcommands.is_empty() => self.subcommand(word),
            _ => Ok(self),
        }
    }

    fn subcommand(&self, word: &[u8]) -> Result<&Registered, Reply> {
        if word.eq_ignore_ascii_case(b"HELP") {
            return Ok(self);
        }
        let is_named = |row: &&Registered| row.own_name().as_bytes().eq_ignore_ascii_case(word);
        let named = self.subcommands.iter().find(is_named);
        named.ok_or_else(|| error::unknown_subcommand(word, self.name))
    }
}

/// The commands by name.
#[derive(Debug)]
pub struct Registry {
    commands: Vec<Registered>,
    /// Each name in lower case and in upper case, as nearly all clients write it.
    by_name: HashMap<Box<[u8]>, usize, foldhash::fast::FixedState>,
    /// How many commands and subcommands there are.
    len: usize,
}

/// The maximum length of a name.
pub(crate) const MAX_NAME_BYTES: usize = 32;

impl Registry {
    /// A registry of these commands.
    pub fn new(rows: impl Iterator<Item = Command>) -> Self {
        let mut len = 0;
        let commands: Vec<Registered> = rows.map(|row| Registered::new(row, &mut len)).collect();
        let by_name = commands
            .iter()
            .enumerate()
            .flat_map(|(at, command)| {
                let name = command.name.as_bytes();
                [name.to_ascii_lowercase(), name.to_ascii_uppercase()].map(|it| (it.into(), at))
            })
            .collect();
        Registry {
            commands,
            by_name,
            len,
        }
    }

    /// The command of this name, in any case.
    #[inline]
    pub fn find(&self, name: &[u8]) -> Option<&Registered> {
        // To hash a name takes time, and a client may send a long one.
        if name.len() > MAX_NAME_BYTES {
            return None;
        }
        match self.by_name.get(name) {
            Some(at) => self.commands.get(*at),
            None => self.find_mixed(name),
        }
    }

    /// The same for a name in any other case.
    #[cold]
    fn find_mixed(&self, name: &[u8]) -> Option<&Registered> {
        let mut lower = [0u8; MAX_NAME_BYTES];
        let lower = lower.get_mut(..name.len())?;
        lower.copy_from_slice(name);
        lower.make_ascii_lowercase();
        let at = self.by_name.get(&*lower)?;
        self.commands.get(*at)
    }

    /// The command or the subcommand of this index.
    pub fn at(&self, index: usize) -> Option<&Registered> {
        let before = self.commands.partition_point(|it| it.index <= index);
        let command = self.commands.get(before.checked_sub(1)?)?;
        match index - command.index {
            0 => Some(command),
            number => command.subcommands.get(number - 1),
        }
    }

    /// All commands.
    pub fn commands(&self) -> &[Registered] {
        &self.commands
    }

    /// All commands, each before its subcommands.
    pub fn all(&self) -> impl Iterator<Item = &Registered> {
        let commands = self.commands.iter();
        commands.flat_map(|command| std::iter::once(command).chain(&command.subcommands))
    }

    /// How many commands and subcommands there are: their indices are below.
    pub fn len(&self) -> usize {
        self.len
    }
}
