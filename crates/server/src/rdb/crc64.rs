//! The checksum of RDB: CRC-64 with Jones's polynomial, reflected, starting at 0.
//!
//! Sixteen bytes a step (Kounavis and Berry, "Novel Table Lookup-Based Algorithms for
//! High-Performance CRC Generation", 2008): table `k` holds what a byte contributes when `k` more
//! bytes follow it.

/// `ad93d23594c935a9` with its bits reversed.
const POLYNOMIAL: u64 = 0x95ac_9329_ac4b_c9b5;

const SLICES: usize = 16;

static TABLES: [[u64; 256]; SLICES] = tables();

#[expect(clippy::indexing_slicing, reason = "evaluated by the compiler")]
const fn tables() -> [[u64; 256]; SLICES] {
    let mut tables = [[0; 256]; SLICES];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = byte as u64;
        let mut bit = 0;
        while bit < 8 {
            crc = (crc >> 1) ^ if crc & 1 == 1 { POLYNOMIAL } else { 0 };
            bit += 1;
        }
        tables[0][byte] = crc;
        byte += 1;
    }
    let mut slice = 1;
    while slice < SLICES {
        byte = 0;
        while byte < 256 {
            let crc = tables[slice - 1][byte];
            tables[slice][byte] = (crc >> 8) ^ tables[0][(crc & 0xff) as usize];
            byte += 1;
        }
        slice += 1;
    }
    tables
}

/// A checksum of the bytes so far.
///
/// ```
/// # use everbloom_server::rdb::crc64::Crc64;
/// let mut crc = Crc64::default();
/// crc.update(b"123456789");
/// assert_eq!(crc.value(), 0xe9c6_d914_c4b8_d9ca);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Crc64(u64);

impl Crc64 {
    /// Takes in bytes.
    #[expect(
        clippy::indexing_slicing,
        reason = "a byte indexes a table of 256; the slice numbers are constants"
    )]
    pub fn update(&mut self, bytes: &[u8]) {
        let mut crc = self.0;
        let (blocks, rest) = bytes.as_chunks::<SLICES>();
        for block in blocks {
            let block = u128::from_le_bytes(*block) ^ u128::from(crc);
            let block = block.to_le_bytes();
            crc = 0;
            for (place, byte) in block.iter().enumerate() {
                crc ^= TABLES[SLICES - 1 - place][usize::from(*byte)];
            }
        }
        for byte in rest {
            let [low, ..] = crc.to_le_bytes();
            crc = (crc >> 8) ^ TABLES[0][usize::from(low ^ byte)];
        }
        self.0 = crc;
    }

    /// The checksum.
    pub fn value(self) -> u64 {
        self.0
    }
}

/// The checksum of these bytes.
pub fn crc64(bytes: &[u8]) -> u64 {
    let mut crc = Crc64::default();
    crc.update(bytes);
    crc.value()
}
