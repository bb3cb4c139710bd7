//! Saves the state, from time to time and at the end. The output is on the disk before the state is
//! replaced: what a state knows is never printed again.

use std::io;
use std::time::{Duration, Instant};

use crate::failure::{Failure, say};

use super::deduplicator::Deduplicator;
use super::memory::Memory;
use super::state::State;

/// At most one part in so many of the time is spent on saving.
const SHARE: u32 = 20;

/// Saves the state of a run.
pub(super) struct Saver {
    state: State,
    every: Duration,
    due: Instant,
    /// Records that were handled when the state was last saved.
    records: u64,
}

impl Saver {
    pub(super) fn new(state: State, every: Duration) -> Self {
        Self {
            state,
            every,
            due: Instant::now() + every,
            records: 0,
        }
    }

    /// Saves the state if the last time is long ago. When the state cannot be saved, the run goes
    /// on and tries again later; an output that did not reach the disk ends it.
    pub(super) fn save_if_due(&mut self, run: &mut Deduplicator) -> Result<(), Failure> {
        let begin = Instant::now();
        if begin < self.due || run.tally.records == self.records || !self.lacks(run) {
            return Ok(());
        }
        if let Some(output) = &mut run.output {
            output.sync().map_err(|error| self.unwritten(run, error))?;
        }
        match self.save(run) {
            Ok(()) => self.records = run.tally.records,
            Err(failure) => say(&format!(
                "{failure}; the run goes on, and tries again later"
            )),
        }
        let end = Instant::now();
        self.due = end + self.every.max((end - begin) * SHARE);
        Ok(())
    }

    /// Closes the output and saves the state, at the end of the run.
    pub(super) fn finish(&mut self, run: &mut Deduplicator) -> Result<(), Failure> {
        let lacks = self.lacks(run);
        let Some(mut output) = run.output.take() else {
            return Ok(());
        };
        if output.is_lost() {
            // The failure of the run says so.
            return Ok(());
        }
        let synced = if lacks { output.sync() } else { Ok(()) };
        let closed = synced.and_then(|()| output.close());
        closed.map_err(|error| self.unwritten(run, error))?;
        if lacks { self.save(run) } else { Ok(()) }
    }

    /// Whether there is a file that does not have all of the filter. A run that only counts has
    /// nothing to add.
    fn lacks(&self, run: &Deduplicator) -> bool {
        match &run.memory {
            Memory::Local(local) if run.output.is_some() => self.state.lacks(&local.filter),
            _ => false,
        }
    }

    fn save(&mut self, run: &Deduplicator) -> Result<(), Failure> {
        match &run.memory {
            Memory::Local(local) => self.state.save(&local.filter),
            Memory::Server(_) => Ok(()),
        }
    }

    /// The output did not reach the disk, or its file could not be closed.
    fn unwritten(&self, run: &Deduplicator, error: io::Error) -> Failure {
        let then = match &run.memory {
            Memory::Server(_) => "; the server remembers what was printed",
            Memory::Local(_) if self.state.has_file() => {
                "; what was printed since the state was last saved comes again"
            }
            Memory::Local(_) => "",
        };
        Failure::Other(format!("cannot write the output: {error}{then}"))
    }
}
