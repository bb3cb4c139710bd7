//! The bit array of a blocked layer: blocks that are cache lines.

use alloc::alloc::{Layout, handle_alloc_error};
use alloc::boxed::Box;
use core::fmt;
use core::mem::{self, ManuallyDrop};
use core::ptr::{self, NonNull};
use core::slice;
#[cfg(target_has_atomic = "64")]
use core::sync::atomic::AtomicU64;

use crate::bits::memory::{AllocError, prefetch, zeroed};
use crate::bits::pages;
use crate::sizing::BLOCK;

/// One block. Bit `p` is bit `p % 8`, least significant first, of byte `p / 8`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[repr(C, align(64))]
pub(crate) struct Block(pub(crate) [u8; BLOCK]);

// Kernels load a block with instructions that fault unless its bytes are aligned.
const _: () = assert!(mem::offset_of!(Block, 0) == 0 && align_of::<Block>() == BLOCK);
const _: () = assert!(size_of::<Block>() == BLOCK);

/// A block that threads share.
#[cfg(target_has_atomic = "64")]
pub(super) type Words = [AtomicU64; BLOCK / 8];

impl Block {
    /// The block that has these words in memory.
    #[inline]
    #[cfg(target_has_atomic = "64")]
    pub(super) fn from_words(words: [u64; BLOCK / 8]) -> Block {
        // SAFETY: the words are as many bytes, and any bytes are a block.
        Block(unsafe { mem::transmute::<[u64; BLOCK / 8], [u8; BLOCK]>(words) })
    }
}

/// A fixed number of blocks.
///
/// They are part of an allocation that is a little larger, and not an aligned allocation: for an
/// alignment of 64 the standard allocator writes its zeros itself, and all memory of a large filter
/// would be there before it is needed.
pub(crate) struct BlockArray {
    /// The first block, aligned.
    start: NonNull<Block>,
    /// How many there are.
    blocks: usize,
    /// How many bytes of the allocation lie before the first, less than 64.
    lead: usize,
}

// SAFETY: the array owns its memory, as a box does, and gives out references by its own only.
unsafe impl Send for BlockArray {}
// SAFETY: as above; nothing but atomic words changes through a shared reference.
unsafe impl Sync for BlockArray {}

impl BlockArray {
    /// All bits 0. Large arrays get their pages from the system only when they are written.
    pub(crate) fn zeroed(bytes: u64) -> Result<BlockArray, AllocError> {
        let blocks = usize::try_from(bytes).map_err(|_| AllocError)? / BLOCK;
        let len = blocks.checked_mul(BLOCK).filter(|len| *len > 0);
        let len = len.and_then(|len| len.checked_add(BLOCK - 1));
        Ok(BlockArray::of(zeroed(len.ok_or(AllocError)?)?))
    }

    /// The blocks in these bytes, which are `BLOCK - 1` more, so that the blocks can be aligned.
    fn of(bytes: Box<[u8]>) -> BlockArray {
        let blocks = bytes.len() / BLOCK;
        let lead = bytes.as_ptr().align_offset(BLOCK);
        let has_room = bytes.len() % BLOCK == BLOCK - 1 && lead < BLOCK;
        assert!(has_room, "blocks, and room to align them");
        let base = NonNull::from(Box::leak(bytes)).cast::<u8>();
        // SAFETY: the bytes are BLOCK - 1 more than the blocks, and `lead` is at most that.
        let start = unsafe { base.add(lead) }.cast();
        BlockArray {
            start,
            blocks,
            lead,
        }
    }

    /// Hands the allocation to `relocate` and takes back what that gives: the same bytes, at
    /// another place perhaps, in which the blocks then go to where they are aligned. Nothing
    /// happens when there is no memory for a block.
    pub(crate) fn relocate(&mut self, relocate: impl FnOnce(Box<[u8]>) -> Box<[u8]>) {
        // What is left when `relocate` panics.
        let Ok(empty) = BlockArray::zeroed(BLOCK as u64) else {
            return;
        };
        let (blocks, old_lead) = (self.blocks, self.lead);
        let mut old = ManuallyDrop::new(mem::replace(self, empty));
        // SAFETY: this is the only use of what was replaced.
        let old = unsafe { old.allocation() };
        let len = old.len();
        let mut bytes = relocate(old);
        assert_eq!(bytes.len(), len, "relocated bits stay as many");
        let lead = bytes.as_ptr().align_offset(BLOCK);
        if lead != old_lead {
            bytes.copy_within(old_lead..old_lead + blocks * BLOCK, lead);
        }
        *self = BlockArray::of(bytes);
    }

    /// The whole allocation, the bytes around the blocks included.
    ///
    /// # Safety
    ///
    /// It is taken once, and the array is not used after that.
    unsafe fn allocation(&mut self) -> Box<[u8]> {
        // SAFETY: `lead` bytes before `start` is where the allocation begins.
        let base = unsafe { self.start.cast::<u8>().sub(self.lead) };
        let bytes = ptr::slice_from_raw_parts_mut(base.as_ptr(), self.memory_usage());
        // SAFETY: the allocation was made with the layout of an array of so many bytes, all of them
        // are initialised, and the array does not free them again.
        unsafe { Box::from_raw(bytes) }
    }

