//! Batches of commands on filters.

use everbloom_commands::{CommandError, Context};
use everbloom_files::Value;
use everbloom_resp::Reply;
use everbloom_resp::encode::{encode_boolean, encode_error};
use everbloom_store::journal::Record;
use everbloom_store::keyspace::Shard;

use super::alike::{Stretch, Words};
use super::done::Done;
use super::families::{Change, Look};
use crate::dispatch::place::Place;
use crate::dispatch::turn::Turn;

/// Asks for the memory that these items have in the filter that is there.
#[inline]
pub fn ask(place: &Place<'_>, shard: &Shard, items: &[Words<'_, 1>]) {
    if let Some(Value::Filter(filter)) = place.peek(shard) {
        filter.prefetch_items(items.as_flattened());
    }
}

/// Looks for the items of a stretch.
pub fn find<L: Look>(
    turn: &mut Turn<'_>,
    at: Stretch<'_, '_, 1>,
    place: Place<'_>,
    shard: &Shard,
) -> Done {
    let protocol = turn.session.protocol;
    let slot = place.read(shard, turn.stats);
    L::look(at.requests.as_flattened(), slot, |found| {
        encode_boolean(found, protocol, turn.out);
    });
    Done::all(at.requests, 0)
}

/// Adds or removes the items of a stretch.
pub fn change<'a, C: Change>(
    turn: &mut Turn<'_>,
    context: &Context,
    at: Stretch<'_, 'a, 1>,
    place: Place<'a>,
    shard: &mut Shard,
    record: &mut Record,
) -> Done {
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
        C::change(context, at.requests.as_flattened(), slot, &mut answer)
    });
    shard.touch(place.db, place.key);
    C::note(record, place.db, place.key, change);
    Done::all(at.requests, failed)
}
