//! Pauses for long background work, so that threads that answer clients are not delayed.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use crate::machine::Machine;

/// How long the thread works at a time.
const WORK_TIME: Duration = Duration::from_micros(500);
/// How long it pauses in between.
const REST_TIME: Duration = Duration::from_micros(100);

/// Pauses a thread now and then. On a core shared with a worker, it would otherwise run to the end
/// of its time slice, some milliseconds, before the worker answers a request.
#[derive(Debug)]
pub(crate) struct Pace {
    machine: Arc<dyn Machine>,
    rested: Cell<Duration>,
}

impl Pace {
    /// A pace that begins now.
    pub(crate) fn new(machine: &Arc<dyn Machine>) -> Self {
        Pace {
            rested: Cell::new(machine.uptime()),
            machine: Arc::clone(machine),
        }
    }

    /// Pauses when that is due. The caller holds no lock.
    pub(crate) fn rest(&self) {
        let worked = self.machine.uptime().saturating_sub(self.rested.get());
        if worked >= WORK_TIME {
            self.machine.sleep(REST_TIME);
            self.rested.set(self.machine.uptime());
        }
    }
}
