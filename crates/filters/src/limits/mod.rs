//! The thresholds at which this crate takes another way.

mod limit;

pub use limit::Limit;

/// The most items of a group, which a mask of 32 bits can tell apart.
pub(crate) const MAX_GROUP: usize = 32;

/// How many items of a call are hashed and prefetched together.
pub(crate) static GROUP: Limit = Limit::new("items together", 1, MAX_GROUP);

/// The longest array of bits whose first ones are kept as positions, in bytes.
pub(crate) static FEW_BYTES: Limit = Limit::new("array kept as positions", 0, 1 << 13);

/// The bytes of a page of a capture, which is the longest piece. A place in it fits 16 bits.
pub(crate) static PAGE_BYTES: Limit = Limit::new("page of a capture", 1, 64 << 10);

/// A change of more bytes than this copies its page of a capture.
pub(crate) static NOTED_BYTES: Limit = Limit::new("change that is noted", 0, 16);

/// All of them.
pub static ALL: [&Limit; 4] = [&GROUP, &FEW_BYTES, &PAGE_BYTES, &NOTED_BYTES];
