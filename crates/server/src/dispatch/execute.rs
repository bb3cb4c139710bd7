//! From a request to its reply: find the command, check it, lock its keys, run it, record its
//! effect.

use std::time::Duration;

use everbloom_commands::flags::{CHANGES_SETTINGS, DISCARDS};
use everbloom_resp::{Batch, Reply};
use tracing::warn;

use super::admission::{admit, is_queued, refuse};
use super::turn::Turn;
use super::{pipeline, run, transaction};
use crate::call::{Handler, Registered};
use crate::limits::PENDING_REPLY_BYTES;
use crate::native::table::registry;
use crate::offload::Done;
use crate::session::Session;

/// After this time, the other connections of the worker have their turn.
const TURN_LIMIT: Duration = Duration::from_millis(5);

/// Runs the requests of a batch in order, starting at `first`. Returns the number of the first that
/// is left, because too many replies wait, time is up, or its command offloaded work. If the
/// connection is to be closed, none is left.
pub fn execute(turn: &mut Turn<'_>, requests: &Batch, args: &[&[u8]], first: usize) -> usize {
    let mut next = first;
    while next < requests.len()
        && turn.out.len() <= PENDING_REPLY_BYTES.get()
        && turn.mark - turn.begun <= TURN_LIMIT
    {
        if turn.session.closing {
            return requests.len();
        }
        let request = args.get(requests.range(next)).unwrap_or_default();
        let name = request.first().copied().unwrap_or_default();
        let command = registry().find(name);
        if let Some(command) = command
            && command.is_on_value()
        {
            let done = pipeline::execute(turn, command, requests, args, next);
            if done > 0 {
                next += done;
                continue;
            }
        }
        let unsent = turn.out.len();
        execute_one(turn, command, request);
        if turn.session.offload.is_requested() {
            return next;
        }
        if turn.session.silent {
            turn.out.truncate(unsent);
        }
        next += 1;
    }
    next
}

fn execute_one(turn: &mut Turn<'_>, command: Option<&'static Registered>, args: &[&[u8]]) {
    let Some(name) = args.first() else { return };
    let Some(container) = command else {
        if is_of_http(name) {
            return hang_up(turn.session);
        }
        let reply = refuse(turn.session, unknown_command(args));
        return turn.send(&reply);
    };
    let command = match container.of_call(args) {
        Ok(command) => command,
        Err(unknown) => {
            let reply = refuse(turn.session, unknown);
            return turn.send(&reply);
        }
    };
    turn.last = Some(command);
    let reply = match admit(turn.server, turn.settings, turn.session, command, args) {
        Err(reply) => {
            turn.skip_time();
            if let Some(stats) = turn.stats.commands.get(command.index) {
                stats.rejected.add(1);
            }
            Some(if command.flags.has(DISCARDS) {
                transaction::discarded(&mut turn.call(command, args).0, &reply)
            } else {
                refuse(turn.session, reply)
            })
        }
        Ok(()) if is_queued(turn.session, command) => {
            turn.skip_time();
            Some(queue(turn.session, command, args))
        }
        Ok(()) => run_admitted(turn, command, args),
    };
    if let Some(reply) = reply {
        turn.send(&reply);
    }
    turn.session.offload.forget();
}

/// Runs a command that was admitted. Returns no reply if it was already written, or if the command
/// has offloaded work.
fn run_admitted(
    turn: &mut Turn<'_>,
    command: &'static Registered,
    args: &[&[u8]],
) -> Option<Reply> {
    let took = turn.session.offload.took();
    turn.mark = turn.mark.checked_sub(took).unwrap_or(turn.mark);
    let mut failed = 0;
    let reply = match turn.session.offload.take_reply() {
        Some(Done::Encoded(reply)) => {
            turn.send_encoded(reply);
            None
        }
        Some(Done::Reply(reply)) => Some(reply),
        _ => {
            let (mut call, mut answers) = turn.call(command, args);
            let reply = match command.handler {
                Handler::Exec => transaction::exec(&mut call, &mut answers),
                _ => run::run(&mut call, &mut answers),
            };
            failed = answers.failed;
            reply
        }
    };
    if turn.session.offload.is_requested() {
        return None;
    }
    failed += u64::from(reply.as_ref().is_some_and(Reply::is_error));
    turn.note_time(command, args, 1, failed);
    if command.flags.has(CHANGES_SETTINGS) {
        *turn.settings = turn.server.config.snapshot();
    }
    reply
}

/// Whether a word begins a line of HTTP. A page in somebody's browser may send requests to servers
/// on that machine, with commands in the body.
fn is_of_http(name: &[u8]) -> bool {
    [&b"POST"[..], b"Host:"]
        .iter()
        .any(|word| name.eq_ignore_ascii_case(word))
}

/// Ends a connection without a reply, and ignores its other requests.
fn hang_up(session: &mut Session) {
    warn!(
        "disconnected {}, which looks like a browser: a web page may be sending commands here",
        session.client.addr
    );
    session.closing = true;
}

fn queue(session: &mut Session, command: &'static Registered, args: &[&[u8]]) -> Reply {
    if let Some(transaction) = &mut session.transaction {
        transaction.queue(command, args);
    }
    Reply::Simple("QUEUED".into())
}

/// Commands that tools send to any server, and the replies here. The first has Redis's reply
/// without a cluster. Redisson sends a script again and again when the command is unknown.
const INSTEAD: [(&[&str], &str); 3] = [
    (
        &["cluster", "readonly", "readwrite", "asking"],
        "ERR This instance has cluster support disabled",
    ),
    (
        &[
            "eval",
            "evalsha",
            "eval_ro",
            "evalsha_ro",
            "script",
            "fcall",
            "fcall_ro",
            "function",
        ],
        "ERR this server runs no scripts: for them, load the everbloom module in Valkey or Redis",
    ),
    (
        &["sync", "psync", "replconf"],
        "ERR this server has no replicas: for a snapshot, run BGSAVE and take dump.rdb from its \
         directory; for another server, use 'everbloom copy'; for replicas, load the everbloom \
         module in Valkey or Redis",
    ),
];

fn unknown_command(args: &[&[u8]]) -> Reply {
    fn shown(bytes: &[u8], most: usize) -> String {
        String::from_utf8_lossy(bytes.get(..most).unwrap_or(bytes)).into_owned()
    }
    let (name, rest) = args
        .split_first()
        .map_or((&b""[..], args), |(name, rest)| (*name, rest));
    let is_named = |known: &&str| name.eq_ignore_ascii_case(known.as_bytes());
    if let Some((_, text)) = INSTEAD.iter().find(|(names, _)| names.iter().any(is_named)) {
        return Reply::error(*text);
    }
    let mut listed = String::new();
    for arg in rest {
        if listed.len() >= 128 {
            break;
        }
        listed.push_str(&format!("'{}' ", shown(arg, 128 - listed.len())));
    }
    let name = shown(name, 128);
    Reply::error(format!(
        "ERR unknown command '{name}', with args beginning with: {listed}"
    ))
}
