//! TIME, ROLE, WAIT, SHUTDOWN, SLOWLOG, MODULE, ACL: commands on the server as a whole.

use std::time::{SystemTime, UNIX_EPOCH};

use everbloom_commands::flags::{
    ADMIN, ALLOW_BUSY, FAST, Flags, LOADING, NO_MULTI, NOSCRIPT, STALE,
};
use everbloom_commands::number::integer;
use everbloom_resp::Reply;

use super::Handler::{Plain, ReadEach};
use super::command;
use super::subcommand::{self, container, subcommand};
use super::{Call, Command, config, count, error, info, map, next_integer};
use crate::slowlog::SlowEntry;
use crate::version::BLOOM_VERSION;
use everbloom_store::persistence::schedule;

/// The rows of this family.
pub const COMMANDS: &[Command] = rows! {
    /// Returns information and statistics about the server.
    Command::new("info", -1, ReadEach(info::info)).since("1.0.0").flags(&[LOADING, STALE]),
    /// A container for server configuration commands.
    container("config", config::SUBCOMMANDS).since("2.0.0"),
    /// Returns detailed information about all commands.
    command::COMMAND,
    /// Returns the server time.
    Command::new("time", 1, Plain(time)).since("2.6.0").flags(&[LOADING, STALE, FAST]),
    /// Returns the replication role.
    Command::new("role", 1, Plain(role)).since("2.8.12").flags(&[NOSCRIPT, LOADING, STALE, FAST]),
    /// Returns how many replicas have the writes of the connection: there are none.
    Command::new("wait", 3, Plain(wait)).since("3.0.0").flags(&[NOSCRIPT]).group("generic"),
    /// Stops the server.
    Command::new("shutdown", -1, Plain(shutdown))
        .since("1.0.0").flags(&[ADMIN, NOSCRIPT, LOADING, STALE, NO_MULTI, ALLOW_BUSY]),
    /// A container for slow log commands.
    container("slowlog", SLOWLOG).since("2.2.12"),
    /// A container for latency diagnostics commands.
    container("latency", LATENCY).since("2.8.13"),
    /// A container for module commands.
    container("module", MODULE).since("4.0.0"),
    /// A container for access list control commands.
    container("acl", ACL).since("6.0.0"),
};

const OPERATOR: Flags = Flags::of(&[ADMIN, LOADING, STALE]);

const SLOWLOG: &[Command] = rows! {
    /// Return top <count> entries from the slowlog (default: 10, -1 mean all).
    Command::new("slowlog|get", -2, Plain(slowlog_get))
        .since("2.2.12").flags(&[OPERATOR]).usage("[<count>]"),
    /// Return the length of the slowlog.
    Command::new("slowlog|len", 2, Plain(|call| Ok(count(call.server.slowlog.len()))))
        .since("2.2.12").flags(&[OPERATOR]),
    /// Reset the slowlog.
    Command::new("slowlog|reset", 2, Plain(slowlog_reset)).since("2.2.12").flags(&[OPERATOR]),
};

/// No events are monitored, as in Redis with `latency-monitor-threshold 0`, its default. Exporters
/// ask for them at every scrape.
const LATENCY: &[Command] = rows! {
    /// Return the events of <event>: there are none.
    Command::new("latency|history", 3, Plain(|_| Ok(Reply::Array(Vec::new()))))
        .since("2.8.13").flags(&[OPERATOR, NOSCRIPT]).usage("<event>"),
    /// Return the latest events: there are none.
    Command::new("latency|latest", 2, Plain(|_| Ok(Reply::Array(Vec::new()))))
        .since("2.8.13").flags(&[OPERATOR, NOSCRIPT]),
    /// Reset the events: there are none.
    Command::new("latency|reset", -2, Plain(|_| Ok(Reply::Integer(0))))
        .since("2.8.13").flags(&[OPERATOR, NOSCRIPT]).usage("[<event> ...]"),
};

const MODULE: &[Command] = rows! {
    /// Return a list of loaded modules.
    Command::new("module|list", 2, Plain(|_| Ok(modules())))
        .since("4.0.0").flags(&[ADMIN, NOSCRIPT]),
};

