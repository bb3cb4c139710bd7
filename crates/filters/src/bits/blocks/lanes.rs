//! Where the bits of an item lie in its block.

use core::mem::offset_of;

use crate::hash::split_mix;
use crate::sizing::BlockedSize;

/// The most bits of an item, as a length.
pub(super) const MAX_LANES: usize = BlockedSize::MAX_HASHES as usize;

/// The numbers of hashes, from 0 to the most.
pub(super) const COUNTS: usize = MAX_LANES + 1;

/// The multiplier of an item's second hash value for this bit: the upper half of a number of
/// SplitMix64 with state 0, made odd.
const fn multiplier(bit: usize) -> u32 {
    (split_mix(0, bit as u64) >> 32) as u32 | 1
}

/// The multipliers of this many hashes, in 32 lanes. The lanes that are left over repeat the first
/// two in turn, so that a kernel that works on all lanes of a vector tests no bit more.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub(super) struct Lanes {
    /// The first sixteen lanes, and the others.
    pub(super) multipliers: [[u32; 16]; 2],
    pub(super) hashes: u32,
}

// Kernels load the multipliers with instructions that fault unless they are aligned.
const _: () = assert!(offset_of!(Lanes, multipliers) == 0 && align_of::<Lanes>() == 64);

impl Lanes {
    /// The lanes for this number of hashes.
    #[expect(
        clippy::indexing_slicing,
        clippy::cast_possible_truncation,
        reason = "computed while compiling"
    )]
    pub(super) const fn of(hashes: usize) -> Lanes {
        let mut multipliers = [[0; 16]; 2];
        let mut lane = 0;
        while lane < MAX_LANES {
            let source = if lane < hashes { lane } else { lane & 1 };
            multipliers[lane / 16][lane % 16] = multiplier(source);
            lane += 1;
        }
        Lanes {
            multipliers,
            hashes: hashes as u32,
        }
    }

    /// The positions of an item's bits in its block, from 0 to 511.
    ///
    /// The even ones come from the lower half of the second hash value, the odd ones from the upper
    /// half: the top 9 bits of its product with a multiplier. (Dietzfelbinger, Hagerup, Katajainen
    /// and Penttonen, "A reliable randomized algorithm for the closest-pair problem", 1997, section
    /// 2.)
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "the halves are 32 bits")]
    pub(super) fn positions(&self, b: u64) -> impl Iterator<Item = u32> + Clone {
        let halves = [b as u32, (b >> 32) as u32].into_iter().cycle();
        let products = self.multipliers.as_flattened().iter().zip(halves);
        let products = products.map(|(multiplier, half)| half.wrapping_mul(*multiplier));
        products
            .map(|product| product >> 23)
            .take(self.hashes as usize)
    }
}
