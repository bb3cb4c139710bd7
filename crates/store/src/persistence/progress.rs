//! The progress of loading, in the server's messages and in INFO.

use std::io::{self, Read};
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use tracing::info;

use super::figures::PersistenceFigures;

/// A file being read, with its progress in the server's messages and in INFO.
pub(super) struct ProgressReader<'f, R> {
    inner: R,
    done: u64,
    len: u64,
    started: Instant,
    shown: Instant,
    figures: &'f PersistenceFigures,
}

impl<'f, R: Read> ProgressReader<'f, R> {
    /// A file of `len` bytes.
    pub(super) fn new(inner: R, len: u64, figures: &'f PersistenceFigures) -> Self {
        figures.loading_total.store(len, Relaxed);
        figures.loading_done.store(0, Relaxed);
        ProgressReader {
            inner,
            done: 0,
            len,
            shown: Instant::now(),
            started: Instant::now(),
            figures,
        }
    }
}

impl<R: Read> Read for ProgressReader<'_, R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buf)?;
        self.done += u64::try_from(read).unwrap_or(0);
        self.figures.loading_done.store(self.done, Relaxed);
        if self.shown.elapsed().as_secs() >= 2 {
            self.shown = Instant::now();
            let share = self.done.saturating_mul(100) / self.len.max(1);
            let passed = self.started.elapsed().as_secs();
            let left = self.len.saturating_sub(self.done);
            let remaining = left.saturating_mul(passed) / self.done.max(1);
            info!(
                "loading: {} of {} bytes, {share} %, {remaining} s left",
                self.done, self.len
            );
        }
        Ok(read)
    }
}
