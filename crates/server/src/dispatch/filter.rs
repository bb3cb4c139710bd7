//! Running a command of the commands crate: it names one key, so it takes one lock and one look-up.

use everbloom_commands::flags::GIVES_PIECES;
use everbloom_commands::table::{ReadFn, WriteFn};
use everbloom_commands::{Action, Family, Function, Slot};
use everbloom_resp::Reply;

use crate::call::Call;
use crate::dispatch::place::Place;
use crate::native::long;
use everbloom_store::journal::Record;
use everbloom_store::keyspace::{Shard, View};

/// Runs a command on a filter under the lock of its one shard.
pub fn run(call: &mut Call<'_>, function: Function) -> Reply {
    match function {
        Function::Bloom(action) => run_action(call, action),
        Function::Cuckoo(action) => run_action(call, action),
    }
}

fn run_action<F: Family>(call: &mut Call<'_>, action: Action<F>) -> Reply {
    let place = place(call);
    let lock = call.server.store.keyspace.shard(place.shard);
    match action {
        Action::Read(function) => {
            let shard = lock.read();
            if call.command.flags.has(GIVES_PIECES)
                && long::offloads_piece::<F>(call, place.peek(&shard))
            {
                return Reply::Null;
            }
            read(call, function, &shard, place)
        }
        Action::Write(function) => {
            let mut shard = lock.write();
            let mut record = call.server.store.journal.record();
            let reply = write(call, function, &mut shard, place, &mut record);
            call.session.wrote(call.server.store.journal.append(record));
            reply
        }
    }
}

/// Runs one on shards that are locked already, exclusively if any command may write there.
pub fn run_in_view(
    call: &Call<'_>,
    function: Function,
    view: &mut View<'_>,
    record: &mut Record,
) -> Reply {
    match function {
        Function::Bloom(action) => run_action_in_view(call, action, view, record),
        Function::Cuckoo(action) => run_action_in_view(call, action, view, record),
    }
}

fn run_action_in_view<F: Family>(
    call: &Call<'_>,
    action: Action<F>,
    view: &mut View<'_>,
    record: &mut Record,
) -> Reply {
    let place = place(call);
    let shard = view.shard_of_key(place.key);
    match action {
        Action::Read(function) => read(call, function, shard, place),
        Action::Write(function) => write(call, function, shard, place, record),
    }
}

fn place<'a>(call: &Call<'a>) -> Place<'a> {
    let key = call.args.get(1).copied().unwrap_or_default();
    Place::new(&call.server.store.keyspace, call.session.db, key, call.now)
}

fn read<F: Family>(call: &Call<'_>, function: ReadFn<F>, shard: &Shard, place: Place<'_>) -> Reply {
    function(&call.context(), call.args, place.read(shard, call.stats))
}

fn write<F: Family>(
    call: &Call<'_>,
    function: WriteFn<F>,
    shard: &mut Shard,
    place: Place<'_>,
    record: &mut Record,
) -> Reply {
    let context = call.context();
    let work = |slot: &mut Slot<'_, F>| function(&context, call.args, slot);
    let outcome = place.write(call.server, shard, record, work);
    if outcome.touched {
        shard.touch(place.db, place.key);
    }
    record.effect(place.db, &outcome.effect, call.args);
    outcome.reply
}
