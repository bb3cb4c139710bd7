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
//!   its kin, INCRBYFLOAT in [`extended`] precision
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
pub mod extended;
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

use everbloom_commands::table::KeySpec;
use everbloom_commands::{Context, Outcome};
use everbloom_resp::Reply;

use crate::config::Settings;
use crate::dispatch::execute as dispatch;
use crate::registry::Registered;
use crate::server::Server;
use crate::session::Session;
use crate::stats::WorkerStats;
use everbloom_store::clock::Now;
use everbloom_store::keyspace::{Entry, View};

/// A command of the server's own.
#[derive(Debug)]
pub struct Command {
    /// In upper case.
    pub name: &'static str,
    /// Arguments with the name; negative = at least so many.
    pub arity: i32,
    /// Flags as COMMAND shows them: `write`, `readonly`, `denyoom`, `fast`, `admin`, `no_auth`,
    /// `no_multi` (refused inside MULTI), `loading`, `stale`, `noscript`, `skip_slowlog`.
    pub flags: &'static [&'static str],
    /// Which arguments are keys.
    pub keys: KeySpec,
    /// Group as COMMAND DOCS shows it: `string`, `generic`, `connection`, `server`, `transactions`.
    pub group: &'static str,
    /// The version of Redis that it comes from.
    pub since: &'static str,
    /// One line.
    pub summary: &'static str,
    /// What to run.
    pub run: Run,
}

/// What a command needs to run.
#[derive(Debug, Clone, Copy)]
pub enum Run {
    /// No key: only the connection and the server.
    Plain(fn(&mut Call<'_>) -> Reply),
    /// Its keys, to be read.
    Read(fn(&mut Call<'_>, &View<'_>) -> Reply),
    /// Its keys, to be changed.
    Write(fn(&mut Call<'_>, &mut View<'_>) -> Outcome),
    /// All keys, to be read.
    ReadAll(fn(&mut Call<'_>, &View<'_>) -> Reply),
    /// All keys, to be changed.
    WriteAll(fn(&mut Call<'_>, &mut View<'_>) -> Outcome),
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
    /// Which command.
    pub command: &'static Registered,
    /// Its arguments, the name first.
    pub args: &'a [&'a [u8]],
    /// When.
    pub now: Now,
}

impl<'a> Call<'a> {
    /// What a command on a filter must know.
    pub fn context(&self) -> Context {
        dispatch::context(self.server, self.settings, self.session)
    }

    /// Argument `at`, the name being 0. Dispatch has checked the arity, so a command asks only for
    /// arguments that are there; any other is empty.
    pub fn arg(&self, at: usize) -> &'a [u8] {
        self.args.get(at).copied().unwrap_or_default()
    }

    /// The arguments from `at` on.
    pub fn args_from(&self, at: usize) -> &'a [&'a [u8]] {
        self.args.get(at..).unwrap_or_default()
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

/// What a writing command answers: refused means that it changed nothing.
pub fn settle(result: Result<Outcome, Reply>) -> Outcome {
    result.unwrap_or_else(Outcome::unchanged)
}

/// The answer of a reading command.
pub fn answer(result: Result<Reply, Reply>) -> Reply {
    result.unwrap_or_else(|refusal| refusal)
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

/// No argument is a key.
pub const NO_KEY: KeySpec = KeySpec {
    first: 0,
    last: 0,
    step: 0,
};
/// The first argument is the key.
pub const ONE_KEY: KeySpec = KeySpec {
    first: 1,
    last: 1,
    step: 1,
};
/// The first two arguments are keys.
pub const TWO_KEYS: KeySpec = KeySpec {
    first: 1,
    last: 2,
    step: 1,
};
/// All arguments are keys.
pub const ALL_KEYS: KeySpec = KeySpec {
    first: 1,
    last: -1,
    step: 1,
};
