//! EXEC: locks all keys of the queued commands at once, in the order of the shards. So nobody sees
//! half a transaction, and two transactions cannot deadlock.

use std::collections::TryReserveError;
use std::mem;
use std::time::Instant;

use everbloom_commands::Answers;
use everbloom_commands::flags::{CHANGES_SETTINGS, WRITE};
use everbloom_resp::Reply;
use everbloom_store::keyspace::{Footprint, Watches};
use tracing::warn;

use super::admission::{lacks_memory_for_names, refused_for_memory, refused_now};
use super::run;
use super::sinks::{Encoded, reserve_answers};
use crate::call::{Call, Handler, Outcome, Registered};
use crate::config::Settings;
use crate::error;
use crate::locked::Locked;
use crate::native::table::registry;
use crate::reply_limit::{self, REPLY_TOO_LARGE};
use crate::session::{Queued, Session, Transaction};

/// Runs the commands queued since MULTI. Returns the reply if none of them ran.
pub fn exec(call: &mut Call<'_>, answers: &mut Encoded<'_>) -> Option<Reply> {
    let Some(transaction) = call.session.transaction.take() else {
        return Some(Reply::error("ERR EXEC without MULTI"));
    };
    // A queued UNWATCH finds none: to end a watch locks a shard, and all shards are locked then.
    let watches = call.session.watches.take();
    let reply = run_unless_changed(call, &transaction, watches.as_ref(), answers);
    if let Some(watches) = watches {
        watches.end();
    }
    reply
}

fn run_unless_changed(
    call: &mut Call<'_>,
    transaction: &Transaction,
    watches: Option<&Watches>,
    answers: &mut Encoded<'_>,
) -> Option<Reply> {
    if transaction.aborted {
        let text = "EXECABORT Transaction discarded because of previous errors.";
        return Some(Reply::error(text));
    }
    let queued = &transaction.queued;
    let refused = rows(queued).find_map(|(row, _)| refused_now(call.server, call.settings, row));
    if let Some(reason) = refused {
        return Some(discarded(call, &reason));
    }
    let Ok(mut footprint) = footprint(call, queued) else {
        return Some(discarded(call, &error::out_of_memory()));
    };
    // Two clients that each watch what the other one changes must not both find no change.
    if let Some(watches) = watches {
        footprint.extend(watches.footprint());
    }
    let mut locked = Locked::lock(call.server, footprint, call.now);
    if !locked.record.reserve_bytes(transaction.bytes) {
        drop(locked);
        return Some(discarded(call, &error::out_of_memory()));
    }
    // Another client may have seen a watched key expired before, at a later time than that of this
    // call.
    let now = || call.server.store.machine.now();
    if watches.is_some_and(|watches| watches.have_changed(now())) {
        return Some(Reply::NullArray);
    }
    run_all(call, queued, &mut locked, answers);
    let writes = rows(queued).any(|(row, _)| row.flags.has(WRITE));
    locked.commit(call.session, writes);
    None
}

/// The queued commands, each with its row.
fn rows(queued: &[Queued]) -> impl Iterator<Item = (&'static Registered, &Queued)> {
    let row = |queued: &Queued| registry().at(queued.command);
    queued.iter().filter_map(move |it| Some((row(it)?, it)))
}

fn run_all(
    call: &mut Call<'_>,
    queued: &[Queued],
    locked: &mut Locked<'_>,
    answers: &mut Encoded<'_>,
) {
    let unsent = answers.out.len();
    let most = reply_limit::of_list(call.server, call.settings);
    let mut over = false;
    let mut newer = None;
    locked.record.begin_transaction();
    answers.array(queued.len());
    for (row, queued) in rows(queued) {
        let settings = newer.as_deref().unwrap_or(call.settings);
        call.session.executing = Some(answers.out.len() - unsent);
        over |= run(call, settings, row, queued, locked, answers);
        over |= answers.lacks_memory || (answers.out.len() - unsent) as u64 > most;
        if over {
            answers.out.truncate(unsent);
        }
        if row.flags.has(CHANGES_SETTINGS) {
            newer = Some(call.server.config.snapshot());
        }
    }
    call.session.executing = None;
    locked.record.end_transaction();
    if over {
        hang_up(call.session);
    }
}

