//! The bit array of one layer.
//!
//! ```text
//! position   0 1 2 3 4 5 6 7   8 9 ...
//! byte       0                 1
//! weight     1 2 4 8 ... 128   1 2 ...      least significant bit first
//! ```
//!
//! Bits are kept as bytes, because a loaded filter may have a length that is not a multiple of 8. A
//! small array with few ones keeps their positions instead.

use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use core::fmt;

use super::memory::{self, AllocError, boxed, copied, prefetch, zeroed};
use crate::limits;

/// A fixed number of bytes of bits.
pub(crate) struct BitArray(Repr);

enum Repr {
    /// The whole array.
    Dense(Box<[u8]>),
    /// The positions of the ones, in a small array with few ones. In a program with many filters,
    /// most never hold more than one item; they then need no memory for bits.
    Few(Few),
}

/// The most positions of [`Few`]: two items at an error rate of 0.01, one at any above 0.0001.
const MAX_POSITIONS: usize = 17;

#[derive(Clone, Copy)]
struct Few {
    len: u8,
    bytes: u16,
    positions: [u16; MAX_POSITIONS],
}

impl Few {
    /// No bit is 1; `None` when the array is too long.
    fn none(bytes: usize) -> Option<Few> {
        let short = u16::try_from(bytes)
            .ok()
            .filter(|_| bytes <= limits::FEW_BYTES.get())?;
        Some(Few {
            len: 0,
            bytes: short,
            positions: [0; MAX_POSITIONS],
        })
    }

    /// The bits of a small array with few ones.
    fn of(bytes: &[u8]) -> Option<Few> {
        let mut few = Few::none(bytes.len())?;
        for (at, byte) in bytes.iter().enumerate().filter(|(_, byte)| **byte != 0) {
            for bit in (0..8).filter(|bit| byte >> bit & 1 == 1) {
                if !few.set(at as u64 * 8 + bit) {
                    return None;
                }
            }
        }
        Some(few)
    }

    #[inline]
    fn positions(&self) -> &[u16] {
        self.positions.get(..self.len.into()).unwrap_or_default()
    }

    #[inline]
    fn test(&self, position: u64) -> bool {
        self.positions()
            .iter()
            .any(|&one| u64::from(one) == position)
    }

    /// Makes the bit 1; false when there is no room for its position.
    #[inline]
    fn set(&mut self, position: u64) -> bool {
        if self.test(position) {
            return true;
        }
        let place = self.positions.get_mut(usize::from(self.len));
        let (Some(place), Ok(position)) = (place, u16::try_from(position)) else {
            return false;
        };
        *place = position;
        self.len += 1;
        true
    }

    fn to_dense(self) -> Box<[u8]> {
        let mut bytes = vec![0; self.bytes.into()];
        for &position in self.positions() {
            if let Some(byte) = bytes.get_mut(usize::from(position / 8)) {
                *byte |= 1 << (position % 8);
            }
        }
        bytes.into_boxed_slice()
    }
}

impl BitArray {
    /// All bits 0. Large arrays get their pages from the system only when they are written.
    pub(crate) fn zeroed(bytes: u64) -> Result<BitArray, AllocError> {
        let len = usize::try_from(bytes).map_err(|_| AllocError)?;
        match Few::none(len) {
            Some(few) => Ok(BitArray(Repr::Few(few))),
            None => Ok(BitArray(Repr::Dense(zeroed(len)?))),
        }
    }

    /// The bytes as they are. A long vector without spare capacity is not copied, unless it is so
    /// long and so empty that a copy takes less memory.
    pub(crate) fn from_vec(bytes: Vec<u8>) -> BitArray {
        if let Some(few) = Few::of(&bytes) {
            return BitArray(Repr::Few(few));
        }
        BitArray(Repr::Dense(boxed(bytes)))
    }

    /// The bytes, if there are any.
    pub(crate) fn dense(&self) -> Option<&[u8]> {
        match &self.0 {
            Repr::Dense(bytes) => Some(bytes),
            Repr::Few(_) => None,
        }
    }

    /// The bytes: borrowed, unless the array has none because few of its bits are 1.
    #[inline]
    pub(crate) fn as_bytes(&self) -> Cow<'_, [u8]> {
        match &self.0 {
            Repr::Dense(bytes) => Cow::Borrowed(bytes),
            Repr::Few(few) => Cow::Owned(few.to_dense().into_vec()),
        }
    }

    #[inline]
    pub(crate) fn as_bytes_mut(&mut self) -> &mut [u8] {
        match self.0 {
            Repr::Dense(ref mut bytes) => bytes,
            Repr::Few(few) => {
                self.0 = Repr::Dense(few.to_dense());
                self.as_bytes_mut()
            }
        }
    }

    /// Frees memory that few bits do not need.
    pub(crate) fn shrink(&mut self) {
        if let Repr::Dense(bytes) = &self.0
            && let Some(few) = Few::of(bytes)
        {
            self.0 = Repr::Few(few);
        }
    }

    /// Passes the bytes to `relocate`, which may move them, if there are any; their number must not
    /// change.
    pub(crate) fn relocate(&mut self, move_bytes: impl FnOnce(Box<[u8]>) -> Box<[u8]>) {
        if let Repr::Dense(bytes) = &mut self.0 {
            memory::relocate(bytes, move_bytes);
        }
    }

    /// Length in bytes.
    #[inline]
    pub(crate) fn len(&self) -> u64 {
        match &self.0 {
            Repr::Dense(bytes) => bytes.len() as u64,
            Repr::Few(few) => few.bytes.into(),
        }
    }

    /// Bytes of memory beside the array itself.
    pub(crate) fn memory(&self) -> usize {
        self.dense().map_or(0, <[u8]>::len)
    }

    /// The number of bits that are 1. Takes time linear in the length.
    pub(crate) fn count_ones(&self) -> u64 {
        match &self.0 {
            Repr::Dense(bytes) => count_ones(bytes),
            Repr::Few(few) => few.len.into(),
        }
    }
}

