//! CLIENT: the open connections, including this one.

use std::fmt::Write;

use everbloom_commands::Args;
use everbloom_commands::flags::ADMIN;
use everbloom_commands::number::integer;
use everbloom_resp::Reply;

use super::subcommand::subcommand;
use super::{Call, Command, bulk, copy_of, error, gather};
use crate::address::Address;
use crate::clients::Client;
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
    /// Set whether this connection stays however much memory all clients hold.
    subcommand("client|no-evict", 3, no_evict).since("7.0.0").flags(&[ADMIN]).usage("(ON|OFF)"),
    /// Accepted without an effect: no key is evicted.
    subcommand("client|no-touch", 3, on_or_off).since("7.2.0").usage("(ON|OFF)"),
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
        name => bulk(name)?,
    })
}

fn set_name(call: &mut Call<'_>) -> Result<Reply, Reply> {
    let name = checked_name(call.args().next_bytes()?)?;
    call.session.client.state.lock().name = name;
    Ok(Reply::OK)
}

/// A name that CLIENT LIST can show, if there is memory for it.
pub fn checked_name(name: &[u8]) -> Result<Vec<u8>, Reply> {
    if is_one_word(name) {
        return copy_of(name);
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
    *field = copy_of(value)?;
    Ok(Reply::OK)
}

fn no_evict(call: &mut Call<'_>) -> Result<Reply, Reply> {
    let reply = on_or_off(call)?;
    let is_on = call.args().next_bytes()?.eq_ignore_ascii_case(b"ON");
    call.session.client.set_no_evict(is_on);
    Ok(reply)
}

fn on_or_off(call: &mut Call<'_>) -> Result<Reply, Reply> {
    match call.args().next_bytes()?.to_ascii_uppercase().as_slice() {
        b"ON" | b"OFF" => Ok(Reply::OK),
        _ => Err(error::syntax()),
    }
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
    publish(call);
    describe(&call.session.client, call.now, &mut text)?;
    Ok(Reply::verbatim(text))
}

fn list(call: &mut Call<'_>) -> Result<Reply, Reply> {
    let ids: Option<Vec<u64>> = match call.args().rest() {
        [] => None,
        [option, kind] if option.eq_ignore_ascii_case(b"TYPE") => match is_normal(kind)? {
            true => None,
            false => Some(Vec::new()),
        },
        [option, ids @ ..] if option.eq_ignore_ascii_case(b"ID") && !ids.is_empty() => {
            let invalid = || Reply::error("ERR Invalid client ID");
            let ids = ids.iter().map(|id| client_id(id).ok_or_else(invalid));
            let mut ids = gather(ids)?;
            ids.sort_unstable();
            Some(ids)
        }
        _ => return Err(error::syntax()),
    };
    publish(call);
    let mut text = String::new();
    for client in call.server.clients.list() {
        let chosen = ids
            .as_ref()
            .is_none_or(|ids| ids.binary_search(&client.id).is_ok());
        if chosen && !client.is_killed() {
            let more = client.state.lock().name_bytes() + MAX_LINE_BYTES;
            call.check_list_reply(text.len().saturating_add(more))?;
            describe(&client, call.now, &mut text)?;
        }
    }
    Ok(Reply::verbatim(text))
}

/// Whether a type is that of all connections here.
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

fn max_age(text: &[u8]) -> Result<u64, Reply> {
    let wrong = || Reply::error("ERR maxage is not an integer or out of range");
    let age = integer(text).ok_or_else(wrong)?;
    let age = u64::try_from(age).ok().filter(|age| *age > 0);
    age.ok_or_else(|| Reply::error("ERR maxage should be greater than 0"))
}

/// Seconds since a time in milliseconds.
fn seconds_since(then: u64, now: Now) -> u64 {
    now.ms.saturating_sub(then) / 1000
}

/// A connection publishes its state after each batch, so this one does it now.
fn publish(call: &Call<'_>) {
    let mut state = call.session.publish(call.now);
    state.last_command = call.command.name;
}

/// More bytes than a line of CLIENT LIST has beside the client's names.
const MAX_LINE_BYTES: usize = 2 << 10;

/// One line of CLIENT LIST, with the fields of Redis 7.4, if there is memory for it.
fn describe(client: &Client, now: Now, text: &mut String) -> Result<(), Reply> {
    let state = client.state.lock();
    text.try_reserve(state.name_bytes() + MAX_LINE_BYTES)
        .map_err(|_| error::out_of_memory())?;
    let flags = [
        (state.queued.is_some(), 'x'),
        (matches!(client.addr, Address::Unix(_)), 'U'),
        (client.is_no_evict(), 'e'),
    ];
    let set = flags.iter().filter(|(is_set, _)| *is_set);
    let flags: String = set.map(|(_, flag)| *flag).collect();
    let flags = if flags.is_empty() { "N" } else { &flags };
    // Writing to a string cannot fail.
    let _ = writeln!(
        text,
        "id={} addr={} laddr={} fd=-1 name={} age={} idle={} flags={flags} db={} sub=0 psub=0 \
         ssub=0 multi={} watch={} qbuf={} qbuf-free=0 argv-mem=0 multi-mem=0 rbs=0 rbp=0 \
         obl={} oll=0 omem={} tot-mem={} events=r cmd={} user=default redir=-1 resp={} \
         lib-name={} lib-ver={}",
        client.id,
        client.addr,
        client.laddr,
        String::from_utf8_lossy(&state.name),
        seconds_since(client.created, now),
        seconds_since(client.active(), now),
        state.db,
        state
            .queued
            .map_or(-1, |n| i64::try_from(n).unwrap_or(i64::MAX)),
        state.watched,
        state.query_buffer,
        state.output_buffer,
        state.output_buffer,
        state.query_buffer + state.output_buffer,
        state.last_command,
        state.resp,
        String::from_utf8_lossy(&state.lib_name),
        String::from_utf8_lossy(&state.lib_ver),
    );
    Ok(())
}

/// The connections that CLIENT KILL selects: those with all that is given here.
#[derive(Default)]
struct Choice<'a> {
    id: Option<u64>,
    addr: Option<&'a [u8]>,
    laddr: Option<&'a [u8]>,
    /// The least age, in seconds.
    age: Option<u64>,
    /// Whether a type was given that no connection has.
    nobody: bool,
    /// Whether it spares the calling connection.
    skip_me: bool,
}

