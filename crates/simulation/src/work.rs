//! How much memory a command takes for a moment: what it copies under a lock is in it.
//!
//! [`PeakAlloc`] counts, so a program that plays seeds has it as its allocator. Without it every command takes nothing.

use peak_alloc::PeakAlloc;

/// What a command may take beside the values that it reads and makes: a reply, a record of the log, and what sizes a
/// new layer.
const SMALL_BYTES: usize = 64 << 10;

/// A page of a value that is read, in which much has changed: its copy, and the notes that it replaces.
const PAGE_BYTES: usize = 2 * (64 << 10);

/// The table of what compresses a payload.
const COMPRESSOR_BYTES: usize = 256 << 10;

/// Runs a command. Returns how many bytes more than before there were at most.
pub fn measure<R>(run: impl FnOnce() -> R) -> (R, usize) {
    let before = PeakAlloc.current_usage();
    PeakAlloc.reset_peak_usage();
    let result = run();
    (result, PeakAlloc.peak_usage().saturating_sub(before))
}

/// What the bound of a command follows from.
#[derive(Debug, Clone, Copy, Default)]
pub struct Work {
    /// Bytes of the request.
    pub request: usize,
    /// Its words.
    pub words: usize,
    /// Bytes of the values of its keys, before it.
    pub read: usize,
    /// Bytes that its first key has more than before, besides those that it has dropped.
    pub grown: usize,
    /// Bytes of the newest layer of its first key, after it.
    pub newest: usize,
    /// From this many bytes on, work is left to another thread.
    pub limit: usize,
    /// What a filter may take for an item that it is given.
    pub item: usize,
}

impl Work {
    /// The most bytes that a command may take before another thread goes on with it. `None` if it has no bound.
    pub fn bound(&self, command: &str) -> Option<usize> {
        // A buffer that grows is there twice for a moment.
        let inline = 4 * self.read.min(self.limit);
        let most = match command {
            "DUMP" => COMPRESSOR_BYTES + inline,
            "BF.SCANDUMP" | "CF.SCANDUMP" | "COPY" | "BF.MERGE" | "CF.MERGE" | "BF.SHRINK" => {
                inline
            }
            "RESTORE" => 4 * self.limit,
            "BF.CLEAR" => self.newest,
            "BF.ADVANCE" | "BF.RESERVE" | "CF.RESERVE" | "BF.LOADCHUNK" | "CF.LOADCHUNK" => {
                self.grown
            }
            "BF.ADD" | "BF.MADD" | "CF.ADD" => self.grown + PAGE_BYTES + self.item * self.words,
            _ => return None,
        };
        Some(SMALL_BYTES + 4 * self.request + most)
    }
}
