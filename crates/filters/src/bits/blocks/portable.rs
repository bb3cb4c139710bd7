//! Testing and setting bits of a block on any processor. The other kernels must agree with this
//! one.

use super::array::{Block, BlockArray};
use super::functions::{BlockedBits, Functions, Instructions, TIERS};
use super::lanes::{COUNTS, Lanes, MAX_LANES};
use super::select::{contained, functions};
use crate::hash::{DoubleHash, KeyedHash};

functions!(Instructions::Portable);
contained!();

pub(super) static FUNCTIONS: [Functions; COUNTS] =
    Functions::for_all_counts([functions_of::<MAX_LANES>(); TIERS.len()]);

/// Whether all bits of the item are 1 in its block.
#[inline]
#[expect(clippy::indexing_slicing, reason = "a position is below 512")]
fn contains(block: &Block, b: u64, lanes: &Lanes) -> bool {
    let test = |position: u32| block.0[(position >> 3) as usize & 63] >> (position & 7);
    lanes
        .positions(b)
        .fold(1, |all, position| all & test(position))
        == 1
}

/// Sets all bits of the item; whether one of them was 0.
///
/// They are put together before the block is read. Otherwise each bit would wait for the byte that
/// the bit before it was written to.
#[inline]
fn insert<const MAX: usize>(block: &mut Block, b: u64, lanes: &Lanes) -> bool {
    let mask = mask::<MAX>(b, lanes).map(u64::from_le_bytes);
    let (words, _) = block.0.as_chunks_mut::<8>();
    let missing = words.iter().zip(mask).fold(0, |missing, (bytes, mask)| {
        missing | mask & !u64::from_le_bytes(*bytes)
    });
    if missing == 0 {
        return false;
    }
    for (bytes, mask) in words.iter_mut().zip(mask) {
        *bytes = (u64::from_le_bytes(*bytes) | mask).to_le_bytes();
    }
    true
}

/// The words of a block in which the bits of the item are 1. Bit `p` of the block is bit `p % 64`
/// of word `p / 64`.
#[inline]
#[expect(clippy::indexing_slicing, reason = "a position is below 512")]
fn mask<const MAX: usize>(b: u64, lanes: &Lanes) -> [[u8; 8]; 8] {
    let mut mask = [0_u64; 8];
    for position in lanes.positions(b) {
        mask[(position >> 6) as usize & 7] |= 1 << (position & 63);
    }
    mask.map(u64::to_le_bytes)
}
