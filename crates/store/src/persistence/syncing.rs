//! Runs fsync on the log beside the writes.

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

use everbloom_files::storage::Syncing;

use crate::machine::{Machine, Running};

/// While an fsync takes longer than this, nothing more is written, to limit the data that is not on
/// the disk.
const SLOW_SYNC: Duration = Duration::from_secs(2);

/// Totals over all fsyncs of the log.
#[derive(Debug, Default)]
pub struct Syncs {
    /// How many there were.
    pub count: AtomicU64,
    /// Nanoseconds that they took.
    pub nanos: AtomicU64,
}

impl Syncs {
    /// Runs one fsync, and counts it.
    pub(super) fn count(&self, sync: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        let begun = Instant::now();
        let result = sync();
        let nanos = u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.count.fetch_add(1, Relaxed);
        self.nanos.fetch_add(nanos, Relaxed);
        result
    }
}

/// Runs one fsync at a time on another thread.
#[derive(Debug)]
pub(super) struct Syncer {
    machine: Arc<dyn Machine>,
    syncs: Arc<Syncs>,
    running: Option<Sync>,
}

/// A running fsync.
#[derive(Debug)]
struct Sync {
    thread: Box<dyn Running>,
    result: Receiver<io::Result<()>>,
    /// The uptime of the machine when it began.
    since: Duration,
}

impl Syncer {
    /// Runs nothing yet.
    pub(super) fn new(machine: &Arc<dyn Machine>, syncs: &Arc<Syncs>) -> Self {
        Syncer {
            machine: Arc::clone(machine),
            syncs: Arc::clone(syncs),
            running: None,
        }
    }

    /// Begins an fsync; none may be running.
    pub(super) fn begin(&mut self, sync: Syncing) -> io::Result<()> {
        let (sender, result) = mpsc::channel();
        let syncs = Arc::clone(&self.syncs);
        let work = move || {
            // The receiver is gone only when the result is no longer of use.
            let _ = sender.send(syncs.count(sync));
        };
        self.running = Some(Sync {
            thread: self.machine.start("fsync", Box::new(work))?,
            result,
            since: self.machine.uptime(),
        });
        Ok(())
    }

    /// Whether an fsync is running, as far as is known.
    pub(super) fn is_busy(&self) -> bool {
        self.running.is_some()
    }

    /// The uptime of the machine when the running fsync began.
    pub(super) fn began(&self) -> Option<Duration> {
        self.running.as_ref().map(|sync| sync.since)
    }

    /// Whether it takes so long that writing must wait.
    pub(super) fn is_behind(&self) -> bool {
        let now = self.machine.uptime();
        let running = self.running.as_ref();
        running.is_some_and(|sync| now.saturating_sub(sync.since) > SLOW_SYNC)
    }

    /// The result of the running fsync, if it has ended.
    pub(super) fn look(&mut self) -> io::Result<()> {
        match self.running.as_ref().map(|sync| sync.result.try_recv()) {
            None | Some(Err(mpsc::TryRecvError::Empty)) => Ok(()),
            Some(Ok(result)) => {
                self.running = None;
                result
            }
            Some(Err(mpsc::TryRecvError::Disconnected)) => {
                self.running = None;
                Err(gone())
            }
        }
    }

    /// Nobody asks what becomes of the running fsync.
    pub(super) fn forget(&mut self) {
        self.running = None;
    }

    /// Waits for the running fsync and returns its result.
    pub(super) fn wait(&mut self) -> io::Result<()> {
        let Some(sync) = self.running.take() else {
            return Ok(());
        };
        sync.thread.join();
        sync.result.try_recv().unwrap_or_else(|_| Err(gone()))
    }
}

fn gone() -> io::Error {
    io::Error::other("the thread for fsync has panicked")
}
