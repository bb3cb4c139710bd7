//! Commands that treat their keys one after another and answer with a number: DEL, EXISTS and the
//! like.
//!
//! A million keys take some hundred milliseconds. So another thread goes through a long list: it
//! locks a few keys at a time, and other clients' commands run in between. In a transaction, and
//! from a log, all keys are locked at once.

use std::sync::Arc;

use everbloom_resp::Reply;
use everbloom_store::keyspace::Footprint;

use super::keys::Keys;
use crate::call::{Call, ChangeFn, CountFn, Done, LookUpFn, Outcome, Work};
use crate::limits::KEYS_TOGETHER;
use crate::locked::Locked;
use crate::native::count;
use crate::server::Server;

/// Runs a command on its keys.
pub fn run(call: &mut Call<'_>, function: CountFn, keys: impl Keys) -> Result<Outcome, Reply> {
    if call.leaves_keys() {
        return Ok(leave(call, function).into());
    }
    let names = call.args.get(1..).unwrap_or_default();
    let counted = match function {
        CountFn::Read(look_up) => {
            let counted = keys.read(call, |view| {
                let keys = names.iter().map(|name| call.key(name));
                keys.filter(|key| look_up(view, *key).is_some()).count()
            });
            count_look_ups(call, counted, names.len());
            counted
        }
        CountFn::Write(change) => keys.change(call, |call, locked| {
            Ok(change_all(locked, change, call.session.db, call.args))
        })?,
    };
    Ok(count(counted).into())
}

fn count_look_ups(call: &Call<'_>, found: usize, all: usize) {
    call.count_look_ups(true, found);
    call.count_look_ups(false, all - found);
}

/// Changes the keys of a request, and records it if that changed any.
fn change_all(locked: &mut Locked<'_>, change: ChangeFn, db: usize, request: &[&[u8]]) -> usize {
    let keyspace = locked.keyspace();
    let mut changed = 0;
    for name in request.iter().skip(1) {
        changed += usize::from(change(locked, keyspace.key(db, name)));
    }
    if changed > 0 {
        locked.log(db, request);
    }
    changed
}

/// Leaves a long list to another thread.
fn leave(call: &Call<'_>, function: CountFn) -> Work {
    let (server, db) = (Arc::clone(call.server), call.session.db);
    Work::new(move |request| {
        let Some((name, keys)) = request.split_first() else {
            return Done::Reply(count(0));
        };
        let is_read = matches!(function, CountFn::Read(_));
        let (mut counted, mut done, mut written, mut refusal) = (0, 0, 0, None);
        for keys in keys.chunks(KEYS_TOGETHER) {
            if server.is_stopping() {
                refusal = Some(Reply::error("ERR the server is stopping"));
                break;
            }
            match function {
                CountFn::Read(look_up) => counted += count_few(&server, look_up, db, keys),
                CountFn::Write(change) => {
                    let mut request = vec![*name];
                    request.extend(keys);
                    match change_few(&server, change, db, &request) {
                        Ok((changed, end)) => (counted, written) = (counted + changed, end),
                        Err(refused) => {
                            refusal = Some(refused);
                            break;
                        }
                    }
                }
            }
            done += keys.len();
        }
        let all = keys.len();
        Done::Unlocked(Box::new(move |call| {
            if is_read {
                count_look_ups(call, counted, done);
            }
            call.session.wrote(written);
            match refusal {
                None => count(counted),
                Some(refusal) if is_read => refusal,
                Some(refusal) => refused_behind(refusal, done, all),
            }
        }))
    })
}

/// The refusal of a command that has changed the first of its keys.
fn refused_behind(refusal: Reply, done: usize, all: usize) -> Reply {
    match refusal.as_error() {
        Some(text) if done > 0 => {
            let text = text.trim_end_matches('.');
            Reply::error(format!("{text}. The first {done} of {all} keys are done"))
        }
        _ => refusal,
    }
}

fn count_few(server: &Server, look_up: LookUpFn, db: usize, names: &[&[u8]]) -> usize {
    let (keyspace, now) = (&server.store.keyspace, server.store.machine.now());
    let keys = || names.iter().map(|name| keyspace.key(db, name));
    let locks = Footprint::of(keys()).read(keyspace, now);
    let found = keys().filter(|key| look_up(locks.view(), *key).is_some());
    found.count()
}

