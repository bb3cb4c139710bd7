//! SAVE, BGSAVE and BGREWRITEAOF, and their automatic start. At most one of them runs at a time.
//! Each works on a snapshot, so that commands can run meanwhile.

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use thiserror::Error;
use tracing::{error, info, warn};

use everbloom_files::rdb::WriteError;

use super::directory::{LogState, Persistence};
use super::figures::JobFigures;
use super::log_files::Follows;
use super::writer::{Purpose, Writing};
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

/// The right to make a snapshot, until this is dropped.
pub(super) struct Permit(Arc<AtomicBool>);

impl Drop for Permit {
    fn drop(&mut self) {
        self.0.store(false, Release);
    }
}

impl Persistence {
    pub(super) fn permit(&self) -> Result<Permit, JobError> {
        match self.busy.swap(true, Acquire) {
            true => Err(JobError::Busy),
            false => Ok(Permit(Arc::clone(&self.busy))),
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
    let _permit = persistence.permit()?;
    save_now(store, persistence)
}

/// A background job.
#[derive(Debug, Clone, Copy)]
enum Job {
    Save,
    Rewrite,
}

impl Job {
    fn figures(self, persistence: &Persistence) -> &JobFigures {
        match self {
            Job::Save => &persistence.figures.save,
            Job::Rewrite => &persistence.figures.rewrite,
        }
    }
}

/// A job that runs. It ends when this is dropped, even by a panic.
struct Running {
    store: Arc<Store>,
    job: Job,
    /// Returned when the job counts as ended.
    _permit: Permit,
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(persistence) = self.store.persistence() {
            let figures = self.job.figures(persistence);
            figures.running_since.store(0, Relaxed);
        }
    }
}

/// Starts a thread that runs `work`.
fn in_background(
    store: &Arc<Store>,
    name: &str,
    job: Job,
    work: impl FnOnce(&Store, &Persistence) + Send + 'static,
) -> Result<(), JobError> {
    let persistence = store.persistence().ok_or(JobError::NoDirectory)?;
    let running = Running {
        _permit: persistence.permit()?,
        store: Arc::clone(store),
        job,
    };
    let of_job = job.figures(persistence);
    let began = store.machine.now().seconds();
    of_job.running_since.store(began, Relaxed);
    let uptime = store.machine.uptime().as_secs();
    of_job.last_try.store(uptime, Relaxed);
    of_job.scheduled.store(false, Relaxed);
    let work = Box::new(move || {
        if let Some(persistence) = running.store.persistence() {
            work(&running.store, persistence);
            let ended = running.store.machine.now().seconds();
            let took = i64::try_from(ended.saturating_sub(began));
            let seconds = &job.figures(persistence).seconds;
            seconds.store(took.unwrap_or(i64::MAX), Relaxed);
        }
    });
    *persistence.job.lock() = Some(store.machine.start(name, work)?);
    Ok(())
}

/// Saves all keys to the snapshot file in the background.
pub fn save_in_background(store: &Arc<Store>) -> Result<(), JobError> {
    in_background(store, "save", Job::Save, |store, persistence| {
        if let Err(problem) = save_now(store, persistence) {
            error!("the snapshot failed: {problem}");
        }
    })
}

/// Rewrites the log in the background: a new base, followed by increments. Begins a log if one is
/// wanted and none is kept.
pub fn rewrite_in_background(store: &Arc<Store>) -> Result<(), JobError> {
    let is_missing = store.persistence().is_some_and(Persistence::is_log_missing);
    let rewrite = if is_missing {
        Rewrite::Begin
    } else {
        Rewrite::Shorten
    };
    in_background(store, "rewrite", Job::Rewrite, move |store, persistence| {
        let figures = &persistence.figures;
        let result = rewrite_now(store, persistence, rewrite);
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
        if rewrite == Rewrite::Begin {
            note_beginning(store, persistence, &result);
        }
        figures.rewrite.failed.store(result.is_err(), Relaxed);
    })
}

/// Records what has come of beginning a log, unless it was switched off meanwhile. Until it
/// succeeds, writes are refused as they are while a log cannot be written.
fn note_beginning(store: &Store, persistence: &Persistence, result: &Result<u64, JobError>) {
    let mut state = persistence.log_state.lock();
    let next = match result {
        Ok(_) if store.journal.is_logging() => LogState::On,
        // It was switched off at the end. If it is wanted again, it has yet to begin.
        Ok(_) | Err(JobError::Unwanted) => return,
        Err(_) if persistence.is_ending() => return,
        Err(problem) => LogState::Failed(problem.to_string()),
    };
    if *state != LogState::Off {
        let failed = matches!(next, LogState::Failed(_));
        if failed {
            error!("no log is kept, so writes are refused until one is begun");
        }
        store.health.set(Cause::LogMissing, failed);
        *state = next;
    }
}

fn save_now(store: &Store, persistence: &Persistence) -> Result<(), JobError> {
    let settings = store.settings();
    let (mut changes, mut logging) = (0, false);
    let snapshot = Snapshot::begin(&store.keyspace, || {
        changes = store.journal.changes();
        logging = store.journal.is_logging();
    });
    let mut mark = None;
    let result = persistence.check_home().and_then(|()| {
        if !logging {
            mark = persistence.mark_ended_log()?;
        }
        Ok(())
    });
    let result = result.map_err(WriteError::from).and_then(|()| {
        let purpose = Purpose::Snapshot(mark);
        write_file(store, persistence, snapshot, &settings, "temp.rdb", purpose)
    });
    finish_save(store, persistence, &settings, result, changes)?;
    if let Some(mark) = mark
        && let Err(problem) = persistence.confirm_snapshot(mark)
    {
        warn!("the manifest of the old log does not name the new snapshot: {problem}");
    }
    Ok(())
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
            let machine = &store.machine;
            figures.last_save.store(machine.now().seconds(), Relaxed);
            figures.saved_at.store(machine.uptime().as_secs(), Relaxed);
            figures.save.done.fetch_add(1, Relaxed);
        }
        Err(_) => drop(persistence.storage.remove("temp.rdb")),
    }
    figures.save.failed.store(result.is_err(), Relaxed);
    store.health.set(Cause::SaveFailing, result.is_err());
    result.map(drop)
}

