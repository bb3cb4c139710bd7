//! Whether all kernels give the same answers, for the tests and the fuzzer.

use core::array;
use core::sync::atomic::AtomicU64;

use super::array::BlockArray;
use super::bits::TOGETHER;
use super::functions::{BlockedBits, Kernel};
use super::lanes::Lanes;
use super::select::select;
use crate::hash::{DoubleHash, Key};
use crate::sizing::BlockedSize;

/// Whether every kernel says of every item what the definition says, one by one and in a
/// group, in one array and in several; whether it inserts what the definition inserts; and whether
/// it does the same in blocks that threads share. Each array is 128 bytes of `arrays`.
pub(crate) fn kernels_agree(
    arrays: &[[u8; 128]],
    items: &[(u64, u64)],
    mask: u32,
    hashes: u32,
) -> bool {
    if Kernel::new(hashes).is_none() {
        return true;
    }
    let lanes = &Lanes::of(hashes as usize);
    let filled = arrays.iter().take(TOGETHER).filter_map(|bytes| {
        let mut array = BlockArray::zeroed(128).ok()?;
        array.as_bytes_mut().copy_from_slice(bytes);
        Some(array)
    });
    let arrays: alloc::vec::Vec<BlockArray> = filled.collect();
    let arrays: alloc::vec::Vec<&BlockArray> = arrays.iter().collect();
    let mut pairs = [DoubleHash::default(); 32];
    for (pair, (a, b)) in pairs.iter_mut().zip(items) {
        *pair = DoubleHash { a: *a, b: *b };
    }
    // Bit by bit, from the bytes.
    let is_set = |array: &BlockArray, a: u64, position: u32| {
        let block = if a >> 63 == 1 { 64 } else { 0 };
        let byte = array.as_bytes().get(block + position as usize / 8);
        byte.is_some_and(|byte| byte & 1 << (position % 8) != 0)
    };
    let mut expected = 0;
    for (index, pair) in pairs.iter().enumerate() {
        let one = |array: &&BlockArray| {
            lanes
                .positions(pair.b)
                .all(|position| is_set(array, pair.a, position))
        };
        expected |= u32::from(arrays.iter().any(one)) << index;
    }
    let agrees = |kernel: Kernel| kernel.contained(&arrays, &pairs, mask);
    Kernel::all(hashes).all(|kernel| {
        let inserts = |array: &&BlockArray| inserts_agree(kernel, array, &pairs, mask, lanes);
        agrees(kernel) == expected & mask
            && shared_agrees(kernel, &arrays, &pairs, lanes)
            && arrays.iter().all(inserts)
    })
}

/// Whether the kernel finds the items in blocks that threads share as it does in others, and
/// whether its masks are what the positions say.
fn shared_agrees(
    kernel: Kernel,
    arrays: &[&BlockArray],
    pairs: &[DoubleHash; 32],
    lanes: &Lanes,
) -> bool {
    pairs.iter().all(|pair| {
        let finds = |array: &&BlockArray| {
            let block = array.block_of(pair.a);
            let shared = words(&block.0).map(AtomicU64::new);
            kernel.contains_shared(&shared, pair.b) == kernel.contains(block, pair.b)
        };
        let mut mask = [0; 64];
        for position in lanes.positions(pair.b) {
            if let Some(byte) = mask.get_mut(position as usize / 8) {
                *byte |= 1 << (position % 8);
            }
        }
        kernel.mask_words(pair.b) == words(&mask) && arrays.iter().all(finds)
    })
}

/// The words with these bytes in memory.
fn words(bytes: &[u8; 64]) -> [u64; 8] {
    let (words, _) = bytes.as_chunks();
    let word = |index| words.get(index).copied().unwrap_or_default();
    array::from_fn(|index| u64::from_ne_bytes(word(index)))
}

/// Whether the kernel sets the bits of the items in the mask and no others, one by one and in a
/// group, and calls those new of which a bit was 0.
fn inserts_agree(
    kernel: Kernel,
    array: &BlockArray,
    pairs: &[DoubleHash; 32],
    mask: u32,
    lanes: &Lanes,
) -> bool {
    // Bit by bit, in the bytes.
    let (mut bytes, mut new) = (array.as_bytes().to_vec(), 0);
    for (index, pair) in pairs
        .iter()
        .enumerate()
        .filter(|(at, _)| mask >> at & 1 == 1)
    {
        let block = if pair.a >> 63 == 1 { 64 } else { 0 };
        for position in lanes.positions(pair.b) {
            if let Some(byte) = bytes.get_mut(block + position as usize / 8) {
                new |= u32::from(*byte >> (position % 8) & 1 == 0) << index;
                *byte |= 1 << (position % 8);
            }
        }
    }
    let Some(size) = BlockedSize::from_bits(1024, lanes.hashes, Some(1)) else {
        return false;
    };
    let blocks = || {
        let mut bits = BlockedBits::new(&size, Key::from_seed(0)).ok()?;
        bits.array = array.clone();
        Some(bits)
    };
    let (Some(mut single), Some(mut group)) = (blocks(), blocks()) else {
        return false;
    };
    let singly = select(pairs, mask, |pair| {
        let block = single.array.block_of_mut(pair.a);
        let known = kernel.contains(block, pair.b);
        // An item is new if it was not found before; it is found from now on.
        let is_new = kernel.insert(block, pair.b);
        assert!(is_new != known && kernel.contains(block, pair.b));
        is_new
    });
    let together = kernel.insert_group(&mut group, pairs, mask);
    let all_set = [&single, &group].map(|bits| bits.array.as_bytes() == bytes);
    [singly, together] == [new; 2] && all_set == [true; 2]
}

#[cfg(test)]
mod any_blocks {
    use proptest::prelude::*;

    use super::kernels_agree;

    /// Blocks as full as those of a filter, nearly full or nearly empty.
    fn array() -> impl Strategy<Value = [u8; 128]> {
        let byte = prop_oneof![
            any::<u8>(),
            Just(0xff),
            Just(0),
            (0_u8..8).prop_map(|b| !(1 << b))
        ];
        prop_oneof![
            prop::collection::vec(any::<u8>(), 128),
            prop::collection::vec(prop_oneof![9 => Just(0xff), 1 => byte], 128),
        ]
        .prop_map(|bytes| bytes.try_into().unwrap())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(500))]

        #[test]
        fn all_kernels_agree(
            arrays in prop::collection::vec(array(), 0..9),
            items in prop::collection::vec(any::<(u64, u64)>(), 0..33),
            mask in prop_oneof![any::<u32>(), Just(u32::MAX)],
            hashes in 0_u32..34,
        ) {
            prop_assert!(kernels_agree(&arrays, &items, mask, hashes));
        }
    }
}
