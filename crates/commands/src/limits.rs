//! The thresholds at which this crate takes another way.

use everbloom::host::Limit;

/// The longest piece of a dump, in bytes.
pub(crate) static CHUNK_BYTES: Limit = Limit::new("piece of SCANDUMP", 1, crate::piece::MAX_CHUNK);

/// How many items of a cuckoo filter are hashed and prefetched together.
pub(crate) static GROUP: Limit =
    Limit::new("cuckoo items together", 1, crate::cf::insertion::GROUP);

/// All of them.
pub static ALL: [&Limit; 2] = [&CHUNK_BYTES, &GROUP];