/// What a rewrite is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rewrite {
    /// The log becomes shorter.
    Shorten,
    /// None is kept, and one is begun.
    Begin,
}

fn rewrite_now(
    store: &Store,
    persistence: &Persistence,
    rewrite: Rewrite,
) -> Result<u64, JobError> {
    persistence.check_home()?;
    let settings = store.settings();
    // Before the log's writer creates a file there.
    persistence.storage.create_dir(persistence.names.dir())?;
    persistence.storage.sync_dir("")?;
    // An older log does not describe the current keys. It stays on the disk as it is until there is
    // another.
    let retired = match rewrite {
        Rewrite::Begin => Some(persistence.retire_log()?),
        Rewrite::Shorten => None,
    };
    let mut switch = None;
    let snapshot = Snapshot::begin(&store.keyspace, || {
        let goes_on = match rewrite {
            Rewrite::Begin => persistence.log_state() != LogState::Off,
            Rewrite::Shorten => store.journal.is_logging(),
        };
        if goes_on {
            store.journal.set_logging(true);
            switch = Some(store.journal.switch_file());
        }
    });
    let temporary = persistence.temporary_base();
    let written = if rewrite == Rewrite::Begin && switch.is_none() {
        drop(snapshot);
        Err(JobError::Unwanted)
    } else {
        let purpose = Purpose::Base;
        write_file(store, persistence, snapshot, &settings, &temporary, purpose)
            .map_err(JobError::from)
    };
    let mut result = written.and_then(|bytes| {
        install(store, persistence, &temporary, bytes, switch)?;
        Ok(bytes)
    });
    if let Err(problem) = &mut result {
        drop(persistence.storage.remove(&temporary));
        if let Some(retired) = retired {
            end_log(store);
            if let Err(ended) = persistence.restore_log(retired, switch) {
                *problem = ended.into();
            }
        }
    }
    result
}

/// Puts a base that was written in place, once the log goes on in the file that follows it.
fn install(
    store: &Store,
    persistence: &Persistence,
    base: &str,
    bytes: u64,
    switch: Option<u64>,
) -> Result<(), JobError> {
    if let Some(switch) = switch {
        persistence.based.store(switch, Relaxed);
        store.journal.wake_writer();
        persistence.wait_for_switch(switch)?;
        if !store.journal.is_logging() {
            return Err(JobError::Unwanted);
        }
    }
    let follows = match switch {
        Some(_) => Follows::Log,
        None => Follows::Nothing,
    };
    persistence.install_base(base, bytes, follows)?;
    if let Some(switch) = switch {
        persistence.rewritten.store(switch, Relaxed);
        store.journal.wake_writer();
    }
    Ok(())
}

/// Starts or stops the log. A log starts in the background, after another job if one runs, with
/// retries until it succeeds. Nobody else may start or stop it meanwhile.
pub fn turn_log(store: &Arc<Store>, on: bool) -> Result<(), JobError> {
    let persistence = store.persistence().ok_or(JobError::NoDirectory)?;
    if store.health.is_loading() {
        return Err(JobError::Loading);
    }
    if !on {
        want_no_log(store, persistence);
        end_log(store);
        return Ok(());
    }
    *persistence.log_state.lock() = LogState::Beginning;
    match rewrite_in_background(store) {
        // It begins when that job has ended.
        Err(JobError::Busy) => Ok(()),
        started => started.inspect_err(|_| want_no_log(store, persistence)),
    }
}

fn want_no_log(store: &Store, persistence: &Persistence) {
    let mut state = persistence.log_state.lock();
    store.health.set(Cause::LogMissing, false);
    *state = LogState::Off;
}

/// Stops the log. Its writer writes the remaining data to the disk, if possible. The caller must
/// hold no shard.
fn end_log(store: &Store) {
    let keyspace = &store.keyspace;
    let _all = Footprint::Whole.write(keyspace, store.machine.now());
    store.journal.set_logging(false);
}

/// Writes a snapshot into a new file, and ends it; returns the length of the file.
pub(super) fn write_file(
    store: &Store,
    persistence: &Persistence,
    snapshot: Snapshot,
    settings: &Settings,
    name: &str,
    purpose: Purpose,
) -> Result<u64, WriteError> {
    let mut file = persistence.storage.create(name)?;
    let how = Writing {
        purpose,
        settings,
        machine: &store.machine,
        is_ending: &persistence.ending,
    };
    how.write(&snapshot, &mut *file)
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
    fn a_job_that_panics_gives_its_permit_back() {
        let settings = Settings::default();
        let persistence = Persistence::on(Arc::new(Disk::new("nowhere")), &settings);
        let store = Store::new(settings, Some(persistence), 0);
        in_background(&store, "test", Job::Save, |_, _| panic!("as it must")).unwrap();
        let persistence = store.persistence().unwrap();
        persistence.end_jobs();
        assert!(!persistence.is_busy());
        assert!(!persistence.figures.save.is_running());
    }
}
