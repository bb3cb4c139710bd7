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
#[repr(C, align(8))]
pub(crate) struct Block(pub(crate) [u8; BLOCK]);

// Threads share a block as words, which are aligned to 8 also where numbers of 64 bits are not.
#[cfg(target_has_atomic = "64")]
const _: () = assert!(align_of::<Block>() == align_of::<AtomicU64>());
const _: () = assert!(mem::offset_of!(Block, 0) == 0);
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

/// Arrays of up to so many bytes, which are a page, take no byte beside their blocks. They begin
/// wherever the allocator puts them, and a block may lie in two cache lines.
const MAX_SHORT: usize = 4 << 10;

/// The bytes of a longer allocation beside its blocks, so that these can begin with a cache line in
/// all memory that is aligned to 16. It is not an aligned allocation: for that the standard
/// allocator writes its zeros itself, and all memory of a large filter would be there before it is
/// needed.
const SLACK: usize = 48;

/// A fixed number of blocks.
pub(crate) struct BlockArray {
    /// The first block.
    start: NonNull<Block>,
    /// The bytes of the blocks; and, in the bits that are 0 in a multiple of 64, how many bytes of
    /// the allocation lie before the first block.
    extent: usize,
}

// SAFETY: the array owns its memory, as a box does, and gives out references by its own only.
unsafe impl Send for BlockArray {}
// SAFETY: as above; nothing but atomic words changes through a shared reference.
unsafe impl Sync for BlockArray {}

/// How many bytes an allocation has beside its blocks.
fn slack(bytes: usize, lead: usize) -> usize {
    // An allocator that does not even align to words gives short arrays slack, too.
    if bytes <= MAX_SHORT && lead == 0 {
        0
    } else {
        SLACK
    }
}

/// How many bytes of this allocation lie before the blocks, which are so many bytes. They begin
/// with a word. `None` if the allocation has no room for that.
fn lead(allocation: &[u8], bytes: usize) -> Option<usize> {
    let to_word = allocation.as_ptr().align_offset(align_of::<Block>());
    if allocation.len() == bytes {
        return (to_word == 0).then_some(0);
    }
    if bytes <= MAX_SHORT {
        // Not 0, which stands for no slack.
        return Some(to_word + align_of::<Block>());
    }
    let to_line = allocation.as_ptr().align_offset(BLOCK);
    Some(if to_line <= SLACK { to_line } else { to_word })
}

impl BlockArray {
    /// All bits 0. Large arrays get their pages from the system only when they are written.
    pub(crate) fn zeroed(bytes: u64) -> Result<BlockArray, AllocError> {
        let blocks = usize::try_from(bytes).map_err(|_| AllocError)? / BLOCK;
        let bytes = blocks.checked_mul(BLOCK).filter(|bytes| *bytes > 0);
        let bytes = bytes.ok_or(AllocError)?;
        let with_slack = |slack| zeroed(bytes.checked_add(slack).ok_or(AllocError)?);
        let allocation = with_slack(slack(bytes, 0))?;
        match BlockArray::of(allocation, bytes) {
            Some(array) => Ok(array),
            None => BlockArray::of(with_slack(SLACK)?, bytes).ok_or(AllocError),
        }
    }

    /// The blocks, so many bytes, in an allocation that is as long or has slack.
    fn of(allocation: Box<[u8]>, bytes: usize) -> Option<BlockArray> {
        let lead = lead(&allocation, bytes)?;
        let has_room =
            bytes.is_multiple_of(BLOCK) && allocation.len() == bytes + slack(bytes, lead);
        assert!(
            has_room && lead < BLOCK,
            "blocks, and what lies beside them"
        );
        let base = NonNull::from(Box::leak(allocation)).cast::<u8>();
        // SAFETY: `lead` is at most the slack, so it lies in the allocation.
        let start = unsafe { base.add(lead) }.cast();
        Some(BlockArray {
            start,
            extent: bytes | lead,
        })
    }

