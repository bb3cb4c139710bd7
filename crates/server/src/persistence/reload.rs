//! DEBUG RELOAD and DEBUG LOADAOF: the keys as they come back from the files, while a view holds all
//! of them, so that nothing else changes them.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::time::Duration;

use thiserror::Error;

use super::jobs::{self, JobError};
use super::load::{self, LoadError};
use crate::keyspace::View;
use crate::replay::Replayer;
use crate::server::Server;

/// Why the keys were not loaded again.
#[derive(Debug, Error)]
pub enum ReloadError {
    /// They were not saved.
    #[error(transparent)]
    Save(#[from] JobError),
    /// They were saved and cannot be loaded.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// No log is kept.
    #[error("no log is kept")]
    NoLog,
    /// The log is not on the disk.
    #[error("the log cannot be written")]
    Behind,
}

/// Loads the keys from the snapshot file, after they were saved there, if `save`.
///
/// The log stays right: with `save` the keys are what they were. Without, it is rewritten as soon as
/// the view is released.
pub fn through_snapshot(
    server: &Arc<Server>,
    view: &mut View<'_>,
    save: bool,
) -> Result<(), ReloadError> {
    let persistence = server.persistence().ok_or(JobError::NoDirectory)?;
    if server.is_loading() {
        return Err(JobError::Loading.into());
    }
    if save {
        jobs::save_view(server, persistence, view)?;
    }
    load::load_snapshot_into(server, persistence, view)?;
    if !save && server.journal.is_logging() {
        let figures = &persistence.figures;
        figures.rewrite_scheduled.store(true, Relaxed);
    }
    Ok(())
}

/// Loads the keys from the log. If that fails, the server ends, for half the keys are gone; the log
/// is as it was.
pub fn through_log(server: &Arc<Server>, view: &mut View<'_>) -> Result<(), ReloadError> {
    let persistence = server.persistence().ok_or(JobError::NoDirectory)?;
    if server.is_loading() {
        return Err(JobError::Loading.into());
    }
    if !server.journal.is_logging() {
        return Err(ReloadError::NoLog);
    }
    // While a rewrite is going on, the files of the log change.
    let _turn = persistence.turn()?;
    if !is_written(server) {
        return Err(ReloadError::Behind);
    }
    let now = view.set_now(Replayer::now());
    let loaded = load::load_log_into(server, persistence, view);
    view.set_now(now);
    loaded.map_err(|problem| {
        server.fail(format!("the log cannot be loaded again: {problem}"));
        problem.into()
    })
}

/// Waits until everything logged so far is in the file; false when that takes too long.
fn is_written(server: &Server) -> bool {
    let end = server.journal.end();
    for _ in 0..10_000 {
        if server.journal.durable_now() >= end {
            return true;
        }
        thread::sleep(Duration::from_millis(1));
    }
    false
}
