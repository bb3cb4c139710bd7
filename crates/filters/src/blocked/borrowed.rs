//! The blocks of a layer in somebody else's bytes, which need not be aligned.

use super::array::{BLOCK, Block, index_of};
use super::kernel::Kernel;
use super::portable::Lanes;
use crate::bits::prefetch;
use crate::hash::HashPair;

/// Borrowed blocks, and the way they are tested.
#[derive(Clone, Copy)]
pub(crate) struct BorrowedBlocks<'a> {
    blocks: &'a [[u8; BLOCK]],
    lanes: &'static Lanes,
    kernel: Kernel,
}

impl<'a> BorrowedBlocks<'a> {
    /// `None` when the bytes are not whole blocks, or no filter has so many hashes.
    pub(crate) fn new(bytes: &'a [u8], hashes: u32) -> Option<BorrowedBlocks<'a>> {
        let (blocks, rest) = bytes.as_chunks();
        if !rest.is_empty() {
            return None;
        }
        Some(BorrowedBlocks {
            blocks,
            lanes: Lanes::new(hashes)?,
            kernel: Kernel::detect(),
        })
    }

    /// Whether all bits of the hashed item are 1.
    #[inline]
    pub(crate) fn contains(self, pair: HashPair) -> bool {
        let block = self.blocks.get(index_of(pair.a, self.blocks.len()));
        // The copy is aligned, as the kernels need it.
        block.is_some_and(|&block| {
            let block = Block(block);
            self.kernel.contains_bits(&block, pair.b, self.lanes)
        })
    }

    /// Asks for the item's block.
    #[inline]
    pub(crate) fn prefetch(self, pair: HashPair) {
        let index = index_of(pair.a, self.blocks.len());
        let block = self.blocks.as_ptr().wrapping_add(index).cast::<u8>();
        prefetch(block);
        // It may end in the next cache line.
        prefetch(block.wrapping_add(BLOCK - 1));
    }
}
