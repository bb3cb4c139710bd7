//! The thresholds at which this crate takes another way.

use everbloom::host::Limit;

/// The most requests on several keys that are executed together. It is large enough that the waits
/// for memory overlap, and small enough that the shards are not locked for long.
pub(crate) static REQUESTS_TOGETHER: Limit = Limit::new("requests together", 1, 64);

/// The most layers or tables that requests on one key look at before the time is checked: some
/// milliseconds.
pub(crate) static ARRAYS_TOGETHER: Limit = Limit::new("layers together", 1, 1 << 16);

/// How many requests on the bits of a string are parsed, and their memory prefetched, together.
pub(crate) static BITS_TOGETHER: Limit = Limit::new("bits together", 1, MAX_BITS_TOGETHER);

/// The most requests on the bits of a string that are prefetched together.
pub(crate) const MAX_BITS_TOGETHER: usize = 64;

/// At this many bytes of waiting replies, no further request of the connection is run.
pub(crate) static PENDING_REPLY_BYTES: Limit = Limit::new("waiting replies", 0, 4 << 20);

/// Work on more bytes than this is left to another thread.
pub(crate) static WORK_BYTES: Limit = Limit::new("bytes of work", 0, 1 << 20);

/// The most arguments of a command that works on its keys one after another without a pause: some
/// milliseconds.
pub(crate) const MAX_KEYS_AT_ONCE: usize = 4096;

/// How many keys of a long list are locked together: some 100 microseconds.
pub(crate) const KEYS_TOGETHER: usize = 256;

/// All of them.
pub static ALL: [&Limit; 5] = [
    &REQUESTS_TOGETHER,
    &ARRAYS_TOGETHER,
    &BITS_TOGETHER,
    &PENDING_REPLY_BYTES,
    &WORK_BYTES,
];
