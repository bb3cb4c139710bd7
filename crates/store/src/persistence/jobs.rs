//! SAVE, BGSAVE and BGREWRITEAOF, and their automatic start. At most one of them runs at a time.
//! Each works on a snapshot, so that commands can run meanwhile.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use thiserror::Error;
use tracing::{error, info};

use everbloom_files::rdb::WriteError;

use super::directory::Persistence;
use super::figures::{JobFigures, PersistenceFigures};
use super::writer;
use crate::health::Cause;
use crate::keyspace::Footprint;
use crate::keyspace::snapshot::Snapshot;
use crate::settings::Settings;
use crate::store::Store;

/// Why a snapshot was not made.
#[derive(Debug, Error)]
pub enum JobError {
    /// There is no data directory.
    #[error("the server has no data directory")]
    NoDirectory,
    /// Another snapshot is being made.
    #[error("another snapshot is being made")]
    Busy,
    /// The data is being loaded.
    #[error("the data is being loaded")]
    Loading,
    /// The log was switched off before it could begin or be rewritten.
    #[error("no log is wanted any more")]
    Unwanted,
    /// The file was not written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The files could not be renamed into place.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Holds the right to make a snapshot.
pub(super) struct JobTurn<'p>(&'p Persistence);

impl Drop for JobTurn<'_> {
    fn drop(&mut self) {
        self.0.busy.store(false, Release);
    }
}

impl Persistence {
    pub(super) fn turn(&self) -> Result<JobTurn<'_>, JobError> {
        match self.busy.swap(true, Acquire) {
            true => Err(JobError::Busy),
            false => Ok(JobTurn(self)),
        }
    }

    /// Whether a snapshot is being made.
    pub fn is_busy(&self) -> bool {
        self.busy.load(Relaxed)
    }
}

/// Saves all keys to the snapshot file, and returns when that is done.
pub fn save(store: &Store) -> Result<(), JobError> {
    let persistence = store.persistence().ok_or(JobError::NoDirectory)?;
    let _turn = persistence.turn()?;
    save_now(store, persistence)
}

/// Selects the figures of a job.
type OfJob = fn(&PersistenceFigures) -> &JobFigures;

/// A background job. It ends when this is dropped, even by a panic.
struct Job {
    store: Arc<Store>,
    figures: OfJob,
}

impl Drop for Job {
    fn drop(&mut self) {
        if let Some(persistence) = self.store.persistence() {
            let figures = (self.figures)(&persistence.figures);
            figures.running_since.store(0, Relaxed);
            drop(JobTurn(persistence));
        }
    }
}

/// Starts a thread that runs `work`.
fn in_background(
    store: &Arc<Store>,
    name: &str,
    figures: OfJob,
    work: impl FnOnce(&Store, &Persistence) + Send + 'static,
) -> Result<(), JobError> {
    let persistence = store.persistence().ok_or(JobError::NoDirectory)?;
    // The job returns the right to make a snapshot.
    std::mem::forget(persistence.turn()?);
    let job = Job {
        store: Arc::clone(store),
        figures,
    };
    let of_job = figures(&persistence.figures);
    let began = store.machine.now().seconds();
    of_job.running_since.store(began, Relaxed);
    of_job.last_try.store(began, Relaxed);
    of_job.scheduled.store(false, Relaxed);
    let work = Box::new(move || {
        if let Some(persistence) = job.store.persistence() {
            work(&job.store, persistence);
            let ended = job.store.machine.now().seconds();
            let took = i64::try_from(ended.saturating_sub(began));
            let seconds = &figures(&persistence.figures).seconds;
            seconds.store(took.unwrap_or(i64::MAX), Relaxed);
        }
    });
    *persistence.job.lock() = Some(store.machine.start(name, work)?);
    Ok(())
}

/// Saves all keys to the snapshot file in the background.
pub fn save_in_background(store: &Arc<Store>) -> Result<(), JobError> {
    let figures: OfJob = |figures| &figures.save;
    in_background(store, "save", figures, |store, persistence| {
        if let Err(problem) = save_now(store, persistence) {
            error!("the snapshot failed: {problem}");
        }
    })
}

/// Rewrites the log in the background: a new base, followed by increments. With `begin`, starts a
/// log if none is kept.
pub fn rewrite_in_background(store: &Arc<Store>, begin: bool) -> Result<(), JobError> {
    let figures: OfJob = |figures| &figures.rewrite;
    in_background(store, "rewrite", figures, move |store, persistence| {
        let figures = &persistence.figures;
        let result = rewrite_now(store, persistence, begin);
        match &result {
            Ok(bytes) => {
                info!("rewrote the log, {bytes} bytes");
                figures.rewrite.done.fetch_add(1, Relaxed);
                figures.rewrite_failures.store(0, Relaxed);
            }
            Err(problem) => {
                error!("the log could not be rewritten: {problem}");
                figures.rewrite_failures.fetch_add(1, Relaxed);
            }
        }
        figures.rewrite.failed.store(result.is_err(), Relaxed);
    })
}

fn save_now(store: &Store, persistence: &Persistence) -> Result<(), JobError> {
    let settings = store.settings();
    let mut changes = 0;
    let snapshot = Snapshot::begin(&store.keyspace, || changes = store.journal.changes());
    let result = persistence.check_home().map_err(WriteError::from);
    let result = result
        .and_then(|()| write_file(store, persistence, &snapshot, &settings, "temp.rdb", false));
    snapshot.end(&store.keyspace);
    finish_save(store, persistence, &settings, result, changes)
}