const ACL: &[Command] = rows! {
    /// Return the current connection username.
    subcommand("acl|whoami", 2, |_| Ok(Reply::bulk("default"))).since("6.0.0"),
};

/// The list of MODULE LIST. The filters are built in, and clients check for them here.
pub fn modules() -> Reply {
    Reply::Array(vec![map([
        ("name", Reply::bulk("bf")),
        ("ver", Reply::Integer(BLOOM_VERSION)),
        ("path", Reply::bulk("")),
        ("args", Reply::Array(Vec::new())),
    ])])
}

fn time(_: &mut Call<'_>) -> Result<Reply, Reply> {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    Ok(Reply::Array(vec![
        Reply::bulk(since.as_secs().to_string()),
        Reply::bulk(since.subsec_micros().to_string()),
    ]))
}

fn role(_: &mut Call<'_>) -> Result<Reply, Reply> {
    Ok(Reply::Array(vec![
        Reply::bulk("master"),
        Reply::Integer(0),
        Reply::Array(Vec::new()),
    ]))
}

/// There are no replicas to wait for, so the reply is immediate.
fn wait(call: &mut Call<'_>) -> Result<Reply, Reply> {
    let mut args = call.args();
    next_integer(&mut args)?;
    match integer(args.next_bytes()?) {
        None => Err(Reply::error(
            "ERR timeout is not an integer or out of range",
        )),
        Some(timeout) if timeout < 0 => Err(Reply::error("ERR timeout is negative")),
        Some(_) => Ok(Reply::Integer(0)),
    }
}

fn shutdown(call: &mut Call<'_>) -> Result<Reply, Reply> {
    let words = call.args().rest().iter();
    let words: Vec<Vec<u8>> = words.map(|word| word.to_ascii_uppercase()).collect();
    let said = |known: &[u8]| words.iter().any(|word| word == known);
    let (save, nosave) = (said(b"SAVE"), said(b"NOSAVE"));
    let known = |word: &Vec<u8>| matches!(&**word, b"SAVE" | b"NOSAVE" | b"NOW" | b"FORCE");
    if save && nosave || !words.iter().all(known) {
        return Err(error::syntax());
    }
    let wanted = (save || nosave).then_some(save);
    // The server keeps running if its keys cannot be saved. Later changes are saved at the end.
    if !said(b"FORCE")
        && let Err(problem) = schedule::save_before_stop(&call.server.store, wanted)
    {
        tracing::error!("not stopping, because {problem}");
        return Err(Reply::error("ERR Errors trying to SHUTDOWN. Check logs."));
    }
    if let Some(save) = wanted {
        call.server.set_save_at_end(save);
    }
    tracing::warn!("stopping: {} said SHUTDOWN", call.session.client.addr);
    call.session.closing = true;
    call.session.silent = true;
    call.server.stop();
    Ok(Reply::OK)
}

fn slowlog_get(call: &mut Call<'_>) -> Result<Reply, Reply> {
    let asked = match call.args().rest() {
        [] => Some(10),
        [number] => integer(number).filter(|n| *n >= -1),
        _ => return Err(subcommand::wrong_use(call)),
    };
    let asked =
        asked.ok_or_else(|| Reply::error("ERR count should be greater than or equal to -1"))?;
    let most = usize::try_from(asked).unwrap_or(usize::MAX);
    let entries = call.server.slowlog.newest(most).into_iter();
    Ok(Reply::Array(entries.map(slow_entry).collect()))
}

fn slowlog_reset(call: &mut Call<'_>) -> Result<Reply, Reply> {
    call.server.slowlog.reset();
    Ok(Reply::OK)
}

fn slow_entry(entry: SlowEntry) -> Reply {
    let number = |n| Reply::Integer(i64::try_from(n).unwrap_or(i64::MAX));
    Reply::Array(vec![
        number(entry.id),
        number(entry.time),
        Reply::Integer(entry.micros),
        Reply::Array(entry.args.into_iter().map(Reply::Bulk).collect()),
        Reply::bulk(entry.client),
        Reply::Bulk(entry.name),
    ])
}
