//! CLIENT: the connections that are open, and this one among them.

use std::fmt::Write;
use std::net::SocketAddr;
use std::sync::Arc;

use everbloom_commands::number::integer;
use everbloom_resp::Reply;

use super::subcommand::{self, SUBCOMMAND, Subcommand};
use super::{Call, error};
use crate::clients::Client;
use crate::session::ReplyMode;

/// The subcommands.
pub const SUBCOMMANDS: &[Subcommand] = &[
    Subcommand {
        name: "GETNAME",
        since: "2.6.9",
        summary: "Return the name of the current connection.",
        usage: "GETNAME",
        run: |call| match call.session.client.state.lock().name.as_slice() {
            [] => Reply::Null,
            name => Reply::bulk(name),
        },
        ..SUBCOMMAND
    },
    Subcommand {
        name: "ID",
        since: "5.0.0",
        summary: "Return the ID of the current connection.",
        usage: "ID",
        run: |call| Reply::Integer(signed(call.session.client.id)),
        ..SUBCOMMAND
    },
    Subcommand {
        name: "INFO",
        since: "6.2.0",
        summary: "Return information about the current client connection.",
        usage: "INFO",
        run: info,
        ..SUBCOMMAND
    },
    Subcommand {
        name: "KILL",
        arity: -3,
        flags: &["admin", "noscript", "loading", "stale"],
        since: "2.4.0",
        summary: "Kill connections, by ID, TYPE, ADDR, LADDR, USER, MAXAGE; SKIPME (YES|NO).",
        usage: "KILL <ip:port> | <option> <value> [<option> <value> [...]]",
        run: kill,
    },
    Subcommand {
        name: "LIST",
        arity: -2,
        flags: &["admin", "noscript", "loading", "stale"],
        since: "2.4.0",
        summary: "Return information about client connections, of a TYPE or with some IDs.",
        usage: "LIST [TYPE <type> | ID <id> [...]]",
        run: list,
    },
    Subcommand {
        name: "NO-EVICT",
        arity: 3,
        flags: &["admin", "noscript", "loading", "stale"],
        since: "7.0.0",
        summary: "Protect current client connection from eviction.",
        usage: "NO-EVICT (ON|OFF)",
        run: |call| {
            switch(call, |call, on| {
                call.session.client.state.lock().no_evict = on
            })
        },
    },
    Subcommand {
        name: "NO-TOUCH",
        arity: 3,
        since: "7.2.0",
        summary: "Accepted: nothing is evicted here by the time of its last use.",
        usage: "NO-TOUCH (ON|OFF)",
        run: |call| switch(call, |_, _| ()),
        ..SUBCOMMAND
    },
    Subcommand {
        name: "REPLY",
        arity: 3,
        since: "3.2.0",
        summary: "Control the replies sent to the current connection.",
        usage: "REPLY (ON|OFF|SKIP)",
        run: reply,
        ..SUBCOMMAND
    },
    Subcommand {
        name: "SETINFO",
        arity: 4,
        since: "7.2.0",
        summary: "Set client meta attr: the library's name or version.",
        usage: "SETINFO <option> <value>",
        run: set_info,
        ..SUBCOMMAND
    },
    Subcommand {
        name: "SETNAME",
        arity: 3,
        since: "2.6.9",
        summary: "Assign the name <name> to the current connection.",
        usage: "SETNAME <name>",
        run: |call| match checked_name(call.args.get(2).copied().unwrap_or_default()) {
            Ok(name) => {
                call.session.client.state.lock().name = name;
                Reply::OK
            }
            Err(refused) => refused,
        },
        ..SUBCOMMAND
    },
    Subcommand {
        name: "UNBLOCK",
        arity: -3,
        flags: &["admin", "noscript", "loading", "stale"],
        since: "5.0.0",
        summary: "Unblock the specified blocked client; no command blocks here.",
        usage: "UNBLOCK <clientid> [TIMEOUT|ERROR]",
        run: unblock,
    },
];

/// CLIENT.
pub fn client(call: &mut Call<'_>) -> Reply {
    subcommand::run(call, SUBCOMMANDS)
}

/// A name that CLIENT LIST can show.
pub fn checked_name(name: &[u8]) -> Result<Vec<u8>, Reply> {
    if name.iter().all(|byte| (b'!'..=b'~').contains(byte)) {
        return Ok(name.into());
    }
    Err(Reply::error(
        "ERR Client names cannot contain spaces, newlines or special characters.",
    ))
}

