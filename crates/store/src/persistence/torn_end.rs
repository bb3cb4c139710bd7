//! The torn end of the AOF, which a start moves to a file beside it.
//!
//! A full disk may have no room for that file. Then the keys are served, and writes are refused
//! until there is room: the thread that writes the log tries again. With `appendfsync always` a
//! server that cannot write its log ends, so it does not start.
//!
//! A try writes as much as there is room for. So the pause before the next one doubles.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use everbloom_files::storage::{Storage, StorageFile, parent};
use thiserror::Error;
use tracing::warn;

use crate::machine::Machine;

/// The pause after the first try that fails.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// The longest pause.
const MAX_PAUSE: Duration = Duration::from_secs(60);

/// Bytes at the end of a file of the AOF that are no whole command or transaction.
#[derive(Debug)]
pub(super) struct TornEnd {
    storage: Arc<dyn Storage>,
    machine: Arc<dyn Machine>,
    /// The file.
    file: String,
    /// Where in it they begin.
    start: u64,
    /// The last try, which failed.
    failed: Option<FailedTry>,
}

#[derive(Debug)]
struct FailedTry {
    why: TornEndError,
    /// The uptime of the machine at its end.
    ended: Duration,
    /// The time from its end to the next try.
    pause: Duration,
}

/// Why a torn end is still in its file.
#[derive(Clone, Debug, Error)]
#[error("the torn end of {file} cannot be moved to a file beside it: {problem}")]
pub struct TornEndError {
    file: String,
    problem: String,
}

impl TornEnd {
    pub(super) fn new(
        storage: &Arc<dyn Storage>,
        machine: &Arc<dyn Machine>,
        file: &str,
        start: u64,
    ) -> Self {
        TornEnd {
            storage: Arc::clone(storage),
            machine: Arc::clone(machine),
            file: file.into(),
            start,
            failed: None,
        }
    }

    /// Whether the bytes are in this file.
    pub(super) fn is_in(&self, file: &str) -> bool {
        self.file == file
    }

    /// Moves the bytes to a new file beside. Returns the file that they were in, truncated and not
    /// synced. After a failure, which leaves nothing behind, further calls repeat the error until a
    /// new try is due, or `at_once` is wanted.
    pub(super) fn move_aside(
        &mut self,
        at_once: bool,
    ) -> Result<Box<dyn StorageFile>, TornEndError> {
        let pause = match &self.failed {
            None => FIRST_PAUSE,
            Some(failed) => {
                let passed = self.machine.uptime().saturating_sub(failed.ended);
                if passed < failed.pause && !at_once {
                    return Err(failed.why.clone());
                }
                MAX_PAUSE.min(failed.pause * 2)
            }
        };
        self.try_to_move_aside().map_err(|problem| {
            let why = TornEndError {
                file: self.file.clone(),
                problem: problem.to_string(),
            };
            self.failed = Some(FailedTry {
                why: why.clone(),
                ended: self.machine.uptime(),
                pause,
            });
            why
        })
    }

    fn try_to_move_aside(&self) -> io::Result<Box<dyn StorageFile>> {
        let (torn, len) = self.storage.read_from(&self.file, self.start)?;
        if len <= self.start {
            // Somebody else has cut it off.
            return self.truncate();
        }
        let copy = self.storage.free_name(&format!("{}.cut-", self.file))?;
        let truncated = self.copy(torn, &copy).and_then(|()| self.truncate());
        match &truncated {
            Ok(_) => warn!(
                "{} had {len} bytes and has {} now, as aof-load-truncated says; the other {} are \
                 in {copy}",
                self.file,
                self.start,
                len.saturating_sub(self.start)
            ),
            // Otherwise each try would leave a file behind.
            Err(_) => drop(self.storage.remove(&copy)),
        }
        truncated
    }

    /// The file without the bytes. An error if somebody else has cut off more than them.
    fn truncate(&self) -> io::Result<Box<dyn StorageFile>> {
        let mut file = self.storage.append(&self.file)?;
        file.shorten(self.start)?;
        Ok(file)
    }

    /// Writes the bytes that a reader gives to a new file.
    fn copy(&self, mut from: impl io::Read, to: &str) -> io::Result<()> {
        let mut copy = self.storage.create(to)?;
        io::copy(&mut from, &mut copy)?;
        copy.sync()?;
        self.storage.sync_dir(parent(to))
    }
}
