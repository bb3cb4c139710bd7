//! Where effects go: what a log or a replica must replay, in the order in which it happened.
//!
//! A command's effect is recorded while the shards it changed are still locked, so that the order
//! of the records of a key is the order of its changes.

use std::sync::atomic::{AtomicU64, Ordering};

use everbloom_commands::Effect;

/// The record of all changes. It counts them; what is counted is kept in memory alone.
#[derive(Debug, Default)]
pub struct Journal {
    changes: AtomicU64,
}

impl Journal {
    /// Records the effect of a command.
    pub fn record(&self, effect: &Effect) {
        let commands = match effect {
            Effect::None => return,
            Effect::Verbatim => 1,
            Effect::Replace(commands) => commands.len(),
        };
        self.changes
            .fetch_add(u64::try_from(commands).unwrap_or(0), Ordering::Relaxed);
    }

    /// Records that keys were removed because their time had come.
    pub fn record_expired(&self, keys: usize) {
        self.changes
            .fetch_add(u64::try_from(keys).unwrap_or(0), Ordering::Relaxed);
    }

    /// How many changes there were.
    pub fn changes(&self) -> u64 {
        self.changes.load(Ordering::Relaxed)
    }
}
