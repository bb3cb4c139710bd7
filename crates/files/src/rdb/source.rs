//! A file being read: buffered, counted, checksummed.

use std::io::{self, Read};

use super::checksum::Checksum;
use super::error::{Fault, ReadError};
use crate::limits::{BUFFER_BYTES, RESERVED_BYTES};

/// Bytes to be read. Every method names what it expects, for the error.
#[derive(Debug)]
pub(crate) struct Source<R> {
    inner: R,
    buffer: Box<[u8]>,
    /// `buffer[hashed..start]` is consumed, `buffer[start..end]` is not.
    hashed: usize,
    start: usize,
    end: usize,
    /// Bytes before `buffer[0]`.
    before: u64,
    crc: Checksum,
}

impl<'a> Source<&'a [u8]> {
    /// Reads bytes in memory.
    pub(crate) fn of_slice(bytes: &'a [u8]) -> Self {
        Source::with_buffer(bytes, bytes.len().clamp(1, BUFFER_BYTES.get()))
    }
}

impl<R: Read> Source<R> {
    pub(crate) fn new(inner: R) -> Self {
        Source::with_buffer(inner, BUFFER_BYTES.get())
    }

    fn with_buffer(inner: R, bytes: usize) -> Self {
        Source {
            inner,
            buffer: vec![0; bytes].into(),
            hashed: 0,
            start: 0,
            end: 0,
            before: 0,
            crc: Checksum::default(),
        }
    }

    /// How many bytes were consumed.
    pub(crate) fn offset(&self) -> u64 {
        self.before + self.start as u64
    }

    /// The checksum of what was consumed.
    pub(crate) fn checksum(&mut self) -> u64 {
        self.hash();
        self.crc.value()
    }

    /// What is read from, and what was read from it and not consumed.
    pub(crate) fn into_parts(self) -> (R, Vec<u8>) {
        let rest = self.buffer.get(self.start..self.end).unwrap_or_default();
        (self.inner, rest.to_vec())
    }

    pub(crate) fn byte(&mut self, expected: &'static str) -> Result<u8, ReadError> {
        let [byte] = self.array(expected)?;
        Ok(byte)
    }

    #[inline]
    pub(crate) fn array<const N: usize>(
        &mut self,
        expected: &'static str,
    ) -> Result<[u8; N], ReadError> {
        if let Some(array) = self.buffered().first_chunk() {
            let array = *array;
            self.start += N;
            return Ok(array);
        }
        let mut array = [0; N];
        let mut filled = 0;
        while let Some(rest) = array.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            let available = self.available(expected)?;
            let n = rest.len().min(available.len());
            for (to, from) in rest.iter_mut().zip(available) {
                *to = *from;
            }
            self.start += n;
            filled += n;
        }
        Ok(array)
    }

    /// Reads `len` bytes. Memory grows with what has arrived, at most doubling.
    pub(crate) fn bytes(&mut self, len: u64, expected: &'static str) -> Result<Vec<u8>, ReadError> {
        let mut out = Vec::new();
        let len = usize::try_from(len)
            .map_err(|_| ReadError::new(self.offset(), Fault::OutOfMemory { bytes: usize::MAX }))?;
        while out.len() < len {
            if out.len() == out.capacity() {
                let grown = len.min(out.len().saturating_mul(2).max(RESERVED_BYTES.get()));
                out.try_reserve_exact(grown - out.len())
                    .map_err(|_| self.no_memory(grown))?;
            }
            let room = (out.capacity() - out.len()).min(len - out.len());
            if self.buffered().is_empty() && room >= self.buffer.len() {
                self.read_straight(&mut out, room.min(RESERVED_BYTES.get()), expected)?;
            } else {
                let available = self.available(expected)?;
                let n = room.min(available.len());
                out.extend_from_slice(available.get(..n).unwrap_or_default());
                self.start += n;
            }
        }
        Ok(out)
    }

    /// Consumes `len` bytes.
    pub(crate) fn skip(&mut self, len: u64, expected: &'static str) -> Result<(), ReadError> {
        let mut left = len;
        while left > 0 {
            let available = self.available(expected)?.len();
            let n = usize::try_from(left).map_or(available, |left| left.min(available));
            self.start += n;
            left -= n as u64;
        }
        Ok(())
    }

    pub(crate) fn no_memory(&self, bytes: usize) -> ReadError {
        ReadError::new(self.offset(), Fault::OutOfMemory { bytes })
    }

    fn buffered(&self) -> &[u8] {
        self.buffer.get(self.start..self.end).unwrap_or_default()
    }

    /// What is in the buffer; reads when that is nothing.
    fn available(&mut self, expected: &'static str) -> Result<&[u8], ReadError> {
        if self.start == self.end {
            self.empty();
            self.end = read_some(&mut self.inner, &mut self.buffer, self.before, expected)?;
        }
        Ok(self.buffered())
    }

    /// Reads at most `room` bytes to the end of `out`, past the buffer, which is empty.
    fn read_straight(
        &mut self,
        out: &mut Vec<u8>,
        room: usize,
        expected: &'static str,
    ) -> Result<(), ReadError> {
        self.empty();
        let start = out.len();
        out.resize(start + room, 0);
        let place = out.get_mut(start..).unwrap_or_default();
        let n = read_some(&mut self.inner, place, self.before, expected)?;
        self.crc.update(place.get(..n).unwrap_or_default());
        out.truncate(start + n);
        self.before += n as u64;
        Ok(())
    }

    /// Takes the consumed buffer into the checksum and the count.
    fn empty(&mut self) {
        self.hash();
        self.before += self.start as u64;
        (self.hashed, self.start, self.end) = (0, 0, 0);
    }

    fn hash(&mut self) {
        let consumed = self.buffer.get(self.hashed..self.start);
        self.crc.update(consumed.unwrap_or_default());
        self.hashed = self.start;
    }
}

/// Reads at least one byte; `offset` is that of the first.
fn read_some(
    inner: &mut impl Read,
    place: &mut [u8],
    offset: u64,
    expected: &'static str,
) -> Result<usize, ReadError> {
    let fault = loop {
        match inner.read(place) {
            Ok(0) => break Fault::Truncated { expected },
            Ok(n) => return Ok(n),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => break Fault::Io(error),
        }
    };
    Err(ReadError::new(offset, fault))
}
