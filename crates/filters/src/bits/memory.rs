//! The memory of arrays: zeroed allocation that may fail, huge pages, prefetching.
#![allow(unsafe_code)]

use alloc::alloc::{Layout, alloc_zeroed, handle_alloc_error};
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::mem;
use core::ops::Range;

use super::pages::{self, HUGE};

/// The allocator could not provide this many bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AllocError;

/// Ends the program as the collections of the standard library do when there is no memory for this
/// many bytes.
#[cold]
pub(crate) fn out_of_memory(bytes: u64) -> ! {
    let len = usize::try_from(bytes).unwrap_or(usize::MAX);
    // More than a layout can have is an error of the size, long before this.
    handle_alloc_error(Layout::array::<u8>(len).unwrap_or(Layout::new::<u8>()))
}

/// Passes bytes to `relocate`, which may move them; their number must not change.
pub(crate) fn relocate(bytes: &mut Box<[u8]>, relocate: impl FnOnce(Box<[u8]>) -> Box<[u8]>) {
    let len = bytes.len();
    *bytes = relocate(mem::take(bytes));
    assert_eq!(bytes.len(), len, "relocated bytes stay as many");
}

/// A copy, in which memory that was never written stays so.
pub(crate) fn copied(bytes: &[u8]) -> Box<[u8]> {
    let Ok(mut copy) = zeroed(bytes.len()) else {
        handle_alloc_error(Layout::for_value(bytes));
    };
    pages::copy(&mut copy, bytes);
    copy
}

/// The bytes as they are. A vector without spare capacity is not copied, unless it is so long and
/// so empty that a copy takes less memory.
pub(crate) fn boxed(bytes: Vec<u8>) -> Box<[u8]> {
    if bytes.len() >= HUGE
        && pages::is_sparse(&bytes)
        && let Ok(mut sparse) = zeroed(bytes.len())
    {
        pages::copy(&mut sparse, &bytes);
        return sparse;
    }
    bytes.into_boxed_slice()
}

/// This many zeros; `None` when there is no memory for them. Large ones get their pages from the
/// system only when they are written.
pub fn zeros(len: usize) -> Option<Vec<u8>> {
    zeroed(len).ok().map(<[u8]>::into_vec)
}

/// This many zeros, if there is memory for them. Large arrays get their pages from the system only
/// when they are written.
pub(crate) fn zeroed(len: usize) -> Result<Box<[u8]>, AllocError> {
    if len == 0 {
        return Ok(Box::default());
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
    Ok(unsafe { Box::from_raw(slice) })
}

/// How many whole huge pages the first `end` bytes of an array contain.
#[cfg(all(feature = "std", target_os = "linux"))]
fn huge_pages(bytes: &[u8], end: usize) -> usize {
    let lead = bytes.as_ptr().align_offset(HUGE);
    end.saturating_sub(lead) / HUGE
}

/// The number of the array's first huge page that begins at this byte or behind it.
pub(crate) fn first_huge_page(bytes: &[u8], at: usize) -> usize {
    let lead = bytes.as_ptr().align_offset(HUGE);
    at.saturating_sub(lead).div_ceil(HUGE)
}

/// Asks the system to put these of the array's huge pages, by number, each into one piece of
/// memory. A system that cannot do this, or has no such piece, leaves them as they are.
#[allow(unused_variables, reason = "not every system can be asked")]
pub(crate) fn collapse(bytes: &[u8], pages: Range<usize>) {
    #[cfg(all(feature = "std", target_os = "linux"))]
    {
        /// Linux's number, which the crate `libc` lacks for some C libraries.
        const MADV_COLLAPSE: libc::c_int = 25;
        let end = pages.end.min(huge_pages(bytes, bytes.len()));
        if pages.start < end {
            let lead = bytes.as_ptr().align_offset(HUGE) + pages.start * HUGE;
            let start = bytes.as_ptr().wrapping_add(lead).cast_mut().cast();
            let len = (end - pages.start) * HUGE;
            // The system moves no page of which it has provided nothing.
            for page in (0..len).step_by(HUGE) {
                let page = bytes.as_ptr().wrapping_add(lead + page).cast_mut().cast();
                // SAFETY: the first bytes of a page of the range below, and as harmless.
                unsafe { libc::madvise(page, 1, libc::MADV_POPULATE_WRITE) };
            }
            // SAFETY: the range lies within the array, which is live. The advice moves memory and
            // changes neither what it holds nor how it can be reached, also while others read it.
            unsafe { libc::madvise(start, len, MADV_COLLAPSE) };
        }
    }
}

/// A cache line, as most processors have it.
const LINE: usize = 64;

/// Prefetches the memory of a value that will be read soon. The call does not wait for it.
/// [Example](crate::host).
#[inline]
pub fn prefetch_value<T: ?Sized>(value: &T) {
    let start: *const u8 = (&raw const *value).cast();
    let end = start.wrapping_add(size_of_val(value));
    let mut line = start.wrapping_sub(start.addr() % LINE);
    while line < end {
        prefetch(line);
        line = line.wrapping_add(LINE);
    }
}

#[inline]
#[allow(unused_variables, reason = "not every target can prefetch")]
pub(crate) fn prefetch(address: *const u8) {
    #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
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
