//! The server's sinks: replies are bytes for a connection, changes go into the journal.

use everbloom_commands::{Answers, Changes, CommandError};
use everbloom_resp::encode::{encode_array_len, encode_boolean, encode_error, encode_integer};
use everbloom_resp::{Protocol, Reply, try_encode};
use everbloom_store::journal::Record;

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
        encode_error(&error.to_string(), self.out);
    }

    fn reply(&mut self, reply: Reply) {
        if let Reply::Error(text) = &reply {
            self.stats.count_error(text);
            self.failed += 1;
        }
        self.lacks_memory |= try_encode(&reply, self.protocol, self.out).is_err();
    }
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
