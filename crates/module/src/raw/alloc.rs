//! Memory from the host, so that `used_memory`, `maxmemory` and `MEMORY USAGE` count it.
//!
//! The host's plain functions end the process when memory is out, and a filter that cannot be had
//! must be an error reply: the functions that may fail are used where the host has them. Redis 7.0
//! has none for zeroed memory, and 6.2 none at all; there, a large request is tried first, with the
//! function that may fail or with the system's, and given back.

use std::alloc::{GlobalAlloc, Layout, System};
use std::ffi::c_void;
use std::mem::size_of;
use std::ptr::null_mut;

use super::api::{Api, host};

/// What the host's allocators align to: 16 bytes on all machines of 64 bits, as C asks for.
pub(super) const HOST_ALIGN: usize = 16;

/// From how many bytes on a request is worth trying first.
const LARGE: usize = 1 << 20;

/// Allocates with the host, and with the system where there is none.
pub(super) struct HostAlloc;

#[global_allocator]
static ALLOCATOR: HostAlloc = HostAlloc;

// SAFETY: `alloc` and `alloc_zeroed` give blocks of the host's allocator, or of the system's, that
// are as long as the layout says and aligned, or null; `dealloc` and `realloc` find the allocator
// that a block came from: the host's functions are set before the first allocation in a host, and
// never elsewhere. Nothing here panics or allocates by itself.
unsafe impl GlobalAlloc for HostAlloc {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        match host() {
            // SAFETY: the caller's promise.
            None => unsafe { System.alloc(layout) },
            // SAFETY: a size of a layout, which is not 0.
            Some(api) => unsafe { aligned(layout, |size| plain(api, size)) },
        }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        match host() {
            // SAFETY: the caller's promise.
            None => unsafe { System.alloc_zeroed(layout) },
            // SAFETY: as above.
            Some(api) => unsafe { aligned(layout, |size| zeroed(api, size)) },
        }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        match host() {
            // SAFETY: the caller's promise; without a host it came from the system.
            None => unsafe { System.dealloc(block, layout) },
            // SAFETY: it came from the host, at the start that `start` finds again.
            Some(api) => unsafe { (api.free)(start(block, layout).cast()) },
        }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        match host() {
            // SAFETY: the caller's promise; without a host it came from the system.
            None => unsafe { System.realloc(block, layout, size) },
            Some(api) if layout.align() <= HOST_ALIGN => match api.try_realloc {
                // SAFETY: the block came from the host as it is, and the size is not 0.
                Some(try_realloc) => unsafe { try_realloc(block.cast(), size).cast() },
                // What shrinks stays where it is, so that little is copied.
                // SAFETY: as above.
                None if size < LARGE || size <= layout.size() => unsafe {
                    (api.realloc)(block.cast(), size).cast()
                },
                // SAFETY: the caller's promise.
                None => unsafe { self.moved(block, layout, size) },
            },
            // SAFETY: the caller's promise.
            Some(_) => unsafe { self.moved(block, layout, size) },
        }
    }
}

impl HostAlloc {
    /// A new block with the contents of the old, which is freed.
    ///
    /// # Safety
    ///
    /// As for `realloc`.
    unsafe fn moved(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let Ok(wanted) = Layout::from_size_align(size, layout.align()) else {
            return null_mut();
        };
        // SAFETY: a size that is not 0, as the caller promises.
        let new = unsafe { self.alloc(wanted) };
        if !new.is_null() {
            // SAFETY: both blocks are at least as long as the shorter size, and are two.
            unsafe { std::ptr::copy_nonoverlapping(block, new, layout.size().min(size)) };
            // SAFETY: the caller's promise.
            unsafe { self.dealloc(block, layout) };
        }
        new
    }
}

/// A block from the host, or null.
///
/// # Safety
///
/// `size` is not 0.
unsafe fn plain(api: &Api, size: usize) -> *mut c_void {
    if let Some(try_alloc) = api.try_alloc {
        // SAFETY: asks for memory.
        return unsafe { try_alloc(size) };
    }
    if !there_is(api, size) {
        return null_mut();
    }
    // SAFETY: asks for memory.
    unsafe { (api.alloc)(size) }
}

/// A zeroed block from the host, or null.
///
/// # Safety
///
/// `size` is not 0.
unsafe fn zeroed(api: &Api, size: usize) -> *mut c_void {
    if let Some(try_calloc) = api.try_calloc {
        // SAFETY: asks for memory.
        return unsafe { try_calloc(1, size) };
    }
    if !there_is(api, size) {
        return null_mut();
    }
    // Large blocks come zeroed from the system, so that their pages are not touched here.
    // SAFETY: asks for memory.
    unsafe { (api.calloc)(1, size) }
}

