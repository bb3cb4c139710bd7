//! What a kernel tests in, and with.

use super::array::{BLOCK, Block, BlockArray};
use super::portable::Lanes;
use crate::hash::{HashPair, Secrets};

/// Blocks, what says which of their bits are an item's, and what hashes items.
#[derive(Clone)]
pub(super) struct Blocks {
    pub(super) array: BlockArray,
    pub(super) lanes: &'static Lanes,
    pub(super) secrets: Secrets,
}

impl Blocks {
    /// Hashes an item.
    #[inline]
    pub(super) fn hash(&self, item: &[u8]) -> HashPair {
        self.secrets.hash(item)
    }

    /// Hashes an item of a usual length.
    #[inline(always)]
    pub(super) fn hash_usual(&self, item: &[u8]) -> Option<HashPair> {
        self.secrets.hash_usual(item)
    }

    /// The block of an item.
    #[inline(always)]
    pub(super) fn block_of(&self, pair: HashPair) -> &Block {
        self.array.block_of(pair.a)
    }

    /// The block of an item.
    #[inline(always)]
    pub(super) fn block_of_mut(&mut self, pair: HashPair) -> &mut Block {
        self.array.block_of_mut(pair.a)
    }

    /// Calls `note` with each byte that an insert would change.
    pub(super) fn note_insert(&self, pair: HashPair, mut note: impl FnMut(u64)) {
        let start = self.array.index_of(pair.a) * BLOCK;
        for position in self.lanes.positions(pair.b) {
            let byte = start + (position / 8) as usize;
            let old = self.array.as_bytes().get(byte).copied().unwrap_or_default();
            if old >> (position % 8) & 1 == 0 {
                note(byte as u64);
            }
        }
    }
}
