//! A command in dispatch: its row, the registry of all rows, and one call.

use std::collections::HashMap;
use std::ops::{Deref, Range};
use std::sync::Arc;

use everbloom::hash::Key;
use everbloom_commands::command::{KeySpec, ONE_KEY};
use everbloom_commands::flags::{DENYOOM, READONLY, WRITE};
use everbloom_commands::{Action, Answers, Args, Context, Function, KeySource};
use everbloom_files::{Text, Value};
use everbloom_resp::Reply;
use everbloom_store::clock::Now;
use everbloom_store::keyspace::{Entry, KeyRef, View};

use crate::config::Settings;
use crate::limits::WORK_BYTES;
use crate::locked::Locked;
use crate::native::error;
use crate::server::Server;
use crate::session::Session;
use crate::stats::WorkerStats;
use crate::work::Outcome;

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

/// A command that answers with bytes of its key's value.
pub const fn selects(name: &'static str, arity: i32, function: SelectFn) -> Command {
    let row = Command::new(name, arity, Handler::Select(function));
    row.keys(ONE_KEY).flags(&[READONLY])
}

/// A command that reads its keys.
pub const fn reads(
    name: &'static str,
    arity: i32,
    keys: KeySpec,
    function: fn(&Call<'_>, View<'_>) -> Result<Reply, Reply>,
) -> Command {
    let row = Command::new(name, arity, Handler::Read(function));
    row.keys(keys).flags(&[READONLY])
}

/// A command that changes its keys.
pub const fn writes(
    name: &'static str,
    arity: i32,
    keys: KeySpec,
    function: fn(&Call<'_>, &mut Locked<'_>) -> Result<Reply, Reply>,
) -> Command {
    let row = Command::new(name, arity, Handler::Write(function));
    row.keys(keys).flags(&[WRITE])
}

/// A command that answers with its key's string and changes the key.
pub const fn exchanges(name: &'static str, arity: i32, function: ExchangeFn) -> Command {
    let row = Command::new(name, arity, Handler::Exchange(function));
    row.keys(ONE_KEY).flags(&[WRITE])
}

/// A command that makes a value for one of its keys.
pub const fn makes(
    name: &'static str,
    arity: i32,
    keys: KeySpec,
    function: fn(&Call<'_>, &mut Locked<'_>) -> Result<Outcome, Reply>,
) -> Command {
    let row = Command::new(name, arity, Handler::Make(function));
    row.keys(keys).flags(&[WRITE])
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
    by_name: HashMap<&'static [u8], usize, foldhash::fast::FixedState>,
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
            .map(|(at, command)| (command.name.as_bytes(), at))
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
        let mut lower = [0u8; MAX_NAME_BYTES];
        let lower = lower.get_mut(..name.len())?;
        lower.copy_from_slice(name);
        lower.make_ascii_lowercase();
        self.by_name
            .get(&*lower)
            .and_then(|at| self.commands.get(*at))
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
