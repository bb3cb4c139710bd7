//! The server's sinks: replies are bytes for a connection, changes go into the journal.

use everbloom_commands::flags::WRITE;
use everbloom_commands::run::IgnoredWord;
use everbloom_commands::{Answers, Changes, CommandError};
use everbloom_resp::encode::{
    encode_array_len, encode_boolean, encode_integer, try_encode_bulk, try_reserve,
};
use everbloom_resp::{Protocol, Reply, try_encode};
use everbloom_store::journal::Record;
use tracing::warn;

use crate::call::Command;
use crate::error;
use crate::stats::WorkerStats;

/// Appends encoded replies to those of a connection.
#[derive(Debug)]
pub struct Encoded<'a> {
    pub out: &'a mut Vec<u8>,
    pub protocol: Protocol,
    pub stats: &'a WorkerStats,
    /// How many requests failed.
    pub failed: u64,
    /// Whether there was no memory for a reply, so that it is missing.
    pub lacks_memory: bool,
}

impl Encoded<'_> {
    /// Refuses a command if there was no memory for its answer, which began at `start`: but one
    /// that may have changed something has run.
    pub fn refuse_unanswered(&mut self, start: usize, command: &Command) {
        if self.lacks_memory && !command.flags.has(WRITE) {
            self.out.truncate(start);
            self.lacks_memory = false;
            self.reply(error::out_of_memory());
        }
    }
}

impl Answers for Encoded<'_> {
    #[inline]
    fn boolean(&mut self, value: bool) {
        encode_boolean(value, self.protocol, self.out);
    }

    #[inline]
    fn integer(&mut self, number: i64) {
        encode_integer(number, self.out);
    }

    fn array(&mut self, len: usize) {
        encode_array_len(len, self.out);
    }

    fn element_error(&mut self, error: CommandError) {
        self.lacks_memory |= try_encode(&error.into(), self.protocol, self.out).is_err();
    }

    fn reply(&mut self, reply: Reply) {
        if let Reply::Error(text) = &reply {
            self.stats.count_error(text);
            self.failed += 1;
        }
        self.lacks_memory |= try_encode(&reply, self.protocol, self.out).is_err();
    }

    fn ignores(&mut self, word: IgnoredWord<'_>) {
        if word.is_first() {
            warn!("{word}");
        }
    }

    fn text(&mut self, bytes: &[u8]) -> bool {
        try_encode_bulk(bytes, self.out).is_ok()
    }
}

/// Makes room for the answers to a command on one value that has so many arguments, before it
/// changes anything: a boolean or an integer for each. Whether there is memory for them. Few always
/// find some.
#[inline]
pub fn reserve_answers(args: usize, out: &mut Vec<u8>) -> bool {
    const MAX_BYTES: usize = 32;
    const FEW_BYTES: usize = 1 << 20;
    let bytes = args.saturating_mul(MAX_BYTES);
    out.len().saturating_add(bytes) < FEW_BYTES || try_reserve(bytes, out).is_ok()
}

/// Records the changes of one database.
#[derive(Debug)]
pub struct Logged<'a> {
    pub record: &'a mut Record,
    pub db: usize,
    /// Whether the key counts as modified.
    pub touched: bool,
}

impl Changes for Logged<'_> {
    fn repeat(&mut self, request: &[&[u8]]) {
        self.record.command(self.db, request);
    }

    fn replace(&mut self, commands: &[&[&[u8]]]) {
        self.record.commands(self.db, commands);
    }

    fn touch(&mut self) {
        self.touched = true;
    }
}
