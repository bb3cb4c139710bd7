//! An allocator that fails when it is told to, and counts.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering};

/// An allocation of so many bytes or more is a large one.
pub(super) const LARGE: usize = 1 << 20;

/// The number of the large allocation that fails, counted down: 1 is the next one. Below that, no
/// allocation fails.
pub(super) static COUNTDOWN: AtomicI64 = AtomicI64::new(0);

/// The bytes of all blocks, and the most that there were.
pub(super) static LIVE: AtomicUsize = AtomicUsize::new(0);
pub(super) static PEAK: AtomicUsize = AtomicUsize::new(0);

fn count(size: usize) {
    let live = LIVE.fetch_add(size, Ordering::SeqCst) + size;
    PEAK.fetch_max(live, Ordering::SeqCst);
}

/// How many blocks of so many bytes were made shorter.
pub(super) static SHORTENED: AtomicI64 = AtomicI64::new(0);

/// The system's allocator, but for the allocation that fails.
struct Failing;

#[global_allocator]
static ALLOCATOR: Failing = Failing;

/// An allocation of so many bytes or more fails, if it is a large one.
pub(super) static LIMIT: AtomicUsize = AtomicUsize::new(usize::MAX);

/// Whether every large allocation fails.
pub(super) static NONE: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// Whether this thread is a client, whose allocations never fail.
    pub(super) static IS_CLIENT: Cell<bool> = const { Cell::new(false) };
}

fn fails(size: usize) -> bool {
    size >= LARGE
        && !IS_CLIENT.get()
        && (NONE.load(Ordering::SeqCst)
            || size >= LIMIT.load(Ordering::SeqCst)
            || COUNTDOWN.fetch_sub(1, Ordering::SeqCst) == 1)
}

// SAFETY: every block is the system's. Null means that there is no memory.
unsafe impl GlobalAlloc for Failing {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if fails(layout.size()) {
            return null_mut();
        }
        count(layout.size());
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if fails(layout.size()) {
            return null_mut();
        }
        count(layout.size());
        // SAFETY: the caller's promise.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Ordering::SeqCst);
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if size < layout.size() && layout.size() >= LARGE {
            SHORTENED.fetch_add(1, Ordering::SeqCst);
        }
        if size > layout.size() && fails(size) {
            return null_mut();
        }
        count(size);
        LIVE.fetch_sub(layout.size(), Ordering::SeqCst);
        // SAFETY: the caller's promise.
        unsafe { System.realloc(block, layout, size) }
    }
}

/// Runs something while the large allocation of that number fails; also returns whether one failed.
pub(super) fn failing<R>(number: i64, work: impl FnOnce() -> R) -> (R, bool) {
    COUNTDOWN.store(number, Ordering::SeqCst);
    let result = work();
    (result, COUNTDOWN.swap(0, Ordering::SeqCst) < 1)
}
