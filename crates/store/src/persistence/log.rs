//! The thread that writes what the journal takes in.
//!
//! It takes everything that waits, writes it at once, forces it to the disk as `appendfsync` says,
//! and then lets all replies go that waited for it: one fsync serves them all.

use std::io;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use tracing::{error, info, warn};

use everbloom_files::storage::StorageFile;

use super::directory::Persistence;
use crate::journal::Batch;
use crate::settings::{Fsync, Settings};
use crate::store::Store;

/// How long to wait for something to write before looking whether it is time for an fsync.
const PATIENCE: Duration = Duration::from_millis(100);
/// The same where records gather: an event loop that never sleeps does not say that it has some.
const GATHERED: Duration = Duration::from_millis(2);
/// Where nobody waits for the disk, so long is collected before the next write.
const COLLECT: Duration = Duration::from_millis(2);
/// How long to wait before a failed write is tried again.
const RETRY: Duration = Duration::from_millis(500);

/// The file that the log is written to.
#[derive(Debug)]
pub struct Log {
    file: Box<dyn StorageFile>,
    /// How much of the file is known to be good.
    len: u64,
    /// Something behind that may have been written.
    torn: bool,
    unsynced: bool,
    last_sync: Instant,
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
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
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

    fn sync(&mut self) -> io::Result<()> {
        if self.unsynced {
            self.file.sync()?;
            self.unsynced = false;
        }
        self.last_sync = Instant::now();
        Ok(())
    }
}

/// Writes the log until the journal is closed. `None` while no log is kept yet.
pub fn run(store: &Store, persistence: &Persistence, mut log: Option<Log>) {
    loop {
        let settings = store.settings();
        let always = settings.appendfsync == Fsync::Always;
        store.journal.gather(always);
        let patience = if always { GATHERED } else { PATIENCE };
        let batch = store.journal.take(patience);
        let wrote = !batch.bytes.is_empty();
        if !write_batch(store, persistence, &mut log, &batch) {
            return;
        }
        store.journal.set_durable(batch.end);
        if batch.last {
            info!("the log is complete");
            return;
        }
        store.journal.give_back(batch.bytes);
        if wrote && !always {
            thread::sleep(COLLECT);
        }
    }
}

/// Writes a batch, trying again as long as it takes; false when the server is to stop at once.
fn write_batch(
    store: &Store,
    persistence: &Persistence,
    log: &mut Option<Log>,
    batch: &Batch,
) -> bool {
    let mut progress = Progress::default();
    loop {
        let settings = store.settings();
        let result = advance(persistence, log, batch, &mut progress, &settings);
        let mut failing = persistence.figures.log_error.lock();
        match result {
            Ok(()) => {
                if failing.take().is_some() {
                    warn!("the log can be written again");
                    store.health.set_log_failing(false);
                }
                return true;
            }
            Err(problem) if settings.appendfsync == Fsync::Always => {
                // The clients whose changes are not on the disk never get a reply.
                store.fail(format!(
                    "appendfsync is always and the log cannot be written: {problem}"
                ));
                return false;
            }
            Err(problem) => {
                if failing.is_none() {
                    error!("the log cannot be written, so writes are refused: {problem}");
                }
                *failing = Some(problem.to_string());
                store.health.set_log_failing(true);
            }
        }
        drop(failing);
        if batch.last || store.journal.is_closed() {
            store.fail("the end of the log could not be written".into());
            return false;
        }
        thread::sleep(RETRY);
    }
}

/// How much of a batch is written.
#[derive(Debug, Default)]
struct Progress {
    bytes: usize,
    switches: usize,
}

fn advance(
    persistence: &Persistence,
    log: &mut Option<Log>,
    batch: &Batch,
    progress: &mut Progress,
    settings: &Settings,
) -> io::Result<()> {
    loop {
        let switch = batch.switches.get(progress.switches).copied();
        let until = switch.unwrap_or(batch.bytes.len());
        let bytes = batch.bytes.get(progress.bytes..until).unwrap_or_default();
        if let Some(log) = log
            && !bytes.is_empty()
        {
            log.write(bytes)?;
            let written = u64::try_from(bytes.len()).unwrap_or(0);
            let figures = &persistence.figures;
            figures.log_size.fetch_add(written, Ordering::Relaxed);
            figures.log_file_size.fetch_add(written, Ordering::Relaxed);
        }
        progress.bytes = until;
        if switch.is_none() {
            break;
        }
        if let Some(log) = log {
            log.sync()?;
        }
        *log = Some(Log::new(persistence.next_file()?, 0));
        persistence.log.lock().switches += 1;
        persistence.switched.notify_all();
        progress.switches += 1;
    }
    if !batch.logging {
        // No log is kept any more: it is complete.
        if let Some(ended) = log {
            ended.sync()?;
            info!("the log ends here");
        }
        *log = None;
    }
    let Some(log) = log else { return Ok(()) };
    let due = match settings.appendfsync {
        Fsync::Always => true,
        Fsync::EverySecond => log.last_sync.elapsed() >= Duration::from_secs(1),
        Fsync::No => false,
    };
    if due || batch.last {
        log.sync()
    } else {
        Ok(())
    }
}
