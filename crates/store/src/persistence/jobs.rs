//! SAVE, BGSAVE and BGREWRITEAOF, and their automatic start. At most one of them runs at a time.
//! Each works on a snapshot, so that commands can run meanwhile.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::thread;

use thiserror::Error;
use tracing::{error, info};

use everbloom_files::rdb::WriteError;

use super::directory::Persistence;
use super::figures::PersistenceFigures;
use super::writer;
use crate::clock::{Now, unix_seconds};
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

/// The figures of INFO with a job's start, and whether one waits for its turn.
type Progress = fn(&PersistenceFigures) -> (&AtomicU64, &AtomicBool);

/// A background job. It ends when this is dropped, even by a panic.
struct Job {
    store: Arc<Store>,
    progress: Progress,
}

impl Drop for Job {
    fn drop(&mut self) {
        if let Some(persistence) = self.store.persistence() {
            let (since, _) = (self.progress)(&persistence.figures);
            since.store(0, Relaxed);
            drop(JobTurn(persistence));
        }
    }
}

/// Starts a thread that runs `work` with the time of its start.
fn in_background(
    store: &Arc<Store>,
    name: &str,
    progress: Progress,
    work: impl FnOnce(&Store, &Persistence, u64) + Send + 'static,
) -> Result<(), JobError> {
    let persistence = store.persistence().ok_or(JobError::NoDirectory)?;
    // The job returns the right to make a snapshot.
    std::mem::forget(persistence.turn()?);
    let store = Arc::clone(store);
    let job = Job { store, progress };
    let began = unix_seconds();
    let (since, scheduled) = progress(&persistence.figures);
    since.store(began, Relaxed);
    scheduled.store(false, Relaxed);
    let thread = thread::Builder::new().name(name.into()).spawn(move || {
        if let Some(persistence) = job.store.persistence() {
            work(&job.store, persistence, began);
        }
    })?;
    *persistence.job.lock() = Some(thread);
    Ok(())
}

/// Saves all keys to the snapshot file in the background.
pub fn save_in_background(store: &Arc<Store>) -> Result<(), JobError> {
    let progress: Progress = |figures| (&figures.saving_since, &figures.save_scheduled);
    in_background(store, "save", progress, |store, persistence, began| {
        let figures = &persistence.figures;
        figures.last_try.store(began, Relaxed);
        if let Err(problem) = save_now(store, persistence) {
            error!("the snapshot failed: {problem}");
        }
        figures.save_seconds.store(elapsed(began), Relaxed);
    })
}

/// Rewrites the log in the background: a new base, followed by increments. With `begin`, starts a
/// log if none is kept.
pub fn rewrite_in_background(store: &Arc<Store>, begin: bool) -> Result<(), JobError> {
    let progress: Progress = |figures| (&figures.rewriting_since, &figures.rewrite_scheduled);
    in_background(
        store,
        "rewrite",
        progress,
        move |store, persistence, began| {
            let figures = &persistence.figures;
            figures.last_rewrite_try.store(began, Relaxed);
            let result = rewrite_now(store, persistence, begin);
            match &result {
                Ok(bytes) => {
                    info!("rewrote the log, {bytes} bytes");
                    figures.rewrites.fetch_add(1, Relaxed);
                    figures.rewrite_failures.store(0, Relaxed);
                }
                Err(problem) => {
                    error!("the log could not be rewritten: {problem}");
                    figures.rewrite_failures.fetch_add(1, Relaxed);
                }
            }
            figures.rewrite_failed.store(result.is_err(), Relaxed);
            figures.rewrite_seconds.store(elapsed(began), Relaxed);
        },
    )
}

fn save_now(store: &Store, persistence: &Persistence) -> Result<(), JobError> {
    let settings = store.settings();
    let mut changes = 0;
    let snapshot = Snapshot::begin(&store.keyspace, || changes = store.journal.changes());
    let result = persistence.check_home().map_err(JobError::from);
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
    written: Result<u64, JobError>,
    changes: u64,
) -> Result<(), JobError> {
    let result = written.and_then(|bytes| {
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
            figures.last_save.store(unix_seconds(), Relaxed);
            figures.saves.fetch_add(1, Relaxed);
        }
        Err(_) => drop(persistence.storage.remove("temp.rdb")),
    }
    figures.save_failed.store(result.is_err(), Relaxed);
    store.health.set_save_failing(result.is_err());
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
    let temporary = format!("{}/temp.base.rdb", persistence.names.dir());
    let written = write_file(store, persistence, &snapshot, &settings, &temporary, true);
    snapshot.end(&store.keyspace);
    let mut result = written.and_then(|bytes| {
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
    let _all = Footprint::Whole.lock(keyspace, true, Now::read());
    store.journal.set_logging(false);
}

fn write_file(
    store: &Store,
    persistence: &Persistence,
    snapshot: &Snapshot,
    settings: &Settings,
    name: &str,
    aof_base: bool,
) -> Result<u64, JobError> {
    let mut file = persistence.storage.create(name)?;
    Ok(writer::write_unless(
        &persistence.ending,
        &store.keyspace,
        snapshot,
        &mut *file,
        settings,
        aof_base,
    )?)
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
        if let Some(thread) = job
            && thread.join().is_err()
        {
            error!("a snapshot has panicked");
        }
        self.ending.store(false, Relaxed);
    }
}

fn elapsed(since: u64) -> i64 {
    i64::try_from(unix_seconds().saturating_sub(since)).unwrap_or(i64::MAX)
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
        let progress: Progress = |figures| (&figures.saving_since, &figures.save_scheduled);
        in_background(&store, "test", progress, |_, _, _| panic!("as it must")).unwrap();
        let persistence = store.persistence().unwrap();
        persistence.end_jobs();
        assert!(!persistence.is_busy());
        assert_eq!(persistence.figures.saving_since.load(Relaxed), 0);
    }
}
