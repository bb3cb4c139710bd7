//! Eight bits of an item at a time, with AVX2.

use core::arch::x86_64::{
    __m256i, _mm256_and_si256, _mm256_blendv_ps, _mm256_castps_si256, _mm256_castsi256_ps,
    _mm256_cmpgt_epi32, _mm256_load_si256, _mm256_mullo_epi32, _mm256_permutevar8x32_epi32,
    _mm256_set1_epi32, _mm256_set1_epi64x, _mm256_setr_epi32, _mm256_sllv_epi32, _mm256_srli_epi32,
    _mm256_testc_si256,
};

use super::array::{Block, BlockArray};
use super::portable::MULTIPLIERS;
use crate::hash::HashPair;

#[repr(align(32))]
struct Aligned([u32; 32]);
static ALIGNED: Aligned = Aligned(MULTIPLIERS);

/// Those of the items in the mask that are in the array.
#[target_feature(enable = "avx2")]
pub(super) fn contained(array: &BlockArray, pairs: &[HashPair; 32], mask: u32, hashes: u32) -> u32 {
    super::select(pairs, mask, |pair| {
        contains(array.block_of(pair.a), pair.b, hashes)
    })
}

/// Whether all bits of the item are 1.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn contains(block: &Block, b: u64, hashes: u32) -> bool {
    let hashes = hashes.clamp(1, 32).cast_signed();
    let half: *const __m256i = (&raw const *block).cast();
    // SAFETY: a block is 64 bytes, two halves, and aligned to as many.
    let block = unsafe { (_mm256_load_si256(half), _mm256_load_si256(half.add(1))) };
    let b = _mm256_set1_epi64x(b.cast_signed());
    let (rounds, _) = ALIGNED.0.as_chunks::<8>();
    let mut left = hashes;
    for multipliers in rounds {
        // SAFETY: eight words, at a multiple of 32 bytes from the start of what is aligned so.
        let multipliers = unsafe { _mm256_load_si256(multipliers.as_ptr().cast()) };
        if !test(block, _mm256_mullo_epi32(b, multipliers), left) {
            return false;
        }
        left -= 8;
        if left <= 0 {
            break;
        }
    }
    true
}

/// Whether the bits at the positions in the first `count` lanes are 1.
#[inline]
#[target_feature(enable = "avx2")]
fn test(block: (__m256i, __m256i), products: __m256i, count: i32) -> bool {
    // The top four bits are the word: the topmost says in which half, which is what a blend looks
    // at, and the other three are what a permutation looks at.
    let word = _mm256_srli_epi32::<28>(products);
    let low = _mm256_castsi256_ps(_mm256_permutevar8x32_epi32(block.0, word));
    let high = _mm256_castsi256_ps(_mm256_permutevar8x32_epi32(block.1, word));
    let words = _mm256_blendv_ps(low, high, _mm256_castsi256_ps(products));
    // The next five bits are the bit in the word.
    let bit = _mm256_and_si256(_mm256_srli_epi32::<23>(products), _mm256_set1_epi32(31));
    let lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    let wanted = _mm256_cmpgt_epi32(_mm256_set1_epi32(count), lanes);
    let one = _mm256_srli_epi32::<31>(wanted);
    let bits = _mm256_sllv_epi32(one, bit);
    _mm256_testc_si256(_mm256_castps_si256(words), bits) == 1
}
