//! EXEC: locks all keys of the queued commands and the watched keys at once, in the order of the
//! shards. So nobody sees half a transaction, and two transactions cannot deadlock.

use everbloom_commands::flags::{CHANGES_SETTINGS, WRITE};
use everbloom_resp::Reply;
use everbloom_store::journal::Record;
use everbloom_store::keyspace::{Footprint, View};
use tracing::warn;

use super::admission::{refused_for_memory, refused_now};
use super::locked;
use crate::call::{Call, Handler};
use crate::config::Settings;
use crate::session::{Queued, ReplyMode, Session, Watch};
use crate::watches;

/// Runs the commands queued since MULTI.
pub fn exec(call: &mut Call<'_>) -> Reply {
    let Some(transaction) = call.session.transaction.take() else {
        return Reply::error("ERR EXEC without MULTI");
    };
    if transaction.aborted {
        watches::forget(call.session, &call.server.store.keyspace, call.now);
        return Reply::error("EXECABORT Transaction discarded because of previous errors.");
    }
    let queued = &transaction.queued;
    let refused = queued.iter().find_map(|queued| {
        refused_now(
            call.server,
            call.settings,
            call.registry.row(queued.command),
        )
    });
    if let Some(reason) = refused {
        return discarded(call, &reason);
    }
    let most = most_bytes(call);
    let footprint = footprint(call, queued);
    let mut view = footprint.lock(&call.server.store.keyspace, true, call.now);
    let unchanged = call
        .session
        .watches
        .iter()
        .all(|watch| holds(watch, &mut view));
    watches::end(call.session, |_, end| end(&mut view));
    if !unchanged {
        return Reply::NullArray;
    }
    let mut record = call.server.store.journal.record();
    record.begin_transaction();
    call.session.executing = true;
    let mut replies = Vec::with_capacity(queued.len());
    let mut bytes = 0_usize;
    let mut newer = None;
    for queued in queued {
        let settings = newer.as_deref().unwrap_or(call.settings);
        let reply = run(call, settings, queued, &mut view, &mut record);
        bytes = bytes.saturating_add(size(&reply));
        if bytes <= most {
            replies.push(reply);
        } else {
            replies = Vec::new();
        }
        if call
            .registry
            .row(queued.command)
            .flags
            .has(CHANGES_SETTINGS)
        {
            newer = Some(call.server.config.snapshot());
        }
    }
    call.session.executing = false;
    record.end_transaction();
    let row = |queued: &Queued| call.registry.row(queued.command);
    if queued.iter().any(|queued| row(queued).flags.has(WRITE)) || !record.is_empty() {
        call.session.wrote(call.server.store.journal.append(record));
    }
    if bytes > most {
        hang_up(call.session);
    }
    Reply::Array(replies)
}

/// The maximum bytes of a transaction's replies, which are sent as one.
fn most_bytes(call: &Call<'_>) -> usize {
    match call.settings.client_output_buffer_limit.normal.hard {
        0 => default_most(call.server.free_memory(call.settings)),
        most => most,
    }
}

/// The limit if the settings have none: a part of the free memory.
fn default_most(free: u64) -> usize {
    const ALWAYS: usize = 64 << 20;
    // The replies are in memory twice while their buffer is doubled.
    usize::try_from(free / 4).unwrap_or(usize::MAX).max(ALWAYS)
}

/// Bytes that a reply takes.
fn size(reply: &Reply) -> usize {
    let sum = |items: &[Reply]| items.iter().map(size).sum();
    let held = match reply {
        Reply::Simple(text) | Reply::Error(text) | Reply::Verbatim(text) => text.len(),
        Reply::Bulk(bytes) => bytes.len(),
        Reply::BigNumber(digits) => digits.len(),
        Reply::Booleans(values) => values.len(),
        Reply::Array(items) | Reply::Set(items) | Reply::Push(items) => sum(items),
        Reply::Map(pairs) => pairs
            .iter()
            .map(|(key, value)| size(key) + size(value))
            .sum(),
        Reply::Null | Reply::NullArray => 0,
        Reply::Integer(_) | Reply::Boolean(_) | Reply::Double(_) => 0,
    };
    size_of::<Reply>() + held
}

/// Ends a connection without the reply, as Redis does: the transaction has run.
fn hang_up(session: &mut Session) {
    warn!(
        "disconnected {}: the replies of its transaction are over the limit",
        session.client.addr
    );
    session.reply_mode = ReplyMode::Off;
    session.closing = true;
}

/// The reply to an EXEC that is refused. The transaction ends.
pub fn discarded(call: &mut Call<'_>, reason: &Reply) -> Reply {
    call.session.transaction = None;
    watches::forget(call.session, &call.server.store.keyspace, call.now);
    let reason = reason.as_error().unwrap_or_default();
    let reason = reason.strip_prefix("ERR ").unwrap_or(reason);
    Reply::error(format!(
        "EXECABORT Transaction discarded because of: {reason}"
    ))
}

fn run(
    call: &mut Call<'_>,
    settings: &Settings,
    queued: &Queued,
    view: &mut View<'_>,
    record: &mut Record,
) -> Reply {
    let args: Vec<&[u8]> = queued.args.iter().map(Vec::as_slice).collect();
    let mut inner = Call {
        server: call.server,
        stats: call.stats,
        settings,
        session: call.session,
        registry: call.registry,
        command: call.registry.row(queued.command),
        args: &args,
        now: call.now,
    };
    // The earlier commands may have used all allowed memory.
    let refused = refused_for_memory(inner.server, inner.settings, inner.command);
    let reply = refused.unwrap_or_else(|| locked::run(&mut inner, view, record));
    if let Reply::Error(text) = &reply {
        call.stats.count_error(text);
    }
    if let Some(stats) = call.stats.commands.get(queued.command) {
        stats.calls.add(1);
        stats.failed.add(u64::from(reply.is_error()));
    }
    reply
}

/// All keys of the queued commands and the watches.
fn footprint(call: &Call<'_>, queued: &[Queued]) -> Footprint {
    let keyspace = &call.server.store.keyspace;
    let mut footprint = Footprint::none();
    for Queued { command, args } in queued {
        let command = call.registry.row(*command);
        if matches!(command.handler, Handler::ReadEach(_) | Handler::WriteAll(_)) {
            return Footprint::Whole;
        }
        let args: Vec<&[u8]> = args.iter().map(Vec::as_slice).collect();
        footprint.add_keys(keyspace, command.keys.of(&args));
    }
    for watch in &call.session.watches {
        footprint.add_key(keyspace, &watch.key);
    }
    footprint
}

/// Whether a watched key is unchanged. A key that expired meanwhile counts as changed.
fn holds(watch: &Watch, view: &mut View<'_>) -> bool {
    let version = view
        .shard_of_key(&watch.key)
        .watch_version(watch.db, &watch.key);
    let gone = watch.present && !view.contains(watch.db, &watch.key);
    version == Some(watch.version) && !gone
}

#[cfg(test)]
mod tests {
    use super::default_most;

    #[test]
    fn replies_may_take_a_quarter_of_the_free_memory_and_always_64_mib() {
        assert_eq!(default_most(0), 64 << 20);
        assert_eq!(default_most(256 << 20), 64 << 20);
        assert_eq!(default_most(8 << 30), 2 << 30);
    }
}
