//! The signals that a process heeds, one after the other.

use std::io;

use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{Signal, SignalKind, signal};

pub(crate) const HANGUP: u8 = 1;
pub(crate) const INTERRUPT: u8 = 2;
pub(crate) const TERMINATE: u8 = 15;

/// SIGHUP, SIGINT and SIGTERM, caught: they do not end the process by themselves.
pub(crate) struct Caught {
    runtime: Runtime,
    terminate: Signal,
    interrupt: Signal,
    hangup: Signal,
}

impl Caught {
    /// Catches them, and ignores others from now on.
    pub(crate) fn new(ignored: &[SignalKind]) -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_io().build()?;
        let inside = runtime.enter();
        let terminate = signal(SignalKind::terminate())?;
        let interrupt = signal(SignalKind::interrupt())?;
        let hangup = signal(SignalKind::hangup())?;
        // A signal that was caught once is caught for ever.
        for kind in ignored {
            drop(signal(*kind)?);
        }
        drop(inside);
        Ok(Self {
            runtime,
            terminate,
            interrupt,
            hangup,
        })
    }

    /// Waits for the next one.
    pub(crate) fn next(&mut self) -> u8 {
        self.runtime.block_on(async {
            tokio::select! {
                _ = self.terminate.recv() => TERMINATE,
                _ = self.interrupt.recv() => INTERRUPT,
                _ = self.hangup.recv() => HANGUP,
            }
        })
    }
}
