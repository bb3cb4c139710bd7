//! The blocked layout: all bits of an item in one block of 512 bits, which is a cache line.
//!
//! The naive Bloom filter asks memory for one cache line a bit. Here the first hash value chooses a
//! block, and the second one the bits in it, so that a lookup waits for memory once. (Putze,
//! Sanders and Singler, "Cache-, hash- and space-efficient Bloom filters", 2007.) What that costs
//! in bits, as some blocks get more items than others, is in
//! [`sizing::blocked`](crate::sizing::blocked).
//!
//! Each way to test a block has a file of its own: `portable`, which is the definition, and one for
//! each set of instructions. All give the same answers. Which one is used is decided here, in
//! [`Kernel::detect`].
#![allow(unsafe_code)]

mod array;
#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod layer;
#[cfg(all(target_arch = "aarch64", target_feature = "neon"))]
mod neon;
mod portable;

pub use layer::BlockedLayer;

use crate::hash::HashPair;
use array::{Block, BlockArray};
use portable::Lanes;

/// A way to test blocks. That a value exists proves that the processor can do it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kernel(Set);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Set {
    #[cfg_attr(
        all(target_arch = "aarch64", target_feature = "neon"),
        allow(dead_code, reason = "every such processor has the better one")
    )]
    Portable,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Avx512,
    #[cfg(all(target_arch = "aarch64", target_feature = "neon"))]
    Neon,
}

/// Whether the processor has an instruction set: asked while it runs with `std`, and otherwise as
/// far as the compiler was told.
#[cfg(target_arch = "x86_64")]
macro_rules! has {
    ($feature:tt) => {{
        #[cfg(feature = "std")]
        let has = std::is_x86_feature_detected!($feature);
        #[cfg(not(feature = "std"))]
        let has = cfg!(target_feature = $feature);
        has
    }};
}

/// What `avx512.rs` needs.
#[cfg(target_arch = "x86_64")]
fn has_avx512() -> bool {
    [has!("avx512f"), has!("avx512vl"), has!("bmi2")] == [true; 3]
}

impl Kernel {
    /// The best there is.
    pub(crate) fn detect() -> Kernel {
        #[cfg(target_arch = "x86_64")]
        {
            if has_avx512() {
                return Kernel(Set::Avx512);
            }
            if has!("avx2") {
                return Kernel(Set::Avx2);
            }
        }
        #[cfg(all(target_arch = "aarch64", target_feature = "neon"))]
        return Kernel(Set::Neon);
        #[cfg(not(all(target_arch = "aarch64", target_feature = "neon")))]
        Kernel(Set::Portable)
    }

    /// All there are.
    #[cfg(any(test, fuzzing))]
    pub(crate) fn all() -> alloc::vec::Vec<Kernel> {
        let mut all = alloc::vec![Kernel(Set::Portable)];
        #[cfg(target_arch = "x86_64")]
        {
            all.extend(has!("avx2").then_some(Kernel(Set::Avx2)));
            all.extend(has_avx512().then_some(Kernel(Set::Avx512)));
        }
        #[cfg(all(target_arch = "aarch64", target_feature = "neon"))]
        all.push(Kernel(Set::Neon));
        all
    }

    /// The test of single items in layers with so many hashes.
    #[cfg_attr(not(target_arch = "x86_64"), allow(unused_variables))]
    fn item_test(self, hashes: u32) -> ItemTest {
        ItemTest(match self.0 {
            Set::Portable => portable_contains_item,
            #[cfg(target_arch = "x86_64")]
            Set::Avx2 => avx2::contains_item,
            #[cfg(target_arch = "x86_64")]
            Set::Avx512 => match hashes {
                0..=8 => avx512::contains_item::<8>,
                9..=16 => avx512::contains_item::<16>,
                _ => avx512::contains_item::<32>,
            },
            #[cfg(all(target_arch = "aarch64", target_feature = "neon"))]
            Set::Neon => neon::contains_item,
        })
    }

