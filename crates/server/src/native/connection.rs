//! HELLO, AUTH, SELECT, PING, ECHO, QUIT, RESET: commands on the connection itself.

use std::hint::black_box;

use everbloom_commands::flags::{
    ALLOW_BUSY, AT_ONCE, FAST, Flags, LOADING, NO_AUTH, NOSCRIPT, SELECTS, STALE, TELLS_HEALTH,
};
use everbloom_commands::number::integer;
use everbloom_resp::{Protocol, Reply};

use super::Handler::Plain;
use super::subcommand::container;
use super::{Call, Command, bulk, client, error, keys, map, server};
use crate::version::REDIS_VERSION;

/// Flags of commands that must work at any time, even before AUTH.
const FREE: Flags = Flags::of(&[NOSCRIPT, LOADING, STALE, FAST, NO_AUTH, ALLOW_BUSY]);

/// The rows of this family.
pub const COMMANDS: &[Command] = rows! {
    /// Returns the server's liveliness response.
    Command::new("ping", -1, Plain(ping)).since("1.0.0").flags(&[FAST, TELLS_HEALTH]),
    /// Returns the given string.
    Command::new("echo", 2, Plain(|call| bulk(call.args().next_bytes()?)))
        .since("1.0.0").flags(&[LOADING, STALE, FAST]),
    /// Changes the selected database.
    Command::new("select", 2, Plain(select)).since("1.0.0").flags(&[LOADING, STALE, FAST, SELECTS]),
    /// Authenticates the connection.
    Command::new("auth", -2, Plain(auth)).since("1.0.0").flags(&[FREE]),
    /// Handshakes with the server.
    Command::new("hello", -1, Plain(hello)).since("6.0.0").flags(&[FREE]),
    /// Closes the connection.
    Command::new("quit", -1, Plain(quit)).since("1.0.0").flags(&[FREE, AT_ONCE]),
    /// Resets the connection.
    Command::new("reset", 1, Plain(reset)).since("6.2.0").flags(&[FREE, AT_ONCE]),
    /// A container for client connection commands.
    container("client", client::SUBCOMMANDS).since("2.4.0"),
};

fn ping(call: &mut Call<'_>) -> Result<Reply, Reply> {
    let mut args = call.args();
    let message = args.next_optional();
    args.finish()?;
    message.map_or(Ok(Reply::simple("PONG")), bulk)
}

fn select(call: &mut Call<'_>) -> Result<Reply, Reply> {
    let databases = call.server.store.keyspace.databases();
    call.session.db = keys::db_index(call.args().next_bytes()?, databases)?;
    Ok(Reply::OK)
}

fn quit(call: &mut Call<'_>) -> Result<Reply, Reply> {
    call.session.closing = true;
    Ok(Reply::OK)
}

fn reset(call: &mut Call<'_>) -> Result<Reply, Reply> {
    call.session.transaction = None;
    call.session.unwatch();
    let session = &mut *call.session;
    session.db = 0;
    session.protocol = Protocol::Resp2;
    session.authenticated = call.settings.requirepass.is_empty();
    session.client.set_no_evict(false);
    let mut state = session.client.state.lock();
    state.name.clear();
    state.resp = 2;
    drop(state);
    Ok(Reply::simple("RESET"))
}

fn auth(call: &mut Call<'_>) -> Result<Reply, Reply> {
    let (user, password) = match call.args().rest() {
        [_] if call.settings.requirepass.is_empty() => {
            return Err(Reply::error(
                "ERR AUTH <password> called without any password configured for the default \
                 user. Are you sure your configuration is correct?",
            ));
        }
        [password] => (&b"default"[..], *password),
        [user, password] => (*user, *password),
        _ => return Err(error::syntax()),
    };
    log_in(call, user, password)?;
    Ok(Reply::OK)
}

/// There is one user. If no password is set, any password is valid.
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

/// Compares in a time that depends only on the length of `given`, so it reveals nothing of
/// `secret`.
fn same_secret(secret: &[u8], given: &[u8]) -> bool {
    let pairs = given.iter().zip(secret.iter().cycle());
    let different = pairs.fold(0, |sum, (a, b)| black_box(sum | (a ^ b)));
    different == 0 && secret.len() == given.len()
}

fn hello(call: &mut Call<'_>) -> Result<Reply, Reply> {
    let (mut args, mut user, mut name) = (call.args(), None, None);
    let protocol = args.next_optional().map(protocol).transpose()?;
    while let Some(option) = args.next_optional() {
        let mut values = args.clone();
        match (
            option.to_ascii_uppercase().as_slice(),
            values.next_optional(),
            values.next_optional(),
        ) {
            (b"AUTH", Some(who), Some(password)) => {
                user = Some((who, password));
                args = values;
            }
            (b"SETNAME", Some(text), _) => {
                name = Some(client::checked_name(text)?);
                args.next_optional();
            }
            _ => {
                let option = String::from_utf8_lossy(option);
                let text = format!("ERR Syntax error in HELLO option '{option}'");
                return Err(Reply::error(text));
            }
        }
    }
    // A request with a wrong option logs nobody in.
    if let Some((user, password)) = user {
        log_in(call, user, password)?;
    }
    if call.session.must_log_in(call.settings) {
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

fn protocol(version: &[u8]) -> Result<Protocol, Reply> {
    match integer(version) {
        Some(2) => Ok(Protocol::Resp2),
        Some(3) => Ok(Protocol::Resp3),
        Some(_) => Err(Reply::error("NOPROTO unsupported protocol version")),
        None => Err(Reply::error(
            "ERR Protocol version is not an integer or out of range",
        )),
    }
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
    map([
        ("server", Reply::bulk("redis")),
        ("version", Reply::bulk(REDIS_VERSION)),
        (
            "proto",
            Reply::Integer(version(call.session.protocol).into()),
        ),
        ("id", Reply::Integer(id)),
        ("mode", Reply::bulk("standalone")),
        ("role", Reply::bulk("master")),
        ("modules", server::modules()),
    ])
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
