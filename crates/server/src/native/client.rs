//! CLIENT: the open connections, including this one.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;

use everbloom_commands::Args;
use everbloom_commands::flags::ADMIN;
use everbloom_commands::number::integer;
use everbloom_resp::Reply;

use super::subcommand::subcommand;
use super::{Call, Command, error};
use crate::address::Address;
use crate::clients::Client;
use crate::session::ReplyMode;
use everbloom_store::clock::Now;

/// The subcommands.
pub const SUBCOMMANDS: &[Command] = rows! {
    /// Return the name of the current connection.
    subcommand("client|getname", 2, get_name).since("2.6.9"),
    /// Return the ID of the current connection.
    subcommand("client|id", 2, id).since("5.0.0"),
    /// Return information about the current client connection.
    subcommand("client|info", 2, info).since("6.2.0"),
    /// Kill connections, by ID, TYPE, ADDR, LADDR, USER, MAXAGE; SKIPME (YES|NO).
    subcommand("client|kill", -3, kill).since("2.4.0").flags(&[ADMIN])
        .usage("<ip:port> | <option> <value> [<option> <value> [...]]"),
    /// Return information about client connections, of a TYPE or with some IDs.
    subcommand("client|list", -2, list)
        .since("2.4.0").flags(&[ADMIN]).usage("[TYPE <type> | ID <id> [...]]"),
    /// Control the replies sent to the current connection.
    subcommand("client|reply", 3, reply).since("3.2.0").usage("(ON|OFF|SKIP)"),
    /// Set client meta attr: the library's name or version.
    subcommand("client|setinfo", 4, set_info).since("7.2.0").usage("<option> <value>"),
    /// Assign the name <name> to the current connection.
    subcommand("client|setname", 3, set_name).since("2.6.9").usage("<name>"),
    /// Refused: this server does not tell clients which keys have changed.
    subcommand("client|tracking", -3, tracking).since("6.0.0").usage("(ON|OFF) [...]"),
};

fn id(call: &mut Call<'_>) -> Result<Reply, Reply> {
    let id = i64::try_from(call.session.client.id).unwrap_or(i64::MAX);
    Ok(Reply::Integer(id))
}

fn get_name(call: &mut Call<'_>) -> Result<Reply, Reply> {
    Ok(match call.session.client.state.lock().name.as_slice() {
        [] => Reply::Null,
        name => Reply::bulk(name),
    })
}

fn set_name(call: &mut Call<'_>) -> Result<Reply, Reply> {
    let name = checked_name(call.args().next_bytes()?)?;
    call.session.client.state.lock().name = name;
    Ok(Reply::OK)
}

/// A name that CLIENT LIST can show.
pub fn checked_name(name: &[u8]) -> Result<Vec<u8>, Reply> {
    if is_one_word(name) {
        return Ok(name.into());
    }
    Err(Reply::error(
        "ERR Client names cannot contain spaces, newlines or special characters.",
    ))
}

/// Whether text may appear in a line of CLIENT LIST.
fn is_one_word(text: &[u8]) -> bool {
    text.iter().all(|byte| (b'!'..=b'~').contains(byte))
}

fn set_info(call: &mut Call<'_>) -> Result<Reply, Reply> {
    let mut args = call.args();
    let (option, value) = (args.next_bytes()?, args.next_bytes()?);
    let shown = String::from_utf8_lossy(option);
    let mut state = call.session.client.state.lock();
    let field = if option.eq_ignore_ascii_case(b"LIB-NAME") {
        &mut state.lib_name
    } else if option.eq_ignore_ascii_case(b"LIB-VER") {
        &mut state.lib_ver
    } else {
        return Err(Reply::error(format!("ERR Unrecognized option '{shown}'")));
    };
    if !is_one_word(value) {
        return Err(Reply::error(format!(
            "ERR {shown} cannot contain spaces, newlines or special characters."
        )));
    }
    *field = value.to_vec();
    Ok(Reply::OK)
}

/// Parses one of two words, in any case: true for the first.
fn either(word: &[u8], yes: &str, no: &str) -> Result<bool, Reply> {
    let is = |known: &str| known.as_bytes().eq_ignore_ascii_case(word);
    if is(yes) || is(no) {
        return Ok(is(yes));
    }
    Err(error::syntax())
}

fn reply(call: &mut Call<'_>) -> Result<Reply, Reply> {
    let word = call.args().next_bytes()?.to_ascii_uppercase();
    let mode = &mut call.session.reply_mode;
    match word.as_slice() {
        b"ON" => *mode = ReplyMode::On,
        b"OFF" => *mode = ReplyMode::Off,
        b"SKIP" if *mode == ReplyMode::Off => {}
        b"SKIP" => *mode = ReplyMode::SkipNext,
        _ => return Err(error::syntax()),
    }
    // Sent only if the new mode allows it.
    Ok(Reply::OK)
}

/// A client's cache without notices of changes would stay wrong.
fn tracking(call: &mut Call<'_>) -> Result<Reply, Reply> {
    match call.args().rest() {
        [word] if word.eq_ignore_ascii_case(b"OFF") => Ok(Reply::OK),
        _ => Err(Reply::error(
            "ERR CLIENT TRACKING is not supported: this server does not send invalidations. \
             Switch client-side caching off in the client",
        )),
    }
}

