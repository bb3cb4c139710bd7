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
    /// The thread for it did not start.
    #[error("cannot start a thread: {0}")]
    Thread(#[source] io::Error),
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
    let uptime = store.machine.uptime().as_secs();
    persistence.figures.save.last_try.store(uptime, Relaxed);
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

/// Starts a thread that runs `work`. Without a thread the job has failed.
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
    let was_scheduled = of_job.scheduled.swap(false, Relaxed);
    let work = Box::new(move || {
        if let Some(persistence) = running.store.persistence() {
            work(&running.store, persistence);
            let ended = running.store.machine.now().seconds();
            let took = i64::try_from(ended.saturating_sub(began));
            let seconds = &job.figures(persistence).seconds;
            seconds.store(took.unwrap_or(i64::MAX), Relaxed);
        }
    });
    match store.machine.start(name, work) {
        Ok(thread) => {
            *persistence.job.lock() = Some(thread);
            Ok(())
        }
        Err(problem) => {
            // A client was told that it is scheduled, so it stays so.
            of_job.scheduled.fetch_or(was_scheduled, Relaxed);
            let failed = Err(JobError::Thread(problem));
            match job {
                Job::Save => note_save(store, persistence, &failed),
                Job::Rewrite => {
                    note_rewrite(store, persistence, Rewrite::due(persistence), &failed);
                }
            }
            failed.map(drop)
        }
    }
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
    let was_missing = store.persistence().is_some_and(Persistence::is_log_missing);
    in_background(store, "rewrite", Job::Rewrite, move |store, persistence| {
        // Another job may have begun the log before this one had the permit. To begin it again
        // would retire a log that is in use.
        let rewrite = match persistence.log_state() {
            // The log was switched off again, so this job ends as unwanted.
            LogState::Off if was_missing => Rewrite::Begin,
            _ => Rewrite::due(persistence),
        };
        let result = rewrite_now(store, persistence, rewrite);
        note_rewrite(store, persistence, rewrite, &result);
    })
}

/// Records what has come of a rewrite. An unwanted one says nothing about the disk.
fn note_rewrite(
    store: &Store,
    persistence: &Persistence,
    rewrite: Rewrite,
    result: &Result<u64, JobError>,
) {
    let figures = &persistence.figures;
    match result {
        Ok(bytes) => {
            info!("rewrote the log, {bytes} bytes");
            figures.rewrite.done.fetch_add(1, Relaxed);
            figures.rewrite_failures.store(0, Relaxed);
        }
        Err(JobError::Unwanted) => {
            info!("the log was switched off before it was rewritten");
        }
        Err(problem) => {
            error!("the log could not be rewritten: {problem}");
            figures.rewrite_failures.fetch_add(1, Relaxed);
        }
    }
    if rewrite == Rewrite::Begin {
        note_beginning(store, persistence, result);
    }
    if !matches!(result, Err(JobError::Unwanted)) {
        figures.rewrite.failed.store(result.is_err(), Relaxed);
    }
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
    note_save(store, persistence, &result);
    result.map(drop)
}

/// Records whether a snapshot was made.
fn note_save(store: &Store, persistence: &Persistence, result: &Result<u64, JobError>) {
    let failed = result.is_err();
    persistence.figures.save.failed.store(failed, Relaxed);
    store.health.set(Cause::SaveFailing, failed);
}

/// What a rewrite is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rewrite {
    /// The log becomes shorter.
    Shorten,
    /// None is kept, and one is begun.
    Begin,
}

impl Rewrite {
    /// What a rewrite is for that begins now.
    fn due(persistence: &Persistence) -> Self {
        match persistence.is_log_missing() {
            true => Rewrite::Begin,
            false => Rewrite::Shorten,
        }
    }
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
    use std::fmt::{self, Debug, Formatter};
    use std::sync::atomic::AtomicUsize;
    use std::time::Duration;

    use everbloom_files::storage::Disk;
    use foldhash::quality::SeedableRandomState;
    use parking_lot::Mutex;

    use super::*;
    use crate::clock::Now;
    use crate::machine::{self, Machine, System, Work};
    use crate::persistence::schedule;

