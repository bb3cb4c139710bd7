//! The allocator of a process of its own: the system's, with four rules that keep others from
//! waiting, the process from growing, and a lack of memory from ending it.
//!
//! When Linux takes back a gigabyte of small pages at once, which takes 50 milliseconds, every
//! other thread that allocates waits. So a large block gives its pages back in steps before it is
//! freed.
//!
//! glibc copies a block of its heap that grows, and lets blocks of up to 32 MB be there. So a large
//! block gets a mapping of its own, which the system makes longer in its place or moves
//! ([`share`]).
//!
//! glibc gives each thread an arena of its own, and what is freed in one arena serves no thread of
//! another. Few arenas bound how much lies unused.
//!
//! A large block may be refused, and who asks for it must expect that. Nobody expects it of a small
//! one, such as a buffer or a row of a table, and the process ends. So some memory is kept for
//! small blocks ([`keep_reserve`]). Once it is used, [`is_short`] says so, and a server takes no
//! more data.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
#[cfg(target_os = "linux")]
use std::ops::Range;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

/// The number of bytes that one step gives back.
#[cfg(target_os = "linux")]
const STEP_BYTES: usize = 8 << 20;

/// The least size of a large block. By itself glibc raises it to 32 MB, and a buffer of so many bytes
/// that grows is copied for 20 milliseconds. It returns unused memory at twice this size, as here.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const MAPPED_BYTES: libc::c_int = 8 << 20;

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
        let alloc = || unsafe { System.alloc(layout) };
        or_from_reserve(layout.size(), alloc)
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise.
        let alloc = || unsafe { System.alloc_zeroed(layout) };
        or_from_reserve(layout.size(), alloc)
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller's promise. A block that could not become longer is as it was.
        let realloc = || unsafe { System.realloc(block, layout, size) };
        or_from_reserve(size, realloc)
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

/// The memory that is kept for small blocks. It is not touched, so it is only a part of the address
/// space.
#[cfg(unix)]
const RESERVE_BYTES: usize = 32 << 20;

/// The longest block that counts as small.
const MAX_SMALL_BYTES: usize = 4 << 20;

/// How often a small block is tried again once the reserve is given back.
const MAX_TRIES: u32 = 100;

/// The reserve; null if there is none.
static RESERVE: AtomicPtr<u8> = AtomicPtr::new(null_mut());

/// Whether the reserve was needed and not regained.
static SHORT: AtomicBool = AtomicBool::new(false);

/// The block that `alloc` returns. If there is no memory for it, and it is small, the reserve goes
/// back to the system, and `alloc` is called again.
#[inline]
fn or_from_reserve(size: usize, alloc: impl Fn() -> *mut u8) -> *mut u8 {
    let block = alloc();
    match block.is_null() && size <= MAX_SMALL_BYTES {
        true => from_reserve(alloc),
        false => block,
    }
}

#[cold]
fn from_reserve(alloc: impl Fn() -> *mut u8) -> *mut u8 {
    let mut block: *mut u8 = null_mut();
    let mut tries = if use_reserve() { MAX_TRIES } else { 0 };
    while block.is_null() && tries > 0 {
        block = alloc();
        tries -= 1;
        // Another thread may not have given it back yet.
        std::thread::yield_now();
    }
    block
}

/// Gives the reserve back to the system. Whether there was one, or another thread has just done so.
fn use_reserve() -> bool {
    let was_short = SHORT.swap(true, Ordering::AcqRel);
    let reserve = RESERVE.swap(null_mut(), Ordering::AcqRel);
    if reserve.is_null() {
        return was_short;
    }
    // SAFETY: the block of `keep_reserve`, which nobody else has now.
    unsafe { unmap_reserve(reserve) };
    true
}

/// Keeps memory for small blocks, until there is no other. Returns whether it is kept, as it may be
/// already. Where the system cannot keep any there is none, and no lack either.
pub fn keep_reserve() -> bool {
    if !RESERVE.load(Ordering::Acquire).is_null() {
        return true;
    }
    let Some(reserve) = map_reserve() else {
        return false;
    };
    let none = RESERVE.compare_exchange(null_mut(), reserve, Ordering::AcqRel, Ordering::Acquire);
    match none {
        Ok(_) => SHORT.store(false, Ordering::Release),
        // Another thread was faster.
        // SAFETY: the block is from `map_reserve`, and nobody else has it.
        Err(_) => unsafe { unmap_reserve(reserve) },
    }
    true
}

/// Whether memory has ended: the reserve was used, and [`keep_reserve`] has not regained it.
#[inline]
pub fn is_short() -> bool {
    SHORT.load(Ordering::Acquire)
}

#[cfg(unix)]
fn map_reserve() -> Option<*mut u8> {
    let access = libc::PROT_READ | libc::PROT_WRITE;
    let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: a new mapping, wherever the system puts it.
    let block = unsafe { libc::mmap(null_mut(), RESERVE_BYTES, access, kind, -1, 0) };
    (block != libc::MAP_FAILED).then_some(block.cast())
}

/// # Safety
///
/// The block is from [`map_reserve`], and nobody uses it any more.
#[cfg(unix)]
unsafe fn unmap_reserve(reserve: *mut u8) {
    // SAFETY: the caller's promise.
    unsafe { libc::munmap(reserve.cast(), RESERVE_BYTES) };
}

#[cfg(not(unix))]
fn map_reserve() -> Option<*mut u8> {
    None
}

/// # Safety
///
/// None: there is no reserve.
#[cfg(not(unix))]
unsafe fn unmap_reserve(_: *mut u8) {}

/// Lets all threads allocate from few arenas, and gives each large block a mapping of its own, which
/// grows without a copy. Call it before the first thread starts.
pub fn share() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: sets numbers in the C library.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, ARENAS);
        libc::mallopt(libc::M_MMAP_THRESHOLD, MAPPED_BYTES);
        libc::mallopt(libc::M_TRIM_THRESHOLD, 2 * MAPPED_BYTES);
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
            address in 0..usize::MAX >> 24,
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
    fn small_blocks_come_from_the_reserve_when_there_is_no_other_memory() {
        let full = |left: usize| {
            let calls = core::cell::Cell::new(0);
            let block = or_from_reserve(left, || {
                calls.set(calls.get() + 1);
                match RESERVE.load(Ordering::Acquire).is_null() {
                    true => core::ptr::dangling_mut(),
                    false => null_mut(),
                }
            });
            (!block.is_null(), calls.get())
        };
        assert!(keep_reserve() && keep_reserve() && !is_short());
        assert_eq!(full(MAX_SMALL_BYTES + 1), (false, 1));
        assert!(!is_short());
        assert_eq!(full(MAX_SMALL_BYTES), (true, 2));
        assert!(is_short());
        assert!(keep_reserve() && !is_short());
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
