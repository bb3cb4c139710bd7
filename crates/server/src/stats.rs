//! Figures for INFO. Each worker counts for itself, so that counting needs no shared cache line;
//! readers add up.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// A counter that one thread writes and any thread reads.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Adds to it. Only the worker that owns the counter may call this: the addition is not atomic.
    #[inline]
    pub fn add(&self, n: u64) {
        let sum = self.get().wrapping_add(n);
        self.0.store(sum, Ordering::Relaxed);
    }

    /// Its current value.
    #[inline]
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Resets it to zero.
    pub fn reset(&self) {
        self.0.store(0, Ordering::Relaxed);
    }
}

/// Buckets of a histogram of times.
pub const BUCKETS: usize = 26;
/// The bound of the first bucket is 2^8 nanoseconds. Each further bound is twice the one before;
/// the last bucket has none.
const FIRST_BOUND: u32 = 8;

/// A histogram of command times, with buckets bounded by powers of two.
#[derive(Debug, Default)]
pub struct Histogram([Counter; BUCKETS]);

impl Histogram {
    /// Counts commands that took this many nanoseconds each.
    #[inline]
    fn add(&self, nanos: u64, commands: u64) {
        let doubled = (u64::BITS - nanos.saturating_sub(1).leading_zeros()).max(FIRST_BOUND);
        let bucket = usize::try_from(doubled - FIRST_BOUND).unwrap_or(BUCKETS);
        if let Some(counter) = self.0.get(bucket.min(BUCKETS - 1)) {
            counter.add(commands);
        }
    }

    /// The number of commands in each bucket.
    pub fn counts(&self) -> impl Iterator<Item = u64> {
        self.0.iter().map(Counter::get)
    }

    /// The longest time of each bucket, in nanoseconds; infinite for the last.
    pub fn bounds() -> impl Iterator<Item = f64> {
        let bounds = (FIRST_BOUND..).take(BUCKETS - 1);
        let bounds = bounds.map(|power| f64::from(power).exp2());
        bounds.chain([f64::INFINITY])
    }
}

/// The figures of one command.
#[derive(Debug, Default)]
pub struct CommandStats {
    /// Times it ran.
    pub calls: Counter,
    /// Total nanoseconds.
    pub nanos: Counter,
    /// The times of its runs. Requests executed together count as equal parts of the whole time.
    pub times: Histogram,
    /// Times it was refused before it ran.
    pub rejected: Counter,
    /// Times it ran and replied with an error.
    pub failed: Counter,
}

impl CommandStats {
    /// Counts calls that ran, and took this long together.
    #[inline]
    pub fn ran(&self, calls: u64, took: Duration, failed: u64) {
        let nanos = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        self.calls.add(calls);
        self.nanos.add(nanos);
        self.failed.add(failed);
        // Usually one call, which saves a division.
        let each = if calls == 1 {
            nanos
        } else {
            nanos / calls.max(1)
        };
        self.times.add(each, calls);
    }

    fn reset(&self) {
        let counters = [&self.calls, &self.nanos, &self.rejected, &self.failed];
        let times = &self.times.0;
        counters.into_iter().chain(times).for_each(Counter::reset);
    }
}

/// The figures of one worker.
#[derive(Debug, Default)]
pub struct WorkerStats {
    /// By the command's number in the registry.
    pub commands: Box<[CommandStats]>,
    /// Bytes read from clients.
    pub net_input: Counter,
    /// Bytes written to clients.
    pub net_output: Counter,
    /// Keys that existed when read.
    pub keyspace_hits: Counter,
    /// Keys that did not exist when read.
    pub keyspace_misses: Counter,
    /// Error replies.
    pub errors: Counter,
    /// Error replies by their code, the first word.
    pub error_codes: Mutex<BTreeMap<String, u64>>,
}

/// The number of error codes that are counted; the same as in Redis.
const MAX_ERROR_CODES: usize = 128;

impl WorkerStats {
    /// Zeros for a server with `commands` commands.
    pub fn new(commands: usize) -> Arc<Self> {
        Arc::new(WorkerStats {
            commands: (0..commands).map(|_| CommandStats::default()).collect(),
            ..WorkerStats::default()
        })
    }

    /// Commands that ran.
    pub fn commands_run(&self) -> u64 {
        self.commands
            .iter()
            .map(|command| command.calls.get())
            .sum()
    }

    /// Counts an error reply.
    pub fn count_error(&self, text: &str) {
        self.errors.add(1);
        let code = text.split(' ').next().unwrap_or(text);
        let mut codes = self.error_codes.lock();
        if let Some(count) = codes.get_mut(code) {
            *count += 1;
        } else if codes.len() < MAX_ERROR_CODES {
            codes.insert(code.to_owned(), 1);
        }
    }

    /// Resets all to zero.
    pub fn reset(&self) {
        self.error_codes.lock().clear();
        for command in &self.commands {
            command.reset();
        }
        let traffic = [&self.net_input, &self.net_output, &self.errors];
        let look_ups = [&self.keyspace_hits, &self.keyspace_misses];
        traffic.into_iter().chain(look_ups).for_each(Counter::reset);
    }
}

