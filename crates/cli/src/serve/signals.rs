//! The signals: two end the server, one reopens the log file, and some do nothing.

use std::io;
use std::sync::Arc;
use std::thread;

use everbloom_server::Server;
use tokio::signal::unix::SignalKind;

use super::log::Log;
use super::manager;
use crate::signals::{Caught, HANGUP, INTERRUPT};

/// The signals that the server heeds.
pub(super) struct Signals(Caught);

impl Signals {
    /// Catches the signals, also those that do nothing here and would end the process.
    pub(super) fn catch() -> io::Result<Self> {
        let ignored = [
            SignalKind::user_defined1(),
            SignalKind::user_defined2(),
            SignalKind::alarm(),
            SignalKind::pipe(),
        ];
        Caught::new(&ignored).map(Self)
    }

    /// Ends the server in order at the first signal that asks for it. A further interrupt from the
    /// terminal ends the process at once.
    pub(super) fn attend(mut self, server: Arc<Server>, log: Log) -> io::Result<()> {
        let attend = move || {
            self.wait(&server, &log);
            manager::stopping();
            server.stop();
            while self.0.next() != INTERRUPT {}
            tracing::warn!("interrupted again, ending at once");
            log.flush();
            std::process::exit(1);
        };
        thread::Builder::new()
            .name("signals".to_owned())
            .spawn(attend)?;
        Ok(())
    }

    fn wait(&mut self, server: &Server, log: &Log) {
        let name = loop {
            match self.0.next() {
                HANGUP => hang_up(server, log),
                INTERRUPT => break "SIGINT",
                _ => break "SIGTERM",
            }
        };
        tracing::info!("received {name}, stopping");
    }
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
