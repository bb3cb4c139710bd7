//! Sixteen bits of an item at a time, with NEON.

use core::arch::aarch64::{
    uint8x16_t, uint8x16x4_t, uint32x4_t, vcltq_u8, vcombine_u8, vcombine_u16, vdupq_n_u8,
    vdupq_n_u64, vld1q_u8, vld1q_u8_x4, vld1q_u32, vminvq_u8, vmovn_u16, vmovn_u32, vmulq_u32,
    vornq_u8, vqtbl4q_u8, vreinterpretq_s8_u8, vreinterpretq_u32_u64, vshlq_u8, vshrq_n_u32,
    vtstq_u8,
};

use super::array::{Block, BlockArray};
use super::portable::MULTIPLIERS;
use crate::hash::HashPair;

/// Those of the items in the mask that are in the array.
#[target_feature(enable = "neon")]
pub(super) fn contained(array: &BlockArray, pairs: &[HashPair; 32], mask: u32, hashes: u32) -> u32 {
    super::select(pairs, mask, |pair| {
        contains(array.block_of(pair.a), pair.b, hashes)
    })
}

/// Whether all bits of the item are 1.
#[inline]
#[target_feature(enable = "neon")]
pub(super) fn contains(block: &Block, b: u64, hashes: u32) -> bool {
    let hashes = hashes.clamp(1, 32);
    // SAFETY: a block is 64 bytes.
    let block = unsafe { vld1q_u8_x4(block.0.as_ptr()) };
    let b = vreinterpretq_u32_u64(vdupq_n_u64(b));
    let (rounds, _) = MULTIPLIERS.as_chunks::<16>();
    let [first, second] = rounds else {
        return false;
    };
    if !test(block, b, first, hashes) {
        return false;
    }
    hashes <= 16 || test(block, b, second, hashes - 16)
}

/// Whether the bits that the first `count` of the multipliers give are 1.
#[inline]
#[target_feature(enable = "neon")]
fn test(block: uint8x16x4_t, b: uint32x4_t, multipliers: &[u32; 16], count: u32) -> bool {
    const LANES: [u8; 16] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15];
    // SAFETY: sixteen lanes.
    let lanes = unsafe { vld1q_u8(LANES.as_ptr()) };
    let start = multipliers.as_ptr();
    // SAFETY: four words each, and sixteen in all.
    let products = unsafe {
        [
            vmulq_u32(b, vld1q_u32(start)),
            vmulq_u32(b, vld1q_u32(start.add(4))),
            vmulq_u32(b, vld1q_u32(start.add(8))),
            vmulq_u32(b, vld1q_u32(start.add(12))),
        ]
    };
    // The top six bits are the byte, the next three the bit in it. A table of four registers is
    // the block.
    let bytes = vqtbl4q_u8(block, narrow(products.map(|p| vshrq_n_u32::<26>(p))));
    let bit = narrow(products.map(|p| vshrq_n_u32::<23>(p)));
    let bit = core::arch::aarch64::vandq_u8(bit, vdupq_n_u8(7));
    let bits = vshlq_u8(vdupq_n_u8(1), vreinterpretq_s8_u8(bit));
    let wanted = vcltq_u8(lanes, vdupq_n_u8(count.min(16) as u8));
    vminvq_u8(vornq_u8(vtstq_u8(bytes, bits), wanted)) != 0
}

/// The lowest byte of each lane.
#[inline]
#[target_feature(enable = "neon")]
fn narrow([a, b, c, d]: [uint32x4_t; 4]) -> uint8x16_t {
    let low = vcombine_u16(vmovn_u32(a), vmovn_u32(b));
    let high = vcombine_u16(vmovn_u32(c), vmovn_u32(d));
    vcombine_u8(vmovn_u16(low), vmovn_u16(high))
}
