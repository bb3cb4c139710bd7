//! Lengths and strings, in every form they have.

use std::io::{self, Read, Write};
use std::ops::RangeInclusive;

use everbloom_resp::integer;

use super::error::ReadError;
use super::lzf;
use super::source::Source;
use crate::limits::PACKED_BYTES;

const LENGTH_32: u8 = 0x80;
const LENGTH_64: u8 = 0x81;
const INT_8: u8 = 0xc0;
const INT_16: u8 = 0xc1;
const INT_32: u8 = 0xc2;
const LZF: u8 = 0xc3;

/// Strings longer than this are tried to be compressed.
const COMPRESS_ABOVE: usize = 20;
/// How many bytes compression must save.
pub(super) const COMPRESS_SAVES: usize = 4;

/// Writes a length in its shortest form.
pub(crate) fn put_length(out: &mut impl Write, length: u64) -> io::Result<()> {
    let [.., b1, b0] = length.to_be_bytes();
    if length < 1 << 6 {
        return out.write_all(&[b0]);
    }
    if length < 1 << 14 {
        return out.write_all(&[0x40 | b1, b0]);
    }
    match u32::try_from(length) {
        Ok(length) => {
            out.write_all(&[LENGTH_32])?;
            out.write_all(&length.to_be_bytes())
        }
        Err(_) => {
            out.write_all(&[LENGTH_64])?;
            out.write_all(&length.to_be_bytes())
        }
    }
}

/// Writes a string as it is.
pub(crate) fn put_plain(out: &mut impl Write, bytes: &[u8]) -> io::Result<()> {
    put_length(out, bytes.len() as u64)?;
    out.write_all(bytes)
}

/// Writes a string of `len` bytes by its compressed form.
pub(super) fn put_packed(out: &mut impl Write, packed: &[u8], len: u64) -> io::Result<()> {
    out.write_all(&[LZF])?;
    put_length(out, packed.len() as u64)?;
    put_length(out, len)?;
    out.write_all(packed)
}

/// Writes strings as Redis does: integers as such, and long ones compressed when asked to.
#[derive(Debug)]
pub(crate) struct Strings {
    pub(super) compressor: Option<lzf::Compressor>,
    /// The most memory for the compressed form of a string that comes in pieces.
    pub(super) max_packed_bytes: usize,
}

impl Strings {
    pub(crate) fn new(compression: bool) -> Strings {
        Strings {
            compressor: compression.then(lzf::Compressor::default),
            max_packed_bytes: PACKED_BYTES.get(),
        }
    }

    pub(crate) fn put(&mut self, out: &mut impl Write, bytes: &[u8]) -> io::Result<()> {
        if let Some(Ok(integer)) = integer(bytes).map(i32::try_from) {
            return put_integer(out, integer);
        }
        let compressor = self
            .compressor
            .as_mut()
            .filter(|_| bytes.len() > COMPRESS_ABOVE);
        let packed = compressor.and_then(|compressor| {
            let most = bytes.len() - COMPRESS_SAVES;
            compressor.compress(bytes, most)
        });
        match packed {
            None => put_plain(out, bytes),
            Some(packed) => put_packed(out, &packed, bytes.len() as u64),
        }
    }
}

fn put_integer(out: &mut impl Write, integer: i32) -> io::Result<()> {
    if let Ok(byte) = i8::try_from(integer) {
        out.write_all(&[INT_8])?;
        out.write_all(&byte.to_le_bytes())
    } else if let Ok(short) = i16::try_from(integer) {
        out.write_all(&[INT_16])?;
        out.write_all(&short.to_le_bytes())
    } else {
        out.write_all(&[INT_32])?;
        out.write_all(&integer.to_le_bytes())
    }
}

/// What the first byte of a string or a length announces.
enum Announced {
    Plain(u64),
    Integer(i32),
    Compressed,
}

impl<R: Read> Source<R> {
    fn announced(&mut self, expected: &'static str) -> Result<Announced, ReadError> {
        let offset = self.offset();
        let first = self.byte(expected)?;
        Ok(match first {
            0..0x40 => Announced::Plain(first.into()),
            0x40..0x80 => {
                let low = self.byte(expected)?;
                Announced::Plain(u16::from_be_bytes([first & 0x3f, low]).into())
            }
            LENGTH_32 => Announced::Plain(u32::from_be_bytes(self.array(expected)?).into()),
            LENGTH_64 => Announced::Plain(u64::from_be_bytes(self.array(expected)?)),
            INT_8 => Announced::Integer(i8::from_le_bytes(self.array(expected)?).into()),
            INT_16 => Announced::Integer(i16::from_le_bytes(self.array(expected)?).into()),
            INT_32 => Announced::Integer(i32::from_le_bytes(self.array(expected)?)),
            LZF => Announced::Compressed,
            _ => {
                let found = format_args!("the byte {first:02x}");
                return Err(ReadError::unexpected(offset, expected, found));
            }
        })
    }

    /// Reads a length.
    pub(crate) fn length(&mut self, expected: &'static str) -> Result<u64, ReadError> {
        let offset = self.offset();
        match self.announced(expected)? {
            Announced::Plain(length) => Ok(length),
            _ => Err(ReadError::unexpected(offset, expected, "a string encoding")),
        }
    }

    /// Reads a string.
    pub(crate) fn string(&mut self, expected: &'static str) -> Result<Vec<u8>, ReadError> {
        self.string_within(0..=u64::MAX, expected)
    }

    /// Reads a string of so many bytes. One of another length is refused before memory is asked
    /// for.
    pub(crate) fn string_within(
        &mut self,
        wanted: RangeInclusive<u64>,
        expected: &'static str,
    ) -> Result<Vec<u8>, ReadError> {
        let offset = self.offset();
        let check = |len: u64| match wanted.contains(&len) {
            true => Ok(()),
            false => {
                let found = format_args!("{len} bytes, not {},", wanted.end());
                Err(ReadError::unexpected(offset, expected, found))
            }
        };
        match self.announced(expected)? {
            Announced::Plain(len) => {
                check(len)?;
                self.bytes(len, expected)
            }
            Announced::Integer(integer) => {
                let text = integer.to_string().into_bytes();
                check(text.len() as u64)?;
                Ok(text)
            }
            Announced::Compressed => {
                let packed_len = self.length(expected)?;
                let len = self.length(expected)?;
                check(len)?;
                let damaged = || ReadError::unexpected(offset, expected, "damaged compressed data");
                if !lzf::may_be(len, packed_len) {
                    return Err(damaged());
                }
                let packed = self.bytes(packed_len, expected)?;
                let len = usize::try_from(len).map_err(|_| damaged())?;
                lzf::decompress(&packed, len).map_err(|error| match error.kind() {
                    io::ErrorKind::OutOfMemory => self.no_memory(len),
                    _ => damaged(),
                })
            }
        }
    }

    /// Walks over a string, and returns its length.
    pub(crate) fn skip_string(&mut self, expected: &'static str) -> Result<u64, ReadError> {
        match self.announced(expected)? {
            Announced::Plain(len) => self.skip(len, expected).map(|()| len),
            Announced::Integer(_) => Ok(0),
            Announced::Compressed => {
                let packed = self.length(expected)?;
                let len = self.length(expected)?;
                self.skip(packed, expected).map(|()| len)
            }
        }
    }
}
