//! Eight bits of an item at a time, with AVX2.

use core::arch::x86_64::{
    __m256i, _mm256_and_si256, _mm256_andnot_si256, _mm256_blendv_ps, _mm256_castps_si256,
    _mm256_castsi256_ps, _mm256_load_si256, _mm256_loadu_si256, _mm256_mullo_epi32,
    _mm256_or_si256, _mm256_permutevar8x32_epi32, _mm256_set1_epi32, _mm256_set1_epi64x,
    _mm256_setzero_si256, _mm256_sllv_epi32, _mm256_srli_epi32, _mm256_storeu_si256,
    _mm256_sub_epi32, _mm256_testc_si256, _mm256_testz_si256,
};
use core::mem::transmute;

use super::array::{Block, BlockArray};
use super::functions::{BlockedBits, Functions, Instructions, TIERS};
use super::lanes::{COUNTS, Lanes};
use super::select::{contained, functions};
use crate::hash::{DoubleHash, KeyedHash};
use crate::sizing::BLOCK;

functions!(Instructions::Avx2, "avx2");
contained!("avx2");

pub(super) static FUNCTIONS: [Functions; COUNTS] = Functions::for_all_counts([
    functions_of::<{ TIERS[0] }>(),
    functions_of::<{ TIERS[1] }>(),
    functions_of::<{ TIERS[2] }>(),
    functions_of::<{ TIERS[3] }>(),
    functions_of::<{ TIERS[4] }>(),
]);

/// Eight bytes, each with another one of its bits. The 64 bytes that begin at
/// [`start`](windows_of) of a position are a block in which only the bit at that position is 1.
#[repr(C, align(64))]
struct Ones([u8; Ones::LEN]);

impl Ones {
    /// As many bytes as the windows of all positions have together.
    const LEN: usize = 8 * BLOCK + BLOCK - 1;

    #[expect(clippy::indexing_slicing, reason = "computed while compiling")]
    const fn new() -> Ones {
        let mut ones = [0; Ones::LEN];
        let mut bit = 0;
        while bit < 8 {
            ones[bit * BLOCK + BLOCK - 1] = 1 << bit;
            bit += 1;
        }
        Ones(ones)
    }
}

static ONES: Ones = Ones::new();

/// Sets all bits of the item; whether one of them was 0. A block that has them is not written.
#[inline]
#[target_feature(enable = "avx2")]
fn insert<const MAX: usize>(block: &mut Block, b: u64, lanes: &Lanes) -> bool {
    let [low, high] = mask::<MAX>(b, lanes);
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
fn mask<const MAX: usize>(b: u64, lanes: &Lanes) -> [__m256i; 2] {
    let mut mask = [_mm256_setzero_si256(); 2];
    let (rounds, _) = lanes.multipliers.as_flattened().as_chunks::<8>();
    for (first, multipliers) in (0..MAX).step_by(8).zip(rounds) {
        for window in windows_of(b, multipliers).into_iter().take(MAX - first) {
            // SAFETY: a window is 64 bytes of the table.
            let halves = unsafe {
                [
                    _mm256_loadu_si256(window),
                    _mm256_loadu_si256(window.add(1)),
                ]
            };
            mask = [
                _mm256_or_si256(mask[0], halves[0]),
                _mm256_or_si256(mask[1], halves[1]),
            ];
        }
    }
    mask
}

/// For each multiplier, 64 bytes in the table that are a block with the item's bit.
#[inline]
#[target_feature(enable = "avx2")]
fn windows_of(b: u64, multipliers: &[u32; 8]) -> [*const __m256i; 8] {
    // SAFETY: eight words, a multiple of 32 bytes from a start that is aligned to 64.
    let multipliers = unsafe { _mm256_load_si256(multipliers.as_ptr().cast()) };
    let products = _mm256_mullo_epi32(_mm256_set1_epi64x(b.cast_signed()), multipliers);
    // The top six bits are the byte, the next three the bit in it. The byte of the table that has
    // only that bit must be this byte of the window.
    let byte = _mm256_srli_epi32::<26>(products);
    let bit = _mm256_and_si256(_mm256_srli_epi32::<17>(products), _mm256_set1_epi32(7 << 6));
    let starts = _mm256_sub_epi32(_mm256_or_si256(bit, _mm256_set1_epi32(63)), byte);
    // SAFETY: eight words are 32 bytes, whatever is in them.
    let starts: [u32; 8] = unsafe { transmute(starts) };
    let ones: *const u8 = (&raw const ONES).cast();
    // SAFETY: a start is at most 8 * 64 - 1, and 64 bytes from there on are in the table.
    starts.map(|start| unsafe { ones.add(start as usize) }.cast())
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