    /// Whether the hashed item is in the layer.
    #[inline]
    fn contains_pair(self, layer: &BlockedLayer, pair: HashPair) -> bool {
        match self.0 {
            Set::Portable => portable_contains(layer, pair),
            // SAFETY: the value proves that the processor has AVX2.
            #[cfg(target_arch = "x86_64")]
            Set::Avx2 => unsafe { avx2::contains_pair(layer, pair) },
            // SAFETY: the value proves that the processor has AVX-512.
            #[cfg(target_arch = "x86_64")]
            Set::Avx512 => unsafe { avx512::contains_pair(layer, pair) },
            // SAFETY: the compiler was told that the processor has NEON.
            #[cfg(all(target_arch = "aarch64", target_feature = "neon"))]
            Set::Neon => unsafe { neon::contains_pair(layer, pair) },
        }
    }

    /// Those of the items in the mask that are in any of the arrays: bit i for `pairs[i]`.
    #[inline]
    fn contained(
        self,
        arrays: &[&BlockArray],
        pairs: &[HashPair; 32],
        mask: u32,
        lanes: &Lanes,
    ) -> u32 {
        match self.0 {
            Set::Portable => select(pairs, mask, |pair| {
                any(arrays, pair.a, |block| lanes.contains(block, pair.b))
            }),
            // SAFETY: the value proves that the processor has AVX2.
            #[cfg(target_arch = "x86_64")]
            Set::Avx2 => unsafe { avx2::contained(arrays, pairs, mask, lanes) },
            // SAFETY: the value proves that the processor has AVX-512.
            #[cfg(target_arch = "x86_64")]
            Set::Avx512 => unsafe { avx512::contained(arrays, pairs, mask, lanes) },
            // SAFETY: the compiler was told that the processor has NEON.
            #[cfg(all(target_arch = "aarch64", target_feature = "neon"))]
            Set::Neon => unsafe { neon::contained(arrays, pairs, mask, lanes) },
        }
    }
}

/// Tests single items in the layer that it was chosen for. One call hashes and tests, because
/// neither can be inlined where the instructions are not known to exist.
#[derive(Clone, Copy)]
pub(crate) struct ItemTest(unsafe fn(&BlockedLayer, &[u8]) -> bool);

impl ItemTest {
    #[inline]
    fn contains(self, layer: &BlockedLayer, item: &[u8]) -> bool {
        // SAFETY: only `Kernel::item_test` makes such values, and a kernel proves that the
        // processor has the instructions.
        unsafe { (self.0)(layer, item) }
    }
}

fn portable_contains_item(layer: &BlockedLayer, item: &[u8]) -> bool {
    portable_contains(layer, layer.hash(item))
}

#[inline]
fn portable_contains(layer: &BlockedLayer, pair: HashPair) -> bool {
    let (array, lanes) = layer.parts_to_test();
    lanes.contains(array.block_of(pair.a), pair.b)
}

/// Whether one of the blocks that the hash value chooses passes the test, without a branch between
/// them. Inlined as [`select`] is.
#[inline(always)]
fn any(arrays: &[&BlockArray], a: u64, test: impl Fn(&Block) -> bool) -> bool {
    let tests = arrays.iter().map(|array| test(array.block_of(a)));
    tests.fold(false, |any, found| any | found)
}

/// The most layers that are tested together.
const TOGETHER: usize = 8;

/// Those of the items in the mask that are in any of the layers; the last layer is looked at first.
/// Layers with the same number of hashes are tested together.
pub(crate) fn contained<'a>(
    layers: impl DoubleEndedIterator<Item = &'a BlockedLayer>,
    pairs: &[HashPair; 32],
    mask: u32,
) -> u32 {
    let mut found = 0;
    let mut layers = layers.rev().peekable();
    while let Some(newest) = layers.next() {
        let (array, lanes) = newest.parts_to_test();
        let mut arrays = [array; TOGETHER];
        let mut count = 1;
        for slot in arrays.iter_mut().skip(1) {
            let alike = layers.next_if(|layer| layer.hashes() == newest.hashes());
            let Some(layer) = alike else {
                break;
            };
            *slot = layer.parts_to_test().0;
            count += 1;
        }
        let arrays = arrays.get(..count).unwrap_or_default();
        found |= newest
            .kernel()
            .contained(arrays, pairs, mask & !found, lanes);
        if found == mask {
            break;
        }
    }
    found
}

/// Those of the items in the mask that pass the test. Inlined, so that the test is compiled for the
/// instructions of the caller.
#[inline(always)]
fn select(pairs: &[HashPair; 32], mask: u32, test: impl Fn(HashPair) -> bool) -> u32 {
    let mut found = 0;
    if mask == u32::MAX {
        for (index, &pair) in pairs.iter().enumerate() {
            found |= u32::from(test(pair)) << index;
        }
        return found;
    }
    let mut rest = mask;
    while rest != 0 {
        let index = rest.trailing_zeros();
        rest &= rest - 1;
        if let Some(&pair) = pairs.get(index as usize) {
            found |= u32::from(test(pair)) << index;
        }
    }
    found
}

