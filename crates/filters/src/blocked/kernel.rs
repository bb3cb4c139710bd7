//! Which way to test blocks and to insert into them is used.

#[cfg(target_has_atomic = "64")]
use super::array::Words;
use super::array::{Block, BlockArray};
use super::blocks::Blocks;
#[cfg(all(target_arch = "aarch64", target_feature = "neon"))]
use super::neon;
use super::portable::Lanes;
use super::select::{any, select};
#[cfg(target_has_atomic = "64")]
use super::words;
#[cfg(target_arch = "x86_64")]
use super::{avx2, avx512};
use crate::hash::HashPair;

/// A way to test blocks and to insert into them. That a value exists proves that the processor can
/// do it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kernel(Set);

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
    pub(super) fn detect() -> Kernel {
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
    pub(super) fn all() -> alloc::vec::Vec<Kernel> {
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
    pub(super) fn item_test(self, hashes: u32) -> ItemTest {
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

    /// Whether the hashed item is in the blocks.
    #[inline]
    pub(super) fn contains_pair(self, blocks: &Blocks, pair: HashPair) -> bool {
        match self.0 {
            Set::Portable => portable_contains(blocks, pair),
            // SAFETY: the value proves that the processor has AVX2.
            #[cfg(target_arch = "x86_64")]
            Set::Avx2 => unsafe { avx2::contains_pair(blocks, pair) },
            // SAFETY: the value proves that the processor has AVX-512.
            #[cfg(target_arch = "x86_64")]
            Set::Avx512 => unsafe { avx512::contains_pair(blocks, pair) },
            // SAFETY: the compiler was told that the processor has NEON.
            #[cfg(all(target_arch = "aarch64", target_feature = "neon"))]
            Set::Neon => unsafe { neon::contains_pair(blocks, pair) },
        }
    }

    /// Whether all bits of an item with this second hash value are 1 in its block.
    #[inline]
    pub(super) fn contains_bits(self, block: &Block, b: u64, lanes: &Lanes) -> bool {
        match self.0 {
            Set::Portable => lanes.contains(block, b),
            // SAFETY: the value proves that the processor has AVX2.
            #[cfg(target_arch = "x86_64")]
            Set::Avx2 => unsafe { avx2::contains(block, b, lanes) },
            // SAFETY: the value proves that the processor has AVX-512.
            #[cfg(target_arch = "x86_64")]
            Set::Avx512 => unsafe { avx512::contains(block, b, lanes) },
            // SAFETY: the compiler was told that the processor has NEON.
            #[cfg(all(target_arch = "aarch64", target_feature = "neon"))]
            Set::Neon => unsafe { neon::contains(block, b, lanes) },
        }
    }

    /// Inserts an item; whether it is new. One call hashes and inserts, as in [`ItemTest`].
    #[inline]
    pub(super) fn insert_item(self, blocks: &mut Blocks, item: &[u8]) -> bool {
        match self.0 {
            Set::Portable => portable_insert(blocks, blocks.hash(item)),
            // SAFETY: the value proves that the processor has AVX2.
            #[cfg(target_arch = "x86_64")]
            Set::Avx2 => unsafe { avx2::insert_item(blocks, item) },
            // SAFETY: the value proves that the processor has AVX-512.
            #[cfg(target_arch = "x86_64")]
            Set::Avx512 => unsafe { avx512::insert_item(blocks, item) },
            // SAFETY: the compiler was told that the processor has NEON.
            #[cfg(all(target_arch = "aarch64", target_feature = "neon"))]
            Set::Neon => unsafe { neon::insert_item(blocks, item) },
        }
    }

    /// Inserts the hashed item; whether it is new.
    #[inline]
    pub(super) fn insert_pair(self, blocks: &mut Blocks, pair: HashPair) -> bool {
        match self.0 {
            Set::Portable => portable_insert(blocks, pair),
            // SAFETY: the value proves that the processor has AVX2.
            #[cfg(target_arch = "x86_64")]
            Set::Avx2 => unsafe { avx2::insert_pair(blocks, pair) },
            // SAFETY: the value proves that the processor has AVX-512.
            #[cfg(target_arch = "x86_64")]
            Set::Avx512 => unsafe { avx512::insert_pair(blocks, pair) },
            // SAFETY: the compiler was told that the processor has NEON.
            #[cfg(all(target_arch = "aarch64", target_feature = "neon"))]
            Set::Neon => unsafe { neon::insert_pair(blocks, pair) },
        }
    }

    /// Inserts those of the items in the mask, in order; which of them are new: bit i for
    /// `pairs[i]`.
    #[inline]
    pub(super) fn insert_group(
        self,
        blocks: &mut Blocks,
        pairs: &[HashPair; 32],
        mask: u32,
    ) -> u32 {
        match self.0 {
            Set::Portable => select(pairs, mask, |pair| portable_insert(blocks, pair)),
            // SAFETY: the value proves that the processor has AVX2.
            #[cfg(target_arch = "x86_64")]
            Set::Avx2 => unsafe { avx2::insert_group(blocks, pairs, mask) },
            // SAFETY: the value proves that the processor has AVX-512.
            #[cfg(target_arch = "x86_64")]
            Set::Avx512 => unsafe { avx512::insert_group(blocks, pairs, mask) },
            // SAFETY: the compiler was told that the processor has NEON.
            #[cfg(all(target_arch = "aarch64", target_feature = "neon"))]
            Set::Neon => unsafe { neon::insert_group(blocks, pairs, mask) },
        }
    }

    /// Whether all bits of the item are 1 in a block that threads share.
    #[inline]
    #[cfg(target_has_atomic = "64")]
    pub(super) fn are_in(self, words: &Words, b: u64, lanes: &Lanes) -> bool {
        match self.0 {
            Set::Portable => lanes.contains(&Block::from_words(words::load(words)), b),
            // SAFETY: the value proves that the processor has AVX2.
            #[cfg(target_arch = "x86_64")]
            Set::Avx2 => unsafe { avx2::are_in(words, b, lanes) },
            // SAFETY: the value proves that the processor has AVX-512.
            #[cfg(target_arch = "x86_64")]
            Set::Avx512 => unsafe { avx512::are_in(words, b, lanes) },
            // SAFETY: the compiler was told that the processor has NEON.
            #[cfg(all(target_arch = "aarch64", target_feature = "neon"))]
            Set::Neon => unsafe { neon::are_in(words, b, lanes) },
        }
    }

    /// The words of a block in which the item's bits are 1, as they lie in memory.
    #[inline]
    #[cfg(target_has_atomic = "64")]
    pub(super) fn mask(self, b: u64, lanes: &Lanes) -> [u64; 8] {
        match self.0 {
            Set::Portable => lanes.mask(b).map(u64::to_le),
            // SAFETY: the value proves that the processor has AVX2.
            #[cfg(target_arch = "x86_64")]
            Set::Avx2 => unsafe { avx2::mask_words(b, lanes) },
            // SAFETY: the value proves that the processor has AVX-512.
            #[cfg(target_arch = "x86_64")]
            Set::Avx512 => unsafe { avx512::mask_words(b, lanes) },
            // SAFETY: the compiler was told that the processor has NEON.
            #[cfg(all(target_arch = "aarch64", target_feature = "neon"))]
            Set::Neon => unsafe { neon::mask_words(b, lanes) },
        }
    }

    /// Those of the items in the mask that are in any of the arrays: bit i for `pairs[i]`.
    #[inline]
    pub(super) fn contained(
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

/// Tests single items in the blocks that it was chosen for. One call hashes and tests, because
/// neither can be inlined where the instructions are not known to exist.
#[derive(Clone, Copy)]
pub(super) struct ItemTest(unsafe fn(&Blocks, &[u8]) -> bool);

impl ItemTest {
    #[inline]
    pub(super) fn contains(self, blocks: &Blocks, item: &[u8]) -> bool {
        // SAFETY: only `Kernel::item_test` makes such values, and a kernel proves that the
        // processor has the instructions.
        unsafe { (self.0)(blocks, item) }
    }
}

fn portable_contains_item(blocks: &Blocks, item: &[u8]) -> bool {
    portable_contains(blocks, blocks.hash(item))
}

#[inline]
fn portable_contains(blocks: &Blocks, pair: HashPair) -> bool {
    blocks.lanes.contains(blocks.block_of(pair), pair.b)
}

#[inline]
fn portable_insert(blocks: &mut Blocks, pair: HashPair) -> bool {
    let lanes = blocks.lanes;
    lanes.insert(blocks.block_of_mut(pair), pair.b)
}
