//! Items as commands, and replies as answers.
//!
//! An item is one `BITFIELD`, which sets its bits and answers what they were before, or one
//! `BITFIELD_RO`. A command is atomic: when two programs add an item at the same time, exactly one
//! finds a bit that was not set. A pipeline of one `GETBIT` per bit costs the client more than it
//! saves on a server that executes such a pipeline as one batch.

use redis::{Cmd, Value};

use super::filter::BitmapFilter;
use crate::wire::{Action, Wire};
use crate::{BatchError, Error};

/// The most items of a pipeline.
const ITEMS: usize = 1000;
/// About the most bytes of a pipeline. It limits the memory of both sides.
const BYTES: usize = 512 << 10;
/// The approximate bytes of one bit in a command: its operation, type, offset and value.
const BYTES_OF_BIT: usize = 40;

impl Action {
    /// The command for an item.
    pub(super) fn command(self, key: &str, bits: &[u64]) -> Cmd {
        let (name, operation) = match self {
            Action::Add => ("BITFIELD", "SET"),
            Action::LookUp => ("BITFIELD_RO", "GET"),
        };
        let mut command = redis::cmd(name);
        command.arg(key);
        for bit in bits {
            command.arg(operation).arg("u1").arg(*bit);
            if self == Action::Add {
                command.arg(1);
            }
        }
        command
    }

    /// Whether an item was new, or is known, from the old bits in the reply.
    pub(super) fn answer(self, reply: &Value, hashes: u32) -> Result<bool, Error> {
        let set: Vec<u8> = redis::from_redis_value_ref(reply)
            .map_err(|_| Error::Reply(format!("{reply:?} is no list of bits")))?;
        if u32::try_from(set.len()) != Ok(hashes) {
            return Err(Error::Reply(format!("{} bits of {hashes}", set.len())));
        }
        let all = set.iter().all(|bit| *bit == 1);
        Ok(match self {
            Action::Add => !all,
            Action::LookUp => all,
        })
    }
}

impl BitmapFilter {
    /// Sends commands for items and reads the answers, in pipelines of a bounded length.
    pub(super) async fn many<W: Wire>(
        &self,
        wire: &mut W,
        items: &[impl AsRef<[u8]>],
        action: Action,
    ) -> Result<Vec<bool>, BatchError> {
        let hashes = self.layout.hashes;
        let bits = usize::try_from(hashes).unwrap_or(usize::MAX).max(1);
        let length = (BYTES / BYTES_OF_BIT / bits).clamp(1, ITEMS);
        let mut answers = Vec::with_capacity(items.len());
        for batch in items.chunks(length) {
            let commands = batch.iter();
            let commands = commands.map(|item| self.command(action, item.as_ref()));
            let keys = self.needed(batch);
            let replies = self.on_bits(wire, &keys, commands.collect(), action);
            let replies = match replies.await {
                Ok(replies) => replies,
                Err(error) => {
                    answers.resize(items.len(), None);
                    return Err(BatchError { answers, error });
                }
            };
            let mut failure = None;
            for reply in replies {
                let reply = reply.map_err(|error| Error::of(error, &self.name));
                match reply.and_then(|reply| action.answer(&reply, hashes)) {
                    Ok(answer) => answers.push(Some(answer)),
                    Err(error) => {
                        answers.push(None);
                        failure.get_or_insert(error);
                    }
                }
            }
            if let Some(error) = failure {
                answers.resize(items.len(), None);
                return Err(BatchError { answers, error });
            }
        }
        Ok(answers.into_iter().flatten().collect())
    }
}
