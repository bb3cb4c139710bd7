//! Sixteen bits of an item at a time, with NEON.

use core::arch::aarch64::{
    uint8x16_t, uint8x16x4_t, uint32x4_t, vandq_u8, vcombine_u8, vcombine_u16, vdupq_n_u8,
    vdupq_n_u64, vld1q_u8_x4, vld1q_u32, vminvq_u8, vmovn_u16, vmovn_u32, vmulq_u32, vqtbl4q_u8,
    vreinterpretq_s8_u8, vreinterpretq_u32_u64, vshlq_u8, vshrq_n_u32, vtstq_u8,
};

use super::array::{Block, BlockArray};
use super::blocks::Blocks;
use super::portable::Lanes;
use super::select::{any, select};
use crate::hash::HashPair;

/// Whether the item is in the blocks.
#[target_feature(enable = "neon")]
pub(super) fn contains_item(blocks: &Blocks, item: &[u8]) -> bool {
    match blocks.hash_usual(item) {
        Some(pair) => contains_pair(blocks, pair),
        None => contains_unusual(blocks, item),
    }
}

#[inline(never)]
#[target_feature(enable = "neon")]
fn contains_unusual(blocks: &Blocks, item: &[u8]) -> bool {
    contains_pair(blocks, blocks.hash(item))
}

/// Whether the hashed item is in the blocks.
#[inline]
#[target_feature(enable = "neon")]
pub(super) fn contains_pair(blocks: &Blocks, pair: HashPair) -> bool {
    contains(blocks.block_of(pair), pair.b, blocks.lanes)
}

/// Those of the items in the mask that are in any of the arrays.
#[target_feature(enable = "neon")]
pub(super) fn contained(
    arrays: &[&BlockArray],
    pairs: &[HashPair; 32],
    mask: u32,
    lanes: &Lanes,
) -> u32 {
    select(pairs, mask, |pair| {
        any(arrays, pair.a, |block| contains(block, pair.b, lanes))
    })
}

/// Whether all bits of the item are 1 in its block.
#[inline]
#[target_feature(enable = "neon")]
pub(super) fn contains(block: &Block, b: u64, lanes: &Lanes) -> bool {
    // SAFETY: a block is 64 bytes.
    let block = unsafe { vld1q_u8_x4(block.0.as_ptr()) };
    // Even lanes are the lower half of `b`, odd ones the upper.
    let b = vreinterpretq_u32_u64(vdupq_n_u64(b));
    let [first, second] = &lanes.multipliers;
    let found = test(block, b, first);
    if lanes.hashes <= 16 {
        return found;
    }
    found & test(block, b, second)
}

/// Whether the bits at the positions in all lanes are 1.
#[inline]
#[target_feature(enable = "neon")]
fn test(block: uint8x16x4_t, b: uint32x4_t, multipliers: &[u32; 16]) -> bool {
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
    let [p, q, r, s] = products;
    // The top six bits are the byte, the next three the bit in it. A table of four registers is
    // the block.
    let bytes = vqtbl4q_u8(
        block,
        narrow([
            vshrq_n_u32::<26>(p),
            vshrq_n_u32::<26>(q),
            vshrq_n_u32::<26>(r),
            vshrq_n_u32::<26>(s),
        ]),
    );
    let bit = narrow([
        vshrq_n_u32::<23>(p),
        vshrq_n_u32::<23>(q),
        vshrq_n_u32::<23>(r),
        vshrq_n_u32::<23>(s),
    ]);
    let bit = vandq_u8(bit, vdupq_n_u8(7));
    let bits = vshlq_u8(vdupq_n_u8(1), vreinterpretq_s8_u8(bit));
    vminvq_u8(vtstq_u8(bytes, bits)) != 0
}

/// The lowest byte of each lane.
#[inline]
#[target_feature(enable = "neon")]
fn narrow([a, b, c, d]: [uint32x4_t; 4]) -> uint8x16_t {
    let low = vcombine_u16(vmovn_u32(a), vmovn_u32(b));
    let high = vcombine_u16(vmovn_u32(c), vmovn_u32(d));
    vcombine_u8(vmovn_u16(low), vmovn_u16(high))
}
