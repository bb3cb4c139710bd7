//! Testing and setting bits of a block on any processor. What the other kernels must agree with.

use super::array::Block;

/// What an item's second hash value is multiplied by, for each of its bits: the upper halves of the
/// first numbers of SplitMix64 with state 0, made odd.
pub(super) const MULTIPLIERS: [u32; 32] = [
    0xe220_a839,
    0x6e78_9e6b,
    0x06c4_5d19,
    0xf88b_b8a9,
    0x1b39_896b,
    0x53cb_9f0d,
    0x2c82_9abf,
    0xc584_133b,
    0x3ee5_7891,
    0xf3b8_488d,
    0x657e_ecdd,
    0xc2d3_26e1,
    0x8621_a03f,
    0x8e1f_7555,
    0xb54e_0f17,
    0x84bb_3f97,
    0x7d29_825d,
    0xc3cf_1711,
    0x3466_e9a1,
    0xd81a_8d2b,
    0xdb01_602b,
    0xa903_8a93,
    0xedf5_f1d9,
    0x5449_6ad7,
    0xdd7c_01d5,
    0x935e_82f1,
    0x69b8_2ebd,
    0x40d2_9eb5,
    0xa2f0_9dab,
    0xee52_1d7b,
    0xf169_52ef,
    0x377d_35df,
];

/// The positions of an item's bits in its block, from 0 to 511.
///
/// The even ones come from the lower half of the second hash value, the odd ones from the upper
/// half: the top 9 bits of its product with a multiplier. (Dietzfelbinger, Hagerup, Katajainen and
/// Penttonen, "A reliable randomized algorithm for the closest-pair problem", 1997, section 2.)
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "the halves are 32 bits")]
pub(crate) fn positions(b: u64, hashes: u32) -> impl Iterator<Item = u32> + Clone {
    let halves = [b as u32, (b >> 32) as u32].into_iter().cycle();
    let products = MULTIPLIERS
        .iter()
        .zip(halves)
        .map(|(m, half)| half.wrapping_mul(*m));
    products.map(|product| product >> 23).take(hashes as usize)
}

#[inline]
#[expect(clippy::indexing_slicing, reason = "a position is below 512")]
pub(super) fn contains(block: &Block, b: u64, hashes: u32) -> bool {
    let test = |p: u32| block.0[(p >> 3) as usize & 63] >> (p & 7);
    positions(b, hashes).fold(1, |all, position| all & test(position)) == 1
}

/// Sets the item's bits.
#[inline]
#[expect(clippy::indexing_slicing, reason = "a position is below 512")]
pub(super) fn insert(block: &mut Block, b: u64, hashes: u32) {
    for position in positions(b, hashes) {
        block.0[(position >> 3) as usize & 63] |= 1 << (position & 7);
    }
}
