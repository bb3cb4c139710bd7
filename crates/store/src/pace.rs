//! Work that goes on for seconds beside threads that answer clients.

use std::cell::Cell;
use std::thread;
use std::time::{Duration, Instant};

/// How long the thread works at a time.
const WORK: Duration = Duration::from_micros(500);
/// How long it rests in between.
const REST: Duration = Duration::from_micros(100);

/// Lets a thread rest now and then: on a core that it shares with a worker it would run to the end
/// of its time slice, some milliseconds, before a request is answered.
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
    /// Rests when that is due.
    pub(crate) fn rest(&self) {
        if self.rested.get().elapsed() >= WORK {
            thread::sleep(REST);
            self.rested.set(Instant::now());
        }
    }
}
