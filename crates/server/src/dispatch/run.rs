//! Runs an admitted command: under the locks of its keys, with its changes recorded.

use std::sync::Arc;
use std::time::Duration;

use everbloom_commands::piece::{Content, Piece};
use everbloom_commands::run::Replies;
use everbloom_commands::table::{ScanFn, WriteFn};
use everbloom_commands::{Action, Answers, Function, Run};
use everbloom_files::Value;
use everbloom_resp::Reply;

use super::keys::{Keys, OwnKeys};
use super::{count, value};
use crate::call::{Call, Done, Handler, Outcome, Rest, Selected, Work};
use crate::locked::Locked;
use crate::native::large;
use crate::reply_limit;
use crate::server::Server;
use crate::slot::{Stored, any_slot};

/// How often somebody waits for a key, and how long at a time.
const MAX_WAITS: usize = 2000;
const WAIT: Duration = Duration::from_millis(2);

/// Ends a command whose work is done.
pub fn finish(call: &mut Call<'_>, mut rest: Rest) -> Outcome {
    let outcome = OwnKeys.change(call, |call, locked| rest(call, locked));
    // A reader of a value ends with it, which needs the locks.
    drop(rest);
    outcome.unwrap_or_else(Outcome::from)
}

/// Runs a command on its keys. A command on one value writes its answer into `answers`; any other
/// returns what it comes to.
pub fn run(call: &mut Call<'_>, keys: impl Keys, answers: &mut dyn Answers) -> Option<Outcome> {
    let outcome = match call.command.handler {
        Handler::Filter(Function::Bloom(action)) => return run_on(call, action, keys, answers),
        Handler::Filter(Function::Cuckoo(action)) => return run_on(call, action, keys, answers),
        Handler::Text(action) => return run_on(call, action, keys, answers),
        Handler::Filter(Function::Scan(function)) => {
            let most = reply_limit::of_piece(call.settings);
            keys.read(call, |view| large::read(call, view, piece(function, most)))
        }
        Handler::Filter(Function::Replace {
            function,
            reads_bits,
        }) => keys.change(call, |call, locked| {
            large::replace(call, locked, function, reads_bits)
        }),
        // A request that is refused whatever its key holds looks nothing up, as in Redis.
        Handler::Select(function) => function(call.args, None)
            .and_then(|_| keys.read(call, |view| large::read(call, view, function))),
        Handler::Make(function) => keys.change(call, function),
        Handler::Exchange(function) => {
            let done = keys.change(call, |call, locked| function(call, locked, answers));
            return done.err().map(Outcome::Reply);
        }
        Handler::Exec => Err(Reply::error("ERR EXEC without MULTI")),
        Handler::Plain(function) => function(call).map(Outcome::Reply),
        Handler::PlainOrWork(function) => function(call),
        Handler::Count(function) => count::run(call, function, keys),
        Handler::Read(function) | Handler::ReadEach(function) => keys
            .read(call, |view| function(call, view))
            .map(Outcome::Reply),
        Handler::Write(function) | Handler::WriteAll(function) => {
            keys.change(call, function).map(Outcome::Reply)
        }
    };
    Some(outcome.unwrap_or_else(Outcome::from))
}

/// Runs one request on the value of its key.
fn run_on<T: Stored>(
    call: &mut Call<'_>,
    action: Action<T>,
    keys: impl Keys,
    answers: &mut dyn Answers,
) -> Option<Outcome> {
    match action {
        Action::Read(function) => {
            let mut run = Run::one(call.args);
            let key = call.key(run.key());
            keys.read(call, |view| {
                value::read_alone(call, function, &mut run, view, key, answers);
            });
            None
        }
        Action::Write(function) => {
            let done = keys.change(call, |call, locked| {
                let work = work_while_held(call, function);
                if work.is_none() {
                    write_one(call, function, locked, answers);
                }
                Ok(work.map(Outcome::Work))
            });
            done.unwrap_or_else(|refusal| Some(refusal.into()))
        }
    }
}

fn write_one<T: Stored>(
    call: &Call<'_>,
    function: WriteFn<T>,
    locked: &mut Locked<'_>,
    answers: &mut dyn Answers,
) {
    let mut run = Run::one(call.args);
    let key = call.key(run.key());
    value::write_alone(call, function, &mut run, locked, key, answers);
}

/// The work of a command that may change a key which is [held](crate::holds): it waits, and runs
/// then.
fn work_while_held<T: Stored>(call: &Call<'_>, function: WriteFn<T>) -> Option<Work> {
    let (db, key) = (call.session.db, Run::one(call.args).key());
    if !call.can_wait || !call.server.holds.has(db, key) {
        return None;
    }
    let (server, key) = (Arc::clone(call.server), key.to_vec());
    Some(Work::new(move |_| {
        wait_while_held(&server, db, &key);
        Done::Rest(Box::new(move |call, locked| {
            let mut replies = Replies::default();
            write_one(call, function, locked, &mut replies);
            Ok(replies.into_last().unwrap_or(Reply::Null).into())
        }))
    }))
}

/// Waits until a key is held no more, on a thread that may wait. Not for ever: then the key changes,
/// and the filter is made under the locks.
fn wait_while_held(server: &Server, db: usize, key: &[u8]) {
    for _ in 0..MAX_WAITS {
        if !server.holds.has(db, key) || server.is_stopping() {
            return;
        }
        server.store.machine.sleep(WAIT);
    }
}

/// Selects a piece of a filter: at most these bytes, so that a filter can be read whatever the
/// limits are. An iterator is the number of a byte, so the next piece begins where this one ends.
fn piece(
    function: ScanFn,
    most: u64,
) -> impl Fn(&[&[u8]], Option<&Value>) -> Result<Selected, Reply> + Send + 'static {
    move |request, value| {
        let Piece { next, content } = function(request, any_slot(value))?;
        Ok(match content {
            Content::Made(made) => Selected::Reply(Reply::Array(vec![Reply::Integer(next), made])),
            Content::Bytes(part) => {
                let cut = (part.end - part.start).saturating_sub(most);
                Selected::Bytes(
                    Some(next.saturating_sub_unsigned(cut)),
                    part.start..part.end - cut,
                )
            }
        })
    }
}
