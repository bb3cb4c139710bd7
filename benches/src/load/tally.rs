//! The counts of a run.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use hdrhistogram::Histogram;

use super::requests::Recipe;
use crate::cpu::{busy_nanos, cpu_nanos};

/// The longest latency that is told from longer ones, in nanoseconds.
const MAX_LATENCY_NANOS: u64 = 3600 * 1_000_000_000;

/// The counts and times of the measured part of a run.
#[derive(Debug)]
pub(super) struct Tally {
    pub(super) requests: u64,
    pub(super) items: u64,
    /// Items whose answer was 1.
    pub(super) positives: u64,
    /// Items that had not been added before the timed part.
    pub(super) others: u64,
    pub(super) other_positives: u64,
    /// Of batches, in nanoseconds.
    pub(super) latency: Histogram<u64>,
    /// By how much requests were sent after they were due, in nanoseconds. Empty when they have no
    /// schedule.
    pub(super) lateness: Histogram<u64>,
    /// Requests that were sent while their connection waited for an earlier one.
    pub(super) behind: u64,
    pub(super) elapsed: Duration,
    /// The time spent waiting for the server, or for the next request to be due.
    pub(super) waited: Duration,
    /// The processor time of this process.
    pub(super) generator: Duration,
    /// That of the server, if its process is known.
    pub(super) server: Option<Duration>,
    /// How long the cores were busy.
    pub(super) busy: Duration,
    began: Instant,
    server_process: Option<u32>,
}

impl Tally {
    pub(super) fn new(server_process: Option<u32>) -> Result<Self> {
        let histogram = Histogram::new_with_bounds(1, MAX_LATENCY_NANOS, 3)?;
        Ok(Self {
            requests: 0,
            items: 0,
            positives: 0,
            others: 0,
            other_positives: 0,
            latency: histogram.clone(),
            lateness: histogram,
            behind: 0,
            elapsed: Duration::ZERO,
            waited: Duration::ZERO,
            generator: Duration::ZERO,
            server: None,
            busy: Duration::ZERO,
            began: Instant::now(),
            server_process,
        })
    }

    /// Starts the clocks of the measured part.
    pub(super) fn begin(&mut self) -> Result<()> {
        self.waited = Duration::ZERO;
        self.generator = nanos(std::process::id())?;
        self.server = self.server_process.map(nanos).transpose()?;
        self.busy = Duration::from_nanos(busy_nanos()?);
        self.began = Instant::now();
        Ok(())
    }

    /// Stops the clocks.
    pub(super) fn end(mut self) -> Result<Self> {
        self.elapsed = self.began.elapsed();
        self.busy = Duration::from_nanos(busy_nanos()?).saturating_sub(self.busy);
        self.generator = nanos(std::process::id())?.saturating_sub(self.generator);
        let server = self.server_process.map(nanos).transpose()?;
        self.server = self
            .server
            .and_then(|began| Some(server?.saturating_sub(began)));
        Ok(self)
    }

    /// Counts answered requests: whether each of their items was found, and whether it was added
    /// before.
    pub(super) fn count(
        &mut self,
        recipe: &Recipe,
        requests: usize,
        found: &[bool],
        present: &[bool],
    ) -> Result<()> {
        for (&found, &present) in found.iter().zip(present) {
            ensure!(
                !(present && recipe.verb.lost(found)),
                "false negative: the server does not know an item that was added"
            );
            self.items += 1;
            self.positives += u64::from(found);
            self.others += u64::from(!present);
            self.other_positives += u64::from(found && !present);
        }
        self.requests += requests as u64;
        Ok(())
    }
}

/// Adds a time to a histogram of nanoseconds.
pub(super) fn record(histogram: &mut Histogram<u64>, time: Duration) {
    histogram.saturating_record(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
}

fn nanos(process: u32) -> Result<Duration> {
    cpu_nanos(process).map(Duration::from_nanos)
}
