//! Pipelined adds, look-ups or removals of items, SETBIT or GETBIT, executed as one batch. One
//! request alone is a batch, too.
//!
//! On one key: one lock, one look-up, and the memory of the requests asked for before they are
//! executed. On several keys (a filter a user): all their shards are locked, in the one order that
//! cannot deadlock, and the memory of every entry, filter and bit is asked for before the first
//! request is executed, so that the waits overlap. The replies are those of one-by-one execution.
//!
//! [`alike`] finds the requests of a batch, [`filters`] and [`bits`] are what is done with them.
//! [`families`] is what that comes to for each family of filters.

mod alike;
mod bits;
mod done;
mod families;
mod filters;

use everbloom_commands::command::BatchKind;
use everbloom_resp::Batch;
use everbloom_store::journal::Record;
use everbloom_store::keyspace::Shard;
use smallvec::SmallVec;

use super::admission::refused_now;
use super::locks::Locks;
use super::place::Place;
use super::turn::Turn;
use crate::call::Registered;
use crate::session::ReplyMode;
use alike::{Alike, Stretch, WINDOW, Words};
use done::Done;
use families::{BloomAdd, BloomExists, Change, CuckooAdd, CuckooDelete, CuckooExists, Look};

/// The places of the keys of a batch.
type Places<'k> = SmallVec<[Place<'k>; WINDOW]>;

/// Executes the batch that begins with request `first`, if it may be one; returns how many requests
/// it took, 0 for none.
pub fn execute(
    turn: &mut Turn<'_>,
    command: &'static Registered,
    kind: BatchKind,
    requests: &Batch,
    args: &[&[u8]],
    first: usize,
) -> usize {
    if turn.session.transaction.is_some()
        || turn.session.reply_mode != ReplyMode::On
        || refused(turn, command)
    {
        return 0;
    }
    let rest = (first..requests.len()).map(|at| args.get(requests.range(at)).unwrap_or_default());
    let done = match kind {
        BatchKind::Add => change::<BloomAdd>(turn, &Alike::of(rest)),
        BatchKind::Exists => look::<BloomExists>(turn, &Alike::of(rest)),
        BatchKind::CuckooAdd => change::<CuckooAdd>(turn, &Alike::of(rest)),
        BatchKind::CuckooDelete => change::<CuckooDelete>(turn, &Alike::of(rest)),
        BatchKind::CuckooExists => look::<CuckooExists>(turn, &Alike::of(rest)),
        BatchKind::SetBit => write(turn, &Alike::of(rest), bits::ask, bits::set),
        BatchKind::GetBit => read(turn, &Alike::of(rest), bits::ask, bits::get),
    };
    if done.requests > 0 {
        turn.last = Some(command);
        let request = args.get(requests.range(first)).unwrap_or_default();
        let calls = u64::try_from(done.requests).unwrap_or(u64::MAX);
        turn.note_time(command, request, calls, done.failed);
    }
    done.requests
}

/// What one request would be refused for, each of the batch must be: one by one, then.
fn refused(turn: &Turn<'_>, command: &Registered) -> bool {
    !turn.session.authenticated || refused_now(turn.server, turn.settings, command).is_some()
}

fn place<'k>(turn: &Turn<'_>, key: &'k [u8]) -> Place<'k> {
    Place::new(&turn.server.store.keyspace, turn.session.db, key, turn.now)
}

/// Executes requests that look items up.
fn look<L: Look>(turn: &mut Turn<'_>, alike: &Alike<'_, 1>) -> Done {
    read(turn, alike, filters::ask, filters::find::<L>)
}

/// Executes requests that add or remove items.
fn change<C: Change>(turn: &mut Turn<'_>, alike: &Alike<'_, 1>) -> Done {
    let context = turn.context();
    write(
        turn,
        alike,
        filters::ask,
        |turn, at, place, shard, record| {
            filters::change::<C>(turn, &context, at, place, shard, record)
        },
    )
}

/// Executes requests that read: `run` a stretch of them at a time, after `ask` has asked for the
/// memory of all if they are on several keys.
#[inline]
fn read<'a, const N: usize>(
    turn: &mut Turn<'_>,
    alike: &Alike<'a, N>,
    ask: impl Fn(&Place<'_>, &Shard, &[Words<'_, N>]),
    run: impl Fn(&mut Turn<'_>, Stretch<'_, 'a, N>, Place<'a>, &Shard) -> Done,
) -> Done {
    let keyspace = &turn.server.store.keyspace;
    if let Some(stretch) = alike.single() {
        let place = place(turn, stretch.key);
        let shard = keyspace.shard(place.shard).read();
        return run(turn, stretch, place, &shard);
    }
    let places: Places<'_> = alike.keys().map(|key| place(turn, key)).collect();
    let shards = Locks::new(&places, |shard| keyspace.shard(shard).read());
    ask_ahead(&places, alike, |at| shards.of(at), ask);
    let mut done = Done::default();
    for (at, (place, stretch)) in places.iter().zip(alike.stretches()).enumerate() {
        done.add(run(turn, stretch, *place, shards.of(at)));
    }
    done
}

/// Executes requests that write, as [`read`] does.
#[inline]
fn write<'a, const N: usize>(
    turn: &mut Turn<'_>,
    alike: &Alike<'a, N>,
    ask: impl Fn(&Place<'_>, &Shard, &[Words<'_, N>]),
    run: impl Fn(&mut Turn<'_>, Stretch<'_, 'a, N>, Place<'a>, &mut Shard, &mut Record) -> Done,
) -> Done {
    let store = &turn.server.store;
    if let Some(stretch) = alike.single() {
        let place = place(turn, stretch.key);
        let mut shard = store.keyspace.shard(place.shard).write();
        let mut record = store.journal.record();
        let done = run(turn, stretch, place, &mut shard, &mut record);
        turn.session.wrote(store.journal.append(record));
        return done;
    }
    let places: Places<'_> = alike.keys().map(|key| place(turn, key)).collect();
    let mut shards = Locks::new(&places, |shard| store.keyspace.shard(shard).write());
    ask_ahead(&places, alike, |at| shards.of(at), ask);
    let mut record = store.journal.record();
    let mut done = Done::default();
    for (at, (place, stretch)) in places.iter().zip(alike.stretches()).enumerate() {
        done.add(run(turn, stretch, *place, shards.of_mut(at), &mut record));
        if done.ends {
            break;
        }
    }
    turn.session.wrote(store.journal.append(record));
    done
}

/// Asks for the memory that the stretches will touch: first all entries, then what their values
/// hold outside of them.
fn ask_ahead<'s, const N: usize>(
    places: &[Place<'_>],
    alike: &Alike<'_, N>,
    shard: impl Fn(usize) -> &'s Shard,
    ask: impl Fn(&Place<'_>, &Shard, &[Words<'_, N>]),
) {
    for (at, place) in places.iter().enumerate() {
        place.prefetch(shard(at));
    }
    for (at, (place, stretch)) in places.iter().zip(alike.stretches()).enumerate() {
        ask(place, shard(at), stretch.requests);
    }
}
