//! Whether a command may run now.

use std::borrow::Cow;
use std::hint::black_box;
use std::sync::atomic::Ordering;

use everbloom::host::memory;
use everbloom_commands::flags::{
    AT_ONCE, DENYOOM, Flags, LOADING, NO_AUTH, NO_MULTI, PROTECTED, TELLS_HEALTH, WRITE,
};
use everbloom_resp::Reply;

use crate::call::Command;
use crate::config::Settings;
use crate::error;
use crate::native::debug;
use crate::server::Server;
use crate::session::Session;
use everbloom_store::persistence::Persistence;

/// The checks before a command is run or queued.
pub fn admit(
    server: &Server,
    settings: &Settings,
    session: &Session,
    command: &Command,
    args: &[&[u8]],
) -> Result<(), Reply> {
    if !command.accepts(args.len()) {
        return Err(command.wrong_arity().into());
    }
    if session.must_log_in(settings) && !command.flags.has(NO_AUTH) {
        return Err(Reply::error("NOAUTH Authentication required."));
    }
    if command.flags.has(PROTECTED) {
        debug::allowed(session, settings)?;
    }
    if let Some(refusal) = refused_now(server, settings, command) {
        return Err(refusal);
    }
    if lacks_memory_for_names(command, args) {
        return Err(error::out_of_memory());
    }
    // Queued commands use memory. Above `maxmemory` those that read are queued all the same, as in
    // Redis: a transaction has a greatest length.
    if is_queued(session, command) && memory::is_short() {
        return Err(error::out_of_memory());
    }
    if command.flags.has(NO_MULTI) && session.transaction.is_some() {
        return Err(Reply::error("ERR Command not allowed inside a transaction"));
    }
    Ok(())
}

/// Why a command may not run in the server's current state, if so: it would take memory beyond the
/// limit, the data is being loaded, or a write could not be made durable.
pub fn refused_now(server: &Server, settings: &Settings, command: &Command) -> Option<Reply> {
    if let Some(refusal) = refused_for_memory(server, settings, command)
        && !has_room(server, settings)
    {
        return Some(refusal);
    }
    if !server.store.health.is_troubled() {
        return None;
    }
    refused_in_trouble(server, settings, command)
}

/// The maximum bytes of a short name of a key. The process keeps memory for copies of short names,
/// as for all blocks of this length (see [`memory`]). Copies of longer ones may be refused.
const MAX_SHORT_NAME_BYTES: usize = 4 << 20;

/// The most copies of a key's name that one command has at a time: for the log, for the list of
/// removed expired keys, for a running snapshot, for the new entry, and to find the key's watches.
const NAME_COPIES: usize = 5;

/// Whether a name is so long that a command on its key must be [admitted](admit) by itself.
#[inline]
pub fn is_long_name(name: &[u8]) -> bool {
    name.len() > MAX_SHORT_NAME_BYTES
}

/// Whether there is no memory for copies of the long names of a command's keys. A name is copied
/// without a way to fail: the process ends if there is no memory. So the command is refused before
/// it changes anything. A command that only reads copies the name, too, if another thread reads the
/// value.
#[inline]
pub fn lacks_memory_for_names(command: &Command, args: &[&[u8]]) -> bool {
    let names = command.keys.of(args).filter(|name| is_long_name(name));
    let bytes: usize = names.map(<[u8]>::len).sum();
    bytes > 0 && lacks_memory(bytes.saturating_mul(NAME_COPIES))
}

/// Whether the system refuses a block of so many bytes. It is freed at once, unused.
#[cold]
fn lacks_memory(bytes: usize) -> bool {
    let mut block: Vec<u8> = Vec::new();
    let is_refused = block.try_reserve_exact(bytes).is_err();
    // The compiler may not remove an allocation whose block is seen elsewhere.
    drop(black_box(block));
    is_refused
}

/// Whether memory is below its limit, or is once what has expired is removed. No shard may be
/// locked.
fn has_room(server: &Server, settings: &Settings) -> bool {
    !server.over_memory_limit(settings) || makes_room(server, settings)
}

#[cold]
fn makes_room(server: &Server, settings: &Settings) -> bool {
    let has_room = || !server.over_memory_limit(settings);
    if server.active_expire.load(Ordering::Relaxed) && !server.store.health.is_loading() {
        let store = &server.store;
        let removed = store.make_room(store.machine.now(), has_room);
        server.stats.expired(removed.keys);
    }
    has_room()
}

/// Why a command that may take memory may not run now, if so.
#[inline]
pub fn refused_for_memory(
    server: &Server,
    settings: &Settings,
    command: &Command,
) -> Option<Reply> {
    let refused = command.flags.has(DENYOOM) && server.over_memory_limit(settings);
    refused.then(error::out_of_memory)
}

/// A refused command makes EXEC refuse the whole transaction.
pub fn refuse(session: &mut Session, reply: Reply) -> Reply {
    if let Some(transaction) = &mut session.transaction {
        transaction.abort();
    }
    reply
}

/// Whether a command waits for EXEC.
pub fn is_queued(session: &Session, command: &Command) -> bool {
    session.transaction.is_some() && !command.flags.has(AT_ONCE)
}

#[cold]
fn refused_in_trouble(server: &Server, settings: &Settings, command: &Command) -> Option<Reply> {
    if server.store.health.is_loading() && !command.flags.has(LOADING) {
        return Some(Reply::error(
            "LOADING Redis is loading the dataset in memory",
        ));
    }
    if !command.flags.has(Flags::of(&[WRITE, TELLS_HEALTH])) {
        return None;
    }
    misconf(server, settings).map(Reply::error)
}

/// Why writes are refused, if so: the disk has a problem.
pub fn misconf(server: &Server, settings: &Settings) -> Option<Cow<'static, str>> {
    if server.store.health.is_log_failing() {
        let persistence = server.store.persistence();
        let error = persistence
            .and_then(Persistence::log_problem)
            .unwrap_or_else(|| "the disk does not take it".into());
        return Some(format!("MISCONF Errors writing to the AOF file: {error}").into());
    }
    let data = &settings.data;
    let refused = data.stop_writes_on_bgsave_error && server.store.lacks_snapshot(data);
    refused.then_some(SAVES_FAIL.into())
}

const SAVES_FAIL: &str = "\
    MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to \
    disk. Commands that may modify the data set are disabled, because this instance is \
    configured to report errors during writes if RDB snapshotting fails \
    (stop-writes-on-bgsave-error option). Please check the Redis logs for details about the RDB \
    error.";
