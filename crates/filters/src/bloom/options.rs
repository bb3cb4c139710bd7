//! The option bits kept with a filter.

use crate::hash::HashWidth;
use crate::sizing::Rounding;

/// The option bits kept with a filter.
///
/// Filters made here have `NO_ROUND` and `FORCE_64`, and `NO_SCALING` when they do not grow. Other
/// options come from filters of old RedisBloom versions.
///
/// ```
/// use everbloom::host::LayeredFilter;
/// use everbloom::hash::HashWidth;
/// use everbloom::redisbloom::Options;
/// use everbloom::sizing::Rounding;
/// let filter = LayeredFilter::builder().fixed().build()?;
/// let options = filter.options();
/// assert_eq!(options.bits(), 13);
/// assert!(options.has(Options::NO_ROUND | Options::FORCE_64 | Options::NO_SCALING));
/// assert!(!options.has(Options::ENTRIES_ARE_BITS));
/// assert_eq!(options.bits() & !Options::KNOWN, 0);
/// assert_eq!(Options::of_valkey(true).bits(), 37);
/// assert!(!options.has(Options::WINDOW) && !options.has(Options::VALKEY));
/// assert_eq!(options.rounding(), Rounding::Words);
/// assert_eq!(options.hash_width(), HashWidth::Bits64);
/// # Ok::<(), everbloom::BuildError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options(pub(crate) u32);

impl Options {
    /// Bit counts are not rounded up to a power of two.
    pub const NO_ROUND: u32 = 1;
    /// A capacity is the logarithm of a bit count.
    pub const ENTRIES_ARE_BITS: u32 = 2;
    /// Items are hashed to 64 bits.
    pub const FORCE_64: u32 = 4;
    /// The filter never grows.
    pub const NO_SCALING: u32 = 8;
    /// The filter has a window, in the blocked layout only.
    pub const WINDOW: u32 = 16;
    /// The filter is one of valkey-bloom, in the classic layout only.
    pub const VALKEY: u32 = 32;
    /// Every bit that has a meaning in the classic layout.
    pub const KNOWN: u32 = 15;

    /// Those of a filter made today.
    pub(crate) fn modern(scaling: bool) -> Options {
        let no_scaling = if scaling { 0 } else { Options::NO_SCALING };
        Options(Options::NO_ROUND | Options::FORCE_64 | no_scaling)
    }

    /// Those of a filter of valkey-bloom, which may grow.
    #[must_use]
    pub fn of_valkey(scaling: bool) -> Options {
        Options(Options::modern(scaling).0 | Options::VALKEY)
    }

    /// The same for a filter with a window, or without one.
    pub(crate) fn with_window(self, window: bool) -> Options {
        Options(self.0 | if window { Options::WINDOW } else { 0 })
    }

    /// The bits.
    #[must_use]
    pub fn bits(self) -> u32 {
        self.0
    }

    /// Whether all of `bits` are set.
    #[must_use]
    #[inline]
    pub fn has(self, bits: u32) -> bool {
        self.0 & bits == bits
    }

    /// How the layers of the filter are sized.
    #[must_use]
    pub fn rounding(self) -> Rounding {
        if self.has(Options::ENTRIES_ARE_BITS) {
            Rounding::Log2
        } else if self.has(Options::NO_ROUND) {
            Rounding::Words
        } else {
            Rounding::PowerOfTwo
        }
    }

    /// How the items of the filter are hashed.
    #[must_use]
    #[inline]
    pub fn hash_width(self) -> HashWidth {
        if self.has(Options::FORCE_64) {
            HashWidth::Bits64
        } else {
            HashWidth::Bits32
        }
    }
}
