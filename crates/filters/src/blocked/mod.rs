//! The blocked layout: all bits of an item in one block of 512 bits, which is a cache line.
//!
//! The naive Bloom filter asks memory for one cache line a bit. Here the first hash value chooses a
//! block, and the second one the bits in it, so that a lookup waits for memory once. (Putze, Sanders
//! and Singler, "Cache-, hash- and space-efficient Bloom filters", 2007.) What that costs in bits,
//! as some blocks get more items than others, is in [`sizing::blocked`](crate::sizing::blocked).
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

impl Kernel {
    /// The best there is.
    pub(crate) fn detect() -> Kernel {
        #[cfg(target_arch = "x86_64")]
        {
            if has!("avx512f") {
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
            all.extend(has!("avx512f").then_some(Kernel(Set::Avx512)));
        }
        #[cfg(all(target_arch = "aarch64", target_feature = "neon"))]
        all.push(Kernel(Set::Neon));
        all
    }

    /// Whether all bits of the item with this second hash value are 1.
    #[inline]
    fn contains(self, block: &Block, b: u64, hashes: u32) -> bool {
        match self.0 {
            Set::Portable => portable::contains(block, b, hashes),
            // SAFETY: the value proves that the processor has AVX2.
            #[cfg(target_arch = "x86_64")]
            Set::Avx2 => unsafe { avx2::contains(block, b, hashes) },
            // SAFETY: the value proves that the processor has AVX-512.
            #[cfg(target_arch = "x86_64")]
            Set::Avx512 => unsafe { avx512::contains(block, b, hashes) },
            // SAFETY: the compiler was told that the processor has NEON.
            #[cfg(all(target_arch = "aarch64", target_feature = "neon"))]
            Set::Neon => unsafe { neon::contains(block, b, hashes) },
        }
    }

    /// Those of the items in the mask that are in the array: bit i for `pairs[i]`.
    #[inline]
    fn contained(self, array: &BlockArray, pairs: &[HashPair; 32], mask: u32, hashes: u32) -> u32 {
        match self.0 {
            Set::Portable => select(pairs, mask, |pair| {
                portable::contains(array.block_of(pair.a), pair.b, hashes)
            }),
            // SAFETY: the value proves that the processor has AVX2.
            #[cfg(target_arch = "x86_64")]
            Set::Avx2 => unsafe { avx2::contained(array, pairs, mask, hashes) },
            // SAFETY: the value proves that the processor has AVX-512.
            #[cfg(target_arch = "x86_64")]
            Set::Avx512 => unsafe { avx512::contained(array, pairs, mask, hashes) },
            // SAFETY: the compiler was told that the processor has NEON.
            #[cfg(all(target_arch = "aarch64", target_feature = "neon"))]
            Set::Neon => unsafe { neon::contained(array, pairs, mask, hashes) },
        }
    }
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
