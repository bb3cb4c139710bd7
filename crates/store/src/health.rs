//! The reasons why some commands are refused: data is still loading, or files cannot be written.

use std::sync::atomic::{AtomicU8, Ordering};

/// A reason for refusing commands: one bit of [`Health`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cause {
    Loading = 1,
    LogFailing = 2,
    LogBehind = 4,
    SaveFailing = 8,
    /// A log is wanted, and beginning it has failed.
    LogMissing = 16,
}

/// The state of the data and of its files.
#[derive(Debug, Default)]
pub struct Health {
    /// The current causes. They share one number, so clearing one keeps the others, and a command
    /// needs to read only one place.
    causes: AtomicU8,
}

impl Health {
    /// Whether any of the others holds.
    #[inline]
    pub fn is_troubled(&self) -> bool {
        self.causes.load(Ordering::Acquire) != 0
    }

    /// Whether the data of an earlier process is being loaded.
    pub fn is_loading(&self) -> bool {
        self.has(Cause::Loading)
    }

    /// Whether the log cannot be written or begun, or too many bytes wait for it.
    pub fn is_log_failing(&self) -> bool {
        self.has(Cause::LogFailing) || self.has(Cause::LogBehind) || self.has(Cause::LogMissing)
    }

    /// Whether the last snapshot failed.
    pub fn is_save_failing(&self) -> bool {
        self.has(Cause::SaveFailing)
    }

    /// Sets whether data is being loaded.
    pub fn set_loading(&self, on: bool) {
        self.set(Cause::Loading, on);
    }

    pub(crate) fn has(&self, cause: Cause) -> bool {
        self.causes.load(Ordering::Relaxed) & cause as u8 != 0
    }

    /// Sets whether a cause holds.
    pub(crate) fn set(&self, cause: Cause, on: bool) {
        let bit = cause as u8;
        if on {
            self.causes.fetch_or(bit, Ordering::Release);
        } else {
            self.causes.fetch_and(!bit, Ordering::Release);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Get = fn(&Health) -> bool;

    const CAUSES: [(Cause, Get); 5] = [
        (Cause::Loading, Health::is_loading),
        (Cause::LogFailing, Health::is_log_failing),
        (Cause::LogBehind, Health::is_log_failing),
        (Cause::SaveFailing, Health::is_save_failing),
        (Cause::LogMissing, Health::is_log_failing),
    ];

    #[test]
    fn each_cause_is_trouble_until_it_ends_itself() {
        for (cause, get) in CAUSES {
            let health = Health::default();
            health.set(cause, true);
            for (other, _) in CAUSES.into_iter().filter(|(other, _)| *other != cause) {
                health.set(other, true);
                health.set(other, false);
            }
            assert!(get(&health) && health.is_troubled(), "{cause:?}");
            health.set(cause, false);
            assert!(!get(&health) && !health.is_troubled(), "{cause:?}");
        }
    }
}
