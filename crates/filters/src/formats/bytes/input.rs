//! Fields in a row, and those that every version begins with.

use super::error::BytesError;

/// The magic of every version.
pub(super) const MAGIC: [u8; 8] = *b"EVRBLOOM";
/// The version of a filter that is written.
pub(super) const VERSION: u16 = 3;
/// The header, the entry of a layer, and what bit arrays start at multiples of.
pub(super) const RECORD: usize = 64;

/// The bytes that are still to be read.
pub(super) struct Input<'a>(pub(super) &'a [u8]);

impl<'a> Input<'a> {
    pub(super) fn take<const N: usize>(&mut self) -> Result<[u8; N], BytesError> {
        let (head, rest) = self.0.split_first_chunk().ok_or(BytesError::Truncated)?;
        self.0 = rest;
        Ok(*head)
    }

    /// The next bytes, without copying them.
    pub(super) fn slice(&mut self, len: usize) -> Result<&'a [u8], BytesError> {
        let (head, rest) = self.0.split_at_checked(len).ok_or(BytesError::Truncated)?;
        self.0 = rest;
        Ok(head)
    }

    pub(super) fn u16(&mut self) -> Result<u16, BytesError> {
        self.take().map(u16::from_le_bytes)
    }

    pub(super) fn u32(&mut self) -> Result<u32, BytesError> {
        self.take().map(u32::from_le_bytes)
    }

    pub(super) fn u64(&mut self) -> Result<u64, BytesError> {
        self.take().map(u64::from_le_bytes)
    }

    pub(super) fn f64(&mut self) -> Result<f64, BytesError> {
        self.take().map(f64::from_le_bytes)
    }

    /// Fails unless the next bytes are so many zeros.
    pub(super) fn zeros<const N: usize>(&mut self) -> Result<(), BytesError> {
        if self.take()? != [0; N] {
            return Err(BytesError::Reserved);
        }
        Ok(())
    }
}

/// The version that bytes say they are of.
pub(super) fn version(bytes: &[u8]) -> Result<u16, BytesError> {
    let mut input = Input(bytes);
    if input.take().ok() != Some(MAGIC) {
        return Err(BytesError::Magic);
    }
    input.take().map(u16::from_le_bytes)
}