impl<'a> Choice<'a> {
    /// The last of several equal options is used, as in Redis.
    fn parse(mut args: Args<'a>) -> Result<Self, Reply> {
        let mut choice = Choice {
            skip_me: true,
            ..Choice::default()
        };
        while let Some(option) = args.next_optional() {
            let value = args.next_optional().ok_or_else(error::syntax)?;
            match option.to_ascii_uppercase().as_slice() {
                b"ID" => {
                    let refusal = || Reply::error("ERR client-id should be greater than 0");
                    choice.id = Some(client_id(value).ok_or_else(refusal)?);
                }
                b"TYPE" => choice.nobody = !is_normal(value)?,
                b"USER" if value == b"default" => {}
                b"USER" => {
                    let user = error::shown(value);
                    return Err(Reply::error(format!("ERR No such user '{user}'")));
                }
                b"MAXAGE" => choice.age = Some(max_age(value)?),
                b"ADDR" => choice.addr = Some(value),
                b"LADDR" => choice.laddr = Some(value),
                b"SKIPME" if value.eq_ignore_ascii_case(b"YES") => choice.skip_me = true,
                b"SKIPME" if value.eq_ignore_ascii_case(b"NO") => choice.skip_me = false,
                _ => return Err(error::syntax()),
            }
        }
        Ok(choice)
    }

    fn selects(&self, client: &Client, now: Now) -> bool {
        let is_at = |given: Option<&[u8]>, address: &Address| {
            given.is_none_or(|given| address.to_string().as_bytes() == given)
        };
        !self.nobody
            && self.id.is_none_or(|id| client.id == id)
            && is_at(self.addr, &client.addr)
            && is_at(self.laddr, &client.laddr)
            && self
                .age
                .is_none_or(|age| seconds_since(client.created, now) >= age)
    }
}

fn kill(call: &mut Call<'_>) -> Result<Reply, Reply> {
    if let [address] = call.args().rest() {
        let choice = Choice {
            addr: Some(address),
            ..Choice::default()
        };
        return match kill_chosen(call, &choice) {
            0 => Err(Reply::error("ERR No such client")),
            _ => Ok(Reply::OK),
        };
    }
    let choice = Choice::parse(call.args())?;
    Ok(Reply::Integer(kill_chosen(call, &choice)))
}

fn kill_chosen(call: &mut Call<'_>, choice: &Choice<'_>) -> i64 {
    let own = call.session.client.id;
    let mut killed = 0;
    for client in call.server.clients.list() {
        let is_chosen = choice.selects(&client, call.now);
        if client.is_killed() || !is_chosen || client.id == own && choice.skip_me {
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
    fn a_client_that_is_not_evicted_has_a_flag() {
        let mut bench = Bench::default();
        for (setting, flag) in [("ON", "e"), ("OFF", "N")] {
            bench.run(&format!("CLIENT NO-EVICT {setting}"));
            let info = String::from_utf8(bench.run("CLIENT INFO").as_bytes().unwrap().to_vec());
            let info = info.unwrap();
            assert!(info.contains(&format!(" flags={flag} ")), "{info}");
        }
    }

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

    #[test]
    fn connections_are_chosen_by_user_and_age() {
        let mut bench = Bench::default();
        bench.now.ms = 10_000_000;
        for (age, selected) in [("9999", true), ("10000", true), ("10001", false)] {
            let words = [b"kill", &b"USER"[..], b"default", b"MAXAGE", age.as_bytes()];
            let choice = Choice::parse(Args::new("client|kill", &words)).unwrap();
            let client = Client::unlisted();
            assert_eq!(choice.selects(&client, bench.now), selected, "{age}");
        }
        for (line, refusal) in [
            ("USER x", "ERR No such user 'x'"),
            ("MAXAGE 0", "ERR maxage should be greater than 0"),
            ("MAXAGE x", "ERR maxage is not an integer or out of range"),
        ] {
            assert_eq!(bench.run(&format!("CLIENT KILL {line}")), err(refusal));
        }
    }

    #[test]
    fn nothing_is_evicted_whatever_clients_say() {
        let mut bench = Bench::default();
        for name in ["NO-EVICT", "NO-TOUCH"] {
            for word in ["on", "OFF"] {
                assert_eq!(bench.run(&format!("CLIENT {name} {word}")), Reply::OK);
            }
            let reply = bench.run(&format!("CLIENT {name} maybe"));
            assert_eq!(reply, error::syntax());
        }
    }
}
