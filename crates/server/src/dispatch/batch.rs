//! Pipelined adds, or look-ups, or removals, executed as one batch. One request alone is a batch, too.
//!
//! On one key: one lock, one look-up, all items hashed and their memory asked for before the first
//! is tested. On several keys (a filter a user): all their shards are locked, in the one order that
//! cannot deadlock, and the memory of every entry, filter and bit is asked for before the first
//! request is executed, so that the waits overlap. The replies are those of one-by-one execution.

use everbloom_commands::command::BatchKind;
use everbloom_commands::{CommandError, Context, ReadSlot};
use everbloom_resp::encode::{encode_boolean, encode_error};
use everbloom_resp::{Batch, Reply};
use everbloom_store::journal::Record;
use everbloom_store::keyspace::Shard;
use smallvec::SmallVec;

use super::admission::refused_now;
use super::batched::{BloomAdd, BloomExists, Change, CuckooAdd, CuckooDelete, CuckooExists, Look};
use super::locks::Locks;
use super::place::Place;
use super::turn::Turn;
use crate::call::Registered;
use crate::session::ReplyMode;

/// As many as fit before memory must be asked for.
type Few<T> = SmallVec<[T; 16]>;

/// The places of the keys of a batch.
type Places<'k> = SmallVec<[Place<'k>; WINDOW]>;

/// Requests on several keys that are executed together: enough that the waits for memory overlap,
/// and few enough that their shards are not locked for long.
const WINDOW: usize = 64;

/// Requests that say the same but for key and item.
#[derive(Default)]
struct Alike<'a> {
    items: Few<&'a [u8]>,
    /// The key of each stretch of requests on one key, and where in `items` the stretch ends.
    ends: Few<(&'a [u8], usize)>,
}

/// The requests on one key that follow each other.
#[derive(Clone, Copy)]
struct Stretch<'s, 'a> {
    key: &'a [u8],
    items: &'s [&'a [u8]],
}

impl<'a> Alike<'a> {
    /// The first of these requests that are alike: any number on one key, or [`WINDOW`] at most on
    /// several.
    fn of<'r>(requests: impl Iterator<Item = &'r [&'a [u8]]>) -> Self
    where
        'a: 'r,
    {
        let mut alike = Alike::default();
        let mut command = None;
        for request in requests {
            let [name, key, item] = request else { break };
            let full = alike.items.len() >= WINDOW;
            let several = alike.ends.len() > 1;
            match alike.ends.last_mut() {
                _ if *command.get_or_insert(*name) != *name => break,
                Some((last, end)) if last == key && !(full && several) => *end += 1,
                _ if full => break,
                _ => alike.ends.push((key, alike.items.len() + 1)),
            }
            alike.items.push(item);
        }
        alike
    }

    /// The stretch, if it is the only one.
    fn only(&self) -> Option<Stretch<'_, 'a>> {
        self.stretches().next().filter(|_| self.ends.len() == 1)
    }

    fn stretches(&self) -> impl Iterator<Item = Stretch<'_, 'a>> {
        let mut from = 0;
        self.ends.iter().map(move |&(key, end)| {
            let items = self.items.get(from..end).unwrap_or_default();
            from = end;
            Stretch { key, items }
        })
    }
}

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
    let alike = Alike::of(rest);
    if alike.ends.is_empty() {
        return 0;
    }
    turn.last = Some(command);
    let failed = match kind {
        BatchKind::Add => change::<BloomAdd>(turn, &alike),
        BatchKind::Exists => look::<BloomExists>(turn, &alike),
        BatchKind::CuckooAdd => change::<CuckooAdd>(turn, &alike),
        BatchKind::CuckooExists => look::<CuckooExists>(turn, &alike),
        BatchKind::CuckooDelete => change::<CuckooDelete>(turn, &alike),
    };
    let request = args.get(requests.range(first)).unwrap_or_default();
    let count = alike.items.len();
    let calls = u64::try_from(count).unwrap_or(u64::MAX);
    turn.note_time(command, request, calls, failed);
    count
}

/// What one request would be refused for, each of the batch must be: one by one, then.
fn refused(turn: &Turn<'_>, command: &Registered) -> bool {
    !turn.session.authenticated || refused_now(turn.server, turn.settings, command).is_some()
}

fn place<'k>(turn: &Turn<'_>, key: &'k [u8]) -> Place<'k> {
    Place::new(&turn.server.store.keyspace, turn.session.db, key, turn.now)
}