#[expect(
    clippy::indexing_slicing,
    reason = "a layer's modulus is at most its bit count"
)]
impl BitArray {
    /// Whether the bit is 1. Panics when the position is outside the array.
    #[inline]
    pub(crate) fn test(&self, position: u64) -> bool {
        match &self.0 {
            Repr::Dense(bytes) => bytes[byte_of(position)] & mask_of(position) != 0,
            Repr::Few(few) => few.test(position),
        }
    }

    /// Whether all of the bits are 1, without a branch between them. Panics when a position is
    /// outside the array.
    #[inline]
    pub(crate) fn test_all(&self, mut positions: impl Iterator<Item = u64>) -> bool {
        match &self.0 {
            Repr::Dense(bytes) => is_one_each(bytes, positions),
            Repr::Few(few) => positions.all(|position| few.test(position)),
        }
    }

    /// Makes the bit 1. Panics when the position is outside the array.
    #[inline]
    pub(crate) fn set(&mut self, position: u64) {
        match &mut self.0 {
            Repr::Dense(bytes) => bytes[byte_of(position)] |= mask_of(position),
            Repr::Few(few) => {
                if !few.set(position) {
                    self.0 = Repr::Dense(few.to_dense());
                    self.set(position);
                }
            }
        }
    }

    /// [`set_all`](Self::set_all) for four positions and others, which writes nothing if all of the
    /// bits are 1.
    #[inline]
    pub(crate) fn set_unless_all(
        &mut self,
        first: [u64; 4],
        rest: impl Iterator<Item = u64> + Clone,
    ) -> bool {
        let Repr::Dense(bytes) = &mut self.0 else {
            let all = first.into_iter().chain(rest);
            return !self.test_all(all.clone()) && self.set_all(all);
        };
        let bytes: &mut [u8] = bytes;
        let places = first.map(|position| (byte_of(position), mask_of(position)));
        let missing = |missing: u8, (byte, mask): (usize, u8)| missing | mask & !bytes[byte];
        if places.into_iter().fold(0, missing) != 0 {
            for (byte, mask) in places {
                bytes[byte] |= mask;
            }
        } else if is_one_each(bytes, rest.clone()) {
            return false;
        }
        for position in rest {
            bytes[byte_of(position)] |= mask_of(position);
        }
        true
    }

    /// Makes all of the bits 1; whether one of them was 0. Panics when a position is outside the
    /// array.
    #[inline]
    pub(crate) fn set_all(&mut self, positions: impl Iterator<Item = u64>) -> bool {
        if let Repr::Dense(bytes) = &mut self.0 {
            // Where the bytes are is read once: for all the compiler knows, a write changes it.
            let bytes: &mut [u8] = bytes;
            let set = |missing: u8, position: u64| {
                let (byte, mask) = (&mut bytes[byte_of(position)], mask_of(position));
                let missing = missing | mask & !*byte;
                *byte |= mask;
                missing
            };
            return positions.fold(0, set) != 0;
        }
        positions.fold(false, |new, position| {
            let old = self.test(position);
            self.set(position);
            new | !old
        })
    }

    /// Prefetches the cache lines of these bits.
    #[inline]
    pub(crate) fn prefetch_all(&self, positions: impl Iterator<Item = u64>) {
        // Few positions lie in the array itself, and are not computed.
        if let Repr::Dense(bytes) = &self.0 {
            positions.for_each(|at| prefetch(bytes.as_ptr().wrapping_add(byte_of(at))));
        }
    }
}

impl Clone for BitArray {
    fn clone(&self) -> BitArray {
        BitArray(match &self.0 {
            Repr::Dense(bytes) => Repr::Dense(copied(bytes)),
            Repr::Few(few) => Repr::Few(*few),
        })
    }
}

impl PartialEq for BitArray {
    fn eq(&self, other: &BitArray) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl fmt::Debug for BitArray {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.len())
    }
}

/// The number of bits that are 1. Takes time linear in the length.
pub(crate) fn count_ones(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let words = words
        .iter()
        .map(|word| u64::from_le_bytes(*word).count_ones());
    let rest = rest.iter().map(|byte| byte.count_ones());
    words.chain(rest).map(u64::from).sum()
}

