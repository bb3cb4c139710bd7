//! What keeps some commands from running: data that is still being loaded, files that cannot be
//! written.

use std::sync::atomic::{AtomicBool, Ordering};

/// The state of the data and of its files.
#[derive(Debug, Default)]
pub struct Health {
    loading: AtomicBool,
    log_failing: AtomicBool,
    save_failing: AtomicBool,
    /// Whether any of them is set: the one that every command looks at.
    troubled: AtomicBool,
}

impl Health {
    /// Whether any of the others holds.
    #[inline]
    pub fn is_troubled(&self) -> bool {
        self.troubled.load(Ordering::Acquire)
    }

    /// Whether the data of an earlier process is being loaded.
    pub fn is_loading(&self) -> bool {
        self.loading.load(Ordering::Relaxed)
    }

    /// Whether the log cannot be written.
    pub fn is_log_failing(&self) -> bool {
        self.log_failing.load(Ordering::Relaxed)
    }

    /// Whether the last snapshot failed.
    pub fn is_save_failing(&self) -> bool {
        self.save_failing.load(Ordering::Relaxed)
    }

    /// Says whether data is being loaded.
    pub fn set_loading(&self, on: bool) {
        self.set(&self.loading, on);
    }

    pub(crate) fn set_log_failing(&self, on: bool) {
        self.set(&self.log_failing, on);
    }

    pub(crate) fn set_save_failing(&self, on: bool) {
        self.set(&self.save_failing, on);
    }

    fn set(&self, flag: &AtomicBool, on: bool) {
        flag.store(on, Ordering::Relaxed);
        let any = self.is_loading() || self.is_log_failing() || self.is_save_failing();
        self.troubled.store(any, Ordering::Release);
    }
}
