//! From a request to its reply: find the command, check it, lock what it names, run it, record its
//! effect.

use std::sync::Arc;
use std::time::Instant;

use everbloom::hash::Key;
use everbloom_commands::flags::{
    AT_ONCE, CHANGES_SETTINGS, DENYOOM, DISCARDS, NO_AUTH, NO_MULTI, PROTECTED, SKIP_SLOWLOG, WRITE,
};
use everbloom_commands::{Context, KeySource, Outcome};
use everbloom_resp::{Batch, Reply, encode};
use tracing::warn;

use super::batch;
use super::filter;
use crate::config::Settings;
use crate::native::{Call, Command, Handler, debug, transaction};
use crate::registry::{Registered, Registry};
use crate::server::Server;
use crate::session::{Queued, ReplyMode, Session};
use crate::stats::WorkerStats;
use everbloom_store::clock::Now;
use everbloom_store::journal::Record;
use everbloom_store::keyspace::Footprint;
use everbloom_store::keyspace::View;

/// What the commands of one batch share.
#[derive(Debug)]
pub struct Turn<'t> {
    /// The server.
    pub server: &'t Arc<Server>,
    /// The figures of the worker that runs the batch.
    pub stats: &'t WorkerStats,
    /// The settings in force.
    pub settings: &'t mut Arc<Settings>,
    /// The connection.
    pub session: &'t mut Session,
    /// When the batch began.
    pub now: Now,
    /// When the last command ended, and the next began.
    pub mark: Instant,
    /// The command that was run or refused last.
    pub last: Option<&'static Registered>,
    /// Replies so far.
    pub out: &'t mut Vec<u8>,
}

impl Turn<'_> {
    /// What a command on a filter must know.
    pub fn context(&self) -> Context {
        context(self.server, self.settings, self.session)
    }
}

/// What a command on a filter must know.
pub fn context(server: &Server, settings: &Settings, session: &Session) -> Context {
    Context {
        defaults: settings.bf,
        max_filter_bytes: server.max_filter_bytes(settings),
        free_bytes: server.free_memory(settings),
        protocol: session.protocol,
        keys: KeySource(Key::random),
        classic_only: false,
    }
}

/// Runs all requests of a batch in order; stops early when the connection is to be closed.
pub fn execute(turn: &mut Turn<'_>, requests: &Batch, args: &[&[u8]]) {
    let mut next = 0;
    while next < requests.len() && !turn.session.closing {
        let request = args.get(requests.range(next)).unwrap_or_default();
        let name = request.first().copied().unwrap_or_default();
        let command = Registry::get().find(name);
        if let Some(command) = command
            && let Some(batch) = command.batch
        {
            let done = batch::execute(turn, command, batch, requests, args, next);
            if done > 0 {
                next += done;
                continue;
            }
        }
        execute_one(turn, command, request);
        next += 1;
    }
}

fn execute_one(turn: &mut Turn<'_>, command: Option<&'static Registered>, args: &[&[u8]]) {
    let Some(name) = args.first() else { return };
    let Some(command) = command else {
        if is_of_http(name) {
            return hang_up(turn.session);
        }
        let reply = refuse(turn.session, unknown_command(args));
        return send(turn, &reply);
    };
    turn.last = Some(command);
    let reply = match admit(turn, command, args) {
        Err(reply) => {
            if let Some(stats) = turn.stats.commands.get(command.index) {
                stats.rejected.add(1);
            }
            if command.flags.has(DISCARDS) {
                transaction::discarded(&mut call(turn, command, args), &reply)
            } else {
                refuse(turn.session, reply)
            }
        }
        Ok(()) if is_queued(turn.session, command) => queue(turn.session, command, args),
        Ok(()) => {
            let reply = run(&mut call(turn, command, args));
            note_time(turn, command, args, 1, u64::from(reply.is_error()));
            if command.flags.has(CHANGES_SETTINGS) {
                *turn.settings = turn.server.config.snapshot();
            }
            reply
        }
    };
    send(turn, &reply);
}

fn call<'c>(
    turn: &'c mut Turn<'_>,
    command: &'static Registered,
    args: &'c [&'c [u8]],
) -> Call<'c> {
    Call {
        server: turn.server,
        stats: turn.stats,
        settings: turn.settings,
        session: turn.session,
        command: &command.row,
        args,
        now: turn.now,
    }
}

/// Whether a word begins a line of HTTP: a page in somebody's browser may send requests to servers
/// on that machine, with commands in the body.
fn is_of_http(name: &[u8]) -> bool {
    [&b"POST"[..], b"Host:"]
        .iter()
        .any(|word| name.eq_ignore_ascii_case(word))
}

/// Ends a connection without a reply, and before anything else that it sent is looked at.
fn hang_up(session: &mut Session) {
    warn!(
        client = %session.client.addr,
        "hung up on what looks like a browser: a web page may be sending commands to this server"
    );
    session.closing = true;
}

/// Adds to the figures of a command that ran `calls` times since the last mark.
pub fn note_time(
    turn: &mut Turn<'_>,
    command: &Registered,
    args: &[&[u8]],
    calls: u64,
    failed: u64,
) {
    let end = Instant::now();
    let took = end - turn.mark;
    turn.mark = end;
    if let Some(stats) = turn.stats.commands.get(command.index) {
        stats.calls.add(calls);
        stats
            .nanos
            .add(u64::try_from(took.as_nanos()).unwrap_or(u64::MAX));
        stats.failed.add(failed);
    }
    let threshold = turn.settings.slowlog_log_slower_than;
    let micros = i64::try_from(took.as_micros()).unwrap_or(i64::MAX);
    if threshold >= 0 && micros >= threshold && !command.flags.has(SKIP_SLOWLOG) {
        turn.server
            .slowlog
            .note(turn.settings, turn.session, turn.now, micros, args);
    }
}