/// Ends a connection without the reply, as Redis does: the transaction has run.
fn hang_up(session: &mut Session) {
    warn!(
        "disconnected {}: the replies of its transaction are over the limit",
        session.client.addr
    );
    session.silent = true;
    session.closing = true;
}

/// The reply to an EXEC that is refused. The transaction ends.
pub fn discarded(call: &mut Call<'_>, reason: &Reply) -> Reply {
    call.session.transaction = None;
    call.session.unwatch();
    let reason = reason.as_error().unwrap_or_default();
    let reason = reason.strip_prefix("ERR ").unwrap_or(reason);
    Reply::error(format!(
        "EXECABORT Transaction discarded because of: {reason}"
    ))
}

/// Runs a queued command. Returns whether its reply would be too large.
fn run(
    call: &mut Call<'_>,
    settings: &Settings,
    row: &'static Registered,
    queued: &Queued,
    locked: &mut Locked<'_>,
    answers: &mut Encoded<'_>,
) -> bool {
    let Ok(args) = queued.words() else {
        answers.reply(error::out_of_memory());
        return false;
    };
    let start = answers.out.len();
    let mut inner = Call {
        settings,
        session: call.session,
        command: row,
        args: &args,
        can_wait: false,
        ..*call
    };
    let begun = Instant::now();
    // The earlier commands may have used all allowed memory.
    let reserves = row.reserves_answers();
    let mut lacks_memory = || reserves && !reserve_answers(args.len(), answers.out);
    let refused = refused_for_memory(inner.server, inner.settings, inner.command);
    let lacks_names = || lacks_memory_for_names(row, &args);
    let refused = refused.or_else(|| lacks_names().then(error::out_of_memory));
    let refused = refused.or_else(|| lacks_memory().then(error::out_of_memory));
    let result = || run::run(&mut inner, locked, answers).map(Outcome::into_reply);
    let reply = refused.or_else(result);
    let error = reply.as_ref().and_then(Reply::as_error);
    let is_too_large = error.is_some_and(|text| text.starts_with(REPLY_TOO_LARGE));
    if let Some(reply) = reply {
        // HELLO may have changed it.
        answers.protocol = inner.session.protocol;
        answers.reply(reply);
    }
    answers.refuse_unanswered(start, row);
    // The failure is that of the queued command, not of EXEC. The time is that of both.
    let (failed, took) = (mem::take(&mut answers.failed), begun.elapsed());
    if let Some(stats) = call.stats.commands.get(row.index) {
        stats.ran(1, took, failed);
    }
    let (slowlog, what) = (&call.server.slowlog, (row.flags, &*args));
    slowlog.note(settings, &call.session.client, call.now, took, what);
    is_too_large
}

/// All keys of the queued commands.
fn footprint(call: &Call<'_>, queued: &[Queued]) -> Result<Footprint, TryReserveError> {
    let mut footprint = Footprint::none();
    for (command, queued) in rows(queued) {
        if matches!(command.handler, Handler::ReadEach(_) | Handler::WriteAll(_)) {
            return Ok(Footprint::Whole);
        }
        for name in command.keys.of(&queued.words()?) {
            footprint.add(call.key(name));
        }
    }
    Ok(footprint)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use everbloom_resp::Protocol;

    use super::*;
    use crate::native::testing::Bench;

    /// The time of a call is older than that of another client which has seen the key gone.
    #[test]
    fn a_watched_key_that_expires_after_exec_has_read_the_time_has_changed() {
        let mut bench = Bench::default();
        bench.now.ms -= 1000;
        assert_eq!(bench.run("SET a 1 PX 500"), Reply::OK);
        for (watch, reply) in [("WATCH a", Some(Reply::NullArray)), ("WATCH b", None)] {
            bench.run(watch);
            bench.session.transaction = Some(Transaction::default());
            let stats = Arc::clone(&bench.server.workers[0]);
            let mut out = Vec::new();
            let mut answers = Encoded {
                out: &mut out,
                protocol: Protocol::default(),
                stats: &stats,
                failed: 0,
                lacks_memory: false,
            };
            let exec = |call: &mut Call<'_>| exec(call, &mut answers);
            assert_eq!(bench.with_call_of("EXEC", exec), reply, "{watch}");
        }
    }
}
