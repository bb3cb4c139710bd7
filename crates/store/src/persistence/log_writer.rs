//! The current file of the log and its state.

use std::io::{self, ErrorKind::Interrupted, ErrorKind::WriteZero};
use std::time::Duration;

use everbloom_files::storage::{FileStatus, StorageFile};

use super::syncing::{Syncer, Syncs};
use super::torn_end::{TornEnd, TornEndError};
use crate::unwritten::Unwritten;

/// The current file of the log.
#[derive(Debug)]
pub struct Log {
    pub(super) file: Box<dyn StorageFile>,
    /// How much of the file is known to be good.
    len: u64,
    /// Whether bytes after that may have been written.
    torn: bool,
    pub(super) unsynced: bool,
    /// The uptime of the machine at the last sync.
    pub(super) last_sync: Duration,
    /// The torn end that a start has found in this file or in the one before, and could not move
    /// aside. Nothing is written before it is.
    torn_end: Option<TornEnd>,
}

impl Log {
    /// A log that continues in this file, which has `len` bytes. `now` is the machine's uptime.
    pub fn new(file: Box<dyn StorageFile>, len: u64, now: Duration) -> Self {
        Log {
            file,
            len,
            torn: false,
            unsynced: false,
            last_sync: now,
            torn_end: None,
        }
    }

    /// This log, behind a torn end if there is one.
    pub(super) fn behind(self, torn_end: Option<TornEnd>) -> Self {
        Log {
            torn: self.torn || torn_end.is_some(),
            torn_end,
            ..self
        }
    }

    /// Moves the torn end aside, if there is one and a try is due or wanted `at_once`. Returns the
    /// file that it was in, truncated and not synced.
    pub(super) fn move_torn_end(
        &mut self,
        at_once: bool,
    ) -> Result<Option<Box<dyn StorageFile>>, TornEndError> {
        let Some(torn_end) = &mut self.torn_end else {
            return Ok(None);
        };
        let file = torn_end.move_aside(at_once)?;
        self.torn_end = None;
        Ok(Some(file))
    }

    /// Whether something stands before the next write.
    pub(super) fn is_behind_torn_end(&self) -> bool {
        self.torn_end.is_some()
    }

    /// Leaves the torn end where it is: nothing more is written to this file.
    pub(super) fn forget_torn_end(&mut self) {
        self.torn_end = None;
    }

    /// Whether this file of the AOF may be longer than what of it is known to be good. A torn end
    /// may also be in the file before the current one.
    pub(super) fn may_be_longer(&self, name: &str, is_current: bool) -> bool {
        let torn_end = self.torn_end.as_ref();
        is_current && self.torn || torn_end.is_some_and(|torn_end| torn_end.is_in(name))
    }

    /// How much of the file is known to be good.
    pub(super) fn len(&self) -> u64 {
        self.len
    }

    /// Writes all of `bytes`, or leaves nothing of them in the file.
    pub(super) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.torn {
            if self.torn_end.is_some() {
                return Err(io::Error::other("the torn end before it is still there"));
            }
            self.file.shorten(self.len)?;
            self.torn = false;
        }
        let mut rest = bytes;
        while !rest.is_empty() {
            match self.file.write(rest) {
                Ok(0) => return Err(self.cut_partial(bytes.len() - rest.len(), WriteZero.into())),
                Ok(written) => rest = rest.get(written..).unwrap_or_default(),
                Err(error) if error.kind() == Interrupted => {}
                Err(error) => return Err(self.cut_partial(bytes.len() - rest.len(), error)),
            }
        }
        self.len += u64::try_from(bytes.len()).unwrap_or(0);
        self.unsynced |= !bytes.is_empty();
        Ok(())
    }

    /// Removes the bytes of a write that failed, as Redis does on a full disk. If that fails, the next
    /// try begins with it.
    fn cut_partial(&mut self, written: usize, error: io::Error) -> io::Error {
        // The truncation, too, must be on the disk before another file follows.
        self.unsynced = true;
        let expected = self.len + u64::try_from(written).unwrap_or(0);
        self.torn = match self.file.status() {
            // Somebody has changed the file. Its length is what tells the check.
            Ok(found) if found.len != expected => false,
            _ => self.file.shorten(self.len).is_err(),
        };
        error
    }

    /// The length that the file must have, if no write has failed.
    pub(super) fn good_len(&self) -> Option<u64> {
        (!self.torn).then_some(self.len)
    }

    pub(super) fn sync(&mut self, syncs: &Syncs) -> io::Result<()> {
        if self.unsynced {
            syncs.count(|| self.file.sync())?;
            self.unsynced = false;
        }
        Ok(())
    }
}

/// Writes the log; behind a lock in [`Persistence`](super::Persistence).
#[derive(Debug)]
pub(super) struct Writer {
    /// `None` while no log is kept.
    pub(super) log: Option<Log>,
    pub(super) syncer: Syncer,
    /// The number of files that were begun.
    pub(super) switches: u64,
    /// Why the log may be incomplete, if so. Nothing is written then until it is rewritten.
    pub(super) lost: Option<String>,
    /// The data that was taken from the journal and could not be written.
    pub(super) unwritten: Option<Unwritten>,
    /// The files on the disk.
    pub(super) checked: CheckedFiles,
}

/// The AOF's files as they were at the last check.
#[derive(Debug, Default)]
pub(super) struct CheckedFiles {
    /// The machine's uptime then.
    pub(super) at: Duration,
    /// The manifest, if it named every file.
    pub(super) manifest: Option<FileStatus>,
}