    #[inline]
    pub(crate) fn blocks(&self) -> &[Block] {
        // SAFETY: `start` is aligned and `blocks` blocks behind it are initialised, live and
        // borrowed as long as `self`; any bytes are a block.
        unsafe { slice::from_raw_parts(self.start.as_ptr(), self.blocks) }
    }

    /// The number of the block that a hash value chooses.
    #[inline]
    pub(crate) fn index_of(&self, a: u64) -> usize {
        index_of(a, self.blocks)
    }

    /// The block that a hash value chooses.
    #[inline]
    pub(crate) fn block_of(&self, a: u64) -> &Block {
        let index = self.index_of(a);
        // SAFETY: a * blocks < 2^64 * blocks, so that the index is less than the number of blocks.
        unsafe { self.blocks().get_unchecked(index) }
    }

    /// The block that a hash value chooses.
    #[inline]
    pub(crate) fn block_of_mut(&mut self, a: u64) -> &mut Block {
        let index = self.index_of(a);
        // SAFETY: as in `block_of`.
        unsafe { self.blocks_mut().get_unchecked_mut(index) }
    }

    #[inline]
    fn blocks_mut(&mut self) -> &mut [Block] {
        // SAFETY: as in `blocks`, and `self` is borrowed for this alone.
        unsafe { slice::from_raw_parts_mut(self.start.as_ptr(), self.blocks) }
    }

    #[inline]
    pub(crate) fn as_bytes(&self) -> &[u8] {
        // SAFETY: as in `blocks`; a block is 64 bytes without padding.
        unsafe { slice::from_raw_parts(self.start.as_ptr().cast(), self.bytes()) }
    }

    #[inline]
    pub(crate) fn as_bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `blocks_mut`; a block is 64 bytes without padding, and any bytes are one.
        unsafe { slice::from_raw_parts_mut(self.start.as_ptr().cast(), self.bytes()) }
    }

    /// Bytes of the blocks.
    #[inline]
    pub(super) fn bytes(&self) -> usize {
        self.blocks * BLOCK
    }

    /// Bytes of the allocation.
    pub(crate) fn memory_usage(&self) -> usize {
        (self.blocks + 1) * BLOCK - 1
    }

    /// Prefetches the block that a hash value chooses.
    #[inline]
    pub(crate) fn prefetch(&self, a: u64) {
        prefetch(self.start.as_ptr().wrapping_add(self.index_of(a)).cast());
    }
}

#[cfg(target_has_atomic = "64")]
impl BlockArray {
    /// The words of the block that a hash value chooses, for threads to share.
    ///
    /// # Safety
    ///
    /// While they are borrowed, no other code borrows blocks or bytes of the array.
    #[inline]
    pub(super) unsafe fn words_of(&self, a: u64) -> &Words {
        let block = self.start.as_ptr().wrapping_add(self.index_of(a));
        // SAFETY: the index is below the number of blocks, as in `block_of`. A block is eight
        // words, aligned, live and initialised as long as `self` is borrowed; nobody uses it as
        // anything else meanwhile, and the pointer is that of the allocation, which may be written.
        unsafe { &*block.cast() }
    }

    /// The words of all blocks.
    ///
    /// # Safety
    ///
    /// That of [`words_of`](Self::words_of).
    pub(super) unsafe fn words(&self) -> &[Words] {
        // SAFETY: as in `words_of`, for each of the blocks.
        unsafe { slice::from_raw_parts(self.start.as_ptr().cast(), self.blocks) }
    }
}

/// The index of a hash value's block, among this many: the value as a fraction of 2^64, times the
/// number of blocks. (Lemire, "Fast random integer generation in an interval", 2019, section 3.)
#[inline]
#[expect(
    clippy::cast_possible_truncation,
    reason = "an index is less than a number of blocks in memory"
)]
pub(super) fn index_of(a: u64, blocks: usize) -> usize {
    ((u128::from(a) * blocks as u128) >> 64) as usize
}

impl Drop for BlockArray {
    fn drop(&mut self) {
        // SAFETY: the array is not used after this.
        drop(unsafe { self.allocation() });
    }
}

impl Clone for BlockArray {
    fn clone(&self) -> BlockArray {
        let bytes = self.as_bytes();
        match BlockArray::zeroed(bytes.len() as u64) {
            Ok(mut copy) => {
                pages::copy(copy.as_bytes_mut(), bytes);
                copy
            }
            Err(AllocError) => handle_alloc_error(Layout::for_value(bytes)),
        }
    }
}

impl PartialEq for BlockArray {
    fn eq(&self, other: &BlockArray) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl fmt::Debug for BlockArray {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} blocks", self.blocks)
    }
}
