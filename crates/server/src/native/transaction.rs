//! MULTI, DISCARD, WATCH, UNWATCH. [`dispatch`](crate::dispatch) runs EXEC.

use everbloom_commands::command::ALL_KEYS;
use everbloom_commands::flags::{
    AT_ONCE, CHANGES_SETTINGS, DISCARDS, FAST, Flags, LOADING, NOSCRIPT, SKIP_SLOWLOG, STALE,
};
use everbloom_resp::Reply;

use everbloom_store::keyspace::Footprint;

use super::{Call, Command, Handler};
use crate::session::{Transaction, Watch};
use crate::watches::forget;

/// The rows of this family.
pub const COMMANDS: &[Command] = &[
    Command::new("multi", 1, Handler::Plain(|call| Ok(multi(call))))
        .flags(&[QUICK, AT_ONCE])
        .docs("1.2.0", "Starts a transaction."),
    Command::new("exec", 1, Handler::Exec)
        .flags(&[NOSCRIPT, LOADING, STALE, SKIP_SLOWLOG])
        .flags(&[AT_ONCE, DISCARDS, CHANGES_SETTINGS])
        .docs("1.2.0", "Executes all commands in a transaction."),
    Command::new("discard", 1, Handler::Plain(|call| Ok(discard(call))))
        .flags(&[QUICK, AT_ONCE])
        .docs("2.0.0", "Discards a transaction."),
    Command::new("watch", -2, Handler::Plain(|call| Ok(watch(call))))
        .flags(&[QUICK, AT_ONCE])
        .keys(ALL_KEYS)
        .docs(
            "2.2.0",
            "Monitors changes to keys to determine the execution of a transaction.",
        ),
    Command::new("unwatch", 1, Handler::Plain(|call| Ok(unwatch(call))))
        .flags(&[QUICK])
        .docs("2.2.0", "Forgets about watched keys of a transaction."),
];

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
    forget(call.session, &call.server.store.keyspace, call.now);
    Reply::OK
}

fn watch(call: &mut Call<'_>) -> Reply {
    if call.session.transaction.is_some() {
        return Reply::error("ERR WATCH inside MULTI is not allowed");
    }
    let db = call.session.db;
    for key in call.args.iter().skip(1) {
        let mut watches = call.session.watches.iter();
        if watches.any(|watch| watch.db == db && watch.key == *key) {
            continue;
        }
        let keyspace = &call.server.store.keyspace;
        let mut view = Footprint::of_key(keyspace, key).lock(keyspace, true, call.now);
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
    // Inside a transaction it is queued, and EXEC drops the watches before it runs.
    forget(call.session, &call.server.store.keyspace, call.now);
    Reply::OK
}
