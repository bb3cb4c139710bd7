//! The thresholds at which this crate takes another way.

use everbloom::host::Limit;

/// How much is read from a file at once, and how much is written to one.
pub(crate) static BUFFER_BYTES: Limit = Limit::new("buffer of a file", 1, 64 << 10);

/// How much of what is written is checksummed at once, while it is in the processor's cache.
pub(crate) static STRIDE_BYTES: Limit = Limit::new("bytes checksummed together", 1, 256 << 10);

/// A longer array of a filter, or string of a payload, is written in pieces.
pub(crate) static WHOLE_BYTES: Limit = Limit::new("array written whole", 0, 64 << 10);

/// The most memory reserved before the bytes that will fill it have arrived.
pub(crate) static RESERVED_BYTES: Limit = Limit::new("memory reserved ahead", 1, 1 << 20);

/// The most memory for the compressed form of a string that comes in pieces.
pub(crate) static PACKED_BYTES: Limit = Limit::new("compressed string", 0, 64 << 20);

/// How much of the log is read at once.
pub(crate) static LOG_BUFFER_BYTES: Limit = Limit::new("buffer of the log", 1, 64 << 10);

/// In how many bytes of the log commands are looked for at least.
pub(crate) static LOG_AHEAD_BYTES: Limit = Limit::new("bytes of the log together", 1, 2 << 10);

/// All of them.
pub static ALL: [&Limit; 7] = [
    &BUFFER_BYTES,
    &STRIDE_BYTES,
    &WHOLE_BYTES,
    &RESERVED_BYTES,
    &PACKED_BYTES,
    &LOG_BUFFER_BYTES,
    &LOG_AHEAD_BYTES,
];
