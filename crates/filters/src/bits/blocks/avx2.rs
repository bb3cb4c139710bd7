//! Eight bits of an item at a time, with AVX2.

use core::arch::x86_64::{
    __m256i, _mm256_and_si256, _mm256_andnot_si256, _mm256_blendv_ps, _mm256_castps_si256,
    _mm256_castsi256_ps, _mm256_load_si256, _mm256_loadu_si256, _mm256_mullo_epi32,
    _mm256_or_si256, _mm256_permutevar8x32_epi32, _mm256_set1_epi32, _mm256_set1_epi64x,
    _mm256_setr_epi32, _mm256_setzero_si256, _mm256_sllv_epi32, _mm256_srli_epi32,
    _mm256_storeu_si256, _mm256_sub_epi32, _mm256_testc_si256, _mm256_testz_si256,
};
use core::mem::transmute;

use super::array::{Block, BlockArray};
use super::functions::{BlockedBits, Functions, Instructions};
use super::lanes::{COUNTS, Lanes};
use super::select::{contained, functions};
use crate::hash::{DoubleHash, KeyedHash};

functions!(Instructions::Avx2, "avx2");
contained!("avx2");

pub(super) static FUNCTIONS: [Functions; COUNTS] =
    Functions::for_all_counts(ANY_COUNT, ANY_COUNT, ANY_COUNT);

/// Sets all bits of the item; whether one of them was 0.
#[inline]
#[target_feature(enable = "avx2")]
fn insert(block: &mut Block, b: u64, lanes: &Lanes) -> bool {
    if lanes.hashes > 8 {
        return insert_many(block, b, lanes);
    }
    // SAFETY: the multipliers are 64 bytes, aligned to as many.
    let multipliers = unsafe { _mm256_load_si256(lanes.multipliers.as_ptr().cast()) };
    set(block, mask_of_eight(b, multipliers, lanes.hashes))
}

/// [`insert`] for more than eight bits. Not inlined, so that the usual case needs no stack.
#[inline(never)]
#[target_feature(enable = "avx2")]
fn insert_many(block: &mut Block, b: u64, lanes: &Lanes) -> bool {
    set(block, mask(b, lanes))
}

/// Sets the bits of the mask; whether one of them was 0.
#[inline]
#[target_feature(enable = "avx2")]
fn set(block: &mut Block, [low, high]: [__m256i; 2]) -> bool {
    let half: *mut __m256i = (&raw mut *block).cast();
    // SAFETY: a block is 64 bytes, two halves, wherever it lies.
    let old = unsafe { [_mm256_loadu_si256(half), _mm256_loadu_si256(half.add(1))] };
    let missing = _mm256_or_si256(
        _mm256_andnot_si256(old[0], low),
        _mm256_andnot_si256(old[1], high),
    );
    if _mm256_testz_si256(missing, missing) == 1 {
        return false;
    }
    // SAFETY: as above.
    unsafe {
        _mm256_storeu_si256(half, _mm256_or_si256(old[0], low));
        _mm256_storeu_si256(half.add(1), _mm256_or_si256(old[1], high));
    }
    true
}

/// The halves of a block in which the bits of the item are 1.
#[inline]
#[target_feature(enable = "avx2")]
fn mask(b: u64, lanes: &Lanes) -> [__m256i; 2] {
    let mut mask = [_mm256_setzero_si256(); 2];
    let (rounds, _) = lanes.multipliers.as_flattened().as_chunks::<8>();
    for (first, multipliers) in (0..lanes.hashes).step_by(8).zip(rounds) {
        // SAFETY: eight words, a multiple of 32 bytes from a start that is aligned to 64.
        let multipliers = unsafe { _mm256_load_si256(multipliers.as_ptr().cast()) };
        let [low, high] = mask_of_eight(b, multipliers, lanes.hashes - first);
        mask = [
            _mm256_or_si256(mask[0], low),
            _mm256_or_si256(mask[1], high),
        ];
    }
    mask
}

