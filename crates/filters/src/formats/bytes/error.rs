//! Why bytes are not a filter.

#[cfg(feature = "std")]
use core::error::Error;
#[cfg(feature = "std")]
use core::fmt;
#[cfg(feature = "std")]
use std::io;

use crate::error::CuckooError;
use crate::formats::redisbloom::PartsError;

/// Why bytes are not a filter.
///
/// ```
/// use everbloom::bytes::BytesError;
/// use everbloom::BloomFilter;
///
/// let filter = BloomFilter::builder().capacity(1000).build()?;
/// let mut bytes = filter.to_bytes();
/// assert_eq!(BloomFilter::from_bytes(&bytes[..50]), Err(BytesError::Truncated));
/// bytes[30] ^= 1;
/// assert_eq!(BloomFilter::from_bytes(&bytes), Err(BytesError::HeaderChecksum));
/// # Ok::<(), everbloom::BuildError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BytesError {
    /// They do not start as a filter's bytes do.
    Magic,
    /// They were written by a later version of this library.
    Version(u16),
    /// They are of a version that only `from_bytes` reads.
    Old(u16),
    /// They are a filter of another type, such as a fixed one instead of a scalable one.
    Kind,
    /// The layout is none of those of [`Layout`](crate::Layout).
    Layout(u8),
    /// They end too early.
    Truncated,
    /// There are fewer bytes than the filter has, or more; or the length in the header is not the
    /// one that follows from the layers.
    Length {
        /// The length of the filter.
        expected: u64,
        /// The other length.
        found: u64,
    },
    /// A byte of the header or of the table of layers was changed.
    HeaderChecksum,
    /// A byte of a bit array, or of the slots of a table, was changed.
    BitsChecksum {
        /// Which layer, from 0.
        layer: usize,
    },
    /// A byte was changed, in a version that has one checksum for all.
    Checksum,
    /// The parts do not make a filter.
    Parts(PartsError),
    /// The parts do not make a cuckoo filter.
    Cuckoo(CuckooError),
    /// A critical note is in front of the filter: items were changed before they were inserted, as
    /// the note says. [`Note::split`](super::Note::split) gives both.
    CriticalNote,
    /// A byte that must be 0 is not, a fixed filter has parts that none has, or no filter is behind a
    /// note.
    Reserved,
}

messages! {
    BytesError {
        Magic => "not the bytes of a filter";
        Version(found) => "version {found} of the format is not known";
        Old(found) => "version {found} of the format: read it with from_bytes, and write it again";
        Kind => "the bytes of a filter of another type";
        Layout(found) => "layout {found} is not known";
        Truncated => "the bytes end before the filter does";
        Length { expected, found } => "the filter has {expected} bytes, not {found}";
        HeaderChecksum => "wrong checksum of the header";
        BitsChecksum { layer } => "wrong checksum of the bits of layer {layer}";
        Checksum => "wrong checksum";
        Parts(error) => "{error}";
        Cuckoo(error) => "{error}";
        CriticalNote => "a note in front of the filter says how items were changed before they \
                         were inserted: read it with Note::split, and change those you look up";
        Reserved => "a field has a value that is never written";
    }
}

impl From<PartsError> for BytesError {
    fn from(error: PartsError) -> BytesError {
        BytesError::Parts(error)
    }
}

impl From<CuckooError> for BytesError {
    fn from(error: CuckooError) -> BytesError {
        BytesError::Cuckoo(error)
    }
}

/// Why a filter could not be read.
///
/// ```
/// use everbloom::bytes::{BytesError, ReadError};
/// use everbloom::BloomFilter;
/// let error = BloomFilter::read_from(&b"too short"[..]).unwrap_err();
/// assert!(matches!(error, ReadError::Bytes(BytesError::Truncated)));
/// ```
#[cfg(feature = "std")]
#[derive(Debug)]
pub enum ReadError {
    /// The reader failed.
    Io(io::Error),
    /// The bytes are not a filter, or they ended too early.
    Bytes(BytesError),
}

#[cfg(feature = "std")]
impl fmt::Display for ReadError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReadError::Io(error) => error.fmt(out),
            ReadError::Bytes(error) => error.fmt(out),
        }
    }
}

#[cfg(feature = "std")]
impl Error for ReadError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            ReadError::Io(error) => error.source(),
            ReadError::Bytes(error) => error.source(),
        }
    }
}

#[cfg(feature = "std")]
impl From<BytesError> for ReadError {
    fn from(error: BytesError) -> ReadError {
        ReadError::Bytes(error)
    }
}

#[cfg(feature = "std")]
impl From<io::Error> for ReadError {
    fn from(error: io::Error) -> ReadError {
        match error.kind() {
            io::ErrorKind::UnexpectedEof => ReadError::Bytes(BytesError::Truncated),
            _ => ReadError::Io(error),
        }
    }
}
