//! The time as commands see it: read once per batch, and the same for all its commands.

use std::time::{SystemTime, UNIX_EPOCH};

/// A moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Now {
    /// Unix time in milliseconds: what expiries are compared with.
    pub ms: u64,
    /// Unix time in seconds, cut to 32 bits: what idle times are counted from.
    pub clock: u32,
}

impl Now {
    /// Reads the system's clock.
    pub fn read() -> Now {
        let since = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        Now {
            ms: u64::try_from(since.as_millis()).unwrap_or(u64::MAX),
            clock: u32::try_from(since.as_secs() & u64::from(u32::MAX)).unwrap_or(0),
        }
    }

    /// Unix time in seconds.
    pub fn seconds(self) -> u64 {
        self.ms / 1000
    }
}
