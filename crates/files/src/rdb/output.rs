//! A file being written: buffered, counted, checksummed.

use std::io::{self, Write};

use super::checksum::Checksum;
use crate::limits::{BUFFER_BYTES, STRIDE_BYTES};

/// Where bytes are written to.
#[derive(Debug)]
pub(crate) struct Output<W> {
    inner: W,
    buffer: Vec<u8>,
    written: u64,
    crc: Option<Checksum>,
}

impl<W: Write> Output<W> {
    pub(crate) fn new(inner: W, checksum: bool) -> Self {
        Output {
            inner,
            buffer: Vec::with_capacity(BUFFER_BYTES.get()),
            written: 0,
            crc: checksum.then(Checksum::default),
        }
    }

    /// Bytes written so far, those in the buffer included.
    pub(crate) fn position(&self) -> u64 {
        self.written + self.buffer.len() as u64
    }

    /// Writes the checksum of everything before it, or 0 without checksums, and empties the
    /// buffer.
    pub(crate) fn finish(mut self) -> io::Result<(W, u64)> {
        self.empty()?;
        let checksum = self.crc.as_ref().map_or(0, Checksum::value);
        self.inner.write_all(&checksum.to_le_bytes())?;
        self.inner.flush()?;
        Ok((self.inner, self.written + 8))
    }

    fn empty(&mut self) -> io::Result<()> {
        if let Some(crc) = &mut self.crc {
            crc.update(&self.buffer);
        }
        self.inner.write_all(&self.buffer)?;
        self.written += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }
}

impl<W: Write> Write for Output<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.buffer.len() + bytes.len() > BUFFER_BYTES.get() {
            self.empty()?;
        }
        if bytes.len() < BUFFER_BYTES.get() {
            self.buffer.extend_from_slice(bytes);
            return Ok(bytes.len());
        }
        for stride in bytes.chunks(STRIDE_BYTES.get()) {
            if let Some(crc) = &mut self.crc {
                crc.update(stride);
            }
            self.inner.write_all(stride)?;
            self.written += stride.len() as u64;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.empty()?;
        self.inner.flush()
    }
}
