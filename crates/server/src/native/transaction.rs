//! MULTI, EXEC, DISCARD, WATCH, UNWATCH.
//!
//! EXEC locks everything that the queued commands and the watched keys name at once, in the order
//! of the shards, so that nobody sees half a transaction and two transactions cannot deadlock.

use everbloom_commands::command::ALL_KEYS;
use everbloom_commands::flags::{
    AT_ONCE, CHANGES_SETTINGS, DISCARDS, FAST, Flags, LOADING, NOSCRIPT, SKIP_SLOWLOG, STALE,
};
use everbloom_resp::Reply;

use super::{Call, Command, Handler};
use crate::config::Settings;
use crate::dispatch::execute as dispatch;
use crate::session::{Queued, Session, Transaction, Watch};
use everbloom_store::journal::Record;
use everbloom_store::keyspace::Footprint;
use everbloom_store::keyspace::View;

/// The rows of this family.
pub const COMMANDS: &[Command] = &[
    Command::new("multi", 1, Handler::Plain(|call| Ok(multi(call))))
        .flags(&[QUICK, AT_ONCE])
        .docs(GROUP, "1.2.0", "Starts a transaction."),
    Command::new("exec", 1, Handler::Plain(|call| Ok(exec(call))))
        .flags(&[NOSCRIPT, LOADING, STALE, SKIP_SLOWLOG])
        .flags(&[AT_ONCE, DISCARDS, CHANGES_SETTINGS])
        .docs(GROUP, "1.2.0", "Executes all commands in a transaction."),
    Command::new("discard", 1, Handler::Plain(|call| Ok(discard(call))))
        .flags(&[QUICK, AT_ONCE])
        .docs(GROUP, "2.0.0", "Discards a transaction."),
    Command::new("watch", -2, Handler::Plain(|call| Ok(watch(call))))
        .flags(&[QUICK, AT_ONCE])
        .keys(ALL_KEYS)
        .docs(
            GROUP,
            "2.2.0",
            "Monitors changes to keys to determine the execution of a transaction.",
        ),
    Command::new("unwatch", 1, Handler::Plain(|call| Ok(unwatch(call))))
        .flags(&[QUICK])
        .docs(
            GROUP,
            "2.2.0",
            "Forgets about watched keys of a transaction.",
        ),
];

const GROUP: &str = "transactions";
const QUICK: Flags = Flags::of(&[NOSCRIPT, LOADING, STALE, FAST]);

fn multi(call: &mut Call<'_>) -> Reply {
    if call.session.transaction.is_some() {
        return Reply::error("ERR MULTI calls can not be nested");
    }
    call.session.transaction = Some(Transaction::default());
    Reply::OK
}

fn discard(call: &mut Call<'_>) -> Reply {
    if call.session.transaction.take().is_none() {
        return Reply::error("ERR DISCARD without MULTI");
    }
    forget_watches(call);
    Reply::OK
}

fn watch(call: &mut Call<'_>) -> Reply {
    if call.session.transaction.is_some() {
        return Reply::error("ERR WATCH inside MULTI is not allowed");
    }
    let db = call.session.db;
    for key in call.args.iter().skip(1) {
        if call
            .session
            .watches
            .iter()
            .any(|w| w.db == db && w.key == *key)
        {
            continue;
        }
        let keyspace = &call.server.store.keyspace;
        let mut footprint = Footprint::none();
        footprint.add_key(keyspace, key);
        let mut view = footprint.lock(keyspace, true, call.now);
        let present = view.contains(db, key);
        let version = view.shard_of_key(key).watch(db, key);
        drop(view);
        call.session.watches.push(Watch {
            db,
            key: key.to_vec(),
            version,
            present,
        });
    }
    Reply::OK
}

fn unwatch(call: &mut Call<'_>) -> Reply {
    // Inside a transaction it is queued, and EXEC has dropped the watches before it runs.
    forget_watches(call);
    Reply::OK
}

/// Ends all watches of a connection.
pub fn forget_watches(call: &mut Call<'_>) {
    let keyspace = &call.server.store.keyspace;
    end_watches(call.session, |key, end| {
        let mut footprint = Footprint::none();
        footprint.add_key(keyspace, key);
        end(&mut footprint.lock(keyspace, true, call.now));
    });
}

/// Ends all watches of a session; `with_view` lends the shard of a key.
pub fn end_watches(
    session: &mut Session,
    mut with_view: impl FnMut(&[u8], &mut dyn FnMut(&mut View<'_>)),
) {
    for watch in session.watches.drain(..) {
        with_view(&watch.key, &mut |view| {
            view.shard_of_key(&watch.key).unwatch(watch.db, &watch.key);
        });
    }
}

fn exec(call: &mut Call<'_>) -> Reply {
    let Some(transaction) = call.session.transaction.take() else {
        return Reply::error("ERR EXEC without MULTI");
    };
    if transaction.aborted {
        forget_watches(call);
        return Reply::error("EXECABORT Transaction discarded because of previous errors.");
    }
    let queued = &transaction.queued;
    let refused = queued
        .iter()
        .find_map(|queued| dispatch::refused_now(call.server, call.settings, queued.command));
    if let Some(reason) = refused {
        return discarded(call, &reason);
    }
    let footprint = footprint(call, queued);
    let mut view = footprint.lock(&call.server.store.keyspace, true, call.now);
    let unchanged = call
        .session
        .watches
        .iter()
        .all(|watch| holds(watch, &mut view));
    end_watches(call.session, |_, end| end(&mut view));
    if !unchanged {
        return Reply::NullArray;
    }
    let mut record = call.server.store.journal.record();
    record.begin_transaction();
    call.session.executing = true;
    let mut replies = Vec::with_capacity(queued.len());
    let mut newer = None;
    for queued in queued {
        let settings = newer.as_deref().unwrap_or(call.settings);
        replies.push(run(call, settings, queued, &mut view, &mut record));
        if queued.command.flags.has(CHANGES_SETTINGS) {
            newer = Some(call.server.config.snapshot());
        }
    }
    call.session.executing = false;
    record.end_transaction();
    call.session.wrote(call.server.store.journal.append(record));
    Reply::Array(replies)
}

/// The reply to an EXEC that is refused, which ends the transaction.
pub fn discarded(call: &mut Call<'_>, reason: &Reply) -> Reply {
    call.session.transaction = None;
    forget_watches(call);
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
        command: &queued.command.row,
        args: &args,
        now: call.now,
    };
    let reply = dispatch::run_in_view(&mut inner, view, record);
    if let Reply::Error(text) = &reply {
        call.stats.count_error(text);
    }
    if let Some(stats) = call.stats.commands.get(queued.command.index) {
        stats.calls.add(1);
        stats.failed.add(u64::from(reply.is_error()));
    }
    reply
}

/// Everything that the queued commands and the watches name.
fn footprint(call: &Call<'_>, queued: &[Queued]) -> Footprint {
    let keyspace = &call.server.store.keyspace;
    let mut footprint = Footprint::none();
    for Queued { command, args } in queued {
        if matches!(command.handler, Handler::ReadAll(_) | Handler::WriteAll(_)) {
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

/// Whether a watched key is as it was. A key that expired since counts as changed.
fn holds(watch: &Watch, view: &mut View<'_>) -> bool {
    let version = view
        .shard_of_key(&watch.key)
        .watch_version(watch.db, &watch.key);
    let gone = watch.present && !view.contains(watch.db, &watch.key);
    version == Some(watch.version) && !gone
}
