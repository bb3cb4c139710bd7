//! Eight or sixteen bits of an item at a time, with AVX-512.

use core::arch::x86_64::{
    __m256i, __m512i, _mm256_load_si256, _mm256_loadu_si256, _mm256_mullo_epi32,
    _mm256_permutex2var_epi32, _mm256_rolv_epi32, _mm256_set1_epi32, _mm256_set1_epi64x,
    _mm256_srli_epi32, _mm256_testc_si256, _mm512_add_epi32, _mm512_cmpneq_epi32_mask,
    _mm512_loadu_si512, _mm512_mullo_epi32, _mm512_or_si512, _mm512_permutexvar_epi32,
    _mm512_rolv_epi32, _mm512_set1_epi32, _mm512_set1_epi64, _mm512_setr_epi32,
    _mm512_setzero_si512, _mm512_sllv_epi32, _mm512_srli_epi32, _mm512_storeu_si512,
    _mm512_ternarylogic_epi32, _mm512_testn_epi32_mask,
};
use core::hint::black_box;
use core::mem::transmute;

use super::array::{Block, BlockArray};
use super::functions::{BlockedBits, Functions, Instructions, TIERS};
use super::lanes::{COUNTS, Lanes};
use super::select::{any, functions, select};
use crate::hash::{DoubleHash, KeyedHash};

functions!(Instructions::Avx512, "avx512f,avx512vl,bmi2");

pub(super) static FUNCTIONS: [Functions; COUNTS] = Functions::for_all_counts([
    tier::<{ TIERS[0] }>(),
    tier::<{ TIERS[1] }>(),
    tier::<{ TIERS[2] }>(),
    tier::<{ TIERS[3] }>(),
    functions_of::<{ TIERS[4] }>(),
]);

/// The functions for items with at most `MAX` hashes, which are at most 16.
const fn tier<const MAX: usize>() -> Functions {
    Functions {
        contains_item: match MAX {
            0..=8 => contains_item_of::<8>,
            _ => contains_item_of::<16>,
        },
        ..functions_of::<MAX>()
    }
}

/// Whether the item is in the blocks, whose items have at most `MAX_HASHES` hashes: 8 or 16.
#[target_feature(enable = "avx512f,avx512vl,bmi2")]
fn contains_item_of<const MAX_HASHES: u32>(bits: &BlockedBits, item: &[u8]) -> bool {
    let Some(pair) = bits.key.hash_usual(item) else {
        return contains_unusual(bits, item);
    };
    let (block, lanes) = (bits.array.block_of(pair.a), bits.kernel.lanes());
    match MAX_HASHES {
        8 => Eight::new(pair.b, lanes).are_in(block),
        _ => Sixteen::new(pair.b, &lanes.multipliers[0]).are_in(block),
    }
}

/// The items in the mask that are in any of the arrays, as bits. The positions of an item's bits in
/// a block are computed once for all arrays.
#[target_feature(enable = "avx512f,avx512vl,bmi2")]
fn contained(arrays: &[&BlockArray], pairs: &[DoubleHash; 32], mask: u32, lanes: &Lanes) -> u32 {
    // The loop over the arrays is unrolled for their usual number.
    match *arrays {
        [a] => contained_in([a], pairs, mask, lanes),
        [a, b] => contained_in([a, b], pairs, mask, lanes),
        [a, b, c] => contained_in([a, b, c], pairs, mask, lanes),
        [a, b, c, d] => contained_in([a, b, c, d], pairs, mask, lanes),
        _ => arrays.iter().fold(0, |found, array| {
            found | contained_in([*array], pairs, mask & !found, lanes)
        }),
    }
}

#[inline]
#[target_feature(enable = "avx512f,avx512vl,bmi2")]
fn contained_in<const N: usize>(
    arrays: [&BlockArray; N],
    pairs: &[DoubleHash; 32],
    mask: u32,
    lanes: &Lanes,
) -> u32 {
    if lanes.hashes <= 8 {
        return select(pairs, mask, |pair| {
            let bits = Eight::new(pair.b, lanes);
            any(&arrays, pair.a, |block| bits.are_in(block))
        });
    }
    if lanes.hashes <= 16 {
        return select(pairs, mask, |pair| {
            let bits = Sixteen::new(pair.b, &lanes.multipliers[0]);
            any(&arrays, pair.a, |block| bits.are_in(block))
        });
    }
    select(pairs, mask, |pair| {
        any(&arrays, pair.a, |block| contains(block, pair.b, lanes))
    })
}

/// Sets all bits of the item; whether one of them was 0. A block that has them is not written.
#[inline]
#[target_feature(enable = "avx512f,avx512vl,bmi2")]
fn insert<const MAX: usize>(block: &mut Block, b: u64, lanes: &Lanes) -> bool {
    let place: *mut __m512i = (&raw mut *block).cast();
    // SAFETY: a block is 64 bytes, wherever it lies.
    let old = unsafe { _mm512_loadu_si512(place) };
    let all = _mm512_or_si512(old, mask::<MAX>(b, lanes));
    if _mm512_cmpneq_epi32_mask(old, all) == 0 {
        return false;
    }
    // SAFETY: as above.
    unsafe { _mm512_storeu_si512(place, all) };
    true
}

