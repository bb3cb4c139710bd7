//! The thresholds at which this crate takes another way.

use everbloom::host::Limit;

/// The most layers of a Bloom filter that a client loads. One that grows by itself stays far below.
pub const MAX_LOADED_LAYERS: usize = 16_384;

/// The tables of a cuckoo filter that a client may load, or make in one request, whatever
/// `cf-max-expansions` says.
pub(crate) const LOADED_TABLES: usize = 1024;

/// The longest piece of a dump, in bytes.
pub(crate) const MAX_CHUNK: usize = 16 << 20;
pub(crate) static CHUNK_BYTES: Limit = Limit::new("piece of SCANDUMP", 1, MAX_CHUNK);

/// The most items of a cuckoo filter that are hashed, and their memory prefetched, before the first
/// is tried.
pub(crate) const MAX_GROUP: usize = 32;
pub(crate) static GROUP: Limit = Limit::new("cuckoo items together", 1, MAX_GROUP);

/// All of them.
pub static ALL: [&Limit; 2] = [&CHUNK_BYTES, &GROUP];
