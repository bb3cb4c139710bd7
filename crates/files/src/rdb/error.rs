//! What is wrong with a file, and where.

use std::fmt;
use std::io;

use everbloom::redisbloom::CuckooError;
use everbloom::redisbloom::PartsError;
use thiserror::Error;

/// Why a file was not written to its end. What was written of it is of no use.
#[derive(Debug, Error)]
pub enum WriteError {
    /// The bytes were not taken.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// A value is not as long as was announced.
    #[error("a value of {announced} bytes was announced, and {left} are missing or too many")]
    Length {
        /// The length that was announced.
        announced: u64,
        /// How many bytes are missing, or how many came too many.
        left: u64,
    },
}

/// Why a file or a payload was not read to its end.
#[derive(Debug, Error)]
#[error("at byte {offset}: {fault}")]
pub struct ReadError {
    /// How many bytes precede what is wrong.
    pub offset: u64,
    /// What is wrong.
    pub fault: Fault,
}

/// What is wrong with a file.
#[derive(Debug, Error)]
pub enum Fault {
    /// It cannot be read.
    #[error("reading failed: {0}")]
    Io(io::Error),
    /// It ends too early.
    #[error("the data ends where {expected} was expected")]
    Truncated {
        /// What should have been there.
        expected: &'static str,
    },
    /// Something else is there.
    #[error("{found} instead of {expected}")]
    Unexpected {
        /// What should have been there.
        expected: &'static str,
        /// What is there.
        found: String,
    },
    /// It was written by a server newer than this one knows, or older.
    #[error("RDB version {0} cannot be read: Redis's versions 6 to 15 and Valkey's 80 can")]
    Version(String),
    /// The fields of a filter contradict each other, or are too large.
    #[error("no valid filter: {0}")]
    Filter(PartsError),
    /// The same of a cuckoo filter.
    #[error("no valid cuckoo filter: {0}")]
    Cuckoo(CuckooError),
    /// A filter's encoding is newer than this server knows.
    #[error("version {version} of a value of type {type_name} cannot be read")]
    FilterVersion {
        /// The type, as TYPE answers it.
        type_name: &'static str,
        /// The version.
        version: u32,
    },
    /// The checksum does not match.
    #[error("the checksum is {stored:016x} instead of {computed:016x}")]
    Checksum {
        /// What the file says.
        stored: u64,
        /// What its bytes give.
        computed: u64,
    },
    /// There is no memory for what it holds.
    #[error("no memory for {bytes} bytes")]
    OutOfMemory {
        /// How many were wanted.
        bytes: usize,
    },
}

impl ReadError {
    pub(crate) fn new(offset: u64, fault: Fault) -> ReadError {
        ReadError { offset, fault }
    }

    pub(crate) fn unexpected(
        offset: u64,
        expected: &'static str,
        found: impl fmt::Display,
    ) -> ReadError {
        let found = found.to_string();
        ReadError::new(offset, Fault::Unexpected { expected, found })
    }
}
