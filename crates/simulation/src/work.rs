//! How much memory a command takes for a moment: what it copies under a lock is in it.
//!
//! [`PeakAlloc`] counts, so a program that plays seeds has it as its allocator. Without it every command takes nothing.

use peak_alloc::PeakAlloc;

/// Runs a command. Returns how many bytes more than before there were at most.
pub fn measure<R>(run: impl FnOnce() -> R) -> (R, usize) {
    let before = PeakAlloc.current_usage();
    PeakAlloc.reset_peak_usage();
    let result = run();
    (result, PeakAlloc.peak_usage().saturating_sub(before))
}
