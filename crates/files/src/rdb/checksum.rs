//! The checksum of RDB files and payloads: CRC-64 with Jones's polynomial, reflected, from 0.

use std::fmt;

use crc::{CRC_64_REDIS, Crc, Digest, Table};

/// Sixteen bytes a step.
type Slices = Table<16>;

static CRC: Crc<u64, Slices> = Crc::<u64, Slices>::new(&CRC_64_REDIS);

/// A checksum of bytes that come piece by piece.
#[derive(Clone)]
pub(super) struct Checksum(Digest<'static, u64, Slices>);

impl Checksum {
    /// Takes in bytes.
    pub(super) fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The checksum of the bytes so far.
    pub(super) fn value(&self) -> u64 {
        self.0.clone().finalize()
    }
}

impl Default for Checksum {
    fn default() -> Self {
        Checksum(CRC.digest())
    }
}

impl fmt::Debug for Checksum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.value())
    }
}

/// The checksum at the end of a payload with these bytes before it.
pub fn crc64(bytes: &[u8]) -> u64 {
    CRC.checksum(bytes)
}
