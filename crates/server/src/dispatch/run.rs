//! Runs an admitted command: under the locks of its keys, with its changes recorded.

use std::sync::Arc;

use everbloom_commands::flags::WRITE;
use everbloom_commands::piece::{Content, Piece};
use everbloom_commands::run::Replies;
use everbloom_commands::table::ScanFn;
use everbloom_commands::{Action, Answers, Function, LazyContext, Run};
use everbloom_files::Value;
use everbloom_resp::Reply;
use everbloom_store::keyspace::Footprint;

use super::value::{self, Stored};
use crate::call::{Call, Handler, Selected};
use crate::holds;
use crate::locked::Locked;
use crate::native::large;
use crate::work::{Done, Outcome, Rest, Work};

/// Locks the keys of a command and runs it. A command on one value writes its answer into
/// `answers`; any other returns what it comes to.
pub fn run(call: &mut Call<'_>, answers: &mut dyn Answers) -> Option<Outcome> {
    let outcome = lock(call, |call, locked| run_locked(call, locked, answers));
    outcome.unwrap_or_else(|refusal| Some(refusal.into()))
}

/// Ends a command whose work is done.
pub fn finish(call: &mut Call<'_>, mut rest: Rest) -> Outcome {
    let outcome = lock(call, |call, locked| {
        let outcome = rest(call, locked);
        locked.log_expired();
        outcome
    });
    // A reader of a value ends with it, which needs the locks.
    drop(rest);
    outcome.flatten().unwrap_or_else(Outcome::from)
}

/// Runs work while the keys of a command are locked, and records its changes. Refuses a command for
/// whose record there is no memory.
fn lock<R>(
    call: &mut Call<'_>,
    work: impl FnOnce(&mut Call<'_>, &mut Locked<'_>) -> R,
) -> Result<R, Reply> {
    let (command, keyspace) = (call.command, &call.server.store.keyspace);
    let mut footprint = Footprint::none();
    let writes = command.flags.has(WRITE);
    let mut exclusive = writes;
    match command.handler {
        // The view locks each shard when its turn comes.
        Handler::Plain(_) | Handler::Exec | Handler::ReadEach(_) => {}
        Handler::WriteAll(_) => {
            footprint = Footprint::Whole;
            // DEBUG reads all keys at one moment, although it does not count as a command that
            // writes.
            exclusive = true;
        }
        _ => footprint.add_keys(keyspace, command.keys.of(call.args)),
    }
    let mut locked = Locked::lock(call.server, footprint, exclusive, call.now);
    if writes {
        locked.reserve(call.args)?;
    }
    let result = work(call, &mut locked);
    locked.commit(call.session, writes);
    Ok(result)
}

/// The same as [`run`] on shards that are locked already, exclusively if the command may write.
pub fn run_locked(
    call: &mut Call<'_>,
    locked: &mut Locked<'_>,
    answers: &mut dyn Answers,
) -> Option<Outcome> {
    let outcome = match call.command.handler {
        Handler::Filter(Function::Bloom(action)) => return run_on(call, action, locked, answers),
        Handler::Filter(Function::Cuckoo(action)) => return run_on(call, action, locked, answers),
        Handler::Text(action) => return run_on(call, action, locked, answers),
        Handler::Filter(Function::Scan(function)) => large::read(call, locked, piece(function)),
        Handler::Filter(Function::Replace {
            function,
            reads_bits,
        }) => large::replace(call, locked, function, reads_bits),
        // A request that is refused whatever its key holds looks nothing up, as in Redis.
        Handler::Select(function) => {
            function(call.args, None).and_then(|_| large::read(call, locked, function))
        }
        Handler::Make(function) => function(call, locked),
        Handler::Exchange(function) => {
            let refusal = function(call, locked, answers).err();
            locked.log_expired();
            return refusal.map(Outcome::Reply);
        }
        Handler::Exec => Err(Reply::error("ERR EXEC without MULTI")),
        Handler::Plain(function) => function(call).map(Outcome::Reply),
        Handler::Read(function) | Handler::ReadEach(function) => {
            function(call, locked).map(Outcome::Reply)
        }
        Handler::Write(function) | Handler::WriteAll(function) => {
            function(call, locked).map(Outcome::Reply)
        }
    };
    locked.log_expired();
    Some(outcome.unwrap_or_else(Outcome::from))
}

/// Runs one request on the value of its key.
fn run_on<T: Stored>(
    call: &Call<'_>,
    action: Action<T>,
    locked: &mut Locked<'_>,
    answers: &mut dyn Answers,
) -> Option<Outcome> {
    if let Some(work) = work_while_held(call, action) {
        return Some(work.into());
    }
    run_at_once(call, action, locked, answers);
    None
}

fn run_at_once<T: Stored>(
    call: &Call<'_>,
    action: Action<T>,
    locked: &mut Locked<'_>,
    answers: &mut dyn Answers,
) {
    let find = || call.context();
    let (mut run, mut context) = (Run::one(call.args), LazyContext::new(&find));
    let location = locked.locate(call.session.db, run.key());
    let at = (locked, &location);
    let _ = value::run(call, &mut context, action, &mut run, at, answers);
}

/// The work of a command that may change a key which is [held](crate::holds): it waits, and runs
/// then.
fn work_while_held<T: Stored>(call: &Call<'_>, action: Action<T>) -> Option<Work> {
    let (db, key) = (call.session.db, Run::one(call.args).key());
    let writes = matches!(action, Action::Write(_));
    if !writes || !call.can_wait || !call.server.holds.has(db, key) {
        return None;
    }
    let (server, key) = (Arc::clone(call.server), key.to_vec());
    Some(Work::new(move |_| {
        holds::wait(&server, db, &key);
        Done::Rest(Box::new(move |call, locked| {
            let mut replies = Replies::default();
            run_at_once(call, action, locked, &mut replies);
            Ok(replies.into_last().unwrap_or(Reply::Null).into())
        }))
    }))
}

/// Selects a piece of a filter.
fn piece(
    function: ScanFn,
) -> impl Fn(&[&[u8]], Option<&Value>) -> Result<Selected, Reply> + Send + 'static {
    move |request, value| {
        let Piece { next, content } = function(request, value::any_slot(value))?;
        Ok(match content {
            Content::Made(made) => Selected::Reply(Reply::Array(vec![Reply::Integer(next), made])),
            Content::Bytes(part) => Selected::Bytes(Some(next), part),
        })
    }
}
