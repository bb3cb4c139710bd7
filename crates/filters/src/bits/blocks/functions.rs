//! What a kernel is: the functions of one set of instructions, and the blocks that they work on.

use super::array::{Block, BlockArray};
use super::lanes::Lanes;
use crate::hash::{DoubleHash, Secrets};

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

/// The blocks of a layer, and what the bits of an item in them follow from.
#[derive(Clone)]
pub(crate) struct Blocks {
    pub(crate) array: BlockArray,
    /// Determines an item's bits in a block.
    pub(super) lanes: &'static Lanes,
    pub(crate) secrets: Secrets,
}

/// The functions of one set of instructions. They may be called where the processor has the set.
/// `b` is an item's second hash value.
#[derive(Clone, Copy)]
pub(super) struct Functions {
    pub(super) instructions: Instructions,
    pub(super) contains_item: unsafe fn(&Blocks, &[u8]) -> bool,
    pub(super) contains: unsafe fn(&Block, u64, &Lanes) -> bool,
    pub(super) contained: unsafe fn(&[&BlockArray], &[DoubleHash; 32], u32, &Lanes) -> u32,
    pub(super) insert_item: unsafe fn(&mut Blocks, &[u8]) -> bool,
    pub(super) insert: unsafe fn(&mut Block, u64, &Lanes) -> bool,
    pub(super) insert_group: unsafe fn(&mut Blocks, &[DoubleHash; 32], u32) -> u32,
    #[cfg(target_has_atomic = "64")]
    pub(super) contains_shared: unsafe fn(&super::array::Words, u64, &Lanes) -> bool,
    #[cfg(target_has_atomic = "64")]
    pub(super) mask_words: unsafe fn(u64, &Lanes) -> [u64; 8],
}