/// A block in which the bits of the item are 1.
#[inline]
#[target_feature(enable = "avx512f,avx512vl,bmi2")]
fn mask<const MAX: usize>(b: u64, lanes: &Lanes) -> __m512i {
    let none = _mm512_setzero_si512();
    if MAX <= 8 {
        let positions = _mm256_srli_epi32::<23>(products_of_eight(b, lanes));
        // SAFETY: eight words are 32 bytes, whatever is in them.
        let positions: [u32; 8] = unsafe { transmute(positions) };
        return with_bits(none, positions, MAX);
    }
    let rounds = (0..MAX).step_by(16).zip(&lanes.multipliers);
    rounds.fold(none, |mask, (first, multipliers)| {
        let positions = _mm512_srli_epi32::<23>(products_of_sixteen(b, multipliers));
        // Sixteen positions at once would be stored and loaded in one piece, which takes longer.
        // SAFETY: twice eight words are 64 bytes, whatever is in them.
        let [low, high]: [[u32; 8]; 2] = unsafe { transmute(positions) };
        let mask = with_bits(mask, low, MAX - first);
        with_bits(mask, high, (MAX - first).saturating_sub(8))
    })
}

/// The block with the bits at the first `count` positions, too; `count` is even or more than all.
#[inline]
#[target_feature(enable = "avx512f,avx512vl,bmi2")]
fn with_bits(block: __m512i, positions: [u32; 8], count: usize) -> __m512i {
    // What is left of a position in each word.
    let starts = _mm512_setr_epi32(
        0, -32, -64, -96, -128, -160, -192, -224, -256, -288, -320, -352, -384, -416, -448, -480,
    );
    // In all words but one the shift is negative or above 31, and nothing is left of the 1.
    let bit = |position: u32| {
        let shift = _mm512_add_epi32(starts, _mm512_set1_epi32(position.cast_signed()));
        _mm512_sllv_epi32(_mm512_set1_epi32(1), shift)
    };
    // A load copies a number to all words at no cost. The compiler would rather shuffle registers,
    // which takes the time of two other instructions, so it must not know what the numbers are.
    let positions = black_box(positions);
    let (pairs, _) = positions.as_chunks::<2>();
    pairs.iter().take(count / 2).fold(block, |block, [p, q]| {
        // The bits of all three.
        _mm512_ternarylogic_epi32::<0xfe>(block, bit(*p), bit(*q))
    })
}

/// Whether all bits of the item are 1 in its block.
#[inline]
#[target_feature(enable = "avx512f,avx512vl,bmi2")]
fn contains(block: &Block, b: u64, lanes: &Lanes) -> bool {
    if lanes.hashes <= 8 {
        return Eight::new(b, lanes).are_in(block);
    }
    let found = Sixteen::new(b, &lanes.multipliers[0]).are_in(block);
    if lanes.hashes <= 16 {
        return found;
    }
    found & Sixteen::new(b, &lanes.multipliers[1]).are_in(block)
}

/// The products of the second hash value with the first eight multipliers.
#[inline]
#[target_feature(enable = "avx512f,avx512vl,bmi2")]
fn products_of_eight(b: u64, lanes: &Lanes) -> __m256i {
    let multipliers = lanes.multipliers.as_ptr();
    // SAFETY: the multipliers are 64 bytes, aligned to as many.
    let multipliers = unsafe { _mm256_load_si256(multipliers.cast()) };
    // Even lanes are the lower half of `b`, odd ones the upper.
    _mm256_mullo_epi32(_mm256_set1_epi64x(b.cast_signed()), multipliers)
}

/// The products with sixteen multipliers, as above.
#[inline]
#[target_feature(enable = "avx512f,avx512vl,bmi2")]
fn products_of_sixteen(b: u64, multipliers: &[u32; 16]) -> __m512i {
    // SAFETY: sixteen words are 64 bytes; they may lie anywhere.
    let multipliers = unsafe { _mm512_loadu_si512(multipliers.as_ptr().cast()) };
    _mm512_mullo_epi32(_mm512_set1_epi64(b.cast_signed()), multipliers)
}

/// Up to eight bits of an item: the word of each, and the bit in that word. The top four bits of a
/// product are the word, the next five the bit.
struct Eight {
    words: __m256i,
    bits: __m256i,
}

impl Eight {
    #[inline]
    #[target_feature(enable = "avx512f,avx512vl,bmi2")]
    fn new(b: u64, lanes: &Lanes) -> Eight {
        let products = products_of_eight(b, lanes);
        Eight {
            words: _mm256_srli_epi32::<28>(products),
            // A rotation counts modulo 32.
            bits: _mm256_rolv_epi32(_mm256_set1_epi32(1), _mm256_srli_epi32::<23>(products)),
        }
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512vl,bmi2")]
    fn are_in(&self, block: &Block) -> bool {
        let half: *const __m256i = (&raw const *block).cast();
        // SAFETY: a block is 64 bytes, two halves, wherever it lies.
        let (low, high) = unsafe { (_mm256_loadu_si256(half), _mm256_loadu_si256(half.add(1))) };
        let words = _mm256_permutex2var_epi32(low, self.words, high);
        _mm256_testc_si256(words, self.bits) == 1
    }
}

/// Sixteen bits of an item, as above.
struct Sixteen {
    words: __m512i,
    bits: __m512i,
}

impl Sixteen {
    #[inline]
    #[target_feature(enable = "avx512f,avx512vl,bmi2")]
    fn new(b: u64, multipliers: &[u32; 16]) -> Sixteen {
        let products = products_of_sixteen(b, multipliers);
        Sixteen {
            words: _mm512_srli_epi32::<28>(products),
            bits: _mm512_rolv_epi32(_mm512_set1_epi32(1), _mm512_srli_epi32::<23>(products)),
        }
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512vl,bmi2")]
    fn are_in(&self, block: &Block) -> bool {
        // SAFETY: a block is 64 bytes, wherever it lies.
        let block = unsafe { _mm512_loadu_si512((&raw const *block).cast()) };
        let words = _mm512_permutexvar_epi32(self.words, block);
        _mm512_testn_epi32_mask(words, self.bits) == 0
    }
}
