//! The signals: two end the server, one reopens the log file, and some do nothing.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
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

/// How far the end of the server has come.
#[derive(Debug, Default)]
struct Phase(AtomicU8);

const RUNNING: u8 = 0;
const SAVING: u8 = 1;
/// A snapshot without which data would be lost has failed, so the server goes on.
const REFUSED: u8 = 2;
const STOPPING: u8 = 3;

impl Phase {
    fn get(&self) -> u8 {
        self.0.load(Ordering::SeqCst)
    }

    fn set(&self, phase: u8) {
        self.0.store(phase, Ordering::SeqCst);
    }
}

/// Ends the server in order at the first signal that asks for it, unless data would be lost. Then a
/// second one ends it. A further interrupt from the terminal ends the process at once.
pub(super) fn attend(
    mut next: impl FnMut() -> u8 + Send + 'static,
    server: Arc<Server>,
    log: Log,
) -> io::Result<()> {
    let phase = Arc::new(Phase::default());
    let attend = move || {
        loop {
            let (signal, name) = match next() {
                HANGUP => {
                    hang_up(&server, &log);
                    continue;
                }
                INTERRUPT => (INTERRUPT, "SIGINT"),
                other => (other, "SIGTERM"),
            };
            match phase.get() {
                RUNNING => {
                    tracing::info!("received {name}, stopping");
                    save_and_stop(&server, &phase);
                }
                REFUSED => {
                    tracing::warn!("received {name} again, stopping, saved or not");
                    stop(&server, &phase);
                }
                _ if signal == INTERRUPT => {
                    tracing::warn!("interrupted again, ending at once");
                    log.flush();
                    std::process::exit(1);
                }
                _ => {}
            }
        }
    };
    let thread = thread::Builder::new().name("signals".to_owned());
    thread.spawn(attend).map(drop)
}

/// Stops the server once what would be lost is saved. That may take long, so it has a thread of its
/// own.
fn save_and_stop(server: &Arc<Server>, phase: &Arc<Phase>) {
    phase.set(SAVING);
    let (shared, state) = (Arc::clone(server), Arc::clone(phase));
    let save = move || match shared.save_before_stop() {
        Ok(()) => stop(&shared, &state),
        Err(why) => {
            tracing::error!(
                "not stopping, because {why}; a second signal stops the server, and what it cannot \
                 save then is lost"
            );
            state.set(REFUSED);
        }
    };
    let thread = thread::Builder::new().name("stop".to_owned());
    if let Err(problem) = thread.spawn(save) {
        tracing::error!("not stopping: cannot start a thread: {problem}");
        phase.set(REFUSED);
    }
}

fn stop(server: &Server, phase: &Phase) {
    phase.set(STOPPING);
    // The end may take long, too.
    super::tell_manager(NotifyState::Stopping);
    server.stop();
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
