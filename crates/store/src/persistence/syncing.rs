//! The thread that runs fsync on the log beside the writes.

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::{Duration, Instant};

use everbloom_files::storage::Syncing;

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

/// The handle of the thread. The thread ends when this is dropped.
#[derive(Debug)]
pub(super) struct Syncer {
    orders: Sender<Syncing>,
    results: Receiver<io::Result<()>>,
    /// The start of the running fsync.
    since: Option<Instant>,
}

impl Syncer {
    /// Starts the thread.
    pub(super) fn start(syncs: Arc<Syncs>) -> io::Result<Self> {
        let (orders, incoming) = mpsc::channel::<Syncing>();
        let (outgoing, results) = mpsc::channel();
        thread::Builder::new().name("fsync".into()).spawn(move || {
            for sync in incoming {
                if outgoing.send(syncs.count(sync)).is_err() {
                    break;
                }
            }
        })?;
        Ok(Syncer {
            orders,
            results,
            since: None,
        })
    }

    /// Begins an fsync; none may be running.
    pub(super) fn begin(&mut self, sync: Syncing) -> io::Result<()> {
        self.orders.send(sync).map_err(|_| gone())?;
        self.since = Some(Instant::now());
        Ok(())
    }

    /// Whether an fsync is running, as far as is known.
    pub(super) fn is_busy(&self) -> bool {
        self.since.is_some()
    }

    /// Whether it takes so long that writing must wait.
    pub(super) fn is_behind(&self) -> bool {
        self.since.is_some_and(|since| since.elapsed() > SLOW_SYNC)
    }

    /// The result of the running fsync, if it has ended.
    pub(super) fn look(&mut self) -> io::Result<()> {
        let result = match self.results.try_recv() {
            Ok(result) => result,
            Err(_) => return Ok(()),
        };
        self.since = None;
        result
    }

    /// Waits for the running fsync and returns its result.
    pub(super) fn wait(&mut self) -> io::Result<()> {
        match self.since.take() {
            Some(_) => self.results.recv().unwrap_or_else(|_| Err(gone())),
            None => Ok(()),
        }
    }
}

fn gone() -> io::Error {
    io::Error::other("the thread for fsync has ended")
}
