//! HELLO, AUTH, SELECT, PING, ECHO, QUIT, RESET: what a connection says of itself.

use std::hint::black_box;

use everbloom_commands::number::integer;
use everbloom_resp::{Protocol, Reply};

use super::transaction::forget_watches;
use super::{Call, Command, NO_KEY, Run, client, error, keys, server};
use crate::session::ReplyMode;

const BASE: Command = Command {
    name: "",
    arity: 2,
    flags: &["loading", "stale", "fast"],
    keys: NO_KEY,
    group: "connection",
    since: "1.0.0",
    summary: "",
    run: Run::Plain(ping),
};

/// Flags of what must work before AUTH.
const FREE: &[&str] = &[
    "noscript",
    "loading",
    "stale",
    "fast",
    "no_auth",
    "allow_busy",
];

/// The rows of this family.
pub const COMMANDS: &[Command] = &[
    Command {
        name: "PING",
        arity: -1,
        flags: &["fast"],
        summary: "Returns the server's liveliness response.",
        run: Run::Plain(ping),
        ..BASE
    },
    Command {
        name: "ECHO",
        summary: "Returns the given string.",
        run: Run::Plain(echo),
        ..BASE
    },
    Command {
        name: "SELECT",
        summary: "Changes the selected database.",
        run: Run::Plain(select),
        ..BASE
    },
    Command {
        name: "AUTH",
        arity: -2,
        flags: FREE,
        summary: "Authenticates the connection.",
        run: Run::Plain(auth),
        ..BASE
    },
    Command {
        name: "HELLO",
        arity: -1,
        flags: FREE,
        since: "6.0.0",
        summary: "Handshakes with the server.",
        run: Run::Plain(hello),
        ..BASE
    },
    Command {
        name: "QUIT",
        arity: -1,
        flags: FREE,
        summary: "Closes the connection.",
        run: Run::Plain(quit),
        ..BASE
    },
    Command {
        name: "RESET",
        arity: 1,
        flags: FREE,
        since: "6.2.0",
        summary: "Resets the connection.",
        run: Run::Plain(reset),
        ..BASE
    },
    Command {
        name: "CLIENT",
        arity: -2,
        flags: &[],
        since: "2.4.0",
        summary: "A container for client connection commands.",
        run: Run::Plain(client::client),
        ..BASE
    },
];

fn ping(call: &mut Call<'_>) -> Reply {
    match call.args {
        [_] => Reply::simple("PONG"),
        [_, message] => Reply::bulk(*message),
        _ => error::wrong_arity(call.command.lower),
    }
}

fn echo(call: &mut Call<'_>) -> Reply {
    Reply::bulk(call.args.get(1).copied().unwrap_or_default())
}

fn select(call: &mut Call<'_>) -> Reply {
    let index = match keys::int(call.arg(1)) {
        Ok(index) => index,
        Err(refusal) => return refusal,
    };
    match usize::try_from(index) {
        Ok(index) if index < call.server.store.keyspace.databases() => {
            call.session.db = index;
            Reply::OK
        }
        _ => error::bad_db_index(),
    }
}

fn quit(call: &mut Call<'_>) -> Reply {
    call.session.closing = true;
    Reply::OK
}

fn reset(call: &mut Call<'_>) -> Reply {
    call.session.transaction = None;
    forget_watches(call);
    let session = &mut *call.session;
    session.db = 0;
    session.protocol = Protocol::Resp2;
    session.reply_mode = ReplyMode::On;
    session.authenticated = call.settings.requirepass.is_empty();
    let mut state = session.client.state.lock();
    state.name.clear();
    state.no_evict = false;
    state.resp = 2;
    drop(state);
    Reply::simple("RESET")
}

fn auth(call: &mut Call<'_>) -> Reply {
    match call.args {
        [_, _] if call.settings.requirepass.is_empty() => Reply::error(
            "ERR AUTH <password> called without any password configured for the default user. \
             Are you sure your configuration is correct?",
        ),
        [_, password] => reply(log_in(call, b"default", password)),
        [_, user, password] => reply(log_in(call, user, password)),
        _ => error::syntax(),
    }
}

