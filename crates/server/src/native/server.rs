//! TIME, ROLE, WAIT, SHUTDOWN, SLOWLOG, LATENCY, MODULE, ACL: the server as a whole.

use std::time::{SystemTime, UNIX_EPOCH};

use everbloom_commands::number::integer;
use everbloom_resp::Reply;

use super::command::{self, CATEGORIES};
use super::subcommand::{self, SUBCOMMAND, Subcommand};
use super::{Call, Command, NO_KEY, Run, config, error, info};
use crate::slowlog::SlowEntry;
use everbloom_store::persistence::jobs::{self, JobError};

/// The version of Redis whose behaviour clients may expect; they choose features by it.
pub const REDIS_VERSION: &str = "7.4.0";
/// The version of RedisBloom whose behaviour clients may expect: 2.8.10.
pub const BLOOM_VERSION: i64 = 20810;

const BASE: Command = Command {
    name: "",
    arity: 1,
    flags: &[],
    keys: NO_KEY,
    group: "server",
    since: "1.0.0",
    summary: "",
    run: Run::Plain(time),
};

/// The rows of this family.
pub const COMMANDS: &[Command] = &[
    Command {
        name: "INFO",
        arity: -1,
        flags: &["loading", "stale"],
        summary: "Returns information and statistics about the server.",
        run: Run::ReadAll(info::info),
        ..BASE
    },
    Command {
        name: "CONFIG",
        arity: -2,
        since: "2.0.0",
        summary: "A container for server configuration commands.",
        run: Run::Plain(config::config),
        ..BASE
    },
    Command {
        name: "COMMAND",
        arity: -1,
        flags: &["loading", "stale"],
        since: "2.8.13",
        summary: "Returns detailed information about all commands.",
        run: Run::Plain(command::command),
        ..BASE
    },
    Command {
        name: "TIME",
        flags: &["loading", "stale", "fast"],
        since: "2.6.0",
        summary: "Returns the server time.",
        run: Run::Plain(time),
        ..BASE
    },
    Command {
        name: "ROLE",
        flags: &["noscript", "loading", "stale", "fast"],
        since: "2.8.12",
        summary: "Returns the replication role.",
        run: Run::Plain(role),
        ..BASE
    },
    Command {
        name: "WAIT",
        arity: 3,
        flags: &["noscript"],
        group: "generic",
        since: "3.0.0",
        summary: "Returns how many replicas have the writes of the connection: there are none.",
        run: Run::Plain(wait),
        ..BASE
    },
    Command {
        name: "SHUTDOWN",
        arity: -1,
        flags: &[
            "admin",
            "noscript",
            "loading",
            "stale",
            "no_multi",
            "allow_busy",
        ],
        summary: "Stops the server.",
        run: Run::Plain(shutdown),
        ..BASE
    },
    Command {
        name: "SLOWLOG",
        arity: -2,
        since: "2.2.12",
        summary: "A container for slow log commands.",
        run: Run::Plain(|call| subcommand::run(call, SLOWLOG)),
        ..BASE
    },
    Command {
        name: "LATENCY",
        arity: -2,
        since: "2.8.13",
        summary: "A container for latency diagnostics commands.",
        run: Run::Plain(|call| subcommand::run(call, LATENCY)),
        ..BASE
    },
    Command {
        name: "MODULE",
        arity: -2,
        since: "4.0.0",
        summary: "A container for module commands.",
        run: Run::Plain(|call| subcommand::run(call, MODULE)),
        ..BASE
    },
    Command {
        name: "ACL",
        arity: -2,
        since: "6.0.0",
        summary: "A container for access list control commands.",
        run: Run::Plain(|call| subcommand::run(call, ACL)),
        ..BASE
    },
];

const ADMIN: &[&str] = &["admin", "loading", "stale"];

