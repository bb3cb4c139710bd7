//! The sorts of our own filters in files, as the header tells them.

use std::ops::RangeInclusive;

use everbloom::hash::murmur64a;

/// What the header of a filter begins with: the magic, and the version as two bytes.
const MAGIC: &[u8] = b"EVRBLOOM";

/// The version whose header ends with a checksum of its own.
const VERSION: u16 = 3;

/// Where the header of these versions has the kind of the filter.
const KIND_AT: usize = 10;

/// The kind of a filter of fixed size.
const FIXED: u8 = 1;

/// The kind of a filter that grows or forgets.
const LAYERS: u8 = 2;

/// The kinds of cuckoo filters: RedisBloom's, and with a chosen error rate.
const CUCKOO: RangeInclusive<u8> = 3..=4;

/// Where the header has the first byte of the options.
const OPTIONS_AT: usize = 12;

/// The option of a filter with a window.
const WINDOW: u8 = 16;

/// What sort of filter of ours a file has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sort {
    Fixed,
    Growing,
    Windowed,
    Cuckoo,
}

impl Sort {
    /// The sort of the filter with this header. `None` when the header alone does not tell: it is
    /// damaged, cut off, or of another version.
    pub(crate) fn of_header(header: &[u8]) -> Option<Sort> {
        let version = header.strip_prefix(MAGIC)?.first_chunk()?;
        let (content, checksum) = header.split_last_chunk()?;
        let is_whole = murmur64a(content, 0) == u64::from_le_bytes(*checksum);
        if u16::from_le_bytes(*version) != VERSION || !is_whole {
            return None;
        }
        let has_window = header.get(OPTIONS_AT).is_some_and(|it| it & WINDOW != 0);
        match *header.get(KIND_AT)? {
            FIXED => Some(Sort::Fixed),
            LAYERS if has_window => Some(Sort::Windowed),
            LAYERS => Some(Sort::Growing),
            kind if CUCKOO.contains(&kind) => Some(Sort::Cuckoo),
            _ => None,
        }
    }

    /// What follows the name of a file that has one.
    pub(crate) fn describe(self) -> &'static str {
        match self {
            Sort::Fixed => "is a filter of fixed size",
            Sort::Growing => "is a filter that grows, as those of dedup",
            Sort::Windowed => "is a filter that forgets, as those of dedup --window",
            Sort::Cuckoo => "is a cuckoo filter",
        }
    }
}
