//! Sixteen bits of an item at a time, with AVX-512.

use core::arch::x86_64::{
    __m512i, _mm512_load_si512, _mm512_mask_test_epi32_mask, _mm512_mullo_epi32,
    _mm512_permutexvar_epi32, _mm512_rorv_epi32, _mm512_set1_epi32, _mm512_set1_epi64,
    _mm512_srli_epi32,
};

use super::array::{Block, BlockArray};
use super::portable::MULTIPLIERS;
use crate::hash::HashPair;

/// The multipliers on cache lines of their own.
#[repr(align(64))]
struct Aligned([u32; 32]);
static ALIGNED: Aligned = Aligned(MULTIPLIERS);

/// Those of the items in the mask that are in the array.
#[target_feature(enable = "avx512f")]
pub(super) fn contained(array: &BlockArray, pairs: &[HashPair; 32], mask: u32, hashes: u32) -> u32 {
    super::select(pairs, mask, |pair| {
        contains(array.block_of(pair.a), pair.b, hashes)
    })
}

/// Whether all bits of the item are 1.
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn contains(block: &Block, b: u64, hashes: u32) -> bool {
    let wanted = u32::MAX >> (32 - hashes.clamp(1, 32));
    let start: *const u32 = ALIGNED.0.as_ptr();
    // SAFETY: a block is 64 bytes, and aligned to as many; so are both halves of the multipliers.
    let (block, first, second) = unsafe {
        (
            _mm512_load_si512((&raw const *block).cast()),
            _mm512_load_si512(start.cast()),
            _mm512_load_si512(start.add(16).cast()),
        )
    };
    // Even lanes are the lower half of `b`, odd ones the upper.
    let b = _mm512_set1_epi64(b.cast_signed());
    if !test(block, _mm512_mullo_epi32(b, first), wanted) {
        return false;
    }
    hashes <= 16 || test(block, _mm512_mullo_epi32(b, second), wanted >> 16)
}

/// Whether the bits at the positions in the wanted lanes are 1.
#[inline]
#[target_feature(enable = "avx512f")]
fn test(block: __m512i, products: __m512i, wanted: u32) -> bool {
    let wanted = (wanted & 0xffff) as u16;
    // The top four bits are the word, the next five the bit in it. A rotation counts modulo 32.
    let words = _mm512_permutexvar_epi32(_mm512_srli_epi32::<28>(products), block);
    let bits = _mm512_rorv_epi32(words, _mm512_srli_epi32::<23>(products));
    _mm512_mask_test_epi32_mask(wanted, bits, _mm512_set1_epi32(1)) == wanted
}
