//! The list of the log's files. It changes in steps, so that a crash at any point leaves a valid
//! log.

use std::hash::BuildHasher;
use std::io;
use std::mem;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use parking_lot::MutexGuard;

use everbloom_files::aof::{BaseFormat, Ended, FileInfo, Manifest};
use everbloom_files::rdb::LogMark;
use everbloom_files::storage::StorageFile;
use tracing::warn;

use super::directory::{LogFiles, Persistence};

/// How often a rewrite looks whether the writer of the log has switched files.
const SWITCH_POLL_INTERVAL: Duration = Duration::from_millis(1);

/// What a new base is followed by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Follows {
    /// The last increment of the log, which goes on.
    Log,
    /// Nothing: no log is kept.
    Nothing,
}

impl Persistence {
    /// Puts a new base in place, under the log's name in the manifest from now on.
    pub(super) fn install_base(&self, from: &str, bytes: u64, follows: Follows) -> io::Result<()> {
        let mut log = self.log.lock();
        let numbered = self.with_strays(log.manifest.clone())?;
        if log.manifest.base.is_none() && !log.announced {
            numbered.announce(&[], &*self.storage, &self.names)?;
            log.announced = true;
        }
        let base = numbered.next_base(&self.names, BaseFormat::Rdb);
        let mut next = log.manifest.after_rewrite(base.clone());
        self.storage.rename(from, &self.names.path(&base))?;
        self.storage.sync_dir(self.names.dir())?;
        if follows == Follows::Nothing {
            next.history.append(&mut next.increments);
        }
        if let Err(problem) = next.store(&*self.storage, &self.names) {
            if let Some(now) = self.remove_unnamed(&base) {
                log.manifest = now;
            }
            return Err(problem);
        }
        log.manifest = next;
        log.lengths.insert(base.name, bytes);
        log.beginning = false;
        self.includes_log.store(true, Relaxed);
        self.figures.log_base_size.store(bytes, Relaxed);
        // The records since the base was begun are in the last increment.
        let since = match follows {
            Follows::Log => self.figures.log_file_size.load(Relaxed),
            Follows::Nothing => 0,
        };
        self.figures.log_size.store(bytes + since, Relaxed);
        if self.is_lost()
            && let Err(problem) = self.move_strays_aside(&log.manifest)
        {
            warn!("files that somebody else has put beside the log are still there: {problem}");
        }
        // The new log is already valid. Any leftovers are removed with the next.
        let removed = self.remove_history(&mut log.manifest);
        if let Err(problem) = removed.and_then(|()| self.end_announcement(&mut log)) {
            warn!("files of the log before could not be removed: {problem}");
        }
        Ok(())
    }

    /// After a failure: removes a file that the manifest on the disk does not name, because its room
    /// is needed. Returns the manifest if it names the file: only the last step failed, the sync.
    fn remove_unnamed(&self, file: &FileInfo) -> Option<Manifest> {
        let now = Manifest::read(&*self.storage, &self.names).ok()?;
        if now.files().any(|named| named.name == file.name) {
            return Some(now);
        }
        drop(self.storage.remove(&self.names.path(file)));
        None
    }

    /// The manifest, and if the log is lost, with further history for the sake of its numbers: the
    /// next file's must be above those of numbered files that nobody names. Somebody else has put
    /// them there.
    fn with_strays(&self, mut manifest: Manifest) -> io::Result<Manifest> {
        if self.is_lost() {
            let strays = manifest.strays(&*self.storage, &self.names)?;
            manifest.history.extend(strays);
        }
        Ok(manifest)
    }

    /// Renames files that somebody else has put beside this log, so that nobody takes them for its
    /// own: they may be all that is left of something. An increment that a start would miss stays.
    fn move_strays_aside(&self, manifest: &Manifest) -> io::Result<()> {
        for stray in manifest.strays(&*self.storage, &self.names)? {
            if manifest.may_need(&stray, &self.names) {
                let path = self.names.path(&stray);
                warn!("{path} is not of this log, and the next start will refuse it: move it away");
                continue;
            }
            self.move_aside(&stray)?;
        }
        self.storage.sync_dir(self.names.dir())
    }

    /// Renames a file that nobody names, or removes it if it is empty.
    fn move_aside(&self, stray: &FileInfo) -> io::Result<()> {
        let path = self.names.path(stray);
        if self.storage.status(&path)?.len == 0 {
            return self.storage.remove(&path);
        }
        let aside = self.storage.free_name(&format!("{path}.stray-"))?;
        self.storage.rename(&path, &aside)?;
        warn!("{path} is not of this log, and was renamed to {aside}");
        Ok(())
    }

    /// Lists the files of a log that is being begun, before they exist, and those that an earlier
    /// attempt has left behind.
    fn announce(&self, log: &mut LogFiles, left: &[FileInfo]) -> io::Result<()> {
        log.manifest.announce(left, &*self.storage, &self.names)?;
        log.announced = true;
        Ok(())
    }

    /// Removes the list of files without a line, once there are none.
    fn end_announcement(&self, log: &mut LogFiles) -> io::Result<()> {
        if log.announced {
            // What became of those files must be on the disk first.
            self.storage.sync_dir(self.names.dir())?;
            match self.storage.remove(&self.names.beginning()) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
            self.storage.sync_dir(self.names.dir())?;
            log.announced = false;
        }
        Ok(())
    }

