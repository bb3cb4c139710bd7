//! SAVE, BGSAVE and BGREWRITEAOF, and what starts them by itself. At most one of them runs at a
//! time; each works on a snapshot, so that commands go on meanwhile.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;

use thiserror::Error;
use tracing::{error, info};

use super::{Persistence, writer};
use crate::aof::{BaseFormat, Manifest};
use crate::clock::Now;
use crate::config::Settings;
use crate::keyspace::snapshot::Snapshot;
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
    /// The file was not written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The files could not be put in place.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Holds the right to make a snapshot.
struct Turn<'p>(&'p Persistence);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0
            .busy
            .store(false, std::sync::atomic::Ordering::Release);
    }
}

impl Persistence {
    fn turn(&self) -> Result<Turn<'_>, JobError> {
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
    spawn("save", move || {
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
    spawn("rewrite", move || {
        let Some(persistence) = shared.persistence() else {
            return;
        };
        let turn = Turn(persistence);
        let figures = &persistence.figures;
        let since = figures.rewriting_since.load(Relaxed);
        let result = rewrite_now(&shared, persistence, begin);
        match &result {
            Ok(bytes) => {
                info!(bytes, "the log was rewritten");
                figures.rewrites.fetch_add(1, Relaxed);
            }
            Err(problem) => error!("the log could not be rewritten: {problem}"),
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

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    thread::Builder::new()
        .name(name.into())
        .spawn(work)
        .map(drop)
}

fn save_now(server: &Server, persistence: &Persistence) -> Result<(), JobError> {
    let settings = server.config.snapshot();
    let mut changes = 0;
    let snapshot = Snapshot::begin(&server.keyspace, || changes = server.journal.changes());
    let result = write_file(server, persistence, &snapshot, &settings, "temp.rdb", false);
    snapshot.end(&server.keyspace);
    let result = result.and_then(|bytes| {
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
    let logging = begin || server.journal.is_logging();
    if begin {
        // Whatever log there was says nothing about what the keys are now.
        persistence.retire_log()?;
    }
    let switches = persistence.manifest.lock().1;
    let snapshot = Snapshot::begin(&server.keyspace, || {
        if logging {
            server.journal.set_logging(true);
            server.journal.switch_file();
        }
    });
    let temporary = format!("{}/temp.base.rdb", persistence.names.dir());
    let result = write_file(server, persistence, &snapshot, &settings, &temporary, true);
    snapshot.end(&server.keyspace);
    let result = result.and_then(|bytes| {
        if logging {
            persistence.wait_for_switch(switches);
        }
        persistence.install_base(&temporary, bytes, logging)?;
        Ok(bytes)
    });
    if result.is_err() {
        drop(persistence.storage.remove(&temporary));
    }
    result
}

fn write_file(
    server: &Server,
    persistence: &Persistence,
    snapshot: &Arc<Snapshot>,
    settings: &Settings,
    name: &str,
    aof_base: bool,
) -> Result<u64, JobError> {
    if aof_base {
        persistence.storage.create_dir(persistence.names.dir())?;
    }
    let mut file = persistence.storage.create(name)?;
    Ok(writer::write(
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
        self.figures.log_size.store(bytes, Relaxed);
        self.remove_history(&mut state.0)
    }

    /// Makes all files of the log history, before another is begun.
    fn retire_log(&self) -> io::Result<()> {
        let mut state = self.manifest.lock();
        let mut old = std::mem::take(&mut state.0);
        old.history.extend(old.base.take());
        old.history.append(&mut old.increments);
        self.storage.create_dir(self.names.dir())?;
        self.storage.sync_dir("")?;
        old.store(&*self.storage, &self.names)?;
        state.0 = old;
        self.remove_history(&mut state.0)
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

    /// Waits until the writer of the log has gone on to the file after `switches` others.
    fn wait_for_switch(&self, switches: u64) {
        let mut state = self.manifest.lock();
        while state.1 <= switches {
            self.switched.wait(&mut state);
        }
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
    let started = if figures.rewrite_scheduled.load(Relaxed) || log_has_grown(server, &settings) {
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

fn save_is_due(server: &Server, persistence: &Persistence, settings: &Settings) -> bool {
    let figures = &persistence.figures;
    let now = seconds();
    let changes = server.journal.changes() - figures.saved_changes.load(Relaxed);
    let passed = now.saturating_sub(figures.last_save.load(Relaxed));
    let rested = now.saturating_sub(figures.last_try.load(Relaxed)) > RETRY_AFTER;
    (rested || !figures.save_failed.load(Relaxed))
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
        && !figures.rewrite_failed.load(Relaxed)
        && figures.log_size.load(Relaxed) > settings.auto_aof_rewrite_min_size
        && figures.log_growth() >= settings.auto_aof_rewrite_percentage
}

fn seconds() -> u64 {
    Now::read().ms / 1000
}

fn elapsed(since: u64) -> i64 {
    i64::try_from(seconds().saturating_sub(since)).unwrap_or(i64::MAX)
}
