//! Runs an admitted command: under the locks of its keys, with its effect recorded.

use everbloom_commands::flags::WRITE;
use everbloom_resp::Reply;
use everbloom_store::keyspace::Footprint;

use super::{locked, transaction};
use crate::call::{Call, Handler};

/// Runs an admitted command: locks its keys, runs it, and records its effect.
pub fn run(call: &mut Call<'_>) -> Reply {
    if let Err(reply) = locked::choose_subcommand(call) {
        return reply;
    }
    let command = call.command;
    let (keyspace, now) = (&call.server.store.keyspace, call.now);
    let mut footprint = Footprint::none();
    let writes = command.flags.has(WRITE);
    let mut exclusive = writes;
    match command.handler {
        Handler::Exec => return transaction::exec(call),
        Handler::Plain(function) => return function(call).unwrap_or_else(|refusal| refusal),
        Handler::Filter(_) | Handler::Text(_) | Handler::Read(_) | Handler::Write(_) => {
            footprint.add_keys(keyspace, command.keys.of(call.args));
        }
        // The view locks each shard when its turn comes.
        Handler::ReadEach(_) => {}
        Handler::WriteAll(_) => {
            footprint = Footprint::Whole;
            // DEBUG reads all keys at one moment, although it does not count as a command that
            // writes.
            exclusive = true;
        }
    }
    let mut view = footprint.lock(keyspace, exclusive, now);
    let mut record = call.server.store.journal.record();
    let reply = locked::run(call, &mut view, &mut record);
    if writes || !record.is_empty() {
        call.session.wrote(call.server.store.journal.append(record));
    }
    reply
}
