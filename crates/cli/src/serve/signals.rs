//! The signals: two end the server, one reopens the log file, and some do nothing.

use std::io;
use std::sync::Arc;
use std::thread;

use everbloom_server::Server;
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::log::Log;
use super::manager;

/// The signals that the server heeds.
pub(super) struct Signals {
    runtime: tokio::runtime::Runtime,
    terminate: Signal,
    interrupt: Signal,
    hangup: Signal,
}

impl Signals {
    /// Catches the signals. From now on they do not end the process by themselves.
    pub(super) fn catch() -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .build()?;
        let inside = runtime.enter();
        let terminate = signal(SignalKind::terminate())?;
        let interrupt = signal(SignalKind::interrupt())?;
        let hangup = signal(SignalKind::hangup())?;
        // A signal that was caught once is caught for ever. These would end the process.
        for kind in [
            SignalKind::user_defined1(),
            SignalKind::user_defined2(),
            SignalKind::alarm(),
            SignalKind::pipe(),
        ] {
            drop(signal(kind)?);
        }
        drop(inside);
        Ok(Signals {
            runtime,
            terminate,
            interrupt,
            hangup,
        })
    }

    /// Ends the server in order at the first signal that asks for it. A further interrupt from the
    /// terminal ends the process at once.
    pub(super) fn attend(mut self, server: Arc<Server>, log: Log) -> io::Result<()> {
        let attend = move || {
            self.wait(&server, &log);
            manager::stopping();
            server.stop();
            self.wait_for_interrupt();
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
        self.runtime.block_on(async {
            let name = loop {
                tokio::select! {
                    _ = self.terminate.recv() => break "SIGTERM",
                    _ = self.interrupt.recv() => break "SIGINT",
                    _ = self.hangup.recv() => hang_up(server, log),
                }
            };
            tracing::info!("received {name}, stopping");
        });
    }

    fn wait_for_interrupt(&mut self) {
        self.runtime.block_on(self.interrupt.recv());
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