/// SLOWLOG's subcommands.
pub const SLOWLOG: &[Subcommand] = &[
    Subcommand {
        name: "GET",
        arity: -2,
        flags: ADMIN,
        since: "2.2.12",
        summary: "Return top <count> entries from the slowlog (default: 10, -1 mean all).",
        usage: "GET [<count>]",
        run: slowlog_get,
    },
    Subcommand {
        name: "LEN",
        flags: ADMIN,
        since: "2.2.12",
        summary: "Return the length of the slowlog.",
        usage: "LEN",
        run: |call| count(call.server.slowlog.len()),
        ..SUBCOMMAND
    },
    Subcommand {
        name: "RESET",
        flags: ADMIN,
        since: "2.2.12",
        summary: "Reset the slowlog.",
        usage: "RESET",
        run: |call| {
            call.server.slowlog.reset();
            Reply::OK
        },
        ..SUBCOMMAND
    },
];

/// LATENCY's subcommands. Latency events are not recorded, as in Redis unless it is told to.
pub const LATENCY: &[Subcommand] = &[
    Subcommand {
        name: "HISTORY",
        arity: 3,
        since: "2.8.13",
        summary: "Return time-latency samples for the <event> class.",
        usage: "HISTORY <event>",
        run: |_| Reply::Array(Vec::new()),
        ..SUBCOMMAND
    },
    Subcommand {
        name: "LATEST",
        since: "2.8.13",
        summary: "Return the latest latency samples for all events.",
        usage: "LATEST",
        run: |_| Reply::Array(Vec::new()),
        ..SUBCOMMAND
    },
    Subcommand {
        name: "RESET",
        arity: -2,
        since: "2.8.13",
        summary: "Reset latency data of one or more <event> classes.",
        usage: "RESET [<event> ...]",
        run: |_| Reply::Integer(0),
        ..SUBCOMMAND
    },
    Subcommand {
        name: "HISTOGRAM",
        arity: -2,
        since: "7.0.0",
        summary: "Return the distribution of latencies by command: none is kept.",
        usage: "HISTOGRAM [COMMAND ...]",
        run: |_| Reply::Map(Vec::new()),
        ..SUBCOMMAND
    },
];

/// MODULE's subcommands.
pub const MODULE: &[Subcommand] = &[Subcommand {
    name: "LIST",
    flags: &["admin", "noscript"],
    since: "4.0.0",
    summary: "Return a list of loaded modules.",
    usage: "LIST",
    run: |_| modules(),
    ..SUBCOMMAND
}];

/// ACL's subcommands.
pub const ACL: &[Subcommand] = &[
    Subcommand {
        name: "CAT",
        arity: -2,
        since: "6.0.0",
        summary: "List all commands that belong to <category>, or all command categories.",
        usage: "CAT [<category>]",
        run: acl_cat,
        ..SUBCOMMAND
    },
    Subcommand {
        name: "USERS",
        flags: &["admin", "noscript", "loading", "stale"],
        since: "6.0.0",
        summary: "List all the registered usernames.",
        usage: "USERS",
        run: |_| Reply::Array(vec![Reply::bulk("default")]),
        ..SUBCOMMAND
    },
    Subcommand {
        name: "WHOAMI",
        since: "6.0.0",
        summary: "Return the current connection username.",
        usage: "WHOAMI",
        run: |_| Reply::bulk("default"),
        ..SUBCOMMAND
    },
];

/// What MODULE LIST shows: the filters are built in, and clients ask here whether they are there.
pub fn modules() -> Reply {
    Reply::Array(vec![Reply::Map(vec![
        (Reply::bulk("name"), Reply::bulk("bf")),
        (Reply::bulk("ver"), Reply::Integer(BLOOM_VERSION)),
        (Reply::bulk("path"), Reply::bulk("")),
        (Reply::bulk("args"), Reply::Array(Vec::new())),
    ])])
}

fn count(number: usize) -> Reply {
    Reply::Integer(i64::try_from(number).unwrap_or(i64::MAX))
}

fn time(_: &mut Call<'_>) -> Reply {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    Reply::Array(vec![
        Reply::bulk(since.as_secs().to_string()),
        Reply::bulk(since.subsec_micros().to_string()),
    ])
}

