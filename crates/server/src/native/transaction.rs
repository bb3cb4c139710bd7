//! MULTI, DISCARD, WATCH, UNWATCH. [`dispatch`](crate::dispatch) runs EXEC.

use everbloom::host::memory;
use everbloom_commands::command::ALL_KEYS;
use everbloom_commands::flags::{
    AT_ONCE, CHANGES_SETTINGS, DISCARDS, FAST, Flags, LOADING, NOSCRIPT, SKIP_SLOWLOG, STALE,
};
use everbloom_resp::Reply;

use everbloom_store::keyspace::Footprint;

use super::Handler::{Exec, Plain};
use super::{Call, Command, copy_of, error};
use crate::session::{Transaction, Watch};
use crate::watches::forget;

/// The rows of this family.
pub const COMMANDS: &[Command] = rows! {
    /// Starts a transaction.
    Command::new("multi", 1, Plain(multi)).since("1.2.0").flags(&[QUICK, AT_ONCE]),
    /// Executes all commands in a transaction.
    Command::new("exec", 1, Exec).since("1.2.0").flags(&[NOSCRIPT, LOADING, STALE, SKIP_SLOWLOG])
        .flags(&[AT_ONCE, DISCARDS, CHANGES_SETTINGS]),
    /// Discards a transaction.
    Command::new("discard", 1, Plain(discard)).since("2.0.0").flags(&[QUICK, AT_ONCE]),
    /// Monitors changes to keys to determine the execution of a transaction.
    Command::new("watch", -2, Plain(watch)).since("2.2.0").flags(&[QUICK, AT_ONCE]).keys(ALL_KEYS),
    /// Forgets about watched keys of a transaction.
    Command::new("unwatch", 1, Plain(unwatch)).since("2.2.0").flags(&[QUICK]),
};

const QUICK: Flags = Flags::of(&[NOSCRIPT, LOADING, STALE, FAST]);

fn multi(call: &mut Call<'_>) -> Result<Reply, Reply> {
    if call.session.transaction.is_some() {
        return Err(Reply::error("ERR MULTI calls can not be nested"));
    }
    call.session.transaction = Some(Transaction::default());
    Ok(Reply::OK)
}

fn discard(call: &mut Call<'_>) -> Result<Reply, Reply> {
    if call.session.transaction.take().is_none() {
        return Err(Reply::error("ERR DISCARD without MULTI"));
    }
    forget(call.session, &call.server.store.keyspace, call.now);
    Ok(Reply::OK)
}

fn watch(call: &mut Call<'_>) -> Result<Reply, Reply> {
    if call.session.transaction.is_some() {
        return Err(Reply::error("ERR WATCH inside MULTI is not allowed"));
    }
    let db = call.session.db;
    for key in call.args.iter().skip(1) {
        let mut watches = call.session.watches.iter();
        if watches.any(|watch| watch.db == db && watch.name == *key) {
            continue;
        }
        // Many small blocks would use the memory that is kept for small ones.
        if memory::is_short() || call.session.watches.try_reserve(1).is_err() {
            return Err(error::out_of_memory());
        }
        let name = copy_of(key)?;
        let (keyspace, key) = (&call.server.store.keyspace, call.key(key));
        let mut view = Footprint::of([key]).write(keyspace, call.now);
        let present = view.read().contains(key);
        let version = view.shard(key).watch(key);
        drop(view);
        let watch = Watch {
            db,
            name,
            version,
            present,
        };
        call.session.watched_bytes += watch.memory();
        call.session.watches.push(watch);
        if call.session.watched_bytes > call.settings.client_query_buffer_limit {
            call.session.closing = true;
            return Err(Reply::error(
                "ERR the watched keys are longer than client-query-buffer-limit",
            ));
        }
    }
    Ok(Reply::OK)
}

fn unwatch(call: &mut Call<'_>) -> Result<Reply, Reply> {
    // Inside a transaction it is queued, and EXEC drops the watches before it runs.
    forget(call.session, &call.server.store.keyspace, call.now);
    Ok(Reply::OK)
}
