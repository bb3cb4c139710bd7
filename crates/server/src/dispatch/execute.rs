//! From a request to its reply: find the command, check it, lock its keys, run it, record its
//! effect.

use std::time::Duration;

use everbloom_commands::flags::{CHANGES_SETTINGS, DISCARDS};
use everbloom_resp::{Batch, Reply};
use tracing::warn;

use super::admission::{admit, is_queued, refuse};
use super::executor::Executor;
use super::keys::OwnKeys;
use super::sinks::reserve_answers;
use super::{pipeline, run, transaction};
use crate::call::{Done, Finished, Handler, Outcome, Registered, Work};
use crate::error;
use crate::limits::PENDING_REPLY_BYTES;
use crate::native::table::registry;
use crate::session::Session;

/// How long a connection runs requests before the others of its worker have their turn.
pub const TURN: Duration = Duration::from_millis(5);

/// What has come of the requests of a batch.
#[derive(Debug, Default)]
pub struct Executed {
    /// The number of the first request that is left, because too many replies wait, time is up, or
    /// its command has come to work. If the connection is to be closed, none is left.
    pub next: usize,
    /// The work of that request.
    pub work: Option<Work>,
}

/// Runs the requests of a batch in order, starting at `first`, whose work is `finished` if it had
/// any.
pub fn execute(
    executor: &mut Executor<'_>,
    requests: &Batch,
    args: &[&[u8]],
    first: usize,
    finished: Option<Finished>,
) -> Executed {
    let mut next = first;
    if finished.is_some() {
        let work = execute_one(executor, find(requests, args, next), finished);
        if work.is_some() {
            return Executed { next, work };
        }
        next += 1;
    }
    while next < requests.len()
        && executor.out.len() <= PENDING_REPLY_BYTES.get()
        && executor.mark <= executor.until
    {
        if executor.session.closing {
            next = requests.len();
            break;
        }
        let found = find(requests, args, next);
        if let (Some(command), _) = found
            && command.is_on_value()
        {
            let done = pipeline::execute(executor, command, requests, args, next);
            if done > 0 {
                next += done;
                continue;
            }
        }
        let work = execute_one(executor, found, None);
        if work.is_some() {
            return Executed { next, work };
        }
        next += 1;
    }
    Executed { next, work: None }
}

/// A request with its command, if that is known.
type Found<'a> = (Option<&'static Registered>, &'a [&'a [u8]]);

