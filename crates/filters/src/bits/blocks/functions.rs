//! What a kernel is: the functions of one set of instructions, and the bits that they test.

use alloc::sync::Arc;
use core::fmt;

use super::array::{Block, BlockArray};
use super::lanes::{COUNTS, Lanes};
use crate::hash::{DoubleHash, FilterKey};
use crate::sizing::BlockedSize;

/// The instructions that a filter in the blocked layout uses. All give the same answers.
///
/// New filters use the fastest that the processor has. [`select`](Self::select) is for programs
/// that measure the others.
///
/// ```
/// use everbloom::host::Instructions;
/// let fastest = Instructions::current();
/// assert!(Instructions::Portable.select());
/// assert_eq!(Instructions::current(), Instructions::Portable);
/// assert!(fastest.select());
/// assert!(Instructions::available().any(|instructions| instructions == fastest));
/// assert_eq!(Instructions::Avx2.name(), "avx2");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Instructions {
    /// Instructions that every processor has.
    Portable,
    /// AVX2, of x86-64.
    Avx2,
    /// AVX-512 F and VL with BMI2, of x86-64.
    Avx512,
    /// NEON, of AArch64.
    Neon,
}

/// The functions of one set of instructions, for items of one number of hashes. They may be called
/// where the processor has the set, for bits with this kernel. `b` is an item's second hash value.
#[derive(Clone, Copy)]
pub(super) struct Functions {
    /// Determines an item's bits in a block.
    pub(super) lanes: Lanes,
    pub(super) instructions: Instructions,
    pub(super) contains_item: unsafe fn(&BlockedBits, &[u8]) -> bool,
    pub(super) contains: unsafe fn(&Block, u64, &Lanes) -> bool,
    pub(super) contained: unsafe fn(&[&BlockArray], &[DoubleHash; 32], u32, &Lanes) -> u32,
    pub(super) insert_item: unsafe fn(&mut BlockedBits, &[u8]) -> bool,
    pub(super) insert: unsafe fn(&mut Block, u64, &Lanes) -> bool,
    pub(super) insert_group: unsafe fn(&mut BlockedBits, &[DoubleHash; 32], u32) -> u32,
    #[cfg(target_has_atomic = "64")]
    pub(super) contains_shared: unsafe fn(&super::array::Words, u64, &Lanes) -> bool,
    #[cfg(target_has_atomic = "64")]
    pub(super) mask_words: unsafe fn(u64, &Lanes) -> [u64; 8],
}

/// The functions to use for a number of hashes. A value exists only if the processor can execute
/// them.
#[derive(Clone, Copy)]
pub(super) struct Kernel(&'static Functions);

impl Kernel {
    /// # Safety
    ///
    /// The processor has the instructions.
    pub(super) unsafe fn new_unchecked(functions: &'static Functions) -> Kernel {
        Kernel(functions)
    }

    #[inline]
    pub(super) fn functions(self) -> &'static Functions {
        self.0
    }

    /// What determines an item's bits in a block.
    #[inline]
    pub(super) fn lanes(self) -> &'static Lanes {
        &self.0.lanes
    }
}

impl fmt::Debug for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.instructions.fmt(f)
    }
}

/// The bits of a layer, the key of its filter, and the way it is tested.
#[derive(Clone)]
pub(crate) struct BlockedBits {
    pub(crate) array: BlockArray,
    pub(crate) key: Arc<FilterKey>,
    pub(super) kernel: Kernel,
}

/// Kernels have functions of their own for items with up to so many hashes: a loop over a number
/// that the compiler knows takes no branches.
pub(super) const TIERS: [usize; 5] = [6, 8, 12, 16, BlockedSize::MAX_HASHES as usize];

impl Functions {
    /// The functions for each number of hashes, from those for each of the [`TIERS`].
    #[expect(clippy::indexing_slicing, reason = "computed while compiling")]
    pub(super) const fn for_all_counts(of_tier: [Functions; TIERS.len()]) -> [Functions; COUNTS] {
        let mut all = [of_tier[0]; COUNTS];
        let (mut hashes, mut tier) = (0, 0);
        while hashes < COUNTS {
            if hashes > TIERS[tier] {
                tier += 1;
            }
            all[hashes] = of_tier[tier];
            all[hashes].lanes = Lanes::of(hashes);
            hashes += 1;
        }
        all
    }
}