/// The figures of the whole server, changed rarely enough for shared counters.
#[derive(Debug, Default)]
pub struct ServerStats {
    /// Connections accepted.
    pub connections: AtomicU64,
    /// Connections refused because `maxclients` were open.
    pub rejected_connections: AtomicU64,
    /// Expired keys removed.
    pub expired_keys: AtomicU64,
    /// Connections closed because all clients held more than `maxmemory-clients`.
    pub evicted_clients: AtomicU64,
    /// The peak memory of keys and buffers.
    pub peak_memory: AtomicU64,
    /// Bytes that the buffers of connections take now.
    pub buffers: AtomicU64,
    /// Those of them that connections take which are never closed because of their memory.
    pub exempt_buffers: AtomicU64,
    /// Recent commands per second.
    pub commands_per_second: AtomicU64,
    /// Recent bytes read per second.
    pub input_per_second: AtomicU64,
    /// Recent bytes written per second.
    pub output_per_second: AtomicU64,
    /// Connections closed because of a protocol error, or of buffers over their limit.
    pub protocol_errors: AtomicU64,
}

impl ServerStats {
    /// Bytes that count for `maxmemory-clients`.
    pub fn evictable_buffers(&self) -> u64 {
        let all = self.buffers.load(Ordering::Relaxed);
        all.saturating_sub(self.exempt_buffers.load(Ordering::Relaxed))
    }

    /// Counts expired keys that were removed.
    pub fn expired(&self, keys: usize) {
        if keys > 0 {
            self.expired_keys
                .fetch_add(u64::try_from(keys).unwrap_or(0), Ordering::Relaxed);
        }
    }

    /// Resets to zero, except memory and the figures measured every second.
    pub fn reset(&self) {
        for counter in [
            &self.connections,
            &self.rejected_connections,
            &self.expired_keys,
            &self.evicted_clients,
            &self.protocol_errors,
        ] {
            counter.store(0, Ordering::Relaxed);
        }
    }
}

/// Measures once a second how fast the counters grow.
#[derive(Debug)]
pub struct Sampler {
    at: Instant,
    totals: [u64; 3],
}

impl Sampler {
    /// Begins to measure.
    pub fn new(workers: &[Arc<WorkerStats>]) -> Self {
        Sampler {
            at: Instant::now(),
            totals: totals(workers),
        }
    }

    /// Updates the rates, if a second has passed since the last update.
    pub fn tick(&mut self, workers: &[Arc<WorkerStats>], stats: &ServerStats) {
        let elapsed = self.at.elapsed();
        if elapsed < Duration::from_secs(1) {
            return;
        }
        let totals = totals(workers);
        let millis = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX);
        let rates = [
            &stats.commands_per_second,
            &stats.input_per_second,
            &stats.output_per_second,
        ];
        for ((rate, now), before) in rates.into_iter().zip(totals).zip(self.totals) {
            // CONFIG RESETSTAT may have reset the counters.
            let grown = now.saturating_sub(before);
            rate.store(grown.saturating_mul(1000) / millis, Ordering::Relaxed);
        }
        *self = Sampler {
            at: Instant::now(),
            totals,
        };
    }
}

/// The figures of one command, of each worker.
pub fn of_command(
    workers: &[Arc<WorkerStats>],
    index: usize,
) -> impl Iterator<Item = &CommandStats> {
    workers
        .iter()
        .filter_map(move |worker| worker.commands.get(index))
}

/// Error replies of all workers by their code.
pub fn error_codes(workers: &[Arc<WorkerStats>]) -> BTreeMap<String, u64> {
    let mut codes = BTreeMap::new();
    for worker in workers {
        for (code, count) in &*worker.error_codes.lock() {
            *codes.entry(code.clone()).or_default() += count;
        }
    }
    codes
}

/// Commands, bytes read, bytes written.
fn totals(workers: &[Arc<WorkerStats>]) -> [u64; 3] {
    let sum = |of: fn(&WorkerStats) -> u64| workers.iter().map(|worker| of(worker)).sum();
    [
        sum(WorkerStats::commands_run),
        sum(|worker| worker.net_input.get()),
        sum(|worker| worker.net_output.get()),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_counts_in_the_first_bucket_that_holds_it() {
        let bounds: Vec<f64> = Histogram::bounds().collect();
        assert_eq!(bounds.len(), BUCKETS);
        assert_eq!(bounds[..3], [256.0, 512.0, 1024.0]);
        for nanos in [0, 1, 256, 257, 1024, 1025, 1 << 32, (1 << 32) + 1, u64::MAX] {
            let times = Histogram::default();
            times.add(nanos, 3);
            let holds = |bound: &f64| nanos as f64 <= *bound;
            let expected = bounds.iter().position(holds).unwrap();
            let counted: Vec<u64> = times.counts().collect();
            assert_eq!(counted.iter().sum::<u64>(), 3);
            assert_eq!(counted[expected], 3, "{nanos}");
        }
    }

    #[test]
    fn commands_that_ran_at_once_count_as_equal_parts() {
        let stats = CommandStats::default();
        stats.ran(1000, Duration::from_micros(300), 1);
        stats.ran(1, Duration::from_millis(1), 0);
        assert_eq!((stats.calls.get(), stats.failed.get()), (1001, 1));
        let counts: Vec<u64> = stats.times.counts().collect();
        // 300 ns each, and a millisecond.
        assert_eq!((counts[1], counts[12]), (1000, 1));
        stats.reset();
        assert_eq!(stats.times.counts().sum::<u64>(), 0);
    }
}
