//! The blocks of a layer in borrowed bytes, which need not be aligned.

use super::array::{Block, index_of};
use super::functions::Kernel;
use crate::bits::memory::prefetch;
use crate::hash::DoubleHash;
use crate::sizing::BLOCK;

/// Borrowed blocks, and the way they are tested.
#[derive(Clone, Copy)]
pub(crate) struct BorrowedBlocks<'a> {
    blocks: &'a [[u8; BLOCK]],
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
            kernel: Kernel::new(hashes)?,
        })
    }

    /// Whether all bits of the hashed item are 1.
    #[inline]
    pub(crate) fn contains(self, pair: DoubleHash) -> bool {
        let block = self.blocks.get(index_of(pair.a, self.blocks.len()));
        // The copy is aligned, as a block is.
        block.is_some_and(|&block| self.kernel.contains(&Block(block), pair.b))
    }

    /// Prefetches the item's block.
    #[inline]
    pub(crate) fn prefetch(self, pair: DoubleHash) {
        let index = index_of(pair.a, self.blocks.len());
        let block = self.blocks.as_ptr().wrapping_add(index).cast::<u8>();
        prefetch(block);
        // It may end in the next cache line.
        prefetch(block.wrapping_add(BLOCK - 1));
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use proptest::prelude::*;

    use super::{BLOCK, BorrowedBlocks, Kernel, index_of};
    use crate::bits::blocks::lanes::Lanes;
    use crate::hash::DoubleHash;

    proptest! {
        /// With every kernel and at any address it is what the definition says of the block.
        #[test]
        fn borrowed_blocks_are_blocks(
            bytes in prop::collection::vec(prop_oneof![Just(0xff), any::<u8>()], BLOCK * 4),
            offset in 0_usize..BLOCK, blocks in 1_usize..4, hashes in 2_u32..33,
            pairs in prop::collection::vec(any::<(u64, u64)>(), 1..50),
        ) {
            let lanes = Lanes::of(hashes as usize);
            let bytes = &bytes[offset..offset + blocks * BLOCK];
            let mut borrowed = BorrowedBlocks::new(bytes, hashes).unwrap();
            for (a, b) in pairs {
                let block = &bytes[index_of(a, blocks) * BLOCK..][..BLOCK];
                let is_set = |position: u32| block[position as usize / 8] >> (position % 8) & 1 == 1;
                let expected = lanes.positions(b).all(is_set);
                let answers = Kernel::all(hashes).map(|kernel| {
                    borrowed.kernel = kernel;
                    borrowed.contains(DoubleHash { a, b })
                });
                let answers: Vec<bool> = answers.collect();
                prop_assert!(answers.iter().all(|answer| *answer == expected));
            }
        }
    }

    #[test]
    fn parts_of_blocks_are_none() {
        assert!(BorrowedBlocks::new(&[0; BLOCK - 1], 6).is_none());
        assert!(BorrowedBlocks::new(&[0; BLOCK], 1).is_none());
        assert!(BorrowedBlocks::new(&[0; BLOCK], 33).is_none());
    }
}
