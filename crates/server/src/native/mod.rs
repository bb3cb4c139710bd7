//! The commands of Redis itself that clients need around the filters.
//!
//! Each family has a file with its rows of the table and its functions:
//!
//! - [`connection`]: HELLO, AUTH, SELECT, PING, ..., and [`client`]
//! - [`transaction`]: MULTI, EXEC, DISCARD, WATCH
//! - [`keys`]: DEL, EXISTS, TYPE, RENAME, COPY, ...
//! - [`inspect`]: OBJECT, MEMORY
//! - [`expire`]: EXPIRE, TTL and related commands
//! - [`walk`]: KEYS, SCAN, RANDOMKEY, DBSIZE, FLUSHALL, ...
//! - [`strings`]: GET, MGET, APPEND, ...; [`set`]: SET, GETEX and their kin; [`counters`]: INCR and
//!   its kin; [`bitmaps`]: SETBIT, BITCOUNT, BITFIELD, ...
//! - [`persistence`]: SAVE, BGREWRITEAOF, DUMP, RESTORE, ...; [`debug`]: DEBUG
//! - [`server`]: SLOWLOG, TIME, SHUTDOWN, ..., and [`info`], [`config`], [`command`]
//!
//! [`table`] has all their rows. [`subcommand`] is shared by commands with subcommands,
//! [`mod@error`] by all. [`large`] is the work that some do on large values.

/// Rows of commands. The doc comment above each is its summary.
macro_rules! rows {
    ($($(#[doc = $line:literal])+ $row:expr,)+) => {
        &[$($row.does(concat!($($line),+).trim_ascii_start())),+]
    };
}

pub mod bitmaps;
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
pub mod large;
mod metrics;
pub mod persistence;
pub mod server;
pub mod set;
pub mod strings;
pub mod subcommand;
pub mod table;
pub mod testing;
pub mod transaction;
pub mod walk;

use everbloom_commands::Args;
use everbloom_commands::number::integer;
use everbloom_resp::Reply;

pub use crate::call::{Call, Command, Handler, Selected, exchanges, makes, reads, selects, writes};

/// The next argument as an integer.
pub fn next_integer(args: &mut Args<'_>) -> Result<i64, Reply> {
    integer(args.next_bytes()?).ok_or_else(error::not_an_integer)
}

/// A length or a count as a reply.
pub fn count(n: usize) -> Reply {
    Reply::Integer(i64::try_from(n).unwrap_or(i64::MAX))
}

/// A string as a reply, if there is memory for it.
pub fn bulk(bytes: &[u8]) -> Result<Reply, Reply> {
    let mut copy = Vec::new();
    copy.try_reserve_exact(bytes.len())
        .map_err(|_| error::out_of_memory())?;
    copy.extend_from_slice(bytes);
    Ok(Reply::Bulk(copy))
}

/// A map whose keys are these names.
pub fn map(fields: impl IntoIterator<Item = (&'static str, Reply)>) -> Reply {
    let fields = fields.into_iter();
    let named = fields.map(|(name, value)| (Reply::bulk(name), value));
    Reply::Map(named.collect())
}

/// Yes or no in the form of Redis's own commands, in both protocols.
pub fn flag(yes: bool) -> Reply {
    Reply::Integer(i64::from(yes))
}