    /// A machine that keeps the work of its threads for the test, or starts no threads.
    #[derive(Default)]
    struct Late {
        system: System,
        has_no_threads: bool,
        /// How many threads were to start.
        tries: AtomicUsize,
        work: Mutex<Vec<Work>>,
    }

    impl Debug for Late {
        fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
            f.write_str("Late")
        }
    }

    impl Machine for Late {
        fn now(&self) -> Now {
            self.system.now()
        }

        fn uptime(&self) -> Duration {
            self.system.uptime()
        }

        fn key_hasher(&self) -> SeedableRandomState {
            self.system.key_hasher()
        }

        fn start(&self, name: &str, work: Work) -> io::Result<Box<dyn machine::Running>> {
            self.tries.fetch_add(1, Relaxed);
            if self.has_no_threads {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            self.work.lock().push(work);
            self.system.start(name, Box::new(|| {}))
        }

        fn sleep(&self, time: Duration) {
            self.system.sleep(time);
        }
    }

    /// A store that has loaded nothing, from a directory that does not exist.
    fn loaded(machine: &Arc<Late>) -> Arc<Store> {
        let settings = Settings::default();
        let disk = Arc::new(Disk::new("nowhere"));
        let persistence = Persistence::on_machine(disk, Arc::<Late>::clone(machine), &settings);
        let store = Store::new(settings, Some(persistence), 0);
        store.health.set_loading(false);
        store
    }

    #[test]
    fn a_job_whose_thread_does_not_start_has_failed() {
        let machine = Arc::new(Late {
            has_no_threads: true,
            ..Late::default()
        });
        let store = loaded(&machine);
        let persistence = store.persistence().unwrap();
        let figures = &persistence.figures;
        figures.save.scheduled.store(true, Relaxed);
        assert!(save_in_background(&store).is_err());
        assert!(figures.save.failed.load(Relaxed));
        assert!(store.health.is_save_failing());
        assert!(figures.save.scheduled.load(Relaxed), "a client was told so");
        *persistence.log_state.lock() = LogState::Beginning;
        assert!(rewrite_in_background(&store).is_err());
        assert!(figures.rewrite.failed.load(Relaxed));
        assert!(store.health.is_log_failing());
        assert!(matches!(persistence.log_state(), LogState::Failed(_)));
        assert!(!persistence.is_busy());
        // Both are tried again after a pause.
        schedule::attend(&store);
        assert_eq!(machine.tries.load(Relaxed), 2);
    }

    #[test]
    fn a_rewrite_begins_a_log_only_if_none_is_kept_when_it_runs() {
        let machine = Arc::new(Late::default());
        let store = loaded(&machine);
        let persistence = store.persistence().unwrap();
        let rewrite = |before: LogState, then: LogState| {
            *persistence.log_state.lock() = before;
            rewrite_in_background(&store).unwrap();
            *persistence.log_state.lock() = then;
            let work = machine.work.lock().pop().unwrap();
            work();
            persistence.log_state()
        };
        // Every rewrite fails here. Only one that begins a log says so in the state of the log.
        assert_eq!(rewrite(LogState::Beginning, LogState::On), LogState::On);
        let state = rewrite(LogState::Off, LogState::Beginning);
        assert!(matches!(state, LogState::Failed(_)), "{state:?}");
    }

    /// It would take the room that the rewrite needs.
    #[test]
    fn a_failed_snapshot_is_not_tried_again_before_a_lost_log_is_rewritten() {
        let machine = Arc::new(Late::default());
        let store = loaded(&machine);
        store.set_settings(Settings {
            save: vec![(3600, 1)],
            ..Settings::default()
        });
        let persistence = store.persistence().unwrap();
        store.health.set(Cause::SaveFailing, true);
        *persistence.log_state.lock() = LogState::On;
        persistence.lost.store(1, Relaxed);
        // The rewrite has just failed, and rests.
        persistence.figures.rewrite.failed.store(true, Relaxed);
        schedule::attend(&store);
        assert_eq!(machine.tries.load(Relaxed), 0);
        *persistence.log_state.lock() = LogState::Off;
        persistence.lost.store(0, Relaxed);
        schedule::attend(&store);
        assert_eq!(machine.tries.load(Relaxed), 1);
    }

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
