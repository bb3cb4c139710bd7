//! The commands of Redis itself that clients need around the filters.
//!
//! One family a file, each with its rows of the table and its functions:
//!
//! - [`connection`]: HELLO, AUTH, SELECT, PING, ..., and [`client`]
//! - [`transaction`]: MULTI, EXEC, DISCARD, WATCH
//! - [`keys`]: DEL, EXISTS, TYPE, RENAME, COPY, ...
//! - [`expire`]: EXPIRE, TTL and their kin
//! - [`walk`]: KEYS, SCAN, RANDOMKEY, DBSIZE, FLUSHALL, ...
//! - [`strings`]: SET, GET, INCR, ...
//! - [`server`]: SLOWLOG, TIME, SHUTDOWN, ..., and [`info`], [`config`], [`command`]
//!
//! [`subcommand`] is what commands with subcommands have in common, [`mod@error`] what all have.

pub mod client;
pub mod command;
pub mod config;
pub mod connection;
pub mod error;
pub mod expire;
pub mod info;
pub mod keys;
pub mod server;
pub mod strings;
pub mod subcommand;
pub mod transaction;
pub mod walk;

use std::sync::Arc;

use everbloom_commands::table::KeySpec;
use everbloom_commands::{Context, Outcome};
use everbloom_resp::Reply;

use crate::clock::Now;
use crate::config::Settings;
use crate::dispatch;
use crate::keyspace::View;
use crate::registry::Registered;
use crate::server::Server;
use crate::session::Session;
use crate::stats::WorkerStats;

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

impl Call<'_> {
    /// What a command on a filter must know.
    pub fn context(&self) -> Context {
        dispatch::context(self.server, self.settings, self.session)
    }
}

/// All commands of this folder.
pub fn commands() -> impl Iterator<Item = &'static Command> {
    [
        connection::COMMANDS,
        transaction::COMMANDS,
        keys::COMMANDS,
        expire::COMMANDS,
        walk::COMMANDS,
        strings::COMMANDS,
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
