//! Pipelined BF.ADD or BF.EXISTS on one key, executed as one batch. One alone is a batch, too.
//!
//! One lock, one look-up of the key, all items hashed and their memory fetched before the first is
//! tested; the replies are those of one-by-one execution.

use smallvec::SmallVec;

use everbloom_commands::bf::{add, exists};
use everbloom_commands::command::Batch;
use everbloom_resp::encode::{encode_boolean, encode_error};
use everbloom_resp::{Batch as Requests, Reply};

use super::admission::refused_now;
use super::place::Place;
use super::turn::Turn;
use crate::call::Registered;
use crate::session::ReplyMode;

/// The items of a batch: as many as fit before memory must be asked for.
type Items<'a> = SmallVec<[&'a [u8]; 16]>;

/// Executes the batch that begins with request `first`, if it may be one; returns how many requests
/// it took, 0 for none.
pub fn execute(
    turn: &mut Turn<'_>,
    command: &'static Registered,
    batch: Batch,
    requests: &Requests,
    args: &[&[u8]],
    first: usize,
) -> usize {
    let Some(request @ [name, key, _]) = args.get(requests.range(first)) else {
        return 0;
    };
    if turn.session.transaction.is_some()
        || turn.session.reply_mode != ReplyMode::On
        || refused(turn, command)
    {
        return 0;
    }
    turn.last = Some(command);
    let items = items_of_batch(requests, args, first, name, key);
    let failed = match batch {
        Batch::Add => add_items(turn, key, &items),
        Batch::Exists => find_items(turn, key, &items),
    };
    let count = u64::try_from(items.len()).unwrap_or(u64::MAX);
    turn.note_time(command, request, count, failed);
    items.len()
}

/// The items of the requests from `first` on that say the same as the first but for the item.
fn items_of_batch<'a>(
    requests: &Requests,
    args: &[&'a [u8]],
    first: usize,
    name: &[u8],
    key: &[u8],
) -> Items<'a> {
    (first..requests.len())
        .map_while(|request| match args.get(requests.range(request)) {
            Some([other, k, item]) if *other == name && *k == key => Some(*item),
            _ => None,
        })
        .collect()
}

/// What one request would be refused for, each of the batch must be: one by one, then.
fn refused(turn: &Turn<'_>, command: &Registered) -> bool {
    !turn.session.authenticated || refused_now(turn.server, turn.settings, command).is_some()
}

fn find_items(turn: &mut Turn<'_>, key: &[u8], items: &[&[u8]]) -> u64 {
    let place = Place::new(&turn.server.store.keyspace, turn.session.db, key, turn.now);
    let shard = turn.server.store.keyspace.shard(place.shard).read();
    let protocol = turn.session.protocol;
    exists::exists_batch(items, place.read(&shard, turn.stats), |found| {
        encode_boolean(found, protocol, turn.out);
    });
    0
}

fn add_items(turn: &mut Turn<'_>, key: &[u8], items: &[&[u8]]) -> u64 {
    let place = Place::new(&turn.server.store.keyspace, turn.session.db, key, turn.now);
    let context = turn.context();
    let protocol = turn.session.protocol;
    let mut shard = turn.server.store.keyspace.shard(place.shard).write();
    let mut failed = 0;
    let mut record = turn.server.store.journal.record();
    let change = place.write(turn.server, &mut shard, &mut record, |slot| {
        add::add_batch(&context, items, slot, |result| match result {
            Ok(new) => encode_boolean(new, protocol, turn.out),
            Err(error) => {
                failed += 1;
                if let Reply::Error(text) = Reply::from(error) {
                    turn.stats.count_error(&text);
                    encode_error(&text, turn.out);
                }
            }
        })
    });
    shard.touch(place.db, key);
    record.insertion(place.db, key, change);
    turn.session.wrote(turn.server.store.journal.append(record));
    failed
}