/// Renames a finished snapshot into place.
fn finish_save(
    store: &Store,
    persistence: &Persistence,
    settings: &Settings,
    written: Result<u64, WriteError>,
    changes: u64,
) -> Result<(), JobError> {
    let result = written.map_err(JobError::from).and_then(|bytes| {
        persistence
            .storage
            .rename("temp.rdb", &settings.dbfilename)?;
        persistence.storage.sync_dir("")?;
        Ok(bytes)
    });
    let figures = &persistence.figures;
    match &result {
        Ok(bytes) => {
            info!("saved {}, {bytes} bytes", settings.dbfilename);
            figures.saved_changes.store(changes, Relaxed);
            figures
                .last_save
                .store(store.machine.now().seconds(), Relaxed);
            figures.save.done.fetch_add(1, Relaxed);
        }
        Err(_) => drop(persistence.storage.remove("temp.rdb")),
    }
    figures.save.failed.store(result.is_err(), Relaxed);
    store.health.set(Cause::SaveFailing, result.is_err());
    result.map(drop)
}

fn rewrite_now(store: &Store, persistence: &Persistence, begin: bool) -> Result<u64, JobError> {
    persistence.check_home()?;
    let settings = store.settings();
    // Before the log's writer creates a file there.
    persistence.storage.create_dir(persistence.names.dir())?;
    persistence.storage.sync_dir("")?;
    // An older log does not describe the current keys. It stays on the disk as it is until there is
    // another.
    let retired = begin.then(|| persistence.retire_log());
    let mut switch = None;
    let snapshot = Snapshot::begin(&store.keyspace, || {
        let logging = if begin {
            persistence.log_wanted.load(Relaxed)
        } else {
            store.journal.is_logging()
        };
        if logging {
            store.journal.set_logging(true);
            switch = Some(store.journal.switch_file());
        }
    });
    if begin && switch.is_none() {
        snapshot.end(&store.keyspace);
        if let Some(retired) = retired {
            persistence.log.lock().manifest = retired;
        }
        return Err(JobError::Unwanted);
    }
    let temporary = persistence.temporary_base();
    let written = write_file(store, persistence, &snapshot, &settings, &temporary, true);
    snapshot.end(&store.keyspace);
    let mut result = written.map_err(JobError::from).and_then(|bytes| {
        if let Some(switch) = switch {
            persistence.based.store(switch, Relaxed);
            store.journal.wake();
            persistence.wait_for_switch(switch)?;
            if !store.journal.is_logging() {
                return Err(JobError::Unwanted);
            }
        }
        persistence.install_base(&temporary, bytes, switch.is_some())?;
        if let Some(switch) = switch {
            persistence.rewritten.store(switch, Relaxed);
            store.journal.wake();
        }
        Ok(bytes)
    });
    if let Err(problem) = &mut result {
        drop(persistence.storage.remove(&temporary));
        if let (Some(retired), Some(switch)) = (retired, switch) {
            end_log(store);
            if let Err(ended) = persistence.restore_log(retired, switch) {
                *problem = ended.into();
            }
        }
    }
    result
}

/// Starts or stops the log. A log starts in the background, with retries until it succeeds.
pub fn turn_log(store: &Arc<Store>, on: bool) -> Result<(), JobError> {
    let persistence = store.persistence().ok_or(JobError::NoDirectory)?;
    if store.health.is_loading() {
        return Err(JobError::Loading);
    }
    persistence.log_wanted.store(on, Relaxed);
    if !on {
        end_log(store);
        return Ok(());
    }
    rewrite_in_background(store, true).inspect_err(|_| {
        persistence.log_wanted.store(false, Relaxed);
    })
}

/// Stops the log. Its writer writes the remaining data to the disk, if possible. The caller must
/// hold no shard.
fn end_log(store: &Store) {
    let keyspace = &store.keyspace;
    let _all = Footprint::Whole.lock(keyspace, true, store.machine.now());
    store.journal.set_logging(false);
}

/// Writes a snapshot into a new file; returns its length.
pub(super) fn write_file(
    store: &Store,
    persistence: &Persistence,
    snapshot: &Snapshot,
    settings: &Settings,
    name: &str,
    aof_base: bool,
) -> Result<u64, WriteError> {
    let mut file = persistence.storage.create(name)?;
    let (ending, keyspace, machine) = (&persistence.ending, &store.keyspace, &store.machine);
    writer::write(
        ending, keyspace, machine, snapshot, &mut *file, settings, aof_base,
    )
}

impl Persistence {
    /// Whether the background job must be cancelled.
    pub(super) fn is_ending(&self) -> bool {
        self.ending.load(Relaxed)
    }

    /// Cancels the background job, and returns when it has ended.
    pub fn end_jobs(&self) {
        self.ending.store(true, Relaxed);
        let job = self.job.lock().take();
        if let Some(running) = job
            && !running.join()
        {
            error!("a snapshot has panicked");
        }
        self.ending.store(false, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use everbloom_files::storage::Disk;

    use super::*;

    #[test]
    fn a_job_that_panics_gives_its_turn_back() {
        let settings = Settings::default();
        let persistence = Persistence::on(Arc::new(Disk::new("nowhere")), &settings);
        let store = Store::new(settings, Some(persistence), 0);
        let figures: OfJob = |figures| &figures.save;
        in_background(&store, "test", figures, |_, _| panic!("as it must")).unwrap();
        let persistence = store.persistence().unwrap();
        persistence.end_jobs();
        assert!(!persistence.is_busy());
        assert!(!persistence.figures.save.is_running());
    }
}
