//! Rows of commands: each with its summary, its keys and the flag for reading or writing.

use everbloom_commands::command::{ALL_KEYS, KeySpec, ONE_KEY};
use everbloom_commands::flags::{READONLY, WRITE};
use everbloom_commands::key_use::{EXCHANGE, INSPECT, REMOVE};
use everbloom_resp::Reply;
use everbloom_store::keyspace::View;

use crate::call::{Call, Command, CountFn, ExchangeFn, Handler, Outcome, SelectFn};
use crate::locked::Locked;

/// Rows of commands. The doc comment above each is its summary.
macro_rules! rows {
    ($($(#[doc = $line:literal])+ $row:expr,)+) => {
        &[$($row.does(concat!($($line),+).trim_ascii_start())),+]
    };
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
    row.keys(keys).flags(&[WRITE]).uses(EXCHANGE)
}

/// A command that counts its keys.
pub const fn counts(name: &'static str, function: CountFn) -> Command {
    let row = Command::new(name, -2, Handler::Count(function));
    let (flag, key_use) = match function {
        CountFn::Read(_) => (READONLY, INSPECT),
        CountFn::Write(_) => (WRITE, REMOVE),
    };
    row.keys(ALL_KEYS).flags(&[flag]).uses(key_use)
}

/// A command that answers with its key's string and changes the key.
pub const fn exchanges(name: &'static str, arity: i32, function: ExchangeFn) -> Command {
    let row = Command::new(name, arity, Handler::Exchange(function));
    row.keys(ONE_KEY).flags(&[WRITE]).uses(EXCHANGE)
}

/// A command that makes a value for one of its keys.
pub const fn makes(
    name: &'static str,
    arity: i32,
    keys: KeySpec,
    function: fn(&Call<'_>, &mut Locked<'_>) -> Result<Outcome, Reply>,
) -> Command {
    let row = Command::new(name, arity, Handler::Make(function));
    row.keys(keys).flags(&[WRITE]).uses(EXCHANGE)
}
