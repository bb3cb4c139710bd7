//! Figures for INFO. Each worker counts for itself, so that counting costs no shared cache line;
//! whoever asks adds up.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A counter that one thread writes and any thread reads.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Adds to it. Only the worker that owns the counter may: the sum is not atomic.
    #[inline]
    pub fn add(&self, n: u64) {
        self.0.store(
            self.0.load(Ordering::Relaxed).wrapping_add(n),
            Ordering::Relaxed,
        );
    }

    /// What it stands at.
    #[inline]
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Back to zero.
    pub fn reset(&self) {
        self.0.store(0, Ordering::Relaxed);
    }
}

/// What is counted of one command.
#[derive(Debug, Default)]
pub struct CommandStats {
    /// Times it ran.
    pub calls: Counter,
    /// Nanoseconds it took in all.
    pub nanos: Counter,
    /// Times it was refused before it ran.
    pub rejected: Counter,
    /// Times it ran and answered an error.
    pub failed: Counter,
}

/// What one worker counts.
#[derive(Debug)]
pub struct WorkerStats {
    /// By the command's number in the registry.
    pub commands: Box<[CommandStats]>,
    /// Bytes read from clients.
    pub net_input: Counter,
    /// Bytes written to clients.
    pub net_output: Counter,
    /// Keys that reads found.
    pub keyspace_hits: Counter,
    /// Keys that reads did not find.
    pub keyspace_misses: Counter,
    /// Error replies.
    pub errors: Counter,
}

impl WorkerStats {
    /// Zeroes for a server of `commands` commands.
    pub fn new(commands: usize) -> Arc<Self> {
        Arc::new(WorkerStats {
            commands: (0..commands).map(|_| CommandStats::default()).collect(),
            net_input: Counter::default(),
            net_output: Counter::default(),
            keyspace_hits: Counter::default(),
            keyspace_misses: Counter::default(),
            errors: Counter::default(),
        })
    }

    /// Back to zero.
    pub fn reset(&self) {
        for command in &self.commands {
            for counter in [
                &command.calls,
                &command.nanos,
                &command.rejected,
                &command.failed,
            ] {
                counter.reset();
            }
        }
        for counter in [&self.net_input, &self.net_output, &self.errors] {
            counter.reset();
        }
        self.keyspace_hits.reset();
        self.keyspace_misses.reset();
    }
}

/// What the server as a whole counts, seldom enough for shared counters.
#[derive(Debug, Default)]
pub struct ServerStats {
    /// Connections accepted.
    pub connections: AtomicU64,
    /// Connections refused because `maxclients` were open.
    pub rejected_connections: AtomicU64,
    /// Keys removed because their time had come.
    pub expired_keys: AtomicU64,
    /// The most memory that keys and buffers took.
    pub peak_memory: AtomicU64,
    /// Connections closed because of a protocol error, or of buffers over their limit.
    pub protocol_errors: AtomicU64,
}

impl ServerStats {
    /// Counts keys that were removed because their time had come.
    pub fn expired(&self, keys: usize) {
        if keys > 0 {
            self.expired_keys
                .fetch_add(u64::try_from(keys).unwrap_or(0), Ordering::Relaxed);
        }
    }

    /// Back to zero, but for the peak of memory.
    pub fn reset(&self) {
        for counter in [
            &self.connections,
            &self.rejected_connections,
            &self.expired_keys,
            &self.protocol_errors,
        ] {
            counter.store(0, Ordering::Relaxed);
        }
    }
}
