//! Why bytes are not a filter.

use crate::error::CuckooError;
use crate::formats::redisbloom::PartsError;

/// Why bytes are not a filter.
///
/// ```
/// use everbloom::{BloomFilter, BytesError};
///
/// let filter = BloomFilter::builder().capacity(1000).build()?;
/// let mut bytes = filter.to_bytes();
/// assert_eq!(BloomFilter::from_bytes(&bytes[..50]), Err(BytesError::Truncated));
/// bytes[30] ^= 1;
/// assert_eq!(BloomFilter::from_bytes(&bytes), Err(BytesError::HeaderChecksum));
/// # Ok::<(), everbloom::BuildError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BytesError {
    /// They do not start as a filter's bytes do.
    #[error("not the bytes of a filter")]
    Magic,
    /// They were written by a later version of this library.
    #[error("version {0} of the format is not known")]
    Version(u16),
    /// They are of a version that only `from_bytes` reads.
    #[error("version {0} of the format: read it with from_bytes, and write it again")]
    Old(u16),
    /// They are a filter of another type, such as a fixed one instead of a scalable one.
    #[error("the bytes of a filter of another type")]
    Kind,
    /// The layout is none of those of [`Layout`](crate::Layout).
    #[error("layout {0} is not known")]
    Layout(u8),
    /// They end too early.
    #[error("the bytes end before the filter does")]
    Truncated,
    /// There are fewer bytes than the filter has, or more; or the length in the header is not the
    /// one that follows from the layers.
    #[error("the filter has {expected} bytes, not {found}")]
    Length {
        /// The length of the filter.
        expected: u64,
        /// The other length.
        found: u64,
    },
    /// A byte of the header or of the table of layers was changed.
    #[error("wrong checksum of the header")]
    HeaderChecksum,
    /// A byte of a bit array, or of the slots of a table, was changed.
    #[error("wrong checksum of the bits of layer {layer}")]
    BitsChecksum {
        /// Which layer, from 0.
        layer: usize,
    },
    /// A byte was changed, in a version that has one checksum for all.
    #[error("wrong checksum")]
    Checksum,
    /// The parts do not make a filter.
    #[error(transparent)]
    Parts(#[from] PartsError),
    /// The parts do not make a cuckoo filter.
    #[error(transparent)]
    Cuckoo(#[from] CuckooError),
    /// A byte that must be 0 is not, or a fixed filter has parts that none has.
    #[error("a field has a value that is never written")]
    Reserved,
}
