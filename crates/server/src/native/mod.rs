//! The commands of Redis itself that clients need around the filters.
//!
//! One family a file, each with its rows of the table and its functions:
//!
//! - [`connection`]: HELLO, AUTH, SELECT, PING, ..., and [`client`]
//! - [`transaction`]: MULTI, EXEC, DISCARD, WATCH
//! - [`keys`]: DEL, EXISTS, TYPE, RENAME, COPY, ...
//! - [`inspect`]: OBJECT, MEMORY
//! - [`expire`]: EXPIRE, TTL and their kin
//! - [`walk`]: KEYS, SCAN, RANDOMKEY, DBSIZE, FLUSHALL, ...
//! - [`strings`]: GET, MGET, APPEND, ...; [`set`]: SET, GETEX and their kin; [`counters`]: INCR and
//!   its kin
//! - [`persistence`]: SAVE, BGREWRITEAOF, DUMP, RESTORE, ...; [`debug`]: DEBUG
//! - [`server`]: SLOWLOG, TIME, SHUTDOWN, ..., and [`info`], [`config`], [`command`]
//!
//! [`subcommand`] is what commands with subcommands have in common, [`mod@error`] what all have.

pub mod client;
pub mod command;
pub mod config;
pub mod connection;
pub mod counters;
pub mod debug;
pub mod error;
pub mod expire;
pub mod info;
pub mod inspect;
pub mod keys;
pub mod persistence;
pub mod server;
pub mod set;
pub mod strings;
pub mod subcommand;
#[cfg(test)]
pub mod testing;
pub mod transaction;
pub mod walk;

use std::sync::Arc;

use everbloom_commands::command::KeySpec;
use everbloom_commands::flags::{READONLY, WRITE};
use everbloom_commands::number::integer;
use everbloom_commands::{Args, Context, Function, Outcome};
use everbloom_resp::Reply;

use crate::clock::Now;
use crate::config::Settings;
use crate::dispatch;
use crate::keyspace::{Entry, View};
use crate::server::Server;
use crate::session::Session;
use crate::stats::WorkerStats;

/// A command of the server, as the registry has them all.
pub type Command = everbloom_commands::Command<Handler>;

/// What a command needs to run, and the function that runs it. An error is a reply, too: the
/// refusal of a call that has changed nothing.
#[derive(Debug, Clone, Copy)]
pub enum Handler {
    /// The one key of a command on filters.
    Filter(Function),
    /// No key: only the connection and the server.
    Plain(fn(&mut Call<'_>) -> Result<Reply, Reply>),
    /// Its keys, to be read.
    Read(fn(&Call<'_>, &View<'_>) -> Result<Reply, Reply>),
    /// Its keys, to be changed.
    Write(fn(&Call<'_>, &mut View<'_>) -> Result<Outcome, Reply>),
    /// All keys, to be read.
    ReadAll(fn(&Call<'_>, &View<'_>) -> Result<Reply, Reply>),
    /// All keys, to be changed.
    WriteAll(fn(&Call<'_>, &mut View<'_>) -> Result<Outcome, Reply>),
}

/// A command that reads its keys.
pub const fn reads(
    name: &'static str,
    arity: i32,
    keys: KeySpec,
    function: fn(&Call<'_>, &View<'_>) -> Result<Reply, Reply>,
) -> Command {
    let row = Command::new(name, arity, Handler::Read(function));
    row.keys(keys).flags(&[READONLY])
}

/// A command that changes its keys.
pub const fn writes(
    name: &'static str,
    arity: i32,
    keys: KeySpec,
    function: fn(&Call<'_>, &mut View<'_>) -> Result<Outcome, Reply>,
) -> Command {
    let row = Command::new(name, arity, Handler::Write(function));
    row.keys(keys).flags(&[WRITE])
}

/// One call of a command.
#[derive(Debug)]
pub struct Call<'a> {
    /// The server.
    pub server: &'a Arc<Server>,
    /// The connection.
    pub session: &'a mut Session,
    /// The figures of the worker that runs the call.
    pub stats: &'a WorkerStats,
    /// The settings in force.
    pub settings: &'a Settings,
    /// Which command; once it runs, which of its subcommands.
    pub command: &'static Command,
    /// All arguments, the name first.
    pub args: &'a [&'a [u8]],
    /// When.
    pub now: Now,
}

impl<'a> Call<'a> {
    /// What a command on a filter must know.
    pub fn context(&self) -> Context {
        dispatch::context(self.server, self.settings, self.session)
    }

    /// The arguments behind the name, or behind both names of a subcommand.
    #[inline]
    pub fn args(&self) -> Args<'a> {
        let names = usize::from(self.command.name.contains('|'));
        let args = self.args.get(names..).unwrap_or_default();
        Args::new(self.command.name, args)
    }

    /// Goes from a container to the subcommand that is named. An error is the reply to a call that
    /// needs no running.
    #[inline]
    pub fn choose_subcommand(&mut self) -> Result<(), Reply> {
        if !self.command.subcommands.is_empty() {
            self.command = subcommand::choose(self.command, self.args)?;
        }
        Ok(())
    }

    /// The entry of a key for a command that reads: Redis counts these look-ups, and only these, as
    /// hits and misses.
    pub fn look_up<'v>(&self, view: &'v View<'_>, key: &[u8]) -> Option<&'v Entry> {
        let entry = view.get(self.session.db, key);
        self.count_look_up(entry.is_some());
        entry
    }

    /// As [`Call::look_up`], for a command that asks about a key and does not use it.
    pub fn peek<'v>(&self, view: &'v View<'_>, key: &[u8]) -> Option<&'v Entry> {
        let entry = view.peek(self.session.db, key);
        self.count_look_up(entry.is_some());
        entry
    }

    fn count_look_up(&self, found: bool) {
        if found {
            self.stats.keyspace_hits.add(1);
        } else {
            self.stats.keyspace_misses.add(1);
        }
    }
}

/// The next argument as an integer.
pub fn next_integer(args: &mut Args<'_>) -> Result<i64, Reply> {
    integer(args.next_bytes()?).ok_or_else(error::not_an_integer)
}

/// A length or a count as a reply.
pub fn count(n: usize) -> Reply {
    Reply::Integer(i64::try_from(n).unwrap_or(i64::MAX))
}

/// Yes or no as Redis's own commands say it, in both protocols.
pub fn flag(yes: bool) -> Reply {
    Reply::Integer(i64::from(yes))
}

/// All commands of this folder.
pub fn commands() -> impl Iterator<Item = &'static Command> {
    [
        connection::COMMANDS,
        transaction::COMMANDS,
        keys::COMMANDS,
        inspect::COMMANDS,
        expire::COMMANDS,
        walk::COMMANDS,
        strings::COMMANDS,
        set::COMMANDS,
        counters::COMMANDS,
        persistence::COMMANDS,
        debug::COMMANDS,
        server::COMMANDS,
    ]
    .into_iter()
    .flatten()
}
