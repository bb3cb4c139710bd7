//! The state that the commands of one batch share.

use std::sync::Arc;
use std::time::Instant;

use everbloom_resp::{Reply, try_encode};
use everbloom_store::clock::Now;
use tracing::warn;

use super::sinks::Encoded;
use crate::call::{Call, Registered};
use crate::config::Settings;
use crate::native::table::registry;
use crate::server::Server;
use crate::session::Session;
use crate::stats::WorkerStats;

/// The state that the commands of one batch share.
#[derive(Debug)]
pub struct Turn<'t> {
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
    /// When the connection began to run requests without giving others a turn.
    pub begun: Instant,
    /// The end of the last command, and the start of the next.
    pub mark: Instant,
    /// The last command, run or refused.
    pub last: Option<&'static Registered>,
    /// Replies so far.
    pub out: &'t mut Vec<u8>,
}

impl Turn<'_> {
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
        let what = (&command.row, args);
        slowlog.note(self.settings, self.session, self.now, took, what);
    }

    /// Writes a reply. Without memory for it the connection ends: the command has run, and the
    /// client must not take the next reply for this one.
    pub fn send(&mut self, reply: &Reply) {
        if let Reply::Error(text) = reply {
            self.stats.count_error(text);
        }
        if try_encode(reply, self.session.protocol, self.out).is_err() {
            let client = &self.session.client.addr;
            warn!("disconnected {client}: there is no memory for its reply");
            self.session.closing = true;
        }
    }

    /// The same for a long reply that is already encoded: it is not copied if it is the first.
    pub fn send_encoded(&mut self, mut reply: Vec<u8>) {
        if self.out.is_empty() {
            std::mem::swap(self.out, &mut reply);
        } else {
            self.out.append(&mut reply);
        }
    }
}