#[inline]
fn find<'a>(requests: &Batch, args: &'a [&'a [u8]], number: usize) -> Found<'a> {
    let request = args.get(requests.range(number)).unwrap_or_default();
    let name = request.first().copied().unwrap_or_default();
    (registry().find(name), request)
}

/// Runs a request, or the rest of it behind its work. Returns the work that it comes to.
fn execute_one(
    executor: &mut Executor<'_>,
    (command, args): Found<'_>,
    finished: Option<Finished>,
) -> Option<Work> {
    let unsent = executor.out.len();
    let outcome = match command.map(|container| container.of_call(args)) {
        Some(Ok(command)) => admitted(executor, command, args, finished),
        Some(Err(unknown)) => Some(refuse(executor.session, unknown).into()),
        None => refuse_unknown(executor, args),
    };
    match outcome {
        Some(Outcome::Reply(reply)) => executor.send(&reply),
        Some(Outcome::Work(work)) => return Some(work),
        None => {}
    }
    if executor.session.silent {
        executor.out.truncate(unsent);
    }
    None
}

fn refuse_unknown(executor: &mut Executor<'_>, args: &[&[u8]]) -> Option<Outcome> {
    if is_of_http(args.first()?) {
        hang_up(executor.session);
        return None;
    }
    Some(refuse(executor.session, unknown_command(args)).into())
}

/// Runs a command if it is admitted, or the rest of it. Returns nothing if its reply is already
/// written.
fn admitted(
    executor: &mut Executor<'_>,
    command: &'static Registered,
    args: &[&[u8]],
    finished: Option<Finished>,
) -> Option<Outcome> {
    executor.last = Some(command);
    if let Some(Done::Unlocked(_)) = finished.as_ref().map(|it| &it.done) {
        // It has run: it may have changed its keys, and a refusal would deny that.
        return run_admitted(executor, command, args, finished);
    }
    match admit(
        executor.server,
        executor.settings,
        executor.session,
        command,
        args,
    ) {
        Err(reply) => {
            executor.skip_time();
            if let Some(stats) = executor.stats.commands.get(command.index) {
                stats.rejected.add(1);
            }
            let reply = match command.flags.has(DISCARDS) {
                true => transaction::discarded(&mut executor.call(command, args).0, &reply),
                false => refuse(executor.session, reply),
            };
            Some(reply.into())
        }
        Ok(()) if is_queued(executor.session, command) => {
            executor.skip_time();
            Some(queue(executor, command, args).into())
        }
        Ok(()) => run_admitted(executor, command, args, finished),
    }
}

/// Runs a command that was admitted, or the rest of it. Returns nothing if its reply is already
/// written.
fn run_admitted(
    executor: &mut Executor<'_>,
    command: &'static Registered,
    args: &[&[u8]],
    finished: Option<Finished>,
) -> Option<Outcome> {
    let took = finished.as_ref().map_or(Duration::ZERO, |it| it.took);
    executor.mark = executor.mark.checked_sub(took).unwrap_or(executor.mark);
    let mut failed = 0;
    let outcome = match finished.map(|it| it.done) {
        Some(Done::Encoded(reply)) => {
            executor.send_encoded(reply);
            None
        }
        Some(Done::Reply(reply)) => Some(reply.into()),
        Some(Done::Unlocked(rest)) => Some(rest(&mut executor.call(command, args).0).into()),
        Some(Done::Rest(rest)) => Some(run::finish(&mut executor.call(command, args).0, rest)),
        None if command.reserves_answers() && !reserve_answers(args.len(), executor.out) => {
            Some(error::out_of_memory().into())
        }
        None => {
            let start = executor.out.len();
            let (mut call, mut answers) = executor.call(command, args);
            let outcome = match command.handler {
                Handler::Exec => transaction::exec(&mut call, &mut answers).map(Outcome::Reply),
                _ => run::run(&mut call, OwnKeys, &mut answers),
            };
            failed = answers.failed;
            if answers.lacks_memory {
                executor.refuse_unanswered(start);
            }
            outcome
        }
    };
    if let Some(Outcome::Work(work)) = outcome {
        return Some(Outcome::Work(work.behind(took)));
    }
    failed += u64::from(matches!(&outcome, Some(Outcome::Reply(reply)) if reply.is_error()));
    executor.note_time(command, args, 1, failed);
    if command.flags.has(CHANGES_SETTINGS) {
        *executor.settings = executor.server.config.snapshot();
    }
    outcome
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

fn queue(executor: &mut Executor<'_>, command: &Registered, args: &[&[u8]]) -> Reply {
    let session = &mut *executor.session;
    let most = executor.settings.client_query_buffer_limit;
    let queued = session.transaction.as_mut().map(|transaction| {
        let queued = transaction.queue(command.index, args);
        queued.map(|()| transaction.bytes)
    });
    match queued {
        Some(Err(_)) => refuse(session, error::out_of_memory()),
        Some(Ok(bytes)) if bytes > most => {
            session.closing = true;
            let text = "ERR the transaction is longer than client-query-buffer-limit";
            refuse(session, Reply::error(text))
        }
        _ => Reply::Simple("QUEUED".into()),
    }
}

/// Commands that tools send to any server, and the replies here. The first has Redis's reply
/// without a cluster. Redisson sends a script again and again when the command is unknown.
const INSTEAD: [(&[&str], &str); 6] = [
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
        &[
            "sync",
            "psync",
            "replconf",
            "replicaof",
            "slaveof",
            "failover",
        ],
        "ERR this server has no replicas: for a snapshot, run BGSAVE and take dump.rdb from its \
         directory; for another server, use 'everbloom copy'; for replicas, load the everbloom \
         module in Valkey or Redis",
    ),
    (
        OTHER_TYPES,
        "ERR this server has filters, strings and bitmaps only: for other types, load the \
         everbloom module in Valkey or Redis",
    ),
    (
        &[
            "subscribe",
            "psubscribe",
            "ssubscribe",
            "unsubscribe",
            "punsubscribe",
            "sunsubscribe",
            "publish",
            "spublish",
            "pubsub",
        ],
        "ERR this server has no channels: for them, load the everbloom module in Valkey or Redis",
    ),
    (
        &["migrate"],
        "ERR this server moves no keys: use 'everbloom copy', or load the everbloom module in \
         Valkey or Redis",
    ),
];

/// The commands on lists, sets, hashes, sorted sets, streams, places and HyperLogLogs.
#[rustfmt::skip]
const OTHER_TYPES: &[&str] = &[
    "lpush", "rpush", "lpushx", "rpushx", "lpop", "rpop", "lrange", "llen", "lindex", "lset",
    "lrem", "linsert", "ltrim", "lpos", "lmove", "lmpop", "blpop", "brpop", "blmove", "blmpop",
    "rpoplpush", "brpoplpush", "sadd", "srem", "smembers", "sismember", "smismember", "scard",
    "spop", "srandmember", "smove", "sinter", "sintercard", "sinterstore", "sunion",
    "sunionstore", "sdiff", "sdiffstore", "sscan", "hset", "hsetnx", "hget", "hmset", "hmget",
    "hgetall", "hdel", "hlen", "hkeys", "hvals", "hexists", "hincrby", "hincrbyfloat", "hstrlen",
    "hrandfield", "hscan", "zadd", "zrem", "zscore", "zmscore", "zcard", "zcount", "zincrby",
    "zrank", "zrevrank", "zrange", "zrangebyscore", "zrangebylex", "zrevrange",
    "zrevrangebyscore", "zrevrangebylex", "zrangestore", "zremrangebyrank", "zremrangebyscore",
    "zremrangebylex", "zlexcount", "zpopmin", "zpopmax", "bzpopmin", "bzpopmax", "zmpop",
    "bzmpop", "zrandmember", "zunion", "zunionstore", "zinter", "zinterstore", "zintercard",
    "zdiff", "zdiffstore", "zscan", "xadd", "xread", "xrange", "xrevrange", "xlen", "xdel",
    "xtrim", "xgroup", "xreadgroup", "xack", "xclaim", "xautoclaim", "xpending", "xinfo",
    "xsetid", "geoadd", "geopos", "geodist", "geohash", "georadius", "georadius_ro",
    "georadiusbymember", "georadiusbymember_ro", "geosearch", "geosearchstore", "pfadd",
    "pfcount", "pfmerge", "sort", "sort_ro",
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
