//! SAVE, BGSAVE and BGREWRITEAOF, and what starts them by itself. At most one of them runs at a
//! time; each works on a snapshot, so that commands go on meanwhile.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::thread;
use std::time::Duration;

use thiserror::Error;
use tracing::{error, info, warn};

use super::{Persistence, writer};
use crate::aof::{BaseFormat, Manifest};
use crate::clock::Now;
use crate::config::Settings;
use crate::keyspace::View;
use crate::keyspace::snapshot::Snapshot;
use crate::lock::Footprint;
use crate::rdb::WriteError;
use crate::server::Server;

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
    /// A log was to be begun, and meanwhile none is wanted any more.
    #[error("no log is wanted any more")]
    Unwanted,
    /// The file was not written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The files could not be put in place.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Holds the right to make a snapshot.
pub(super) struct Turn<'p>(&'p Persistence);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0
            .busy
            .store(false, std::sync::atomic::Ordering::Release);
    }
}

impl Persistence {
    pub(super) fn turn(&self) -> Result<Turn<'_>, JobError> {
        let taken = self.busy.swap(true, std::sync::atomic::Ordering::Acquire);
        if taken {
            Err(JobError::Busy)
        } else {
            Ok(Turn(self))
        }
    }

    /// Whether a snapshot is being made.
    pub fn is_busy(&self) -> bool {
        self.busy.load(Relaxed)
    }
}

/// Saves all keys to the snapshot file, and returns when that is done.
pub fn save(server: &Server) -> Result<(), JobError> {
    let persistence = server.persistence().ok_or(JobError::NoDirectory)?;
    let _turn = persistence.turn()?;
    save_now(server, persistence)
}

/// Saves all keys to the snapshot file in the background.
pub fn save_in_background(server: &Arc<Server>) -> Result<(), JobError> {
    let persistence = server.persistence().ok_or(JobError::NoDirectory)?;
    let turn = persistence.turn()?;
    persistence.figures.saving_since.store(seconds(), Relaxed);
    persistence.figures.save_scheduled.store(false, Relaxed);
    std::mem::forget(turn);
    let shared = Arc::clone(server);
    spawn(persistence, "save", move || {
        let Some(persistence) = shared.persistence() else {
            return;
        };
        let turn = Turn(persistence);
        let figures = &persistence.figures;
        let since = figures.saving_since.load(Relaxed);
        figures.last_try.store(since, Relaxed);
        let result = save_now(&shared, persistence);
        if let Err(problem) = &result {
            error!("the snapshot failed: {problem}");
        }
        figures.save_seconds.store(elapsed(since), Relaxed);
        figures.saving_since.store(0, Relaxed);
        drop(turn);
    })
    .inspect_err(|_| {
        persistence.figures.saving_since.store(0, Relaxed);
        drop(Turn(persistence));
    })?;
    Ok(())
}

/// Rewrites the log in the background: a new base, and increments from then on. Begins a log where
/// none is kept, if `begin`.
pub fn rewrite_in_background(server: &Arc<Server>, begin: bool) -> Result<(), JobError> {
    let persistence = server.persistence().ok_or(JobError::NoDirectory)?;
    let turn = persistence.turn()?;
    persistence
        .figures
        .rewriting_since
        .store(seconds(), Relaxed);
    persistence.figures.rewrite_scheduled.store(false, Relaxed);
    std::mem::forget(turn);
    let shared = Arc::clone(server);
    spawn(persistence, "rewrite", move || {
        let Some(persistence) = shared.persistence() else {
            return;
        };
        let turn = Turn(persistence);
        let figures = &persistence.figures;
        let since = figures.rewriting_since.load(Relaxed);
        figures.last_rewrite_try.store(since, Relaxed);
        let result = rewrite_now(&shared, persistence, begin);
        match &result {
            Ok(bytes) => {
                info!(bytes, "the log was rewritten");
                figures.rewrites.fetch_add(1, Relaxed);
                figures.rewrite_failures.store(0, Relaxed);
            }
            Err(problem) => {
                error!("the log could not be rewritten: {problem}");
                figures.rewrite_failures.fetch_add(1, Relaxed);
            }
        }
        figures.rewrite_failed.store(result.is_err(), Relaxed);
        figures.rewrite_seconds.store(elapsed(since), Relaxed);
        figures.rewriting_since.store(0, Relaxed);
        drop(turn);
    })
    .inspect_err(|_| {
        persistence.figures.rewriting_since.store(0, Relaxed);
        drop(Turn(persistence));
    })?;
    Ok(())
}

fn spawn(
    persistence: &Persistence,
    name: &str,
    work: impl FnOnce() + Send + 'static,
) -> io::Result<()> {
    let thread = thread::Builder::new().name(name.into()).spawn(work)?;
    *persistence.job.lock() = Some(thread);
    Ok(())
}

fn save_now(server: &Server, persistence: &Persistence) -> Result<(), JobError> {
    let settings = server.config.snapshot();
    let mut changes = 0;
    let snapshot = Snapshot::begin(&server.keyspace, || changes = server.journal.changes());
    let result = write_file(server, persistence, &snapshot, &settings, "temp.rdb", false);
    snapshot.end(&server.keyspace);
    finish_save(server, persistence, &settings, result, changes)
}