/// Writes a reply, unless the client wants none.
pub fn send(turn: &mut Turn<'_>, reply: &Reply) {
    if let Reply::Error(text) = reply {
        turn.stats.count_error(text);
    }
    match turn.session.reply_mode {
        ReplyMode::On => encode(reply, turn.session.protocol, turn.out),
        ReplyMode::Off => {}
        ReplyMode::SkipNext => turn.session.reply_mode = ReplyMode::Skip,
        ReplyMode::Skip => turn.session.reply_mode = ReplyMode::On,
    }
}

/// The checks that come before a command is run or queued.
pub fn admit(turn: &Turn<'_>, command: &Registered, args: &[&[u8]]) -> Result<(), Reply> {
    if !command.accepts(args.len()) {
        return Err(command.wrong_arity().into());
    }
    if !turn.session.authenticated && !command.flags.has(NO_AUTH) {
        return Err(Reply::error("NOAUTH Authentication required."));
    }
    if command.flags.has(PROTECTED) {
        debug::allowed(turn.session, turn.settings)?;
    }
    if let Some(refusal) = refused_now(turn.server, turn.settings, command) {
        return Err(refusal);
    }
    // What is queued takes memory, whatever it does later.
    if is_queued(turn.session, command) && turn.server.over_memory_limit(turn.settings) {
        return Err(out_of_memory());
    }
    if command.flags.has(NO_MULTI) && turn.session.transaction.is_some() {
        return Err(Reply::error("ERR Command not allowed inside a transaction"));
    }
    Ok(())
}

/// Why a command may not run in the state that the server is in, if so: it would take memory that is
/// not allowed, the data is being loaded, or a write could not be made to last.
pub fn refused_now(server: &Server, settings: &Settings, command: &Command) -> Option<Reply> {
    if command.flags.has(DENYOOM) && server.over_memory_limit(settings) {
        return Some(out_of_memory());
    }
    server.refusal(command, settings)
}

fn out_of_memory() -> Reply {
    Reply::error("OOM command not allowed when used memory > 'maxmemory'.")
}

/// A refused command makes EXEC refuse the whole transaction.
fn refuse(session: &mut Session, reply: Reply) -> Reply {
    if let Some(transaction) = &mut session.transaction {
        transaction.aborted = true;
    }
    reply
}

fn is_queued(session: &Session, command: &Registered) -> bool {
    session.transaction.is_some() && !command.flags.has(AT_ONCE)
}

fn queue(session: &mut Session, command: &'static Registered, args: &[&[u8]]) -> Reply {
    if let Some(transaction) = &mut session.transaction {
        let args = args.iter().map(|arg| arg.to_vec()).collect();
        transaction.queued.push(Queued { command, args });
    }
    Reply::Simple("QUEUED".into())
}

fn unknown_command(args: &[&[u8]]) -> Reply {
    fn shown(bytes: &[u8], most: usize) -> String {
        String::from_utf8_lossy(bytes.get(..most).unwrap_or(bytes)).into_owned()
    }
    let (name, rest) = args
        .split_first()
        .map_or((&b""[..], args), |(name, rest)| (*name, rest));
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

/// Runs a command that was admitted: locks what it names, runs it there, records its effect.
pub fn run(call: &mut Call<'_>) -> Reply {
    if let Err(reply) = call.choose_subcommand() {
        return reply;
    }
    let command = call.command;
    let (keyspace, now) = (&call.server.store.keyspace, call.now);
    let mut footprint = Footprint::none();
    let mut exclusive = command.flags.has(WRITE);
    match command.handler {
        Handler::Filter(function) => return filter::run(call, function),
        Handler::Plain(function) => return function(call).unwrap_or_else(|refusal| refusal),
        Handler::Read(_) | Handler::Write(_) => {
            footprint.add_keys(keyspace, command.keys.of(call.args));
        }
        Handler::ReadAll(_) => footprint = Footprint::Whole,
        Handler::WriteAll(_) => {
            footprint = Footprint::Whole;
            // DEBUG changes keys and does not count as a command that writes.
            exclusive = true;
        }
    }
    let mut view = footprint.lock(keyspace, exclusive, now);
    let mut record = call.server.store.journal.record();
    let reply = run_in_view(call, &mut view, &mut record);
    call.session.wrote(call.server.store.journal.append(record));
    reply
}

/// Runs a command on shards that are locked already, exclusively if it may write, and notes its
/// effect in `record`.
pub fn run_in_view(call: &mut Call<'_>, view: &mut View<'_>, record: &mut Record) -> Reply {
    if let Err(reply) = call.choose_subcommand() {
        return reply;
    }
    let outcome = match call.command.handler {
        Handler::Filter(function) => {
            return filter::run_in_view(call, function, view, record);
        }
        Handler::Plain(function) => return function(call).unwrap_or_else(|refusal| refusal),
        Handler::Read(function) | Handler::ReadAll(function) => {
            return function(call, view).unwrap_or_else(|refusal| refusal);
        }
        Handler::Write(function) | Handler::WriteAll(function) => {
            function(call, view).unwrap_or_else(Outcome::unchanged)
        }
    };
    let expired = view.take_expired();
    for (db, key) in &expired {
        record.expired(*db, key);
    }
    call.server.stats.expired(expired.len());
    record.effect(call.session.db, &outcome.effect, call.args);
    outcome.reply
}
