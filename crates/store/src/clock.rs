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

/// The last second of the year 9999.
const LAST_SECOND: u64 = 253_402_300_799;

/// A time as people read it: `2026-11-25 03:40:19 UTC`.
pub fn utc(time: SystemTime) -> String {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    let seconds = since.as_secs().min(LAST_SECOND);
    let (mut days, time) = (seconds / 86_400, seconds % 86_400);
    let is_leap = |year: u64| {
        year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
    };
    let mut year = 1970;
    while days >= 365 + u64::from(is_leap(year)) {
        days -= 365 + u64::from(is_leap(year));
        year += 1;
    }
    let february = 28 + u64::from(is_leap(year));
    let mut month = 1;
    for len in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30] {
        if days < len {
            break;
        }
        days -= len;
        month += 1;
    }
    let (hour, minute, second) = (time / 3600, time / 60 % 60, time % 60);
    let day = days + 1;
    format!("{year}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02} UTC")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_time_is_shown_as_people_read_it() {
        for (seconds, text) in [
            (0, "1970-01-01 00:00:00 UTC"),
            (951_782_399, "2000-02-28 23:59:59 UTC"),
            (951_782_400, "2000-02-29 00:00:00 UTC"),
            (978_307_199, "2000-12-31 23:59:59 UTC"),
            (1_709_251_200, "2024-03-01 00:00:00 UTC"),
            (4_107_542_400, "2100-03-01 00:00:00 UTC"),
            (u64::from(u32::MAX) * 100, "9999-12-31 23:59:59 UTC"),
        ] {
            assert_eq!(utc(UNIX_EPOCH + Duration::from_secs(seconds)), text);
        }
    }
}