/// Answers of all kernels to one item, for the fuzzer.
#[cfg(any(test, fuzzing))]
pub(crate) mod agreement {
    use super::array::BlockArray;
    use super::portable::Lanes;
    use super::{Kernel, TOGETHER};
    use crate::hash::HashPair;

    /// Whether every kernel says of every item what the definition says, one by one and in a
    /// group, in one array and in several. Each array is 128 bytes of `arrays`.
    pub(crate) fn holds(
        arrays: &[[u8; 128]],
        items: &[(u64, u64)],
        mask: u32,
        hashes: u32,
    ) -> bool {
        let Some(lanes) = Lanes::new(hashes) else {
            return true;
        };
        let filled = arrays.iter().take(TOGETHER).filter_map(|bytes| {
            let mut array = BlockArray::zeroed(128).ok()?;
            array.as_bytes_mut().copy_from_slice(bytes);
            Some(array)
        });
        let arrays: alloc::vec::Vec<BlockArray> = filled.collect();
        let arrays: alloc::vec::Vec<&BlockArray> = arrays.iter().collect();
        let mut pairs = [HashPair::default(); 32];
        for (pair, (a, b)) in pairs.iter_mut().zip(items) {
            *pair = HashPair { a: *a, b: *b };
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
        let agrees = |kernel: Kernel| kernel.contained(&arrays, &pairs, mask, lanes);
        Kernel::all()
            .into_iter()
            .all(|kernel| agrees(kernel) == expected & mask)
    }
}

#[cfg(test)]
mod tests {
    use alloc::format;
    use alloc::vec::Vec;
    use core::mem::size_of;

    use proptest::prelude::*;

    use super::layer::BlockedLayer;
    use super::{Kernel, agreement, contained};
    use crate::classic::ClassicLayer;
    use crate::hash::{HashPair, Key};
    use crate::layer::Layer;
    use crate::sizing::blocked::BlockedSize;

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
            prop_assert!(agreement::holds(&arrays, &items, mask, hashes));
        }

        /// As above, in whole layers, and with items that are there.
        #[test]
        fn layers_answer_alike_with_every_kernel(
            hashes in 2_u32..33, blocks in 1_u64..20, count in 0_u32..300, seed in any::<u64>(),
        ) {
            let size = BlockedSize::from_bits(blocks * 512, hashes, Some(1)).unwrap();
            let mut layer = BlockedLayer::new(&size, Key::from_seed(seed), u64::MAX).unwrap();
            for number in 0..count {
                layer.insert(layer.hash(&number.to_le_bytes()));
            }
            let items: Vec<Vec<u8>> = (0..2 * count)
                .map(|number| match number % 3 {
                    0 => number.to_le_bytes().to_vec(),
                    1 => u64::from(number).to_le_bytes().to_vec(),
                    _ => format!("an item of more than sixteen bytes: {number}").into_bytes(),
                })
                .collect();
            let mut answers = Vec::new();
            for kernel in Kernel::all() {
                layer.set_kernel(kernel);
                let single: Vec<bool> =
                    items.iter().map(|item| layer.contains_item(item)).collect();
                let hashed: Vec<bool> =
                    items.iter().map(|item| layer.contains(layer.hash(item))).collect();
                let mut together = Vec::new();
                for group in items.chunks(32) {
                    let mut pairs = [HashPair::default(); 32];
                    for (pair, item) in pairs.iter_mut().zip(group) {
                        *pair = layer.hash(item);
                    }
                    let found = contained([&layer].into_iter(), &pairs, u32::MAX);
                    together.extend((0..group.len()).map(|index| found >> index & 1 == 1));
                }
                answers.extend([single, hashed, together]);
            }
            for number in (0..count).step_by(3) {
                prop_assert!(answers[0][number as usize]);
            }
            prop_assert!(answers.windows(2).all(|two| two[0] == two[1]));
        }
    }

    #[test]
    fn a_classic_layer_costs_no_byte_more() {
        assert_eq!(size_of::<Layer>(), size_of::<ClassicLayer>());
    }
}