fn info(call: &mut Call<'_>) -> Result<Reply, Reply> {
    let mut text = String::new();
    describe(call, &Arc::clone(&call.session.client), &mut text);
    Ok(Reply::verbatim(text))
}

fn list(call: &mut Call<'_>) -> Result<Reply, Reply> {
    let chosen: Choice = match call.args().rest() {
        [] => Box::new(|_| true),
        [option, kind] if option.eq_ignore_ascii_case(b"TYPE") => of_type(kind)?,
        [option, ids @ ..] if option.eq_ignore_ascii_case(b"ID") && !ids.is_empty() => {
            let ids: Option<Vec<u64>> = ids.iter().map(|id| client_id(id)).collect();
            let ids = ids.ok_or_else(|| Reply::error("ERR Invalid client ID"))?;
            Box::new(move |client| ids.contains(&client.id))
        }
        _ => return Err(error::syntax()),
    };
    let mut text = String::new();
    for client in call.server.clients.list() {
        if chosen(&client) && !client.is_killed() {
            describe(call, &client, &mut text);
        }
    }
    Ok(Reply::verbatim(text))
}

/// The clients that an option selects.
type Choice = Box<dyn Fn(&Client) -> bool>;

/// All clients are normal ones: this server has no other types.
fn of_type(kind: &[u8]) -> Result<Choice, Reply> {
    let word = String::from_utf8_lossy(kind);
    match word.to_ascii_lowercase().as_str() {
        "normal" => Ok(Box::new(|_| true)),
        "slave" | "replica" | "pubsub" | "master" => Ok(Box::new(|_| false)),
        _ => Err(Reply::error(format!("ERR Unknown client type '{word}'"))),
    }
}

/// The clients with this address; none, if it is not an address.
fn at(address: &[u8], of: fn(&Client) -> &Address) -> Choice {
    let address = address.to_vec();
    Box::new(move |client| of(client).to_string().as_bytes() == address)
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
        call.command.name
    } else {
        state.last_command
    };
    let unix = matches!(client.addr, Address::Unix(_));
    let flags = match (queued.is_some(), unix) {
        (false, false) => "N",
        (true, false) => "x",
        (false, true) => "U",
        (true, true) => "xU",
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

fn kill(call: &mut Call<'_>) -> Result<Reply, Reply> {
    match call.args().rest() {
        [address] => {
            let choices = [at(address, |client| &client.addr)];
            match kill_chosen(call, &choices, false) {
                0 => Err(Reply::error("ERR No such client")),
                _ => Ok(Reply::OK),
            }
        }
        _ => {
            let (choices, keep_self) = kill_options(call.args(), call.now)?;
            Ok(Reply::Integer(kill_chosen(call, &choices, keep_self)))
        }
    }
}

/// The filter of CLIENT KILL, and whether it spares the calling client.
fn kill_options(mut args: Args<'_>, now: Now) -> Result<(Vec<Choice>, bool), Reply> {
    let (mut choices, mut keep_self) = (BTreeMap::new(), true);
    while let Some(option) = args.next_optional() {
        let value = args.next_optional().ok_or_else(error::syntax)?;
        let positive = |refusal| client_id(value).ok_or(Reply::error(refusal));
        let option = option.to_ascii_uppercase();
        let choice: Choice = match option.as_slice() {
            b"ID" => {
                let id = positive("ERR client-id should be greater than 0")?;
                Box::new(move |client| client.id == id)
            }
            b"MAXAGE" => {
                let age = positive("ERR maxage is not an integer or out of range")?;
                Box::new(move |client| now.ms.saturating_sub(client.created) / 1000 >= age)
            }
            b"TYPE" => of_type(value)?,
            b"ADDR" => at(value, |client| &client.addr),
            b"LADDR" => at(value, |client| &client.laddr),
            b"USER" if value == b"default" => continue,
            b"USER" => {
                let user = String::from_utf8_lossy(value);
                return Err(Reply::error(format!("ERR No such user '{user}'")));
            }
            b"SKIPME" => {
                keep_self = either(value, "YES", "NO")?;
                continue;
            }
            _ => return Err(error::syntax()),
        };
        // The last of several equal options is used, as in Redis.
        choices.insert(option, choice);
    }
    Ok((choices.into_values().collect(), keep_self))
}

fn kill_chosen(call: &mut Call<'_>, choices: &[Choice], keep_self: bool) -> i64 {
    let own = call.session.client.id;
    let mut killed = 0;
    for client in call.server.clients.list() {
        let chosen = !client.is_killed() && choices.iter().all(|chosen| chosen(&client));
        if !chosen || (client.id == own && keep_self) {
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

#[cfg(test)]
mod tests {
    use super::super::testing::{Bench, err};
    use super::*;

    #[test]
    fn tracking_is_refused() {
        let mut bench = Bench::default();
        let refusal = err(
            "ERR CLIENT TRACKING is not supported: this server does not send invalidations. \
             Switch client-side caching off in the client",
        );
        for line in ["CLIENT TRACKING ON", "CLIENT TRACKING on BCAST PREFIX a"] {
            assert_eq!(bench.run(line), refusal);
        }
        assert_eq!(bench.run("CLIENT TRACKING OFF"), Reply::OK);
    }
}