fn role(_: &mut Call<'_>) -> Reply {
    Reply::Array(vec![
        Reply::bulk("master"),
        Reply::Integer(0),
        Reply::Array(Vec::new()),
    ])
}

/// There are no replicas to wait for, so the answer is there at once.
fn wait(call: &mut Call<'_>) -> Reply {
    let number = |at| call.args.get(at).copied().and_then(integer);
    match (number(2), number(1)) {
        (_, None) => error::not_an_integer(),
        (None, _) => Reply::error("ERR timeout is not an integer or out of range"),
        (Some(timeout), _) if timeout < 0 => Reply::error("ERR timeout is negative"),
        _ => Reply::Integer(0),
    }
}

fn shutdown(call: &mut Call<'_>) -> Reply {
    let (mut save, mut nosave, mut force, mut now, mut abort) = <(bool, _, _, _, _)>::default();
    for word in call.args.iter().skip(1) {
        match word.to_ascii_uppercase().as_slice() {
            b"SAVE" => save = true,
            b"NOSAVE" => nosave = true,
            b"NOW" => now = true,
            b"FORCE" => force = true,
            b"ABORT" => abort = true,
            _ => return error::syntax(),
        }
    }
    if (save && nosave) || (abort && (save || nosave || force || now)) {
        return error::syntax();
    }
    if abort {
        return Reply::error("ERR No shutdown in progress.");
    }
    if save && (call.server.store.persistence().is_none() || call.server.store.health.is_loading())
    {
        return Reply::error("ERR Errors trying to SHUTDOWN. Check logs.");
    }
    let wanted = save || (!nosave && saves_at_end(call));
    // Saved at once, so that a server whose keys cannot be saved goes on. What changes between now
    // and the end is saved then, and so is everything when a snapshot is being made already.
    if wanted && !force {
        match jobs::save(&call.server.store) {
            Ok(()) | Err(JobError::Busy) => {}
            Err(problem) => {
                tracing::error!("not stopping, for the snapshot failed: {problem}");
                return Reply::error("ERR Errors trying to SHUTDOWN. Check logs.");
            }
        }
    }
    if save || nosave {
        call.server.set_save_at_end(save);
    }
    tracing::warn!(
        client = call.session.client.id,
        "stopping: a client said SHUTDOWN"
    );
    call.session.closing = true;
    call.session.reply_mode = crate::session::ReplyMode::Off;
    call.server.stop();
    Reply::OK
}

/// Whether save points say that snapshots are wanted. While the data is being loaded there is
/// nothing to save.
fn saves_at_end(call: &Call<'_>) -> bool {
    let settings = call.server.config.snapshot();
    let directory = call.server.store.persistence().is_some();
    directory && !settings.data.save.is_empty() && !call.server.store.health.is_loading()
}

fn slowlog_get(call: &mut Call<'_>) -> Reply {
    let asked = match call.args {
        [_, _] => Some(10),
        [_, _, number] => integer(number).filter(|n| *n >= -1),
        _ => return subcommand::wrong_use(call),
    };
    let Some(asked) = asked else {
        return Reply::error("ERR count should be greater than or equal to -1");
    };
    let entries = call
        .server
        .slowlog
        .newest(usize::try_from(asked).unwrap_or(usize::MAX));
    Reply::Array(entries.into_iter().map(slow_entry).collect())
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

fn acl_cat(call: &mut Call<'_>) -> Reply {
    match call.args {
        [_, _] => Reply::Array(CATEGORIES.iter().map(|name| Reply::bulk(*name)).collect()),
        [_, _, category] => {
            let shown = String::from_utf8_lossy(category);
            let wanted = shown.to_ascii_lowercase();
            if !CATEGORIES.contains(&wanted.as_str()) {
                return Reply::error(format!("ERR Unknown category '{shown}'"));
            }
            let names = command::in_category(&wanted);
            Reply::Array(names.map(Reply::bulk).collect())
        }
        _ => subcommand::wrong_use(call),
    }
}