/// Whether there is so much memory, as far as trying it shows. Little is not worth the trial.
fn there_is(api: &Api, size: usize) -> bool {
    if size < LARGE {
        return true;
    }
    if let Some(try_alloc) = api.try_alloc {
        // SAFETY: asks for memory.
        let block = unsafe { try_alloc(size) };
        if !block.is_null() {
            // SAFETY: the block came from the host a moment ago.
            unsafe { (api.free)(block) };
        }
        return !block.is_null();
    }
    let Ok(layout) = Layout::from_size_align(size, HOST_ALIGN) else {
        return false;
    };
    // SAFETY: the layout has a size other than 0.
    let block = unsafe { System.alloc(layout) };
    if !block.is_null() {
        // SAFETY: the block came from there a moment ago, with that layout.
        unsafe { System.dealloc(block, layout) };
    }
    !block.is_null()
}

/// A block with the alignment of the layout, from one that `allocate` gives. Where that is more
/// than the host's own, the block is longer, and the word before its aligned part says where it
/// starts.
///
/// # Safety
///
/// `allocate` gives a block of the host of that many bytes, or null.
unsafe fn aligned(layout: Layout, allocate: impl FnOnce(usize) -> *mut c_void) -> *mut u8 {
    if layout.align() <= HOST_ALIGN {
        return allocate(layout.size()).cast();
    }
    let Some(size) = layout.size().checked_add(layout.align()) else {
        return null_mut();
    };
    let start: *mut u8 = allocate(size).cast();
    if start.is_null() {
        return start;
    }
    // The host's blocks are aligned to 16 and the alignment is more: from 16 bytes to all of the
    // alignment lie before the aligned part, enough for a word.
    let skip = layout.align() - start.addr() % layout.align();
    // SAFETY: `skip` is at most the alignment, by which the block was made longer.
    let block = unsafe { start.add(skip) };
    // SAFETY: the word before lies in the block and is aligned, as `skip` is a multiple of 16.
    unsafe {
        block
            .sub(size_of::<*mut u8>())
            .cast::<*mut u8>()
            .write(start)
    };
    block
}

/// Where a block of the host starts that [`aligned`] gave.
///
/// # Safety
///
/// `block` came from [`aligned`] with this layout.
unsafe fn start(block: *mut u8, layout: Layout) -> *mut u8 {
    if layout.align() <= HOST_ALIGN {
        return block;
    }
    // SAFETY: `aligned` wrote it there.
    unsafe { block.sub(size_of::<*mut u8>()).cast::<*mut u8>().read() }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Blocks aligned to more than a host does, from a host that aligns to 16 and no more.
    #[test]
    fn aligned_blocks_lie_in_what_the_host_gave() {
        for (size, align) in [(1, 32), (64, 64), (100, 64), (4096, 4096), (7, 1), (48, 16)] {
            for offset in [0, 16, 32, 48] {
                let layout = Layout::from_size_align(size, align).unwrap();
                let mut host = vec![0_u8; size + 2 * align + 128];
                let end = host.as_ptr().addr() + host.len();
                let given = host
                    .as_mut_ptr()
                    .wrapping_add(host.as_ptr().align_offset(16) + offset);
                let mut asked = 0;
                let allocate = |size| {
                    asked = size;
                    given.cast()
                };
                // SAFETY: the vector is long enough for the requested size, at any offset.
                let block = unsafe { aligned(layout, allocate) };
                assert_eq!(block.addr() % align, 0);
                assert!(block.addr() >= given.addr());
                assert!(block.addr() + size <= given.addr() + asked);
                assert!(given.addr() + asked <= end);
                // SAFETY: the block is `size` bytes of the vector.
                unsafe { block.write_bytes(0xff, size) };
                // SAFETY: the block came from there with this layout.
                assert_eq!(unsafe { start(block, layout) }, given);
            }
        }
    }

    #[test]
    fn no_memory_is_no_block() {
        let layout = Layout::from_size_align(100, 64).unwrap();
        // SAFETY: null is allowed.
        assert!(unsafe { aligned(layout, |_| null_mut()) }.is_null());
        let huge = Layout::from_size_align(isize::MAX as usize - 63, 64).unwrap();
        // SAFETY: as above.
        assert!(unsafe { aligned(huge, |_| null_mut()) }.is_null());
    }
}
