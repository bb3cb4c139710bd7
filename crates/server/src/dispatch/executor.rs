//! Executes the commands of one batch: the state that they share.

use std::sync::Arc;
use std::time::Instant;

use everbloom_commands::flags::WRITE;
use everbloom_resp::encode::try_reserve;
use everbloom_resp::{Reply, try_encode};
use everbloom_store::clock::Now;
use tracing::warn;

use super::sinks::Encoded;
use crate::call::{Call, Registered};
use crate::config::Settings;
use crate::error;
use crate::native::table::registry;
use crate::server::Server;
use crate::session::Session;
use crate::stats::WorkerStats;

/// Executes the commands of one batch of a connection.
#[derive(Debug)]
pub struct Executor<'t> {
    /// The server.
    pub server: &'t Arc<Server>,
    /// The figures of the worker that runs the batch.
    pub stats: &'t WorkerStats,
    /// The current settings.
    pub settings: &'t mut Arc<Settings>,
    /// The connection.
    pub session: &'t mut Session,
    /// The start of the batch.
    pub now: Now,
    /// When the other connections of the worker have their turn.
    pub until: Instant,
    /// The end of the last command, and the start of the next.
    pub mark: Instant,
    /// The last command, run or refused.
    pub last: Option<&'static Registered>,
    /// Replies so far.
    pub out: &'t mut Vec<u8>,
}

impl Executor<'_> {
    /// A call of a command, and the sink for its answers.
    #[inline]
    pub fn call<'c>(
        &'c mut self,
        command: &'static Registered,
        args: &'c [&'c [u8]],
    ) -> (Call<'c>, Encoded<'c>) {
        let answers = Encoded {
            out: self.out,
            protocol: self.session.protocol,
            stats: self.stats,
            failed: 0,
            lacks_memory: false,
        };
        let call = Call {
            server: self.server,
            registry: registry(),
            stats: self.stats,
            settings: self.settings,
            session: self.session,
            command: &command.row,
            args,
            now: self.now,
            can_wait: true,
        };
        (call, answers)
    }

    /// Skips the time since the last mark: refused and queued commands have no timing figures, and
    /// their time must not count for the next command.
    pub fn skip_time(&mut self) {
        self.mark = Instant::now();
    }

    /// Adds to the figures of a command that ran `calls` times since the last mark.
    pub fn note_time(&mut self, command: &Registered, args: &[&[u8]], calls: u64, failed: u64) {
        let end = Instant::now();
        let took = end - self.mark;
        self.mark = end;
        if let Some(stats) = self.stats.commands.get(command.index) {
            stats.ran(calls, took, failed);
        }
        let slowlog = &self.server.slowlog;
        let (client, what) = (&self.session.client, (command.flags, args));
        slowlog.note(self.settings, client, self.now, took, what);
    }

    /// Writes a reply.
    pub fn send(&mut self, reply: &Reply) {
        if let Reply::Error(text) = reply {
            self.stats.count_error(text);
        }
        if try_encode(reply, self.session.protocol, self.out).is_err() {
            self.refuse_unanswered(self.out.len());
        }
    }

    /// The same for a long reply that is already encoded: it is not copied if it is the first.
    pub fn send_encoded(&mut self, mut reply: Vec<u8>) {
        if self.out.is_empty() {
            std::mem::swap(self.out, &mut reply);
        } else if try_reserve(reply.len(), self.out).is_ok() {
            self.out.append(&mut reply);
        } else {
            self.refuse_unanswered(self.out.len());
        }
    }

    /// Refuses the last command, for whose answer there is no memory: `start` is where that began.
    /// If the command may have changed something, the connection ends: the client must not take the
    /// next reply for this one, and a refusal for nothing changed.
    pub fn refuse_unanswered(&mut self, start: usize) {
        self.out.truncate(start);
        let refusal = error::out_of_memory();
        let has_run = self.last.is_none_or(|command| command.flags.has(WRITE));
        if !has_run && try_encode(&refusal, self.session.protocol, self.out).is_ok() {
            self.stats
                .count_error(refusal.as_error().unwrap_or_default());
            return;
        }
        let client = &self.session.client.addr;
        warn!("disconnected {client}: there is no memory for its reply");
        self.session.closing = true;
    }
}
