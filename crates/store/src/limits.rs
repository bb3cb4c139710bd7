//! The thresholds at which this crate takes another way.

use everbloom::host::Limit;

/// About how many bytes the walk of a snapshot keeps under one lock.
pub(crate) static SNAPSHOT_STEP_BYTES: Limit = Limit::new("step of a snapshot", 1, 256 << 10);

/// A snapshot reads a longer value in pieces. It copies a shorter one, which takes some ten
/// microseconds.
pub(crate) static COPIED_BYTES: Limit = Limit::new("value that a snapshot copies", 0, 64 << 10);

/// Fewer bytes than this are freed at once, because waking another thread takes longer.
pub(crate) static BACKGROUND_BYTES: Limit = Limit::new("bytes freed at once", 1, 256 << 10);

/// How many entries are visited under one lock to remove expired ones: some 100 µs.
pub(crate) static EXPIRY_STEP_KEYS: Limit = Limit::new("keys of a step of expiry", 1, 64);

/// In how many shards a command that needs room removes what has expired.
pub(crate) static EXPIRY_STEPS: Limit = Limit::new("steps of expiry for a command", 1, 64);

/// While more bytes than this wait for the log, expired keys are not removed.
pub(crate) static UNWRITTEN_BYTES: Limit = Limit::new("log that lets keys expire", 0, 4 << 20);

/// At this many waiting bytes the log's writer is woken at once, before the end of the batch.
pub(crate) static WAKE_BYTES: Limit = Limit::new("log that wakes its writer", 1, 1 << 20);

/// A buffer of the log that grew beyond this is dropped.
pub(crate) static SPARE_BYTES: Limit = Limit::new("kept buffer of the log", 0, 8 << 20);

/// If more bytes than this wait while the log is not being written, writes are refused.
pub(crate) static BACKLOG_BYTES: Limit = Limit::new("log that may wait", 0, 256 << 20);

/// After this many bytes a snapshot is synced, as in Redis. One long write by the system at the very
/// end would delay everything else on that disk.
pub(crate) static SYNC_BYTES: Limit = Limit::new("snapshot between syncs", 1, 32 << 20);

/// The memory for a record of so many bytes is taken before anything changes, and then moved into
/// the queue of the log, not copied.
pub(crate) static RECORD_BYTES: Limit = Limit::new("record that is reserved", 1, 1 << 20);

/// With no more changes than this left, a copy is brought up to date under one lock.
pub(crate) static LEFT_CHANGES: Limit = Limit::new("changes copied at once", 0, 4096);

/// How many changes of a value are copied under one lock before.
pub(crate) static STEP_CHANGES: Limit = Limit::new("changes copied together", 1, 256);

/// With 0 a thread may pause before it locks keys ([`before_next_lock`](crate::machine::before_next_lock)).
/// It is not drawn: a simulation sets it once.
pub static LOCKS_WITHOUT_PAUSE: Limit = Limit::new("locks without a pause", 0, 1);

/// All that are drawn.
pub static ALL: [&Limit; 13] = [
    &SNAPSHOT_STEP_BYTES,
    &COPIED_BYTES,
    &BACKGROUND_BYTES,
    &EXPIRY_STEP_KEYS,
    &EXPIRY_STEPS,
    &UNWRITTEN_BYTES,
    &WAKE_BYTES,
    &SPARE_BYTES,
    &BACKLOG_BYTES,
    &SYNC_BYTES,
    &RECORD_BYTES,
    &LEFT_CHANGES,
    &STEP_CHANGES,
];
