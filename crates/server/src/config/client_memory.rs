//! How many bytes all clients together may hold: `maxmemory-clients`.

use super::text::memory;

/// A part of `maxmemory` is never fewer bytes than this: a client needs room for a long argument
/// and its reply, however small the keyspace may be.
const MIN_PART_BYTES: u64 = 64 << 20;

/// A limit on the bytes that all clients hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClientMemory {
    /// Bytes; 0 = no limit.
    Bytes(u64),
    /// Percent of `maxmemory`. Without `maxmemory` there is no limit.
    Percent(u8),
}

impl ClientMemory {
    /// Bytes, or a number with `%`.
    pub fn read(text: &str) -> Result<Self, String> {
        let Some(percent) = text.strip_suffix('%') else {
            return memory(text, 0, i64::MAX).map(ClientMemory::Bytes);
        };
        let percent = percent.parse().ok().filter(|percent| *percent <= 100);
        percent
            .map(ClientMemory::Percent)
            .ok_or_else(|| "argument must be a memory or percent value".into())
    }

    /// The text of it.
    pub fn show(&self) -> String {
        match self {
            ClientMemory::Bytes(bytes) => bytes.to_string(),
            ClientMemory::Percent(percent) => format!("{percent}%"),
        }
    }

    /// The most bytes, with this `maxmemory`; `None` when there is no limit.
    pub fn max_bytes(self, maxmemory: u64) -> Option<u64> {
        match self {
            ClientMemory::Bytes(0) | ClientMemory::Percent(0) => None,
            ClientMemory::Bytes(bytes) => Some(bytes),
            ClientMemory::Percent(_) if maxmemory == 0 => None,
            ClientMemory::Percent(percent) => {
                Some((maxmemory / 100 * u64::from(percent)).max(MIN_PART_BYTES))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_bytes_or_a_part_of_maxmemory() {
        let most = |text, maxmemory| ClientMemory::read(text).unwrap().max_bytes(maxmemory);
        for (text, maxmemory, bytes) in [
            ("0", 1 << 30, None),
            ("0%", 1 << 30, None),
            ("1mb", 0, Some(1 << 20)),
            ("50%", 0, None),
            ("50%", 1_000_000_000, Some(500_000_000)),
            ("5%", 1000 << 20, Some(64 << 20)),
            ("100%", u64::MAX, Some(u64::MAX / 100 * 100)),
        ] {
            assert_eq!(most(text, maxmemory), bytes, "{text}");
        }
        for text in ["101%", "-1%", "%", "x", "5 %", "1.5%"] {
            assert!(ClientMemory::read(text).is_err(), "{text}");
        }
        for text in ["0", "1048576", "0%", "100%"] {
            assert_eq!(ClientMemory::read(text).unwrap().show(), text);
        }
    }
}