fn look<L: Look>(turn: &mut Turn<'_>, alike: &Alike<'_>) -> u64 {
    match alike.only() {
        Some(stretch) => find_in_one::<L>(turn, stretch),
        None => find_in_several::<L>(turn, alike),
    }
}

fn change<C: Change>(turn: &mut Turn<'_>, alike: &Alike<'_>) -> u64 {
    match alike.only() {
        Some(stretch) => change_one::<C>(turn, stretch),
        None => change_several::<C>(turn, alike),
    }
}

fn find_in_one<L: Look>(turn: &mut Turn<'_>, stretch: Stretch<'_, '_>) -> u64 {
    let place = place(turn, stretch.key);
    let shard = turn.server.store.keyspace.shard(place.shard).read();
    find::<L>(turn, stretch.items, place.read(&shard, turn.stats));
    0
}

fn find_in_several<L: Look>(turn: &mut Turn<'_>, alike: &Alike<'_>) -> u64 {
    let places: Places<'_> = alike.ends.iter().map(|(key, _)| place(turn, key)).collect();
    let keyspace = &turn.server.store.keyspace;
    let shards = Locks::new(&places, |shard| keyspace.shard(shard).read());
    ask_ahead(&places, alike, |at| shards.of(at));
    for (at, (place, stretch)) in places.iter().zip(alike.stretches()).enumerate() {
        find::<L>(turn, stretch.items, place.read(shards.of(at), turn.stats));
    }
    0
}

fn find<L: Look>(turn: &mut Turn<'_>, items: &[&[u8]], slot: ReadSlot<'_, L::Filter>) {
    let protocol = turn.session.protocol;
    L::look(items, slot, |found| {
        encode_boolean(found, protocol, turn.out);
    });
}

fn change_one<C: Change>(turn: &mut Turn<'_>, stretch: Stretch<'_, '_>) -> u64 {
    let place = place(turn, stretch.key);
    let context = turn.context();
    let mut shard = turn.server.store.keyspace.shard(place.shard).write();
    let mut record = turn.server.store.journal.record();
    let failed = apply::<C>(turn, &context, stretch, place, &mut shard, &mut record);
    let end = turn.server.store.journal.append(record);
    turn.session.wrote(end);
    failed
}

fn change_several<C: Change>(turn: &mut Turn<'_>, alike: &Alike<'_>) -> u64 {
    let places: Places<'_> = alike.ends.iter().map(|(key, _)| place(turn, key)).collect();
    let context = turn.context();
    let store = &turn.server.store;
    let mut shards = Locks::new(&places, |shard| store.keyspace.shard(shard).write());
    ask_ahead(&places, alike, |at| shards.of(at));
    let mut record = store.journal.record();
    let mut failed = 0;
    for (at, (place, stretch)) in places.iter().zip(alike.stretches()).enumerate() {
        let shard = shards.of_mut(at);
        failed += apply::<C>(turn, &context, stretch, *place, shard, &mut record);
    }
    turn.session.wrote(store.journal.append(record));
    failed
}

/// Adds or removes the items of a stretch; returns how many were answered with an error.
fn apply<'a, C: Change>(
    turn: &mut Turn<'_>,
    context: &Context,
    stretch: Stretch<'_, 'a>,
    place: Place<'a>,
    shard: &mut Shard,
    record: &mut Record,
) -> u64 {
    let protocol = turn.session.protocol;
    let mut failed = 0;
    let mut answer = |result: Result<bool, CommandError>| match result {
        Ok(new) => encode_boolean(new, protocol, turn.out),
        Err(error) => {
            failed += 1;
            if let Reply::Error(text) = Reply::from(error) {
                turn.stats.count_error(&text);
                encode_error(&text, turn.out);
            }
        }
    };
    let change = place.write(turn.server, shard, record, |slot| {
        C::change(context, stretch.items, slot, &mut answer)
    });
    shard.touch(place.db, place.key);
    C::note(record, place.db, place.key, change);
    failed
}

/// Asks for the memory that the stretches will touch: first all entries, then what their filters
/// hold outside of them.
fn ask_ahead<'s>(places: &[Place<'_>], alike: &Alike<'_>, shard: impl Fn(usize) -> &'s Shard) {
    for (at, place) in places.iter().enumerate() {
        place.prefetch(shard(at));
    }
    for (at, (place, stretch)) in places.iter().zip(alike.stretches()).enumerate() {
        place.prefetch_items(shard(at), stretch.items);
    }
}