/// Saves the keys of a view that holds all of them.
pub(super) fn save_view(
    server: &Server,
    persistence: &Persistence,
    view: &View<'_>,
) -> Result<(), JobError> {
    let _turn = persistence.turn()?;
    let settings = server.config.snapshot();
    let changes = server.journal.changes();
    let written = persistence
        .storage
        .create("temp.rdb")
        .map_err(JobError::from)
        .and_then(|mut file| {
            let memory = server.keyspace.memory();
            Ok(writer::write_view(view, memory, &mut *file, &settings)?)
        });
    finish_save(server, persistence, &settings, written, changes)
}

/// Puts a snapshot that was written in its place.
fn finish_save(
    server: &Server,
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
            info!(bytes, "saved {}", settings.dbfilename);
            figures.saved_changes.store(changes, Relaxed);
            figures.last_save.store(seconds(), Relaxed);
            figures.saves.fetch_add(1, Relaxed);
        }
        Err(_) => drop(persistence.storage.remove("temp.rdb")),
    }
    figures.save_failed.store(result.is_err(), Relaxed);
    server.set_save_failing(result.is_err());
    result.map(drop)
}

fn rewrite_now(server: &Server, persistence: &Persistence, begin: bool) -> Result<u64, JobError> {
    let settings = server.config.snapshot();
    // Before the thread that writes the log makes a file there.
    persistence.storage.create_dir(persistence.names.dir())?;
    persistence.storage.sync_dir("")?;
    // Whatever log there was says nothing about what the keys are now. Until there is another, it
    // stays on the disk as it is.
    let retired = begin.then(|| persistence.retire_log());
    let mut switch = None;
    let snapshot = Snapshot::begin(&server.keyspace, || {
        let logging = if begin {
            persistence.log_wanted.load(Relaxed)
        } else {
            server.journal.is_logging()
        };
        if logging {
            server.journal.set_logging(true);
            switch = Some(server.journal.switch_file());
        }
    });
    if begin && switch.is_none() {
        snapshot.end(&server.keyspace);
        if let Some(retired) = retired {
            persistence.manifest.lock().0 = retired;
        }
        return Err(JobError::Unwanted);
    }
    let temporary = format!("{}/temp.base.rdb", persistence.names.dir());
    let written = write_file(server, persistence, &snapshot, &settings, &temporary, true);
    snapshot.end(&server.keyspace);
    let mut result = written.and_then(|bytes| {
        if let Some(switch) = switch {
            persistence.wait_for_switch(switch)?;
        }
        persistence.install_base(&temporary, bytes, switch.is_some())?;
        Ok(bytes)
    });
    if let Err(problem) = &mut result {
        drop(persistence.storage.remove(&temporary));
        if let (Some(retired), Some(switch)) = (retired, switch) {
            end_log(server);
            if let Err(ended) = persistence.restore_log(retired, switch) {
                *problem = ended.into();
            }
        }
    }
    result
}

/// Begins a log, or ends it. A log that begins does so in the background, where it is tried again
/// until it succeeds.
pub fn turn_log(server: &Arc<Server>, on: bool) -> Result<(), JobError> {
    let persistence = server.persistence().ok_or(JobError::NoDirectory)?;
    if server.is_loading() {
        return Err(JobError::Loading);
    }
    persistence.log_wanted.store(on, Relaxed);
    if !on {
        end_log(server);
        return Ok(());
    }
    rewrite_in_background(server, true).inspect_err(|_| {
        persistence.log_wanted.store(false, Relaxed);
    })
}

/// Ends the log: the thread that writes it brings what waits to the disk. The caller must hold no
/// shard.
fn end_log(server: &Server) {
    let keyspace = &server.keyspace;
    let _all = Footprint::Whole.lock(keyspace, true, Now::read());
    server.journal.set_logging(false);
}

fn write_file(
    server: &Server,
    persistence: &Persistence,
    snapshot: &Arc<Snapshot>,
    settings: &Settings,
    name: &str,
    aof_base: bool,
) -> Result<u64, JobError> {
    let mut file = persistence.storage.create(name)?;
    Ok(writer::write_unless(
        &persistence.ending,
        &server.keyspace,
        snapshot,
        &mut *file,
        settings,
        aof_base,
    )?)
}

impl Persistence {
    /// Puts a new base in place, in the name of the log that the manifest describes from now on.
    pub(super) fn install_base(&self, from: &str, bytes: u64, logging: bool) -> io::Result<()> {
        let mut state = self.manifest.lock();
        let base = state.0.next_base(&self.names, BaseFormat::Rdb);
        self.storage.rename(from, &self.names.path(&base))?;
        self.storage.sync_dir(self.names.dir())?;
        let mut next = state.0.after_rewrite(base);
        if !logging {
            next.history.append(&mut next.increments);
        }
        next.store(&*self.storage, &self.names)?;
        state.0 = next;
        self.figures.log_base_size.store(bytes, Relaxed);
        // What was logged since the base was begun is in the last increment.
        let since = self.figures.log_file_size.load(Relaxed);
        let since = if logging { since } else { 0 };
        self.figures.log_size.store(bytes + since, Relaxed);
        // The new log counts already; what is left over goes with the next.
        if let Err(problem) = self.remove_history(&mut state.0) {
            warn!("files of the log before could not be removed: {problem}");
        }
        Ok(())
    }

