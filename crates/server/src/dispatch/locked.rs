//! Runs a command on shards that are locked already.

use everbloom::{CuckooFilter, ScalableBloomFilter};
use everbloom_commands::flags::GIVES_PIECES;
use everbloom_commands::run::Replies;
use everbloom_commands::table::ReplaceFn;
use everbloom_commands::{Action, Function, ReadSlot, Run};
use everbloom_resp::Reply;
use everbloom_store::journal::Record;
use everbloom_store::keyspace::{Entry, View};

use super::value::{Runner, Stored, note_expired};
use crate::call::{Call, Handler};
use crate::native::{long, subcommand};
use crate::outcome::{Effect, Outcome};

/// Resolves a container command to the named subcommand. An error is the reply to a call that needs
/// no running.
#[inline]
pub fn choose_subcommand(call: &mut Call<'_>) -> Result<(), Reply> {
    if !call.command.subcommands.is_empty() {
        call.command = subcommand::choose(call.command, call.args)?;
    }
    Ok(())
}

/// Runs a command on shards that are locked already, exclusively if it may write, and adds its
/// effect to `record`.
pub fn run(call: &mut Call<'_>, view: &mut View<'_>, record: &mut Record) -> Reply {
    if let Err(reply) = choose_subcommand(call) {
        return reply;
    }
    let outcome = match call.command.handler {
        Handler::Filter(function) if offloads(call, function, view) => return Reply::Null,
        Handler::Filter(Function::Bloom(action)) => return run_on(call, action, view, record),
        Handler::Filter(Function::Cuckoo(action)) => return run_on(call, action, view, record),
        Handler::Filter(Function::Replace(function)) => replace(call, function, view),
        Handler::Text(action) => return run_on(call, action, view, record),
        Handler::Exec => return Reply::error("ERR EXEC without MULTI"),
        Handler::Plain(function) => return function(call).unwrap_or_else(|refusal| refusal),
        Handler::Read(function) | Handler::ReadEach(function) => {
            return function(call, view).unwrap_or_else(|refusal| refusal);
        }
        Handler::Write(function) | Handler::WriteAll(function) => {
            function(call, view).unwrap_or_else(Outcome::unchanged)
        }
    };
    note_expired(call.server, view, record);
    match &outcome.effect {
        Effect::None => {}
        Effect::Verbatim => record.command(call.session.db, call.args),
        Effect::Replace(command) => record.command(call.session.db, command),
    }
    outcome.reply
}

/// Runs one request on the value of its key.
fn run_on<T: Stored>(
    call: &Call<'_>,
    action: Action<T>,
    view: &mut View<'_>,
    record: &mut Record,
) -> Reply {
    let (mut run, mut replies) = (Run::one(call.args), Replies::default());
    let place = view.place(call.session.db, run.key());
    let mut runner = Runner {
        server: call.server,
        settings: call.settings,
        stats: call.stats,
        context: call.context(),
    };
    let _ = runner.run(action, &mut run, (view, &place), record, &mut replies);
    replies.into_last().unwrap_or(Reply::Null)
}

/// Makes the filter of the first key anew.
fn replace(call: &Call<'_>, function: ReplaceFn, view: &mut View<'_>) -> Outcome {
    let (db, key) = (call.session.db, Run::one(call.args).key());
    let slot = |key| match view.get(db, key).map(|entry| &entry.value) {
        None => ReadSlot::Missing,
        Some(value) => Stored::of(value).map_or(ReadSlot::OtherType, ReadSlot::Held),
    };
    let slots: Vec<ReadSlot<'_>> = call.command.keys.of(call.args).map(slot).collect();
    let made = function(&call.context(), call.args, &slots);
    drop(slots);
    match made {
        Err(refusal) => Outcome::unchanged(refusal),
        Ok((filter, reply)) => {
            let expires_at = view.peek(db, key).and_then(Entry::expires_at);
            view.insert(db, key, filter.into_value(), expires_at);
            Outcome::verbatim(reply)
        }
    }
}

/// Whether a command has offloaded its work to another thread.
fn offloads(call: &Call<'_>, function: Function, view: &View<'_>) -> bool {
    if !call.command.flags.has(GIVES_PIECES) {
        return false;
    }
    let key = call.args.get(1).copied().unwrap_or_default();
    let value = view.peek(call.session.db, key).map(|entry| &entry.value);
    match function {
        Function::Bloom(_) => long::offloads_piece::<ScalableBloomFilter>(call, value),
        Function::Cuckoo(_) => long::offloads_piece::<CuckooFilter>(call, value),
        Function::Replace(_) => false,
    }
}
