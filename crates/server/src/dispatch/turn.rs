//! The state that the commands of one batch share.

use std::sync::Arc;
use std::time::Instant;

use everbloom_commands::Context;
use everbloom_commands::flags::SKIP_SLOWLOG;
use everbloom_resp::{Reply, encode};
use everbloom_store::clock::Now;

use crate::call::{Registered, context};
use crate::config::Settings;
use crate::server::Server;
use crate::session::{ReplyMode, Session};
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
    /// The limits and settings for commands on filters.
    pub fn context(&self) -> Context {
        context(self.server, self.settings, self.session, self.now)
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
            let nanos = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
            stats.ran(calls, nanos, failed);
        }
        let threshold = self.settings.slowlog_log_slower_than;
        let micros = i64::try_from(took.as_micros()).unwrap_or(i64::MAX);
        if threshold >= 0 && micros >= threshold && !command.flags.has(SKIP_SLOWLOG) {
            self.server
                .slowlog
                .note(self.settings, self.session, self.now, micros, args);
        }
    }

    /// Writes a reply, unless the client wants none.
    pub fn send(&mut self, reply: &Reply) {
        if let Reply::Error(text) = reply {
            self.stats.count_error(text);
        }
        if self.is_wanted() {
            encode(reply, self.session.protocol, self.out);
        }
    }

    /// The same for a long reply that is already encoded: it is not copied if it is the first.
    pub fn send_encoded(&mut self, mut reply: Vec<u8>) {
        if !self.is_wanted() {
            return;
        }
        if self.out.is_empty() {
            std::mem::swap(self.out, &mut reply);
        } else {
            self.out.append(&mut reply);
        }
    }

    /// Whether the client wants the next reply.
    fn is_wanted(&mut self) -> bool {
        match self.session.reply_mode {
            ReplyMode::On => return true,
            ReplyMode::Off => {}
            ReplyMode::SkipNext => self.session.reply_mode = ReplyMode::Skip,
            ReplyMode::Skip => self.session.reply_mode = ReplyMode::On,
        }
        false
    }
}
