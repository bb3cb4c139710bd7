//! The thread that writes what the journal takes in.
//!
//! It takes everything that waits, writes it at once, forces it to the disk as `appendfsync` says,
//! and then lets all replies go that waited for it: one fsync serves them all.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use tracing::{error, info, warn};

use super::Persistence;
use crate::config::Settings;
use crate::config::settings::Fsync;
use crate::journal::Batch;
use crate::server::Server;
use crate::storage::StorageFile;

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
pub fn run(server: &Arc<Server>, persistence: &Persistence, mut log: Option<Log>) {
    loop {
        let settings = server.config.snapshot();
        let always = settings.appendfsync == Fsync::Always;
        server.journal.gather(always);
        let patience = if always { GATHERED } else { PATIENCE };
        let batch = server.journal.take(patience);
        let wrote = !batch.bytes.is_empty();
        if !write_batch(server, persistence, &mut log, &batch) {
            return;
        }
        server.journal.set_durable(batch.end);
        if batch.last {
            info!("the log is complete");
            return;
        }
        server.journal.give_back(batch.bytes);
        if wrote && !always {
            thread::sleep(COLLECT);
        }
    }
}

/// Writes a batch, trying again as long as it takes; false when the server is to stop at once.
fn write_batch(
    server: &Arc<Server>,
    persistence: &Persistence,
    log: &mut Option<Log>,
    batch: &Batch,
) -> bool {
    let mut progress = Progress::default();
    loop {
        let settings = server.config.snapshot();
        let result = advance(persistence, log, batch, &mut progress, &settings);
        let mut failing = persistence.figures.log_error.lock();
        match result {
            Ok(()) => {
                if failing.take().is_some() {
                    warn!("the log can be written again");
                    server.set_log_failing(false);
                }
                return true;
            }
            Err(problem) if settings.appendfsync == Fsync::Always => {
                // The clients whose changes are not on the disk never get a reply.
                server.fail(format!(
                    "appendfsync is always and the log cannot be written: {problem}"
                ));
                return false;
            }
            Err(problem) => {
                if failing.is_none() {
                    error!("the log cannot be written, so writes are refused: {problem}");
                }
                *failing = Some(problem.to_string());
                server.set_log_failing(true);
            }
        }
        drop(failing);
        if batch.last || server.journal.is_closed() {
            server.fail("the end of the log could not be written".into());
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
        *log = Some(persistence.next_file()?);
        persistence.manifest.lock().1 += 1;
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

impl Persistence {
    /// Begins a new increment. Unless a base is still missing, the manifest on the disk names it
    /// before anything is written to it.
    pub(super) fn next_file(&self) -> io::Result<Log> {
        let mut state = self.manifest.lock();
        let info = state.0.next_increment(&self.names);
        let next = state.0.with_new_increment(&self.names);
        let file = self.storage.create(&self.names.path(&info))?;
        self.storage.sync_dir(self.names.dir())?;
        if next.base.is_some() {
            next.store(&*self.storage, &self.names)?;
        }
        self.figures.log_file_size.store(0, Ordering::Relaxed);
        state.0 = next;
        Ok(Log::new(file, 0))
    }
}
