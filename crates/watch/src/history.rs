//! The last minutes of the server, for the page: a sample every two seconds.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use everbloom_store::clock::Now;

use everbloom_server::Server;
use everbloom_server::window::{BUCKETS, Histogram, resident_memory};

/// The time from one sample to the next.
pub const STEP: Duration = Duration::from_secs(2);
/// The number of samples: ten minutes.
const KEPT: usize = 300;

/// The activity since the previous sample, in the page's format: the end in Unix time; commands per
/// second; the mean, median and 99th percentile of the command times; the bytes of keys, values and
/// buffers; the bytes of the process. Times are in seconds, and are missing if there was no
/// command.
pub type Sample = [Option<f64>; 7];

/// The samples of the last minutes, the oldest first.
#[derive(Debug)]
pub struct History {
    /// The samples.
    pub samples: VecDeque<Sample>,
    at: Instant,
    totals: Totals,
}

#[derive(Clone, Copy, Debug, Default)]
struct Totals {
    /// Commands within EXEC, too, which are not timed one by one.
    calls: u64,
    nanos: u64,
    counts: [u64; BUCKETS],
}

impl Totals {
    fn of(server: &Server) -> Self {
        let mut totals = Totals::default();
        let stats = server.workers.iter().flat_map(|worker| &worker.commands);
        for stats in stats.filter(|stats| stats.calls.get() > 0) {
            totals.calls += stats.calls.get();
            totals.nanos += stats.nanos.get();
            for (total, count) in totals.counts.iter_mut().zip(stats.times.counts()) {
                *total += count;
            }
        }
        totals
    }

    /// The difference since then. CONFIG RESETSTAT may have reset the counters.
    fn since(&self, before: &Totals) -> Totals {
        let mut grown = *self;
        grown.calls = grown.calls.saturating_sub(before.calls);
        grown.nanos = grown.nanos.saturating_sub(before.nanos);
        for (count, before) in grown.counts.iter_mut().zip(before.counts) {
            *count = count.saturating_sub(before);
        }
        grown
    }

    /// The mean, the median and the 99th percentile of the command times, in seconds.
    fn times(&self) -> Option<[f64; 3]> {
        let commands: u64 = self.counts.iter().sum();
        let mean = float(self.nanos) / float(commands);
        let times = [mean, self.quantile(0.5), self.quantile(0.99)];
        (commands > 0).then(|| times.map(|nanos| nanos / 1e9))
    }

    /// The percentile of the command times for this share, in nanoseconds. Within a bucket the
    /// commands count as evenly spread on a logarithmic scale.
    fn quantile(&self, part: f64) -> f64 {
        let mut left = part * float(self.counts.iter().sum());
        let mut longest = 0.0;
        for (bound, count) in Histogram::bounds().zip(self.counts.map(float)) {
            // A time above all bounds counts as up to twice the last bound.
            longest = if bound.is_finite() {
                bound
            } else {
                longest * 2.0
            };
            if left <= count && count > 0.0 {
                return longest / 2.0 * (left / count).exp2();
            }
            left -= count;
        }
        longest
    }
}

#[expect(clippy::cast_precision_loss, reason = "for a picture")]
fn float(count: u64) -> f64 {
    count as f64
}

impl History {
    /// Begins the history.
    pub fn new(server: &Server) -> Self {
        History {
            samples: VecDeque::new(),
            at: Instant::now(),
            totals: Totals::of(server),
        }
    }

    /// Adds a sample of the time since the last one.
    pub fn sample(&mut self, server: &Server) {
        let (at, totals) = (Instant::now(), Totals::of(server));
        let grown = totals.since(&self.totals);
        let seconds = (at - self.at).as_secs_f64().max(1e-3);
        if self.samples.len() >= KEPT {
            self.samples.pop_front();
        }
        let [mean, median, slow] = grown.times().map_or([None; 3], |times| times.map(Some));
        let [at_seconds, used, resident] = [
            Now::read().seconds(),
            server.used_memory(),
            resident_memory().unwrap_or(0),
        ]
        .map(|number| Some(float(number)));
        let rate = Some(float(grown.calls) / seconds);
        self.samples
            .push_back([at_seconds, rate, mean, median, slow, used, resident]);
        (self.at, self.totals) = (at, totals);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_within_their_buckets() {
        let mut totals = Totals::default();
        assert_eq!(totals.times(), None);
        // 98 of up to a microsecond, one of up to 2, and one of up to a millisecond.
        (totals.counts[2], totals.counts[3], totals.counts[12]) = (98, 1, 1);
        totals.nanos = 1_000_000;
        let [mean, median, longest] = totals.times().unwrap();
        assert_eq!(mean, 1e-5);
        assert!((512e-9..1024e-9).contains(&median), "{median}");
        assert!((1024e-9..=2048e-9).contains(&longest), "{longest}");
        assert!(totals.quantile(1.0) > 524_288.0);
        // No time is longer than the last bound.
        totals.counts[BUCKETS - 1] = 1000;
        assert!(totals.quantile(0.99) <= 2_f64.powi(33));
    }

    #[test]
    fn counters_that_were_set_back_are_no_commands() {
        let mut before = Totals::default();
        (before.nanos, before.counts[0]) = (1000, 10);
        assert_eq!(Totals::default().since(&before).times(), None);
    }
}
