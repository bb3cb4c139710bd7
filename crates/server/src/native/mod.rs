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
//! [`table`] has all their rows. [`subcommand`] is shared by commands with subcommands. [`large`] is
//! the work that some do on large values.

#[macro_use]
mod rows;

pub mod bitmaps;
pub mod client;
pub mod command;
pub mod config;
pub mod connection;
pub mod counters;
pub mod debug;
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

use everbloom::host::memory;
use everbloom_commands::Args;
use everbloom_commands::number::integer;
use everbloom_resp::Reply;

use crate::call::{Call, Command, Handler, Selected};
use crate::error;
use rows::{counts, exchanges, makes, reads, selects, writes};

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
    copy_of(bytes).map(Reply::Bulk)
}

/// A copy of an argument or a string, if there is memory for it.
pub fn copy_of(bytes: &[u8]) -> Result<Vec<u8>, Reply> {
    let mut copy = Vec::new();
    copy.try_reserve_exact(bytes.len())
        .map_err(|_| error::out_of_memory())?;
    copy.extend_from_slice(bytes);
    Ok(copy)
}

/// A list of what a command finds for each of its arguments or keys, if there is memory for it: they
/// may be any number.
pub fn gather<T>(found: impl Iterator<Item = Result<T, Reply>>) -> Result<Vec<T>, Reply> {
    let mut list = Vec::new();
    list.try_reserve_exact(found.size_hint().0)
        .map_err(|_| error::out_of_memory())?;
    for one in found {
        append(&mut list, one?)?;
    }
    Ok(list)
}

/// Appends to such a list.
pub fn append<T>(list: &mut Vec<T>, one: T) -> Result<(), Reply> {
    // Many small blocks use what is kept for small ones.
    if memory::is_short() || list.try_reserve(1).is_err() {
        return Err(error::out_of_memory());
    }
    list.push(one);
    Ok(())
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
