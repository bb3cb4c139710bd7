//! The state of a run that its threads share.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// What the threads of a run tell each other beside the chunks.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    /// Whether a chunk of a pipe waits until it is full, and does not depend on when lines came.
    pub(crate) full_chunks: bool,
    /// Whether to read no further.
    pub(crate) stop: AtomicBool,
    /// Whether the reader opens an input. That takes as long as a named pipe has no writer, and no
    /// signal ends it.
    pub(crate) opens: AtomicBool,
    /// Bytes read from the files.
    pub(crate) read: AtomicU64,
    /// Chunks that the reader has filled.
    pub(crate) chunks: AtomicU64,
    /// Whether the reader came to its end, and did not die.
    pub(crate) done: AtomicBool,
    /// Inputs that were not read, or not to their end.
    pub(crate) failed: AtomicU64,
}

impl Shared {
    /// Whether a signal came while the reader opens an input, which may take for ever. It reads
    /// nothing of that one any more.
    pub(super) fn will_not_open(&self) -> bool {
        // In this order: before the reader reads, it notes that it has opened, and looks for a
        // signal.
        self.stop.load(Ordering::SeqCst) && self.opens.load(Ordering::SeqCst)
    }

    /// Makes ready for a second reading, after the first came to its end.
    pub(crate) fn restart(&self) {
        self.read.store(0, Ordering::Relaxed);
        self.chunks.store(0, Ordering::Release);
        self.done.store(false, Ordering::Release);
    }
}
