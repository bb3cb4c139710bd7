//! Pauses for long background work, so that threads that answer clients are not delayed.

use std::cell::Cell;
use std::thread;
use std::time::{Duration, Instant};

/// How long the thread works at a time.
const WORK_TIME: Duration = Duration::from_micros(500);
/// How long it pauses in between.
const REST_TIME: Duration = Duration::from_micros(100);

/// Pauses a thread now and then. On a core shared with a worker, it would otherwise run to the end
/// of its time slice, some milliseconds, before the worker answers a request.
#[derive(Debug)]
pub(crate) struct Pace {
    rested: Cell<Instant>,
}

impl Default for Pace {
    fn default() -> Self {
        let rested = Cell::new(Instant::now());
        Pace { rested }
    }
}

impl Pace {
    /// Pauses when that is due.
    pub(crate) fn rest(&self) {
        if self.rested.get().elapsed() >= WORK_TIME {
            thread::sleep(REST_TIME);
            self.rested.set(Instant::now());
        }
    }
}
