//! The signals: two end the server, one reopens the log file, and some do nothing.

use std::io;
use std::sync::Arc;
use std::thread;

use everbloom_server::Server;
use sd_notify::NotifyState;
use tokio::signal::unix::SignalKind;

use super::log::Log;
use crate::signals::{self, HANGUP, INTERRUPT};

/// Catches the signals, also those that do nothing here and would end the process.
pub(super) fn catch() -> io::Result<impl FnMut() -> u8 + Send> {
    signals::catch(&[
        SignalKind::user_defined1(),
        SignalKind::user_defined2(),
        SignalKind::alarm(),
        SignalKind::pipe(),
    ])
}

/// Ends the server in order at the first signal that asks for it. A further interrupt from the
/// terminal ends the process at once.
pub(super) fn attend(
    mut next: impl FnMut() -> u8 + Send + 'static,
    server: Arc<Server>,
    log: Log,
) -> io::Result<()> {
    let attend = move || {
        let name = loop {
            match next() {
                HANGUP => hang_up(&server, &log),
                INTERRUPT => break "SIGINT",
                _ => break "SIGTERM",
            }
        };
        tracing::info!("received {name}, stopping");
        // Saving may take long.
        super::tell_manager(NotifyState::Stopping);
        server.stop();
        while next() != INTERRUPT {}
        tracing::warn!("interrupted again, ending at once");
        log.flush();
        std::process::exit(1);
    };
    let thread = thread::Builder::new().name("signals".to_owned());
    thread.spawn(attend).map(drop)
}

/// After a SIGHUP, files are reopened: they may have been replaced.
fn hang_up(server: &Server, log: &Log) {
    log.reopen();
    match server.read_tls_files() {
        Ok(true) => tracing::info!("received SIGHUP: read the files of TLS"),
        Ok(false) => {}
        Err(problem) => tracing::error!("received SIGHUP: TLS goes on as before: {problem}"),
    }
}
