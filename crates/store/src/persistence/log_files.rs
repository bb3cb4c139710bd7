//! The list of the log's files. It changes in steps, so that a crash at any point leaves a valid
//! log.

use std::io;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use parking_lot::MutexGuard;

use everbloom_files::aof::{BaseFormat, Manifest};
use everbloom_files::storage::StorageFile;
use tracing::warn;

use super::directory::Persistence;

/// How often a rewrite looks whether the writer of the log has switched files.
const SWITCH_POLL_INTERVAL: Duration = Duration::from_millis(1);

impl Persistence {
    /// Puts a new base in place, under the log's name in the manifest from now on.
    pub(super) fn install_base(&self, from: &str, bytes: u64, logging: bool) -> io::Result<()> {
        let mut log = self.log.lock();
        let base = log.manifest.next_base(&self.names, BaseFormat::Rdb);
        self.storage.rename(from, &self.names.path(&base))?;
        self.storage.sync_dir(self.names.dir())?;
        let mut next = log.manifest.after_rewrite(base.clone());
        if !logging {
            next.history.append(&mut next.increments);
        }
        if let Err(problem) = next.store(&*self.storage, &self.names) {
            // If the last step failed, the sync, the base may already be in use. Otherwise its room
            // is needed for the next.
            let counts = |now: Manifest| now.files().any(|file| file.name == base.name);
            if Manifest::read(&*self.storage, &self.names).is_ok_and(|now| !counts(now)) {
                drop(self.storage.remove(&self.names.path(&base)));
            }
            return Err(problem);
        }
        log.manifest = next;
        self.figures.log_base_size.store(bytes, Relaxed);
        // The records since the base was begun are in the last increment.
        let since = self.figures.log_file_size.load(Relaxed);
        let since = if logging { since } else { 0 };
        self.figures.log_size.store(bytes + since, Relaxed);
        // The new log is already valid. Any leftovers are removed with the next.
        if let Err(problem) = self.remove_history(&mut log.manifest) {
            warn!("files of the log before could not be removed: {problem}");
        }
        Ok(())
    }

    /// Retires the log before another begins. Its files become history, and the manifest on the
    /// disk says so once the other log has a base. Returns the old log.
    pub(super) fn retire_log(&self) -> Manifest {
        let mut log = self.log.lock();
        let old = log.manifest.clone();
        let retired = &mut log.manifest;
        retired.history.extend(retired.base.take());
        retired.history.append(&mut retired.increments);
        old
    }

    /// Undoes [`Persistence::retire_log`] after the other log failed.
    pub(super) fn restore_log(&self, old: Manifest, switch: u64) -> io::Result<()> {
        self.wait_for_switch(switch)?;
        let mut log = self.log.lock();
        // If the last step failed, the sync, the new manifest may already be in use, so its files
        // must stay.
        let now = Manifest::read(&*self.storage, &self.names).unwrap_or(old);
        for unused in &log.manifest.increments {
            if now.files().all(|file| file.name != unused.name) {
                drop(self.storage.remove(&self.names.path(unused)));
            }
        }
        log.manifest = now;
        Ok(())
    }

    /// Removes the files of the history, then the history itself.
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

    /// Waits until the writer of the log has switched files for the `switch`-th time. On a full
    /// disk, it may fail to.
    pub(super) fn wait_for_switch(&self, switch: u64) -> io::Result<()> {
        let failed = self.failed_turns.load(Relaxed);
        let mut log = self.log.lock();
        while log.switches < switch {
            if self.is_ending() {
                return Err(io::Error::other("the server ends"));
            }
            // A switch may have happened before the wait.
            if self.failed_turns.load(Relaxed) >= failed + 2 {
                let problem = self.figures.log_error.lock().clone();
                return Err(io::Error::other(problem.unwrap_or_default()));
            }
            MutexGuard::unlocked(&mut log, || self.machine.sleep(SWITCH_POLL_INTERVAL));
        }
        if log.failed >= switch {
            return Err(io::Error::other("the log could not go on in a new file"));
        }
        Ok(())
    }

    /// Begins a new increment. Unless a base is still missing, the manifest on the disk names it
    /// before anything is written to it.
    pub(super) fn next_file(&self) -> io::Result<Box<dyn StorageFile>> {
        let mut log = self.log.lock();
        let info = log.manifest.next_increment(&self.names);
        let next = log.manifest.with_new_increment(&self.names);
        let file = self.storage.create(&self.names.path(&info))?;
        self.storage.sync_dir(self.names.dir())?;
        if next.base.is_some() {
            next.store(&*self.storage, &self.names)?;
        }
        self.figures.log_file_size.store(0, Relaxed);
        log.manifest = next;
        Ok(file)
    }
}