fn set_info(call: &mut Call<'_>) -> Reply {
    let [_, _, option, value] = call.args else {
        return error::syntax();
    };
    let shown = || String::from_utf8_lossy(option).into_owned();
    let mut state = call.session.client.state.lock();
    let field = if option.eq_ignore_ascii_case(b"LIB-NAME") {
        &mut state.lib_name
    } else if option.eq_ignore_ascii_case(b"LIB-VER") {
        &mut state.lib_ver
    } else {
        return Reply::error(format!("ERR Unrecognized option '{}'", shown()));
    };
    if !value.iter().all(|byte| (b'!'..=b'~').contains(byte)) {
        return Reply::error(format!(
            "ERR {} cannot contain spaces, newlines or special characters.",
            shown()
        ));
    }
    *field = value.to_vec();
    Reply::OK
}

fn switch(call: &mut Call<'_>, set: fn(&mut Call<'_>, bool)) -> Reply {
    let word = call.args.get(2).copied().unwrap_or_default();
    let on = word.eq_ignore_ascii_case(b"ON");
    if !on && !word.eq_ignore_ascii_case(b"OFF") {
        return error::syntax();
    }
    set(call, on);
    Reply::OK
}

fn reply(call: &mut Call<'_>) -> Reply {
    let word = call.args.get(2).copied().unwrap_or_default();
    let mode = &mut call.session.reply_mode;
    if word.eq_ignore_ascii_case(b"ON") {
        *mode = ReplyMode::On;
    } else if word.eq_ignore_ascii_case(b"OFF") {
        *mode = ReplyMode::Off;
    } else if word.eq_ignore_ascii_case(b"SKIP") {
        if *mode != ReplyMode::Off {
            *mode = ReplyMode::SkipNext;
        }
    } else {
        return error::syntax();
    }
    // Sent only if the mode now lets it.
    Reply::OK
}

fn unblock(call: &mut Call<'_>) -> Reply {
    match call.args {
        [_, _, _, reason, ..]
            if !reason.eq_ignore_ascii_case(b"TIMEOUT")
                && !reason.eq_ignore_ascii_case(b"ERROR") =>
        {
            Reply::error("ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR")
        }
        [_, _, id] | [_, _, id, _] if integer(id).is_some() => Reply::Integer(0),
        [_, _, _] | [_, _, _, _] => error::not_an_integer(),
        _ => error::syntax(),
    }
}

fn info(call: &mut Call<'_>) -> Reply {
    let mut text = String::new();
    describe(call, &Arc::clone(&call.session.client), &mut text);
    Reply::verbatim(text)
}

fn list(call: &mut Call<'_>) -> Reply {
    let chosen: Box<dyn Fn(&Client) -> bool> = match call.args.get(2..).unwrap_or_default() {
        [] => Box::new(|_| true),
        [option, kind] if option.eq_ignore_ascii_case(b"TYPE") => match is_normal(kind) {
            Ok(normal) => Box::new(move |_| normal),
            Err(refused) => return refused,
        },
        [option, ids @ ..] if option.eq_ignore_ascii_case(b"ID") && !ids.is_empty() => {
            let ids: Option<Vec<u64>> = ids.iter().map(|id| client_id(id)).collect();
            let Some(ids) = ids else {
                return Reply::error("ERR Invalid client ID");
            };
            Box::new(move |client| ids.contains(&client.id))
        }
        _ => return error::syntax(),
    };
    let mut text = String::new();
    for client in call.server.clients.list() {
        if chosen(&client) && !client.is_killed() {
            describe(call, &client, &mut text);
        }
    }
    Reply::verbatim(text)
}

/// Whether clients of this type are those there are: the others have no place here.
fn is_normal(kind: &[u8]) -> Result<bool, Reply> {
    let word = String::from_utf8_lossy(kind);
    match word.to_ascii_lowercase().as_str() {
        "normal" => Ok(true),
        "slave" | "replica" | "pubsub" | "master" => Ok(false),
        _ => Err(Reply::error(format!("ERR Unknown client type '{word}'"))),
    }
}

fn client_id(text: &[u8]) -> Option<u64> {
    integer(text)
        .and_then(|id| u64::try_from(id).ok())
        .filter(|id| *id > 0)
}

