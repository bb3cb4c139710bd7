//! The signals that end a run in order: what was printed is remembered first.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use super::shared::Shared;
use crate::signals::catch;

/// The exit code of a process that a signal ended is this and the signal's number.
const SIGNALLED: u8 = 128;

/// Which signal came.
#[derive(Clone, Debug, Default)]
pub(crate) struct Signals(Arc<AtomicU8>);

impl Signals {
    /// The exit code that tells of the signal, if one came.
    pub(crate) fn exit_code(&self) -> Option<u8> {
        match self.0.load(Ordering::Relaxed) {
            0 => None,
            number => Some(SIGNALLED + number),
        }
    }

    /// Catches the signals. The first stops the reader, and the second the process.
    pub(crate) fn catch(shared: Arc<Shared>) -> io::Result<Self> {
        let signals = Signals::default();
        let Signals(number) = signals.clone();
        let mut next = catch(&[])?;
        let wait = move || loop {
            let signal = next();
            if number.swap(signal, Ordering::Relaxed) != 0 {
                std::process::exit(i32::from(SIGNALLED + signal));
            }
            shared.stop.store(true, Ordering::SeqCst);
        };
        std::thread::Builder::new()
            .name("signals".to_owned())
            .spawn(wait)?;
        Ok(signals)
    }
}
