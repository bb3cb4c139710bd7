//! The signals that a process heeds, one after the other.

use std::io;

use tokio::runtime::Builder;
use tokio::signal::unix::{SignalKind, signal};

pub(crate) const HANGUP: u8 = 1;
pub(crate) const INTERRUPT: u8 = 2;
pub(crate) const TERMINATE: u8 = 15;

/// Catches SIGHUP, SIGINT and SIGTERM, so that they do not end the process by themselves, and
/// ignores others from now on. What is returned waits for the next one.
pub(crate) fn catch(ignored: &[SignalKind]) -> io::Result<impl FnMut() -> u8 + Send + use<>> {
    let runtime = Builder::new_current_thread().enable_io().build()?;
    let inside = runtime.enter();
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut hangup = signal(SignalKind::hangup())?;
    // A signal that was caught once is caught for ever.
    for kind in ignored {
        drop(signal(*kind)?);
    }
    drop(inside);
    let next = move || {
        runtime.block_on(async {
            tokio::select! {
                _ = terminate.recv() => TERMINATE,
                _ = interrupt.recv() => INTERRUPT,
                _ = hangup.recv() => HANGUP,
            }
        })
    };
    Ok(next)
}