fn reply(result: Result<(), Reply>) -> Reply {
    result.err().unwrap_or(Reply::OK)
}

/// There is one user; without a password set, any password is its password.
fn log_in(call: &mut Call<'_>, user: &[u8], password: &[u8]) -> Result<(), Reply> {
    let wanted = call.settings.requirepass.as_bytes();
    let right = wanted.is_empty() || same_secret(wanted, password);
    if !right || user != b"default" {
        return Err(Reply::error(
            "WRONGPASS invalid username-password pair or user is disabled.",
        ));
    }
    call.session.authenticated = true;
    Ok(())
}

/// Compares in a time that depends on the length of `given` alone: it tells nothing of `secret`.
fn same_secret(secret: &[u8], given: &[u8]) -> bool {
    let pairs = given.iter().zip(secret.iter().cycle());
    let different = pairs.fold(0, |sum, (a, b)| black_box(sum | (a ^ b)));
    different == 0 && secret.len() == given.len()
}

fn hello(call: &mut Call<'_>) -> Reply {
    match try_hello(call) {
        Ok(reply) | Err(reply) => reply,
    }
}

fn try_hello(call: &mut Call<'_>) -> Result<Reply, Reply> {
    let (mut protocol, mut name) = (None, None);
    let mut args = call.args.get(1..).unwrap_or_default();
    if let Some((version, rest)) = args.split_first() {
        protocol = Some(match integer(version) {
            Some(2) => Protocol::Resp2,
            Some(3) => Protocol::Resp3,
            Some(_) => return Err(Reply::error("NOPROTO unsupported protocol version")),
            None => {
                return Err(Reply::error(
                    "ERR Protocol version is not an integer or out of range",
                ));
            }
        });
        args = rest;
    }
    while let Some((option, rest)) = args.split_first() {
        args = match rest {
            [user, password, rest @ ..] if option.eq_ignore_ascii_case(b"AUTH") => {
                log_in(call, user, password)?;
                rest
            }
            [text, rest @ ..] if option.eq_ignore_ascii_case(b"SETNAME") => {
                name = Some(client::checked_name(text)?);
                rest
            }
            _ => {
                return Err(Reply::error(format!(
                    "ERR Syntax error in HELLO option '{}'",
                    String::from_utf8_lossy(option)
                )));
            }
        };
    }
    if !call.session.authenticated {
        return Err(Reply::error(
            "NOAUTH HELLO must be called with the client already authenticated, otherwise the \
             HELLO AUTH <user> <pass> option can be used to authenticate the client and select \
             the RESP protocol version at the same time",
        ));
    }
    let session = &mut *call.session;
    session.protocol = protocol.unwrap_or(session.protocol);
    let mut state = session.client.state.lock();
    state.resp = version(session.protocol);
    if let Some(name) = name {
        state.name = name;
    }
    drop(state);
    Ok(welcome(call))
}

fn version(protocol: Protocol) -> u8 {
    match protocol {
        Protocol::Resp2 => 2,
        Protocol::Resp3 => 3,
    }
}

fn welcome(call: &Call<'_>) -> Reply {
    let client = &call.session.client;
    let id = i64::try_from(client.id).unwrap_or(i64::MAX);
    let fields = [
        ("server", Reply::bulk("redis")),
        ("version", Reply::bulk(server::REDIS_VERSION)),
        (
            "proto",
            Reply::Integer(version(call.session.protocol).into()),
        ),
        ("id", Reply::Integer(id)),
        ("mode", Reply::bulk("standalone")),
        ("role", Reply::bulk("master")),
        ("modules", server::modules()),
    ];
    let fields = fields.map(|(name, value)| (Reply::bulk(name), value));
    Reply::Map(fields.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_the_same_only_as_a_whole() {
        assert!(same_secret(b"secret", b"secret"));
        for other in [
            &b""[..],
            b"s",
            b"secre",
            b"secret ",
            b"secretsecret",
            b"Secret",
        ] {
            assert!(!same_secret(b"secret", other));
        }
    }
}
