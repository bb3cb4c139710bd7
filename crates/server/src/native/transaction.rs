//! MULTI, DISCARD, WATCH, UNWATCH. [`dispatch`](crate::dispatch) runs EXEC.

use std::sync::Arc;

use everbloom_commands::command::ALL_KEYS;
use everbloom_commands::flags::{
    AT_ONCE, CHANGES_SETTINGS, DISCARDS, FAST, Flags, LOADING, NOSCRIPT, SKIP_SLOWLOG, STALE,
};
use everbloom_commands::key_use::INSPECT;
use everbloom_files::OutOfMemory;
use everbloom_resp::Reply;
use everbloom_store::clock::Now;
use everbloom_store::keyspace::Watches;

use super::Handler::{Exec, Plain, PlainOrWork};
use super::{Call, Command, error};
use crate::call::{Done, Outcome, Work};
use crate::session::{Session, Transaction};

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
    Command::new("watch", -2, PlainOrWork(watch)).uses(INSPECT).since("2.2.0").flags(&[QUICK, AT_ONCE]).keys(ALL_KEYS),
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
    call.session.unwatch();
    Ok(Reply::OK)
}

/// A long list of keys is left to another thread.
fn watch(call: &mut Call<'_>) -> Result<Outcome, Reply> {
    if call.session.transaction.is_some() {
        return Err(Reply::error("ERR WATCH inside MULTI is not allowed"));
    }
    let keyspace = &call.server.store.keyspace;
    let (db, most) = (call.session.db, call.settings.client_query_buffer_limit);
    let earlier = call.session.watches.take();
    let had_watches = earlier.is_some();
    let mut watches = earlier.unwrap_or_else(|| Watches::new(keyspace));
    if !call.leaves_keys() {
        let watched = watch_all(&mut watches, call.args, (db, most), call.now);
        return Ok(keep(call.session, watches, most, watched).into());
    }
    if had_watches {
        // If the work is refused, the earlier watches end with it. EXEC must then not run.
        call.session.watches = Some(Watches::lost(keyspace));
    }
    let machine = Arc::clone(&call.server.store.machine);
    let work = move |args: &[&[u8]]| {
        let watched = watch_all(&mut watches, args, (db, most), machine.now());
        Done::Unlocked(Box::new(move |call| {
            keep(call.session, watches, most, watched)
        }))
    };
    Ok(Work::new(work).into())
}

/// Watches the keys of a request, until they take more than `most` bytes.
fn watch_all(
    watches: &mut Watches,
    args: &[&[u8]],
    (db, most): (usize, usize),
    now: Now,
) -> Result<(), OutOfMemory> {
    let mut names = args.iter().skip(1);
    names.try_for_each(|name| match watches.memory() > most {
        true => Ok(()),
        false => watches.add(db, name, now),
    })
}

fn keep(
    session: &mut Session,
    watches: Watches,
    most: usize,
    watched: Result<(), OutOfMemory>,
) -> Reply {
    let are_too_long = watches.memory() > most;
    session.watches = Some(watches);
    if are_too_long {
        session.closing = true;
        return Reply::error("ERR the watched keys are longer than client-query-buffer-limit");
    }
    watched.map_or_else(|OutOfMemory| error::out_of_memory(), |()| Reply::OK)
}

fn unwatch(call: &mut Call<'_>) -> Result<Reply, Reply> {
    // Inside a transaction it is queued, and EXEC has taken the watches before it runs.
    call.session.unwatch();
    Ok(Reply::OK)
}

#[cfg(test)]
mod tests {
    use super::super::testing::Bench;
    use super::*;
    use crate::limits::MAX_KEYS_AT_ONCE;

    #[test]
    fn a_long_list_of_keys_to_watch_is_left_to_another_thread() {
        let names: Vec<String> = (0..MAX_KEYS_AT_ONCE).map(|n| format!("key{n}")).collect();
        let names = names.iter().map(String::as_bytes);
        let args: Vec<&[u8]> = std::iter::once(&b"WATCH"[..]).chain(names).collect();
        let mut bench = Bench::default();
        bench.run("WATCH key0 other");
        assert!(matches!(
            bench.begin(&args[..MAX_KEYS_AT_ONCE]),
            Some(Outcome::Reply(Reply::Simple(_)))
        ));
        let Some(Outcome::Work(work)) = bench.begin(&args) else {
            panic!("it is not left to another thread");
        };
        let done = work.run(&args).done;
        assert_eq!(bench.finish(&args, done).into_reply(), Reply::OK);
        let watches = bench.session.watches.as_ref().unwrap();
        assert_eq!(watches.len(), MAX_KEYS_AT_ONCE + 1);
        assert!(!watches.have_changed(bench.now));
    }

    /// EXEC must not run as if nothing had been watched.
    #[test]
    fn a_refused_list_ends_no_earlier_watch_in_silence() {
        let names: Vec<String> = (0..MAX_KEYS_AT_ONCE).map(|n| format!("key{n}")).collect();
        let names = names.iter().map(String::as_bytes);
        let args: Vec<&[u8]> = std::iter::once(&b"WATCH"[..]).chain(names).collect();
        for earlier in [false, true] {
            let mut bench = Bench::default();
            if earlier {
                bench.run("WATCH other");
            }
            for _ in 0..2 {
                let Some(Outcome::Work(work)) = bench.begin(&args) else {
                    panic!("it is not left to another thread");
                };
                bench.finish(&args, work.refused().done);
            }
            let watches = bench.session.watches.take();
            let has_changed = watches.is_some_and(|it| it.have_changed(bench.now));
            assert_eq!(has_changed, earlier);
        }
    }
}