/// One line of CLIENT LIST, with the fields of Redis 7.4. A connection publishes its state after
/// each batch, so the caller's own is read from its session.
fn describe(call: &Call<'_>, client: &Client, text: &mut String) {
    let state = client.state.lock().clone();
    let session = &*call.session;
    let own = session.client.id == client.id;
    let (db, queued, watched) = if own {
        let queued = session.transaction.as_ref().map(|t| t.queued.len());
        (session.db, queued, session.watches.len())
    } else {
        (state.db, state.queued, state.watched)
    };
    let command = if own {
        let word = call.args.get(1).copied().unwrap_or_default();
        format!("client|{}", String::from_utf8_lossy(word).to_lowercase())
    } else {
        state.last_command.into()
    };
    let flags = match (queued, state.no_evict) {
        (Some(_), false) => "x",
        (Some(_), true) => "xe",
        (None, true) => "e",
        (None, false) => "N",
    };
    let seconds = |since: u64| call.now.ms.saturating_sub(since) / 1000;
    // Writing to a string cannot fail.
    let _ = writeln!(
        text,
        "id={} addr={} laddr={} fd=-1 name={} age={} idle={} flags={flags} db={db} sub=0 psub=0 \
         ssub=0 multi={} watch={watched} qbuf={} qbuf-free=0 argv-mem=0 multi-mem=0 rbs=0 rbp=0 \
         obl={} oll=0 omem={} tot-mem={} events=r cmd={command} user=default redir=-1 resp={} \
         lib-name={} lib-ver={}",
        client.id,
        client.addr,
        client.laddr,
        String::from_utf8_lossy(&state.name),
        seconds(client.created),
        if own { 0 } else { seconds(client.active()) },
        queued.map_or(-1, |n| i64::try_from(n).unwrap_or(i64::MAX)),
        state.query_buffer,
        state.output_buffer,
        state.output_buffer,
        state.query_buffer + state.output_buffer,
        state.resp,
        String::from_utf8_lossy(&state.lib_name),
        String::from_utf8_lossy(&state.lib_ver),
    );
}

/// What CLIENT KILL chooses by; what is not given chooses all.
#[derive(Default)]
struct Filter {
    id: Option<u64>,
    addr: Option<SocketAddr>,
    laddr: Option<SocketAddr>,
    none: bool,
    max_age: Option<u64>,
    keep_self: bool,
}

fn kill(call: &mut Call<'_>) -> Reply {
    let filter = match call.args.get(2..).unwrap_or_default() {
        [addr] => Filter {
            addr: parse_addr(addr),
            none: parse_addr(addr).is_none(),
            ..Filter::default()
        },
        options => match kill_filter(options) {
            Ok(filter) => filter,
            Err(refused) => return refused,
        },
    };
    let killed = kill_matching(call, &filter);
    match call.args.len() {
        3 if killed == 0 => Reply::error("ERR No such client"),
        3 => Reply::OK,
        _ => Reply::Integer(killed),
    }
}

fn parse_addr(text: &[u8]) -> Option<SocketAddr> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

fn kill_filter(mut options: &[&[u8]]) -> Result<Filter, Reply> {
    let mut filter = Filter {
        keep_self: true,
        ..Filter::default()
    };
    while !options.is_empty() {
        let [option, value, rest @ ..] = options else {
            return Err(error::syntax());
        };
        options = rest;
        match option.to_ascii_uppercase().as_slice() {
            b"ID" => {
                let id = client_id(value);
                filter.id =
                    Some(id.ok_or_else(|| Reply::error("ERR client-id should be greater than 0"))?);
            }
            b"MAXAGE" => {
                let age = client_id(value);
                filter.max_age =
                    Some(age.ok_or_else(|| {
                        Reply::error("ERR maxage is not an integer or out of range")
                    })?);
            }
            b"TYPE" => filter.none |= !is_normal(value)?,
            b"ADDR" => {
                filter.addr = parse_addr(value);
                filter.none |= filter.addr.is_none();
            }
            b"LADDR" => {
                filter.laddr = parse_addr(value);
                filter.none |= filter.laddr.is_none();
            }
            b"USER" if *value == b"default" => {}
            b"USER" => {
                let user = String::from_utf8_lossy(value);
                return Err(Reply::error(format!("ERR No such user '{user}'")));
            }
            b"SKIPME" if value.eq_ignore_ascii_case(b"YES") => filter.keep_self = true,
            b"SKIPME" if value.eq_ignore_ascii_case(b"NO") => filter.keep_self = false,
            _ => return Err(error::syntax()),
        }
    }
    Ok(filter)
}

fn kill_matching(call: &mut Call<'_>, filter: &Filter) -> i64 {
    let own = call.session.client.id;
    let mut killed = 0;
    for client in call.server.clients.list() {
        let age = call.now.ms.saturating_sub(client.created) / 1000;
        let chosen = !filter.none
            && !client.is_killed()
            && filter.id.is_none_or(|id| id == client.id)
            && filter.addr.is_none_or(|addr| addr == client.addr)
            && filter.laddr.is_none_or(|addr| addr == client.laddr)
            && filter.max_age.is_none_or(|most| age >= most);
        if !chosen || (client.id == own && filter.keep_self) {
            continue;
        }
        killed += 1;
        if client.id == own {
            // The reply is still sent.
            call.session.closing = true;
        } else {
            client.kill();
        }
    }
    killed
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