/// The halves of a block in which the bits of the item for eight multipliers are 1; of fewer, if
/// the item has fewer bits.
#[inline]
#[target_feature(enable = "avx2")]
fn mask_of_eight(b: u64, multipliers: __m256i, hashes: u32) -> [__m256i; 2] {
    // The number of the first bit of each word.
    let low_starts = _mm256_setr_epi32(0, 32, 64, 96, 128, 160, 192, 224);
    let high_starts = _mm256_setr_epi32(256, 288, 320, 352, 384, 416, 448, 480);
    let one = _mm256_set1_epi32(1);
    let b = _mm256_set1_epi64x(b.cast_signed());
    let positions = _mm256_srli_epi32::<23>(_mm256_mullo_epi32(b, multipliers));
    // SAFETY: four times two words are 32 bytes, whatever is in them.
    let pairs: [[u32; 2]; 4] = unsafe { transmute(positions) };
    let mut mask = [_mm256_setzero_si256(); 2];
    // In pairs, because half as many branches take less time than one position too many.
    for (first, pair) in (0..8).step_by(2).zip(pairs) {
        if first >= hashes {
            break;
        }
        for position in pair {
            // In all words but one the count is negative or above 31, and nothing is left of the 1.
            let position = _mm256_set1_epi32(position.cast_signed());
            let low = _mm256_sllv_epi32(one, _mm256_sub_epi32(position, low_starts));
            let high = _mm256_sllv_epi32(one, _mm256_sub_epi32(position, high_starts));
            mask = [
                _mm256_or_si256(mask[0], low),
                _mm256_or_si256(mask[1], high),
            ];
        }
    }
    mask
}

/// Whether all bits of the item are 1 in its block.
#[inline]
#[target_feature(enable = "avx2")]
fn contains(block: &Block, b: u64, lanes: &Lanes) -> bool {
    let half: *const __m256i = (&raw const *block).cast();
    // SAFETY: a block is 64 bytes, two halves, wherever it lies.
    let block = unsafe { (_mm256_loadu_si256(half), _mm256_loadu_si256(half.add(1))) };
    // Even lanes are the lower half of `b`, odd ones the upper.
    let b = _mm256_set1_epi64x(b.cast_signed());
    let found = |multipliers: &[u32; 8]| {
        // SAFETY: eight words, a multiple of 32 bytes from a start that is aligned to 64.
        let multipliers = unsafe { _mm256_load_si256(multipliers.as_ptr().cast()) };
        test(block, _mm256_mullo_epi32(b, multipliers))
    };
    let (rounds, _) = lanes.multipliers.as_flattened().as_chunks::<8>();
    let [first, more @ ..] = rounds else {
        return false;
    };
    let mut all = found(first);
    // The first eight are mostly all.
    if lanes.hashes > 8 {
        for multipliers in more.iter().take((lanes.hashes as usize - 1) / 8) {
            all &= found(multipliers);
        }
    }
    all
}

/// Whether the bits at the positions in all lanes are 1.
#[inline]
#[target_feature(enable = "avx2")]
fn test(block: (__m256i, __m256i), products: __m256i) -> bool {
    // The top four bits are the word: the topmost says in which half, which is what a blend looks
    // at, and the other three are what a permutation looks at.
    let word = _mm256_srli_epi32::<28>(products);
    let low = _mm256_castsi256_ps(_mm256_permutevar8x32_epi32(block.0, word));
    let high = _mm256_castsi256_ps(_mm256_permutevar8x32_epi32(block.1, word));
    let words = _mm256_blendv_ps(low, high, _mm256_castsi256_ps(products));
    // The next five bits are the bit in the word.
    let bit = _mm256_and_si256(_mm256_srli_epi32::<23>(products), _mm256_set1_epi32(31));
    let bits = _mm256_sllv_epi32(_mm256_set1_epi32(1), bit);
    _mm256_testc_si256(_mm256_castps_si256(words), bits) == 1
}
