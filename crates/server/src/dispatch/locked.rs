//! Running a command on shards that are locked already.

use everbloom_commands::Outcome;
use everbloom_resp::Reply;
use everbloom_store::journal::Record;
use everbloom_store::keyspace::View;

use super::filter;
use crate::call::{Call, Handler};
use crate::native::subcommand;

/// Goes from a container to the subcommand that is named. An error is the reply to a call that
/// needs no running.
#[inline]
pub fn choose_subcommand(call: &mut Call<'_>) -> Result<(), Reply> {
    if !call.command.subcommands.is_empty() {
        call.command = subcommand::choose(call.command, call.args)?;
    }
    Ok(())
}

/// Runs a command on shards that are locked already, exclusively if it may write, and notes its
/// effect in `record`.
pub fn run(call: &mut Call<'_>, view: &mut View<'_>, record: &mut Record) -> Reply {
    if let Err(reply) = choose_subcommand(call) {
        return reply;
    }
    let outcome = match call.command.handler {
        Handler::Filter(function) => {
            return filter::run_in_view(call, function, view, record);
        }
        Handler::Exec => return Reply::error("ERR EXEC without MULTI"),
        Handler::Plain(function) => return function(call).unwrap_or_else(|refusal| refusal),
        Handler::Read(function) | Handler::ReadEach(function) => {
            return function(call, view).unwrap_or_else(|refusal| refusal);
        }
        Handler::Write(function) | Handler::WriteAll(function) => {
            function(call, view).unwrap_or_else(Outcome::unchanged)
        }
    };
    let expired = view.take_expired();
    for (db, key) in &expired {
        record.expired(*db, key);
    }
    call.server.stats.expired(expired.len());
    record.effect(call.session.db, &outcome.effect, call.args);
    outcome.reply
}
