//! For programs that exchange filters with RedisBloom: dumps, and the option bits kept with them.
//!
//! A filter converts to plain named parts and chunks of bits, and back. This is the one gate for
//! filters from outside: every loader (a dump, an RDB file,
//! [`from_bytes`](crate::host::LayeredFilter::from_bytes)) ends in
//! [`from_parts`](crate::host::LayeredFilter::from_parts), which checks all parts before it
//! allocates anything.
//!
//! ```
//! use everbloom::Layout;
//! use everbloom::host::LayeredFilter;
//!
//! let mut seen = LayeredFilter::builder().layout(Layout::Classic).build()?;
//! seen.extend(0..1000);
//!
//! let mut copy = LayeredFilter::from_parts(&seen.parts(), 1 << 20)?;
//! let mut at = 0;
//! while let Some(chunk) = seen.stream_chunk(at, 1 << 16) {
//!     copy.load_chunk(at, &chunk)?;
//!     at += chunk.len() as u64;
//! }
//! assert_eq!(at, seen.stream_len());
//! assert_eq!(copy, seen);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod cuckoo;
mod filter;
mod parts;

pub use crate::bloom::options::Options;
pub use crate::cuckoo::keyed::KeyedParts;
pub use crate::cuckoo::parts::CuckooParts;
pub use crate::error::CuckooError;
pub use crate::hash::valkey::ValkeyBloom;
pub use parts::{Check, ChunkError, FilterParts, LayerParts, PartsError};
