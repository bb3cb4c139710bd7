//! What DUMP answers and RESTORE takes: one value in an envelope.
//!
//! ```text
//! 00 string | 07 module-id fields... 00  type and value as in a file
//! vv                                     RDB version: u16, little-endian
//! cccccccc                               CRC-64 of all before it: u64, little-endian
//! ```

use std::io::{self, Write};

use everbloom::redisbloom::CuckooError;
use everbloom::redisbloom::PartsError;
use thiserror::Error;

use super::checksum::crc64;
use super::error::{Fault, ReadError, WriteError};
use super::format::{VALKEY_VERSION, WRITTEN_VERSION, kind};
use super::length::Strings;
use super::pieces::{put_pieces, put_whole};
use super::read::{Loaded, read_value};
use super::source::Source;
use super::value::{module_type, put_filter, put_filter_in_pieces, skip_fields};
use crate::{Outline, Value};

/// The newest of Redis's versions that is taken: that of Redis with RedisBloom whose answers are
/// the model. Files may be newer.
const NEWEST_VERSION: u16 = 12;

/// Why RESTORE refuses a payload. `Display` is the error reply.
#[derive(Debug, Error)]
pub enum RestoreError {
    /// It is no payload, damaged, or from a server newer than this one knows.
    #[error("ERR DUMP payload version or checksum are wrong")]
    Envelope,
    /// The value in it is of no type that is kept here.
    #[error("ERR Bad data format")]
    Foreign,
    /// The value in it is no valid value of its type.
    #[error("ERR Bad data format")]
    Format(#[source] ReadError),
    /// The value in it is larger than the caller takes, or there is no memory for it.
    #[error("ERR Insufficient memory to create filter")]
    Memory(#[source] ReadError),
}

impl From<ReadError> for RestoreError {
    fn from(error: ReadError) -> Self {
        match error.fault {
            Fault::OutOfMemory { .. }
            | Fault::Filter(PartsError::OutOfMemory)
            | Fault::Cuckoo(CuckooError::OutOfMemory) => Self::Memory(error),
            // Without a limit, it is the number of bytes that makes no sense.
            Fault::Filter(PartsError::TooLarge { limit })
            | Fault::Cuckoo(CuckooError::TooLarge { limit })
                if limit < u64::MAX =>
            {
                Self::Memory(error)
            }
            _ => Self::Format(error),
        }
    }
}

/// Why a value has no payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum DumpError {
    /// It is longer than the caller takes.
    #[error("the payload would be too long")]
    TooLong,
    /// There is no memory for it.
    #[error("there is no memory for the payload")]
    OutOfMemory,
    /// Its bytes did not come to their end.
    #[error("the value was not read to its end")]
    Incomplete,
}

impl From<WriteError> for DumpError {
    fn from(error: WriteError) -> Self {
        match error {
            WriteError::Io(error) if error.kind() == io::ErrorKind::OutOfMemory => {
                DumpError::OutOfMemory
            }
            WriteError::Io(error) if error.kind() == io::ErrorKind::FileTooLarge => {
                DumpError::TooLong
            }
            _ => DumpError::Incomplete,
        }
    }
}

/// The payload of a value, which may have `most` bytes. Memory is taken for what is written, not
/// for what the value takes.
///
/// # Errors
///
/// [`DumpError`]
pub fn dump(value: &Value, compression: bool, most: usize) -> Result<Vec<u8>, DumpError> {
    enveloped(compression, most, |out, strings| match value {
        Value::Text(text) => {
            out.write_all(&[kind::STRING])?;
            Ok(put_whole(out, strings, text, false)?)
        }
        Value::Filter(filter) => {
            out.write_all(&[kind::MODULE])?;
            Ok(put_filter(out, strings, filter)?)
        }
    })
}

/// The same of a large value that comes in pieces: `next` puts some bytes in place of those that it
/// put there before, and returns false when it has none.
///
/// # Errors
///
/// [`DumpError`]
pub fn dump_in_pieces(
    outline: &Outline,
    compression: bool,
    most: usize,
    mut next: impl FnMut(&mut Vec<u8>) -> bool,
) -> Result<Vec<u8>, DumpError> {
    let mut next = |piece: &mut Vec<u8>| match next(piece) {
        true => Ok(()),
        false => Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()),
    };
    enveloped(compression, most, |out, strings| match outline {
        Outline::Text(len) => {
            out.write_all(&[kind::STRING])?;
            put_pieces(out, strings, (*len, false), &mut next)
        }
        Outline::Filter(parts) => {
            out.write_all(&[kind::MODULE])?;
            put_filter_in_pieces(out, strings, parts, &mut next)
        }
    })
}

/// A payload of what `put` writes.
fn enveloped(
    compression: bool,
    most: usize,
    put: impl FnOnce(&mut Limited, &mut Strings) -> Result<(), WriteError>,
) -> Result<Vec<u8>, DumpError> {
    const ENVELOPE: usize = 2 + 8;
    let mut out = Limited {
        out: Vec::new(),
        most: most.checked_sub(ENVELOPE).ok_or(DumpError::TooLong)?,
    };
    put(&mut out, &mut Strings::new(compression))?;
    let mut out = out.out;
    let reserved = out.try_reserve_exact(ENVELOPE);
    reserved.map_err(|_| DumpError::OutOfMemory)?;
    out.extend_from_slice(&WRITTEN_VERSION.to_le_bytes());
    let checksum = crc64(&out);
    out.extend_from_slice(&checksum.to_le_bytes());
    Ok(out)
}

/// A payload being written.
struct Limited {
    out: Vec<u8>,
    most: usize,
}

impl Write for Limited {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if bytes.len() > self.most - self.out.len() {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.out.try_reserve(bytes.len())?;
        self.out.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The value in a payload. A filter's bit arrays may have `max_filter_bytes` together.
///
/// # Errors
///
/// [`RestoreError`]
pub fn restore(payload: &[u8], max_filter_bytes: u64) -> Result<Value, RestoreError> {
    let (body, version) = verify(payload).ok_or(RestoreError::Envelope)?;
    let mut source = Source::of_slice(body);
    let type_byte = source.byte("a type of value")?;
    match read_value(&mut source, version, type_byte, 0, max_filter_bytes)? {
        // What follows the value is not looked at, as in Redis.
        Loaded::Value(value) => Ok(value),
        Loaded::Foreign(_) => Err(RestoreError::Foreign),
    }
}

/// How many bytes the value in a payload has; 0 if the payload is damaged. Reads all of the payload.
pub fn unpacked_bytes(payload: &[u8]) -> u64 {
    let mut source = Source::of_slice(payload);
    let mut unpacked = || match source.byte("a type of value")? {
        kind::STRING => source.skip_string("a string"),
        kind::MODULE => module_type(&mut source).and_then(|_| skip_fields(&mut source)),
        _ => Ok(0),
    };
    unpacked().unwrap_or(0)
}

/// The payload without its envelope, when that is right, and the version in it.
fn verify(payload: &[u8]) -> Option<(&[u8], u16)> {
    let (signed, checksum) = payload.split_last_chunk::<8>()?;
    let (body, version) = signed.split_last_chunk::<2>()?;
    let version = u16::from_le_bytes(*version);
    let known = version <= NEWEST_VERSION || version == VALKEY_VERSION;
    (known && crc64(signed) == u64::from_le_bytes(*checksum)).then_some((body, version))
}