    /// Removes the list that an interrupted beginning has left behind.
    pub(super) fn forget_announcement(&self) -> io::Result<()> {
        let mut log = self.log.lock();
        log.announced = self.storage.exists(&self.names.beginning())?;
        self.end_announcement(&mut log)
    }

    /// Retires the log before another begins. Its files, and others that it does not name, become
    /// history, and the manifest on the disk says so once the other log has a base. Without a manifest
    /// nobody knows what files are, and they are moved aside. Returns the old log.
    pub(super) fn retire_log(&self) -> io::Result<Manifest> {
        let mut log = self.log.lock();
        let mut retired = log.manifest.clone();
        retired.history.extend(retired.base.take());
        retired.history.append(&mut retired.increments);
        log.announced |= self.storage.exists(&self.names.beginning())?;
        let mut strays = retired.strays(&*self.storage, &self.names)?;
        if log.manifest.is_empty() && !log.announced {
            for stray in std::mem::take(&mut strays) {
                self.move_aside(&stray)?;
            }
        }
        let mut left = Vec::new();
        if log.announced {
            left.extend_from_slice(&log.manifest.history);
            left.extend_from_slice(&strays);
        }
        retired.history.extend(strays);
        retired.ended = None;
        let old = mem::replace(&mut log.manifest, retired);
        if let Err(problem) = self.announce(&mut log, &left) {
            log.manifest = old;
            return Err(problem);
        }
        log.beginning = true;
        Ok(old)
    }

    /// Undoes [`Persistence::retire_log`] after the other log failed, which had begun a file if
    /// there was a switch.
    pub(super) fn restore_log(&self, old: Manifest, switch: Option<u64>) -> io::Result<()> {
        let switched = switch.map_or(Ok(()), |switch| self.wait_for_switch(switch));
        if !self.is_ending() {
            switched?;
        }
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
        log.beginning = false;
        // Files of an earlier attempt stay in the list.
        if log.manifest.strays(&*self.storage, &self.names)?.is_empty() {
            self.end_announcement(&mut log)?;
        }
        Ok(())
    }

    /// Marks the log on the disk as one that is no longer kept, before a snapshot is made without
    /// it. Returns what the snapshot says of it; `None` if there is no log on the disk.
    pub(super) fn mark_ended_log(&self) -> io::Result<Option<LogMark>> {
        let mut log = self.log.lock();
        if log.manifest.is_empty() || !self.storage.exists(&self.names.manifest())? {
            return Ok(None);
        }
        let id = match log.manifest.ended {
            Some(ended) => ended.id,
            None => {
                let id = self.new_id();
                self.set_ended(&mut log, Ended { id, saved: false })?;
                id
            }
        };
        let includes = self.includes_log.load(Relaxed);
        Ok(Some(LogMark { id, includes }))
    }

    /// A snapshot with this mark is complete. If it holds all that the log holds, the log is not
    /// read any more.
    pub(super) fn confirm_snapshot(&self, mark: LogMark) -> io::Result<()> {
        let mut log = self.log.lock();
        let unsaved = Some(Ended {
            id: mark.id,
            saved: false,
        });
        if !mark.includes || log.manifest.ended != unsaved {
            return Ok(());
        }
        let (id, saved) = (mark.id, true);
        self.set_ended(&mut log, Ended { id, saved })
    }

    fn set_ended(&self, log: &mut LogFiles, ended: Ended) -> io::Result<()> {
        let marked = Manifest {
            ended: Some(ended),
            ..log.manifest.clone()
        };
        marked.store(&*self.storage, &self.names)?;
        log.manifest = marked;
        Ok(())
    }

    /// A number that no other end of a log has.
    fn new_id(&self) -> u64 {
        static LAST: AtomicU64 = AtomicU64::new(0);
        let number = LAST.fetch_add(1, Relaxed);
        let time = (self.machine.now().ms, self.machine.uptime());
        self.machine.key_hasher().hash_one((number, time))
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
        let failed = self.failed_writes.load(Relaxed);
        let mut log = self.log.lock();
        while log.switches < switch {
            if self.is_ending() {
                return Err(io::Error::other("the server ends"));
            }
            // A switch may have happened before the wait.
            if self.failed_writes.load(Relaxed) >= failed + 2 {
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

    /// Begins a new increment. Unless the log is being begun, the manifest on the disk names it
    /// before anything is written to it. `finished` is the length of the increment before, if that
    /// is known.
    pub(super) fn next_file(&self, finished: Option<u64>) -> io::Result<Box<dyn StorageFile>> {
        let mut log = self.log.lock();
        let numbered = self.with_strays(log.manifest.clone())?;
        let info = numbered.next_increment(&self.names);
        let next = Manifest {
            history: log.manifest.history.clone(),
            ..numbered.with_new_increment(&self.names)
        };
        let file = self.storage.create(&self.names.path(&info))?;
        let named = self.storage.sync_dir(self.names.dir());
        let named = named.and_then(|()| match log.beginning {
            true => Ok(()),
            false => next.store(&*self.storage, &self.names),
        });
        if let Err(problem) = named {
            self.remove_unnamed(&info);
            return Err(problem);
        }
        self.figures.log_file_size.store(0, Relaxed);
        if let (Some(before), Some(len)) = (log.manifest.increments.last(), finished) {
            let name = before.name.clone();
            log.lengths.insert(name, len);
        }
        log.manifest = next;
        Ok(file)
    }
}