    /// Hands the allocation to `relocate` and takes back what that gives: the same bytes, at
    /// another place perhaps, in which the blocks then go to where they are aligned. Nothing
    /// happens when there is no memory for a block.
    pub(crate) fn relocate(&mut self, relocate: impl FnOnce(Box<[u8]>) -> Box<[u8]>) {
        // What is left when `relocate` panics.
        let Ok(empty) = BlockArray::zeroed(BLOCK as u64) else {
            return;
        };
        let (bytes, old_lead) = (self.bytes(), self.lead());
        let mut old = ManuallyDrop::new(mem::replace(self, empty));
        // SAFETY: this is the only use of what was replaced.
        let old = unsafe { old.allocation() };
        let len = old.len();
        let mut moved = relocate(old);
        assert_eq!(moved.len(), len, "relocated bits stay as many");
        let blocks = old_lead..old_lead + bytes;
        let Some(lead) = lead(&moved, bytes) else {
            // A short array at a place that is not aligned to words.
            *self = BlockArray::copy_of(moved.get(blocks).unwrap_or_default());
            return;
        };
        if lead != old_lead {
            moved.copy_within(blocks, lead);
        }
        if let Some(array) = BlockArray::of(moved, bytes) {
            *self = array;
        }
    }

    /// An array with these bytes.
    fn copy_of(bytes: &[u8]) -> BlockArray {
        match BlockArray::zeroed(bytes.len() as u64) {
            Ok(mut copy) => {
                pages::copy(copy.as_bytes_mut(), bytes);
                copy
            }
            Err(AllocError) => handle_alloc_error(Layout::for_value(bytes)),
        }
    }

    /// The whole allocation, the bytes around the blocks included.
    ///
    /// # Safety
    ///
    /// It is taken once, and the array is not used after that.
    unsafe fn allocation(&mut self) -> Box<[u8]> {
        // SAFETY: `lead` bytes before `start` is where the allocation begins.
        let base = unsafe { self.start.cast::<u8>().sub(self.lead()) };
        let bytes = ptr::slice_from_raw_parts_mut(base.as_ptr(), self.memory_usage());
        // SAFETY: the allocation was made with the layout of an array of so many bytes, all of them
        // are initialised, and the array does not free them again.
        unsafe { Box::from_raw(bytes) }
    }

    #[inline]
    pub(crate) fn blocks(&self) -> &[Block] {
        // SAFETY: `start` is aligned and so many blocks behind it are initialised, live and
        // borrowed as long as `self`; any bytes are a block.
        unsafe { slice::from_raw_parts(self.start.as_ptr(), self.bytes() / BLOCK) }
    }

    /// The first byte of the block that a hash value chooses.
    #[inline]
    pub(crate) fn offset_of(&self, a: u64) -> usize {
        // The fraction of all bytes, rounded down to whole blocks, is that of all blocks.
        index_of(a, self.bytes()) & !(BLOCK - 1)
    }

    /// Where the block is that a hash value chooses.
    #[inline]
    fn place_of(&self, a: u64) -> NonNull<Block> {
        // SAFETY: a * bytes < 2^64 * bytes, so that the offset is less than the number of bytes.
        unsafe { self.start.byte_add(self.offset_of(a)) }
    }

    /// The block that a hash value chooses.
    #[inline]
    pub(crate) fn block_of(&self, a: u64) -> &Block {
        // SAFETY: one of the blocks, as in `blocks`.
        unsafe { self.place_of(a).as_ref() }
    }

    /// The block that a hash value chooses.
    #[inline]
    pub(crate) fn block_of_mut(&mut self, a: u64) -> &mut Block {
        // SAFETY: as in `block_of`, and `self` is borrowed for this alone.
        unsafe { self.place_of(a).as_mut() }
    }

    #[inline]
    pub(crate) fn as_bytes(&self) -> &[u8] {
        // SAFETY: as in `blocks`; a block is 64 bytes without padding.
        unsafe { slice::from_raw_parts(self.start.as_ptr().cast(), self.bytes()) }
    }