    /// Forgets the log, before another is begun: its files become history, on the disk once the
    /// other has a base. Returns what the log was.
    fn retire_log(&self) -> Manifest {
        let mut state = self.manifest.lock();
        let old = state.0.clone();
        let retired = &mut state.0;
        retired.history.extend(retired.base.take());
        retired.history.append(&mut retired.increments);
        old
    }

    /// Takes [`Persistence::retire_log`] back after the other log came to nothing.
    fn restore_log(&self, old: Manifest, switch: u64) -> io::Result<()> {
        self.wait_for_switch(switch)?;
        let mut state = self.manifest.lock();
        // What failed may have been the last step, the sync, behind which the new manifest counts:
        // its files must stay.
        let now = Manifest::read(&*self.storage, &self.names).unwrap_or(old);
        for unused in &state.0.increments {
            if now.files().all(|file| file.name != unused.name) {
                drop(self.storage.remove(&self.names.path(unused)));
            }
        }
        state.0 = now;
        Ok(())
    }

    /// Removes the files of history, then history itself.
    pub(super) fn remove_history(&self, manifest: &mut Manifest) -> io::Result<()> {
        if manifest.history.is_empty() {
            return Ok(());
        }
        for old in &manifest.history {
            match self.storage.remove(&self.names.path(old)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        self.storage.sync_dir(self.names.dir())?;
        let without = manifest.without_history();
        without.store(&*self.storage, &self.names)?;
        *manifest = without;
        Ok(())
    }

    /// Waits until the writer of the log has gone on to a new file for the `switch`-th time. Those
    /// before may have waited long: for a disk that was full.
    fn wait_for_switch(&self, switch: u64) -> io::Result<()> {
        let mut state = self.manifest.lock();
        while state.1 < switch {
            if self.is_ending() {
                return Err(io::Error::other("the server ends"));
            }
            self.switched
                .wait_for(&mut state, Duration::from_millis(50));
        }
        Ok(())
    }

    /// Whether work in the background is to be given up.
    pub(super) fn is_ending(&self) -> bool {
        self.ending.load(Relaxed)
    }

    /// Gives work in the background up, and returns when it has ended.
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

/// Starts what is due: save points, a log that has grown, and what waited for its turn.
pub fn attend(server: &Arc<Server>) {
    let Some(persistence) = server.persistence() else {
        return;
    };
    if persistence.is_busy() || server.is_loading() {
        return;
    }
    let settings = server.config.snapshot();
    let figures = &persistence.figures;
    let missing = persistence.log_wanted.load(Relaxed) && !server.journal.is_logging();
    let started = if missing && rested(&figures.last_rewrite_try, &figures.rewrite_failed) {
        rewrite_in_background(server, true)
    } else if figures.rewrite_scheduled.load(Relaxed) || log_has_grown(server, &settings) {
        rewrite_in_background(server, false)
    } else if figures.save_scheduled.load(Relaxed) || save_is_due(server, persistence, &settings) {
        save_in_background(server)
    } else {
        return;
    };
    if let Err(problem) = started {
        error!("cannot start a snapshot: {problem}");
    }
}

/// After a failure, a snapshot or a rewrite is not tried again for so many seconds.
const RETRY_AFTER: u64 = 5;

fn rested(last_try: &AtomicU64, failed: &AtomicBool) -> bool {
    let passed = seconds().saturating_sub(last_try.load(Relaxed));
    passed > RETRY_AFTER || !failed.load(Relaxed)
}

fn save_is_due(server: &Server, persistence: &Persistence, settings: &Settings) -> bool {
    let figures = &persistence.figures;
    let now = seconds();
    let changes = server.journal.changes() - figures.saved_changes.load(Relaxed);
    let passed = now.saturating_sub(figures.last_save.load(Relaxed));
    rested(&figures.last_try, &figures.save_failed)
        && settings
            .save
            .iter()
            .any(|&(after, most)| changes >= most && passed > after)
}

fn log_has_grown(server: &Server, settings: &Settings) -> bool {
    let Some(persistence) = server.persistence() else {
        return false;
    };
    let figures = &persistence.figures;
    server.journal.is_logging()
        && settings.auto_aof_rewrite_percentage > 0
        && rested(&figures.last_rewrite_try, &figures.rewrite_failed)
        && figures.log_size.load(Relaxed) > settings.auto_aof_rewrite_min_size
        && figures.log_growth() >= settings.auto_aof_rewrite_percentage
}

fn seconds() -> u64 {
    Now::read().ms / 1000
}

fn elapsed(since: u64) -> i64 {
    i64::try_from(seconds().saturating_sub(since)).unwrap_or(i64::MAX)
}
