//! The figures of snapshots and the log for INFO.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};

use parking_lot::Mutex;

use super::syncing::Syncs;

/// The figures of snapshots and the log for INFO. Times are in seconds.
#[derive(Debug)]
pub struct PersistenceFigures {
    /// The total number of changes at the last snapshot.
    pub saved_changes: AtomicU64,
    /// Unix time of the last good snapshot, or of the start.
    pub last_save: AtomicU64,
    /// Unix time of the last attempt at a background snapshot.
    pub last_try: AtomicU64,
    /// Unix time of the last attempt at a rewrite.
    pub last_rewrite_try: AtomicU64,
    /// Good snapshots since the start.
    pub saves: AtomicU64,
    /// Good rewrites since the start.
    pub rewrites: AtomicU64,
    /// The start of the running background snapshot; 0 = none.
    pub saving_since: AtomicU64,
    /// The start of the running rewrite; 0 = none.
    pub rewriting_since: AtomicU64,
    /// A snapshot waits for its turn.
    pub save_scheduled: AtomicBool,
    /// A rewrite waits for its turn.
    pub rewrite_scheduled: AtomicBool,
    /// The last snapshot failed.
    pub save_failed: AtomicBool,
    /// The last rewrite failed.
    pub rewrite_failed: AtomicBool,
    /// How long the last snapshot took; -1 = none was made.
    pub save_seconds: AtomicI64,
    /// How long the last rewrite took; -1 = none was made.
    pub rewrite_seconds: AtomicI64,
    /// Why the log cannot be written, while it cannot.
    pub log_error: Mutex<Option<String>>,
    /// Whether an fsync of the log is running in the background.
    pub log_syncing: AtomicBool,
    /// How often a write had to wait for such an fsync.
    pub delayed_syncs: AtomicU64,
    /// Its fsyncs.
    pub syncs: Arc<Syncs>,
    /// Bytes of all files of the log.
    pub log_size: AtomicU64,
    /// Bytes of the current file of the log.
    pub log_file_size: AtomicU64,
    /// Bytes of the log when it was begun or rewritten.
    pub log_base_size: AtomicU64,
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

impl Default for PersistenceFigures {
    fn default() -> Self {
        let now = crate::clock::Now::read().ms / 1000;
        PersistenceFigures {
            saved_changes: AtomicU64::new(0),
            last_save: AtomicU64::new(now),
            last_try: AtomicU64::new(0),
            last_rewrite_try: AtomicU64::new(0),
            saves: AtomicU64::new(0),
            rewrites: AtomicU64::new(0),
            saving_since: AtomicU64::new(0),
            rewriting_since: AtomicU64::new(0),
            save_scheduled: AtomicBool::new(false),
            rewrite_scheduled: AtomicBool::new(false),
            save_failed: AtomicBool::new(false),
            rewrite_failed: AtomicBool::new(false),
            save_seconds: AtomicI64::new(-1),
            rewrite_seconds: AtomicI64::new(-1),
            log_error: Mutex::new(None),
            log_syncing: AtomicBool::new(false),
            delayed_syncs: AtomicU64::new(0),
            syncs: Arc::default(),
            log_size: AtomicU64::new(0),
            log_file_size: AtomicU64::new(0),
            log_base_size: AtomicU64::new(0),
            seen_written: AtomicU64::new(0),
            rewrite_failures: AtomicU64::new(0),
            loaded_keys: AtomicU64::new(0),
            loaded_expired: AtomicU64::new(0),
            loading_total: AtomicU64::new(0),
            loading_done: AtomicU64::new(0),
        }
    }
}

impl PersistenceFigures {
    /// Bytes that the log has grown by since it was begun or rewritten, in percent.
    pub fn log_growth(&self) -> u64 {
        let base = self.log_base_size.load(Ordering::Relaxed).max(1);
        let size = self.log_size.load(Ordering::Relaxed);
        size.saturating_sub(base).saturating_mul(100) / base
    }
}
