//! Runs: pipelined BF.ADD or BF.EXISTS on one key, executed as one batch. One alone is a run, too.
//!
//! One lock, one look-up of the key, all items hashed and their memory fetched before the first is
//! tested; the replies are those of one-by-one execution.

use smallvec::SmallVec;

use everbloom_commands::bf::{add, exists};
use everbloom_resp::encode::{encode_boolean, encode_error};
use everbloom_resp::{Batch, Reply};

use crate::dispatch::execute::{self as dispatch, Turn};
use crate::dispatch::place::Place;
use crate::registry::{Registered, Registry};
use crate::session::ReplyMode;

/// The items of a run: as many as fit before memory must be asked for.
type Items<'a> = SmallVec<[&'a [u8]; 16]>;

/// Executes the run that begins with request `first`, if one does; returns how many requests it
/// took, 0 for none.
pub fn execute(turn: &mut Turn<'_>, batch: &Batch, args: &[&[u8]], first: usize) -> usize {
    let Some([name, key, _]) = args.get(batch.range(first)) else {
        return 0;
    };
    if turn.session.transaction.is_some() || turn.session.reply_mode != ReplyMode::On {
        return 0;
    }
    let Some(command) = Registry::get().find(name) else {
        return 0;
    };
    let run: fn(&mut Turn<'_>, &[u8], &[&[u8]]) -> u64 = match command.name {
        "BF.ADD" => add_items,
        "BF.EXISTS" => find_items,
        _ => return 0,
    };
    if refused(turn, command) {
        return 0;
    }
    turn.last = Some(command);
    let items = items_of_run(batch, args, first, name, key);
    let failed = run(turn, key, &items);
    let count = u64::try_from(items.len()).unwrap_or(u64::MAX);
    let request = args.get(batch.range(first)).unwrap_or_default();
    dispatch::note_time(turn, command, request, count, failed);
    items.len()
}

/// The items of the requests from `first` on that say the same as the first but for the item.
fn items_of_run<'a>(
    batch: &Batch,
    args: &[&'a [u8]],
    first: usize,
    name: &[u8],
    key: &[u8],
) -> Items<'a> {
    (first..batch.len())
        .map_while(|request| match args.get(batch.range(request)) {
            Some([other, k, item]) if *other == name && *k == key => Some(*item),
            _ => None,
        })
        .collect()
}

/// What one request would be refused for, each of the run must be: one by one, then.
fn refused(turn: &Turn<'_>, command: &Registered) -> bool {
    !turn.session.authenticated
        || dispatch::refused_now(turn.server, turn.settings, command).is_some()
}

fn find_items(turn: &mut Turn<'_>, key: &[u8], items: &[&[u8]]) -> u64 {
    let place = Place::new(&turn.server.store.keyspace, turn.session.db, key, turn.now);
    let shard = turn.server.store.keyspace.shard(place.shard).read();
    let protocol = turn.session.protocol;
    exists::exists_run(items, place.read(&shard, turn.stats), |found| {
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
        add::add_run(&context, items, slot, |result| match result {
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
