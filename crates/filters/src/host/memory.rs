//! The allocator of a process of its own: the system's, with two rules that keep others from
//! waiting and the process from growing.
//!
//! When Linux takes back a gigabyte of small pages at once, which takes 50 milliseconds, every
//! other thread that allocates waits. So a large block gives its pages back in steps before it is
//! freed.
//!
//! glibc gives each thread an arena of its own, and what is freed in one arena serves no thread of
//! another. Few arenas bound how much lies unused.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
#[cfg(target_os = "linux")]
use std::ops::Range;

/// The number of bytes that one step gives back.
#[cfg(target_os = "linux")]
const STEP_BYTES: usize = 8 << 20;

/// One arena makes threads wait for each other; with two, the process holds at most twice its peak.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const ARENAS: libc::c_int = 2;

/// The system's allocator; large blocks are freed in steps.
#[derive(Debug)]
pub struct Memory;

// SAFETY: every block comes from the system's allocator and goes back to it with its own layout.
unsafe impl GlobalAlloc for Memory {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise.
        unsafe { System.alloc_zeroed(layout) }
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller's promise.
        unsafe { System.realloc(block, layout, size) }
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        #[cfg(target_os = "linux")]
        if layout.size() > STEP_BYTES {
            // SAFETY: the block is live until the next statement, and nobody reads it again.
            unsafe { give_back_pages(block, layout.size()) };
        }
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(block, layout) }
    }
}

/// Gives the pages that lie within a block back to the system, some at a time.
///
/// # Safety
///
/// The block is live and as long as this, and what it holds is not read again.
#[cfg(target_os = "linux")]
#[cold]
unsafe fn give_back_pages(block: *mut u8, len: usize) {
    for step in steps(block.addr(), len, page_bytes()) {
        let start = block.wrapping_add(step.start).cast();
        // SAFETY: the pages lie within the block. They read as zeros afterwards.
        if unsafe { libc::madvise(start, step.len(), libc::MADV_DONTNEED) } != 0 {
            return;
        }
    }
}

/// The whole pages of a block at this address, as offsets in it, some at a time. The system gives
/// back every page that a range touches, so a page that is taken for a smaller one would take what
/// lies behind the block with it.
#[cfg(target_os = "linux")]
fn steps(address: usize, len: usize, page: usize) -> impl Iterator<Item = Range<usize>> {
    let first = address.next_multiple_of(page) - address;
    let end = len.saturating_sub(first) / page * page + first;
    let step = (STEP_BYTES / page).max(1) * page;
    (first..end)
        .step_by(step)
        .map(move |at| at..end.min(at + step))
}

/// The bytes of a small page of this system: 4, 16 or 64 KiB.
#[cfg(target_os = "linux")]
fn page_bytes() -> usize {
    /// As large as any system's; used if this one does not say.
    const LARGEST: usize = 64 << 10;
    // SAFETY: reads a number.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    let bytes = usize::try_from(bytes).ok();
    bytes.filter(|bytes| *bytes > 0).unwrap_or(LARGEST)
}

/// Lets all threads allocate from few arenas. Call it before the first thread starts.
pub fn share() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: sets a number in the C library.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, ARENAS);
    }
}

/// Gives unused memory of small blocks back to the system. A thread that allocates may wait
/// meanwhile: 100 milliseconds for 700 MB.
pub fn purge() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: changes no block in use.
    unsafe {
        libc::malloc_trim(0);
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Wherever a block lies, and however large the system's pages are.
        #[test]
        fn steps_are_the_whole_pages_of_a_block(
            address in 0..1_usize << 40,
            len in 0..5 * STEP_BYTES,
            page in prop::sample::select(&[4096_usize, 16 << 10, 64 << 10, 16 << 20][..]),
        ) {
            let is_whole = |at: usize| (address + at).is_multiple_of(page);
            let mut end = None;
            for step in steps(address, len, page) {
                prop_assert!(step.end <= len && is_whole(step.start) && is_whole(step.end));
                prop_assert!(step.start < step.end && step.len() <= STEP_BYTES.max(page));
                prop_assert_eq!(step.start, end.unwrap_or(step.start));
                prop_assert!(end.is_some() || step.start < page);
                end = Some(step.end);
            }
            // What is left has no whole page.
            prop_assert!(len - end.unwrap_or(0).min(len) < page || end.is_none() && len < 2 * page);
        }
    }

    #[test]
    fn pages_within_a_block_go_back_in_steps_and_no_others() {
        let page = page_bytes();
        let len = 3 * STEP_BYTES + 5 * page + 77;
        let mut bytes = std::vec![1_u8; len];
        let block = bytes.as_mut_ptr();
        let first = block.align_offset(page);
        let end = first + (len - first) / page * page;
        // SAFETY: a live block; bytes are valid whatever they hold.
        unsafe { give_back_pages(block, len) };
        assert!(bytes[..first].iter().all(|&byte| byte == 1));
        assert!(bytes[first..end].iter().all(|&byte| byte == 0));
        assert!(bytes[end..].iter().all(|&byte| byte == 1));
    }

    #[test]
    fn blocks_are_the_systems() {
        for size in [1, STEP_BYTES, STEP_BYTES + 1, 5 * STEP_BYTES] {
            let layout = Layout::array::<u8>(size).unwrap();
            // SAFETY: a size other than 0, and each block is freed with the layout it has by then.
            unsafe {
                let block = Memory.alloc_zeroed(layout);
                assert!(!block.is_null());
                block.add(size - 1).write(7);
                let longer = Memory.realloc(block, layout, size + 100);
                assert_eq!(longer.add(size - 1).read(), 7);
                Memory.dealloc(longer, Layout::array::<u8>(size + 100).unwrap());
            }
        }
    }
}
