//! The figures of snapshots and the log for INFO.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

use super::syncing::Syncs;
use crate::clock::Now;

/// The figures of one kind of background job. Times are in seconds.
#[derive(Debug)]
pub struct JobFigures {
    /// The machine's uptime at the last attempt. The clock may go back.
    pub last_try: AtomicU64,
    /// The start of the running job; 0 = none.
    pub running_since: AtomicU64,
    /// A job waits for its turn.
    pub scheduled: AtomicBool,
    /// The last job failed.
    pub failed: AtomicBool,
    /// How long the last job in the background took; -1 = there was none.
    pub seconds: AtomicI64,
    /// Good ones since the start.
    pub done: AtomicU64,
}

impl Default for JobFigures {
    fn default() -> Self {
        JobFigures {
            last_try: AtomicU64::new(0),
            running_since: AtomicU64::new(0),
            scheduled: AtomicBool::new(false),
            failed: AtomicBool::new(false),
            seconds: AtomicI64::new(-1),
            done: AtomicU64::new(0),
        }
    }
}

impl JobFigures {
    /// Whether such a job is running.
    pub fn is_running(&self) -> bool {
        self.running_since.load(Ordering::Relaxed) > 0
    }
}

/// The figures of snapshots and the log for INFO. Times are in seconds.
#[derive(Debug, Default)]
pub struct PersistenceFigures {
    /// Snapshots.
    pub save: JobFigures,
    /// Rewrites of the log.
    pub rewrite: JobFigures,
    /// The total number of changes at the last snapshot.
    pub saved_changes: AtomicU64,
    /// Unix time of the last good snapshot, or of the start.
    pub last_save: AtomicU64,
    /// The machine's uptime then.
    pub saved_at: AtomicU64,
    /// Why the log cannot be written, while it cannot.
    pub log_error: Mutex<Option<String>>,
    /// The machine's uptime when the fsync of the log began that is running in the background.
    pub(super) log_sync_began: Mutex<Option<Duration>>,
    /// How often writes had to wait two seconds for such an fsync.
    pub delayed_syncs: AtomicU64,
    /// Its fsyncs.
    pub syncs: Arc<Syncs>,
    /// Bytes of all files of the log.
    pub log_size: AtomicU64,
    /// Bytes of the current file of the log.
    pub log_file_size: AtomicU64,
    /// Bytes of the log when it was begun or rewritten.
    pub log_base_size: AtomicU64,
    /// Whether writes were refused at the last check, or since.
    pub(super) refused: AtomicBool,
    /// How much of the journal was written at the last check.
    pub seen_written: AtomicU64,
    /// Rewrites that failed since the last good one.
    pub rewrite_failures: AtomicU64,
    /// Keys of the snapshots in the last load.
    pub loaded_keys: AtomicU64,
    /// Keys in them that had expired.
    pub loaded_expired: AtomicU64,
    /// Bytes of the file that is being loaded.
    pub loading_total: AtomicU64,
    /// Bytes of that file that were read so far.
    pub loading_done: AtomicU64,
}

impl PersistenceFigures {
    /// The figures at the start.
    pub fn new(now: Now) -> Self {
        PersistenceFigures {
            last_save: AtomicU64::new(now.seconds()),
            ..PersistenceFigures::default()
        }
    }

    /// Whether an fsync of the log is running in the background.
    pub fn is_log_syncing(&self) -> bool {
        self.log_sync_began.lock().is_some()
    }

    /// Bytes that the log has grown by since it was begun or rewritten, in percent.
    pub fn log_growth(&self) -> u64 {
        let base = self.log_base_size.load(Ordering::Relaxed).max(1);
        let size = self.log_size.load(Ordering::Relaxed);
        size.saturating_sub(base).saturating_mul(100) / base
    }
}