#[inline]
fn byte_of(position: u64) -> usize {
    (position >> 3) as usize
}

#[inline]
#[expect(clippy::indexing_slicing, reason = "three bits are below 8")]
fn mask_of(position: u64) -> u8 {
    // A shift takes the low bits only, for which the compiler computes each position once more.
    const MASKS: [u8; 8] = [1, 2, 4, 8, 16, 32, 64, 128];
    MASKS[(position & 7) as usize]
}

/// Whether the bit at each position is 1, without a branch between them. Panics when one is outside.
#[inline]
#[expect(
    clippy::indexing_slicing,
    reason = "a layer's modulus is at most its bit count"
)]
fn is_one_each(bytes: &[u8], positions: impl Iterator<Item = u64>) -> bool {
    let bits = positions.map(|position| bytes[byte_of(position)] >> (position & 7));
    bits.fold(1, |all, bit| all & bit) == 1
}

/// Whether the bit is 1; a bit outside is not.
#[inline]
pub(crate) fn test_bit(bytes: &[u8], position: u64) -> bool {
    let byte = bytes.get(byte_of(position));
    byte.is_some_and(|byte| byte & mask_of(position) != 0)
}

/// Prefetches the cache line of a bit.
#[inline]
pub(crate) fn prefetch_bit(bytes: &[u8], position: u64) {
    prefetch(bytes.as_ptr().wrapping_add(byte_of(position)));
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use proptest::prelude::*;

    use super::{BitArray, MAX_POSITIONS};

    const MAX_FEW_BYTES: usize = 1 << 13;

    #[test]
    fn an_array_of_few_ones_takes_no_memory() {
        assert_eq!(size_of::<BitArray>(), 40);
        let mut bits = BitArray::zeroed(144).unwrap();
        for position in 0..MAX_POSITIONS as u64 {
            bits.set(position * 5);
            assert_eq!(bits.memory(), 0);
        }
        bits.set(0);
        assert_eq!(bits.memory(), 0, "it was set before");
        bits.set(1);
        assert_eq!(bits.memory(), 144);
        let long = BitArray::zeroed(MAX_FEW_BYTES as u64 + 1).unwrap();
        assert_eq!(long.memory(), MAX_FEW_BYTES + 1);
    }

    proptest! {
        /// An array that may keep positions answers like plain bytes, whichever bits are set: a
        /// short array, and one of about the longest length.
        #[test]
        fn few_and_dense_agree(
            bytes in prop_oneof![4 => 1_usize..40, 1 => MAX_FEW_BYTES - 1..=MAX_FEW_BYTES + 1],
            set in prop::collection::vec(prop::collection::vec(any::<u64>(), 1..4), 0..MAX_POSITIONS),
        ) {
            let mut bits = BitArray::zeroed(bytes as u64).unwrap();
            let mut plain = alloc::vec![0_u8; bytes];
            for mut positions in set {
                positions.iter_mut().for_each(|position| *position %= bytes as u64 * 8);
                let is_one = |plain: &[u8], position: u64| {
                    plain[(position / 8) as usize] >> (position % 8) & 1 == 1
                };
                let new = positions.iter().any(|&position| !is_one(&plain, position));
                match positions[..] {
                    [position] => bits.set(position),
                    _ => prop_assert_eq!(bits.set_all(positions.iter().copied()), new),
                }
                for position in positions {
                    plain[(position / 8) as usize] |= 1 << (position % 8);
                }
                prop_assert!(*bits.as_bytes() == plain[..]);
            }
            let ones = plain.iter().map(|byte| u64::from(byte.count_ones())).sum::<u64>();
            prop_assert_eq!((bits.count_ones(), bits.len()), (ones, bytes as u64));
            let all: Vec<bool> = (0..bytes * 8)
                .map(|at| plain[at / 8] >> (at % 8) & 1 == 1)
                .collect();
            // All positions of a short array; of a long one some, and those of ones.
            let some = (0..all.len()).step_by(1 + all.len() / 320);
            for at in some.chain((0..all.len()).filter(|&at| all[at])) {
                prop_assert_eq!(bits.test(at as u64), all[at]);
                let four = [at, at / 2, 0, all.len() - 1];
                let expected = four.iter().all(|&at| all[at]);
                prop_assert_eq!(bits.test_all(four.iter().map(|&at| at as u64)), expected);
            }
            let loaded = BitArray::from_vec(plain.clone());
            prop_assert!(loaded == bits && bits.clone() == bits);
            let is_few = ones <= MAX_POSITIONS as u64 && bytes <= MAX_FEW_BYTES;
            prop_assert_eq!(loaded.memory() == 0, is_few);
            let mut shrunk = bits.clone();
            shrunk.as_bytes_mut();
            prop_assert_eq!(shrunk.memory(), bytes);
            shrunk.shrink();
            prop_assert!(shrunk == bits);
            prop_assert_eq!(shrunk.memory(), loaded.memory());
        }
    }
}