    #[inline]
    pub(crate) fn as_bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `blocks`, and `self` is borrowed for this alone; any bytes are a block.
        unsafe { slice::from_raw_parts_mut(self.start.as_ptr().cast(), self.bytes()) }
    }

    /// Bytes of the blocks.
    #[inline]
    pub(super) fn bytes(&self) -> usize {
        self.extent & !(BLOCK - 1)
    }

    /// How many bytes of the allocation lie before the blocks.
    #[inline]
    fn lead(&self) -> usize {
        self.extent & (BLOCK - 1)
    }

    /// Bytes of the allocation.
    #[inline]
    pub(crate) fn memory_usage(&self) -> usize {
        let (bytes, lead) = (self.bytes(), self.lead());
        bytes + slack(bytes, lead)
    }

    /// Prefetches the block that a hash value chooses.
    #[inline]
    pub(crate) fn prefetch(&self, a: u64) {
        prefetch(self.place_of(a).as_ptr().cast());
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
        let block = self.place_of(a);
        // SAFETY: one of the blocks, as in `block_of`. A block is eight words, aligned, live and
        // initialised as long as `self` is borrowed; nobody uses it as anything else meanwhile, and
        // the pointer is that of the allocation, which may be written.
        unsafe { block.cast().as_ref() }
    }

    /// The words of all blocks.
    ///
    /// # Safety
    ///
    /// That of [`words_of`](Self::words_of).
    pub(super) unsafe fn words(&self) -> &[Words] {
        // SAFETY: as in `words_of`, for each of the blocks.
        unsafe { slice::from_raw_parts(self.start.as_ptr().cast(), self.bytes() / BLOCK) }
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
        BlockArray::copy_of(self.as_bytes())
    }
}

impl PartialEq for BlockArray {
    fn eq(&self, other: &BlockArray) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl fmt::Debug for BlockArray {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} blocks", self.bytes() / BLOCK)
    }
}

#[cfg(test)]
mod tests {
    use alloc::boxed::Box;
    use alloc::vec;

    use super::{BLOCK, BlockArray, MAX_SHORT, SLACK, lead, slack};

    #[test]
    fn short_arrays_take_their_blocks_and_long_ones_begin_with_a_cache_line() {
        for bytes in [BLOCK, 3 * BLOCK, MAX_SHORT, MAX_SHORT + BLOCK, 1 << 20] {
            let mut array = BlockArray::zeroed(bytes as u64).unwrap();
            assert!(array.as_bytes() == vec![0; bytes]);
            let is_long = bytes > MAX_SHORT;
            let beside = if is_long { SLACK } else { 0 };
            assert_eq!(array.memory_usage(), bytes + beside);
            assert!(!is_long || array.blocks().as_ptr().addr().is_multiple_of(BLOCK));
            array.as_bytes_mut().fill(1);
            array.relocate(|old| Box::from(&*old));
            assert!(array.as_bytes() == vec![1; bytes] && array.clone() == array);
        }
    }

    /// An allocator may align bytes to 1. Blocks begin with a word even there.
    #[test]
    fn blocks_are_words_in_any_memory() {
        let memory = vec![0; 2 * MAX_SHORT];
        for bytes in [BLOCK, MAX_SHORT, MAX_SHORT + BLOCK] {
            for offset in 0..2 * BLOCK {
                let (exact, with_slack) = (&memory[offset..][..bytes], bytes + SLACK);
                let is_word = exact.as_ptr().addr().is_multiple_of(8);
                assert_eq!(lead(exact, bytes), is_word.then_some(0));
                let longer = &memory[offset..][..with_slack];
                let lead = lead(longer, bytes).unwrap();
                assert_eq!((longer.as_ptr().addr() + lead) % 8, 0);
                assert_eq!((lead <= SLACK, slack(bytes, lead)), (true, SLACK));
            }
        }
    }
}
