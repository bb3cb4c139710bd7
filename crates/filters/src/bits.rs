//! The bit array of one layer.
//!
//! ```text
//! position   0 1 2 3 4 5 6 7   8 9 ...
//! byte       0                 1
//! weight     1 2 4 8 ... 128   1 2 ...      least significant bit first
//! ```
//!
//! Bits are kept as bytes, because a loaded filter may have a length that is no multiple of 8. The
//! only unsafe code of the crate is here: zeroed allocation that may fail, and prefetching.
#![allow(unsafe_code)]

use alloc::alloc::{Layout, alloc_zeroed, handle_alloc_error};
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;

/// The allocator could not give so many bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AllocError;

/// A fixed number of bytes of bits.
#[derive(PartialEq)]
pub(crate) struct BitArray(Box<[u8]>);

impl BitArray {
    /// All bits 0. Large arrays get their pages from the system only when they are written.
    pub(crate) fn zeroed(bytes: u64) -> Result<BitArray, AllocError> {
        let len = usize::try_from(bytes).map_err(|_| AllocError)?;
        if len == 0 {
            return Ok(BitArray(Box::default()));
        }
        let layout = Layout::array::<u8>(len).map_err(|_| AllocError)?;
        // SAFETY: the layout has a size other than 0.
        let start = unsafe { alloc_zeroed(layout) };
        if start.is_null() {
            return Err(AllocError);
        }
        let slice = core::ptr::slice_from_raw_parts_mut(start, len);
        // SAFETY: the block is `len` initialised bytes, came from the global allocator with the
        // layout of `[u8; len]`, and nothing else owns it.
        Ok(BitArray(unsafe { Box::from_raw(slice) }))
    }

    /// The bytes as they are. A vector without spare capacity is not copied.
    pub(crate) fn from_vec(bytes: Vec<u8>) -> BitArray {
        BitArray(bytes.into_boxed_slice())
    }

    #[inline]
    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    #[inline]
    pub(crate) fn as_bytes_mut(&mut self) -> &mut [u8] {
        &mut self.0
    }

    /// Lets the bytes be moved to another place; they must stay as many.
    pub(crate) fn relocate(&mut self, relocate: impl FnOnce(Box<[u8]>) -> Box<[u8]>) {
        let len = self.0.len();
        self.0 = relocate(core::mem::take(&mut self.0));
        assert_eq!(self.0.len(), len, "relocated bits stay as many");
    }

    #[inline]
    pub(crate) fn len(&self) -> u64 {
        self.0.len() as u64
    }

    /// The number of bits that are 1. Takes time linear in the length.
    pub(crate) fn count_ones(&self) -> u64 {
        let (words, rest) = self.0.as_chunks::<8>();
        let words = words
            .iter()
            .map(|word| u64::from(u64::from_le_bytes(*word).count_ones()));
        let rest = rest.iter().map(|byte| u64::from(byte.count_ones()));
        words.chain(rest).sum()
    }

    /// Whether the bit is 1. Panics when the position is outside the array.
    #[inline]
    #[expect(
        clippy::indexing_slicing,
        reason = "a layer's modulus is at most its bit count"
    )]
    pub(crate) fn test(&self, position: u64) -> bool {
        self.0[byte_of(position)] & mask_of(position) != 0
    }

    /// Whether all of the bits are 1, without a branch between them. Panics when a position is
    /// outside the array.
    #[inline]
    #[expect(
        clippy::indexing_slicing,
        reason = "a layer's modulus is at most its bit count"
    )]
    pub(crate) fn test_all(&self, positions: [u64; 4]) -> bool {
        let bits = positions.map(|position| self.0[byte_of(position)] >> (position & 7));
        bits.iter().fold(1, |all, bit| all & bit) == 1
    }

    /// Makes the bit 1. Panics when the position is outside the array.
    #[inline]
    #[expect(
        clippy::indexing_slicing,
        reason = "a layer's modulus is at most its bit count"
    )]
    pub(crate) fn set(&mut self, position: u64) {
        self.0[byte_of(position)] |= mask_of(position);
    }

    /// Asks the processor to fetch the cache line of a bit that will be read soon.
    #[inline]
    pub(crate) fn prefetch(&self, position: u64) {
        prefetch(self.0.as_ptr().wrapping_add(byte_of(position)));
    }
}

impl Clone for BitArray {
    fn clone(&self) -> BitArray {
        match BitArray::zeroed(self.len()) {
            Ok(mut copy) => {
                copy.0.copy_from_slice(&self.0);
                copy
            }
            Err(AllocError) => handle_alloc_error(Layout::for_value::<[u8]>(&self.0)),
        }
    }
}

impl fmt::Debug for BitArray {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.0.len())
    }
}

#[inline]
fn byte_of(position: u64) -> usize {
    (position >> 3) as usize
}

#[inline]
fn mask_of(position: u64) -> u8 {
    1 << (position & 7)
}

#[inline]
#[allow(unused_variables, reason = "not every target can prefetch")]
fn prefetch(address: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch is a hint: it never faults, whatever the address.
    unsafe {
        use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(address.cast());
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: PRFM is a hint: it never faults, and it changes no register, flag or memory.
    unsafe {
        core::arch::asm!(
            "prfm pldl1keep, [{}]",
            in(reg) address,
            options(nostack, preserves_flags, readonly)
        );
    }
}
