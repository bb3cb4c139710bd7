//! Runs an admitted command: under the locks of its keys, with its changes recorded.

use everbloom_commands::flags::WRITE;
use everbloom_commands::table::{ReplaceFn, ScanFn};
use everbloom_commands::{Action, Answers, Function, LazyContext, ReadSlot, Run};
use everbloom_files::Value;
use everbloom_resp::Reply;
use everbloom_store::keyspace::{Entry, Footprint, View};

use super::value::{self, Stored, read_slot};
use crate::call::{Call, Handler};
use crate::locked::Locked;
use crate::native::long;

/// Locks the keys of a command and runs it. A command on one value writes its answer into
/// `answers`; any other returns it.
pub fn run(call: &mut Call<'_>, answers: &mut dyn Answers) -> Option<Reply> {
    let (command, keyspace) = (call.command, &call.server.store.keyspace);
    let mut footprint = Footprint::none();
    let writes = command.flags.has(WRITE);
    let mut exclusive = writes;
    match command.handler {
        Handler::Filter(_) | Handler::Text(_) | Handler::Read(_) | Handler::Write(_) => {
            footprint.add_keys(keyspace, command.keys.of(call.args));
        }
        // The view locks each shard when its turn comes.
        Handler::Plain(_) | Handler::Exec | Handler::ReadEach(_) => {}
        Handler::WriteAll(_) => {
            footprint = Footprint::Whole;
            // DEBUG reads all keys at one moment, although it does not count as a command that
            // writes.
            exclusive = true;
        }
    }
    let mut locked = Locked::lock(call.server, footprint, exclusive, call.now);
    if writes && let Err(refusal) = locked.reserve(call.args) {
        return Some(refusal);
    }
    let reply = run_locked(call, &mut locked, answers);
    locked.commit(call.session, writes);
    reply
}

/// The same on shards that are locked already, exclusively if the command may write.
pub fn run_locked(
    call: &mut Call<'_>,
    locked: &mut Locked<'_>,
    answers: &mut dyn Answers,
) -> Option<Reply> {
    let reply = match call.command.handler {
        Handler::Filter(Function::Bloom(action)) => return run_on(call, action, locked, answers),
        Handler::Filter(Function::Cuckoo(action)) => return run_on(call, action, locked, answers),
        Handler::Text(action) => return run_on(call, action, locked, answers),
        Handler::Filter(Function::Scan(function)) => scan(call, function, locked),
        Handler::Filter(Function::Replace(function)) => replace(call, function, locked),
        Handler::Exec => Err(Reply::error("ERR EXEC without MULTI")),
        Handler::Plain(function) => function(call),
        Handler::Read(function) | Handler::ReadEach(function) => function(call, locked),
        Handler::Write(function) | Handler::WriteAll(function) => function(call, locked),
    };
    locked.log_expired();
    Some(reply.unwrap_or_else(|refusal| refusal))
}

/// Runs one request on the value of its key.
fn run_on<T: Stored>(
    call: &Call<'_>,
    action: Action<T>,
    locked: &mut Locked<'_>,
    answers: &mut dyn Answers,
) -> Option<Reply> {
    let find = || call.context();
    let (mut run, mut context) = (Run::one(call.args), LazyContext::new(&find));
    let location = locked.locate(call.session.db, run.key());
    let at = (locked, &location);
    let _ = value::run(call, &mut context, action, &mut run, at, answers);
    None
}

/// Makes the filter of the first key anew.
fn replace(call: &Call<'_>, function: ReplaceFn, locked: &mut Locked<'_>) -> Result<Reply, Reply> {
    let (db, key) = (call.session.db, Run::one(call.args).key());
    let slot = |key| read_slot(locked.get(db, key).map(|entry| &entry.value));
    let slots: Vec<ReadSlot<'_>> = call.command.keys.of(call.args).map(slot).collect();
    let (filter, reply) = function(&call.context().into(), call.args, &slots)?;
    drop(slots);
    let expires_at = locked.peek(db, key).and_then(Entry::expires_at);
    locked.insert(db, key, filter.into_value(), expires_at);
    locked.log(db, call.args);
    Ok(reply)
}

/// Answers with a piece of a filter.
fn scan(call: &Call<'_>, function: ScanFn, view: &View<'_>) -> Result<Reply, Reply> {
    let key = Run::one(call.args).key();
    let value = call.look_up(view, key).map(|entry| &entry.value);
    let piece = function(call.args, value::any_slot(value))?;
    if long::offloads_piece(call, &piece, function) {
        return Ok(Reply::Null);
    }
    let filter = match value {
        Some(Value::Filter(filter)) => Some(filter),
        _ => None,
    };
    Ok(piece.into_reply(filter))
}
