//! Sixteen bits of an item at a time, with NEON.

use core::arch::aarch64::{
    uint8x16_t, uint8x16x4_t, uint32x4_t, vandq_u8, vbicq_u8, vceqq_u8, vcombine_u8, vcombine_u16,
    vdupq_n_u8, vdupq_n_u64, vld1q_u8_x4, vld1q_u32, vmaxvq_u8, vminvq_u8, vmovn_u16, vmovn_u32,
    vmulq_u32, vorrq_u8, vqtbl4q_u8, vreinterpretq_s8_u8, vreinterpretq_u32_u64, vshlq_u8,
    vshrq_n_u32, vst1q_u8, vst1q_u8_x4, vtstq_u8,
};

use super::array::{Block, BlockArray};
use super::functions::{BlockedBits, Functions, Instructions, TIERS};
use super::lanes::{COUNTS, Lanes, MAX_LANES};
use super::select::{contained, functions};
use crate::hash::{DoubleHash, KeyedHash};

functions!(Instructions::Neon, "neon");
contained!("neon");

pub(super) static FUNCTIONS: [Functions; COUNTS] =
    Functions::for_all_counts([functions_of::<MAX_LANES>(); TIERS.len()]);

/// Sets all bits of the item; whether one of them was 0.
#[inline]
#[target_feature(enable = "neon")]
fn insert<const MAX: usize>(block: &mut Block, b: u64, lanes: &Lanes) -> bool {
    let uint8x16x4_t(p, q, r, s) = mask::<MAX>(b, lanes);
    let place = block.0.as_mut_ptr();
    // SAFETY: a block is 64 bytes.
    let old = unsafe { vld1q_u8_x4(place) };
    let low = vorrq_u8(vbicq_u8(p, old.0), vbicq_u8(q, old.1));
    let high = vorrq_u8(vbicq_u8(r, old.2), vbicq_u8(s, old.3));
    if vmaxvq_u8(vorrq_u8(low, high)) == 0 {
        return false;
    }
    let all = uint8x16x4_t(
        vorrq_u8(old.0, p),
        vorrq_u8(old.1, q),
        vorrq_u8(old.2, r),
        vorrq_u8(old.3, s),
    );
    // SAFETY: as above.
    unsafe { vst1q_u8_x4(place, all) };
    true
}

/// A block in which the bits of the item are 1.
#[inline]
#[target_feature(enable = "neon")]
fn mask<const MAX: usize>(b: u64, lanes: &Lanes) -> uint8x16x4_t {
    // SAFETY: the numbers are 64 bytes.
    let numbers = unsafe { vld1q_u8_x4(NUMBERS.as_ptr()) };
    let none = vdupq_n_u8(0);
    let mut mask = uint8x16x4_t(none, none, none, none);
    let b = vreinterpretq_u32_u64(vdupq_n_u64(b));
    for (first, multipliers) in (0..lanes.hashes).step_by(16).zip(&lanes.multipliers) {
        let (mut bytes, mut bits) = ([0; 16], [0; 16]);
        let places = places(b, multipliers);
        // SAFETY: sixteen bytes each.
        unsafe {
            vst1q_u8(bytes.as_mut_ptr(), places.0);
            vst1q_u8(bits.as_mut_ptr(), places.1);
        }
        let count = (lanes.hashes - first) as usize;
        for (byte, bit) in bytes.into_iter().zip(bits).take(count) {
            let (byte, bit) = (vdupq_n_u8(byte), vdupq_n_u8(bit));
            mask = uint8x16x4_t(
                vorrq_u8(mask.0, vandq_u8(vceqq_u8(numbers.0, byte), bit)),
                vorrq_u8(mask.1, vandq_u8(vceqq_u8(numbers.1, byte), bit)),
                vorrq_u8(mask.2, vandq_u8(vceqq_u8(numbers.2, byte), bit)),
                vorrq_u8(mask.3, vandq_u8(vceqq_u8(numbers.3, byte), bit)),
            );
        }
    }
    mask
}

/// The numbers of a block's bytes.
static NUMBERS: [u8; 64] = {
    let mut numbers = [0; 64];
    let mut number = 0;
    while number < 64 {
        numbers[number as usize] = number;
        number += 1;
    }
    numbers
};

/// Whether all bits of the item are 1 in its block.
#[inline]
#[target_feature(enable = "neon")]
fn contains(block: &Block, b: u64, lanes: &Lanes) -> bool {
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
    let (bytes, bits) = places(b, multipliers);
    // A table of four registers is the block.
    vminvq_u8(vtstq_u8(vqtbl4q_u8(block, bytes), bits)) != 0
}

/// The numbers of the bytes with an item's bits, and each bit as a byte in which only it is 1.
#[inline]
#[target_feature(enable = "neon")]
fn places(b: uint32x4_t, multipliers: &[u32; 16]) -> (uint8x16_t, uint8x16_t) {
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
    // The top six bits are the byte, the next three the bit in it.
    let bytes = narrow([
        vshrq_n_u32::<26>(p),
        vshrq_n_u32::<26>(q),
        vshrq_n_u32::<26>(r),
        vshrq_n_u32::<26>(s),
    ]);
    let bit = narrow([
        vshrq_n_u32::<23>(p),
        vshrq_n_u32::<23>(q),
        vshrq_n_u32::<23>(r),
        vshrq_n_u32::<23>(s),
    ]);
    let bit = vandq_u8(bit, vdupq_n_u8(7));
    (bytes, vshlq_u8(vdupq_n_u8(1), vreinterpretq_s8_u8(bit)))
}

/// The lowest byte of each lane.
#[inline]
#[target_feature(enable = "neon")]
fn narrow([a, b, c, d]: [uint32x4_t; 4]) -> uint8x16_t {
    let low = vcombine_u16(vmovn_u32(a), vmovn_u32(b));
    let high = vcombine_u16(vmovn_u32(c), vmovn_u32(d));
    vcombine_u8(vmovn_u16(low), vmovn_u16(high))
}