/// Changes a few keys, and returns how many changed and the position in the journal behind that.
fn change_few(
    server: &Server,
    change: ChangeFn,
    db: usize,
    request: &[&[u8]],
) -> Result<(usize, u64), Reply> {
    let keys = request.iter().skip(1);
    let footprint = Footprint::of(keys.map(|name| server.store.keyspace.key(db, name)));
    let mut locked = Locked::lock(server, footprint, server.store.machine.now());
    locked.reserve(request)?;
    let changed = change_all(&mut locked, change, db, request);
    locked.log_expired();
    Ok((changed, locked.append()))
}

#[cfg(test)]
mod tests {
    use everbloom_resp::encode_request;

    use super::*;
    use crate::limits::MAX_KEYS_AT_ONCE;
    use crate::native::testing::{Bench, int};

    /// More keys than a command works on without a pause. Every second one exists.
    fn names() -> Vec<String> {
        (0..MAX_KEYS_AT_ONCE)
            .map(|number| format!("key{number}"))
            .collect()
    }

    fn words<'a>(command: &'a str, names: &'a [String]) -> Vec<&'a [u8]> {
        let names = names.iter().map(String::as_bytes);
        std::iter::once(command.as_bytes()).chain(names).collect()
    }

    fn with_keys(names: &[String]) -> Bench {
        let mut bench = Bench::default();
        for name in names.iter().step_by(2) {
            bench.run(&format!("SET {name} 1"));
        }
        bench
    }

    /// Runs a command on a long list as a connection does.
    fn run_long(bench: &mut Bench, args: &[&[u8]]) -> Reply {
        let Some(Outcome::Work(work)) = bench.begin(args) else {
            panic!("it is not left to another thread");
        };
        bench.finish(args, work.run(args).done).into_reply()
    }

    #[test]
    fn a_long_list_of_keys_is_left_to_another_thread() {
        let names = names();
        let exist = int(names.iter().step_by(2).count().try_into().unwrap());
        for command in ["EXISTS", "TOUCH", "DEL", "UNLINK"] {
            let mut bench = with_keys(&names);
            let long = words(command, &names);
            assert_eq!(run_long(&mut bench, &long), exist, "{command}");
            let removes = matches!(command, "DEL" | "UNLINK");
            let left = if removes { int(0) } else { exist.clone() };
            assert_eq!(run_long(&mut bench, &words("EXISTS", &names)), left);
            let mut bench = with_keys(&names);
            let short = &long[..MAX_KEYS_AT_ONCE];
            let at_once = bench.begin(short).map(Outcome::into_reply);
            assert_eq!(at_once, Some(exist.clone()), "{command}");
        }
    }

    /// What has run is answered with its result, whatever has become of the server meanwhile.
    #[test]
    fn a_list_that_was_deleted_is_not_refused() {
        let names = names();
        let mut bench = with_keys(&names);
        let long = words("DEL", &names);
        let Some(Outcome::Work(work)) = bench.begin(&long) else {
            panic!("it is not left to another thread");
        };
        let finished = work.run(&long);
        bench.server.store.health.set_loading(true);
        let mut request = Vec::new();
        encode_request(&long, &mut request);
        let (_, replies) = bench.execute(&request, Some(finished));
        assert_eq!(replies, format!(":{}\r\n", names.len() / 2).as_bytes());
    }

    #[test]
    fn a_count_of_some_of_the_keys_is_no_answer() {
        let names = names();
        for command in ["EXISTS", "DEL"] {
            let mut bench = with_keys(&names);
            bench.server.stop();
            let reply = run_long(&mut bench, &words(command, &names));
            let text = "ERR the server is stopping";
            assert_eq!(reply.as_error(), Some(text), "{command}");
        }
    }

    /// A refusal says what the keys before it have become.
    #[test]
    fn a_refusal_behind_the_first_keys_counts_them() {
        let refusal = || crate::error::out_of_memory();
        assert_eq!(refused_behind(refusal(), 0, 5000), refusal());
        let text = "OOM command not allowed when used memory > 'maxmemory'. The first 256 of 5000 \
                    keys are done";
        assert_eq!(refused_behind(refusal(), 256, 5000), Reply::error(text));
    }

    #[test]
    fn the_log_names_all_keys_that_were_deleted_by_parts() {
        let names = names();
        let mut bench = with_keys(&names);
        bench.server.store.journal.set_logging(true);
        bench.server.store.journal.take();
        run_long(&mut bench, &words("DEL", &names));
        assert!(bench.session.written > 0);
        let logged = bench.server.store.journal.take().to_bytes();
        let logged = String::from_utf8(logged).unwrap();
        let logged: std::collections::HashSet<&str> = logged.split("\r\n").collect();
        let mut deleted = names.iter().step_by(2);
        assert!(deleted.all(|name| logged.contains(name.as_str())));
    }
}
