//! The file that the log is written to, and what is known of it.

use std::io;
use std::time::Instant;

use everbloom_files::storage::StorageFile;

use super::syncing::{Syncer, Syncs};
use crate::unwritten::Unwritten;

/// The file that the log is written to.
#[derive(Debug)]
pub struct Log {
    pub(super) file: Box<dyn StorageFile>,
    /// How much of the file is known to be good.
    len: u64,
    /// Something behind that may have been written.
    torn: bool,
    pub(super) unsynced: bool,
    pub(super) last_sync: Instant,
}

impl Log {
    /// A log that goes on in this file, which has `len` bytes.
    pub fn new(file: Box<dyn StorageFile>, len: u64) -> Self {
        Log {
            file,
            len,
            torn: false,
            unsynced: false,
            last_sync: Instant::now(),
        }
    }

    /// Writes all of `bytes`, or nothing that is left in the file.
    pub(super) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.torn {
            self.file.truncate(self.len)?;
            self.torn = false;
        }
        if let Err(error) = self.file.write_all(bytes) {
            self.torn = true;
            // The cut, too, must be on the disk before there is a file behind this one.
            self.unsynced = true;
            // Redis, too, cuts off what a full disk has let through. If that fails, the next try
            // begins with it.
            self.torn = self.file.truncate(self.len).is_err();
            return Err(error);
        }
        self.len += u64::try_from(bytes.len()).unwrap_or(0);
        self.unsynced |= !bytes.is_empty();
        Ok(())
    }

    pub(super) fn sync(&mut self, syncs: &Syncs) -> io::Result<()> {
        if self.unsynced {
            syncs.count(|| self.file.sync())?;
            self.unsynced = false;
        }
        self.last_sync = Instant::now();
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
    /// The log may not be whole, and nothing is written until it was rewritten.
    pub(super) lost: bool,
    /// What was taken from the journal and could not be written.
    pub(super) unwritten: Option<Unwritten>,
}
