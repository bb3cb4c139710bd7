//! The two layouts.

use crate::error::BuildError;
use crate::hash::{Key, random_key};
use crate::sizing::BlockedSize;

/// Where the bits of an item lie.
///
/// ```
/// use everbloom::{BloomFilter, Layout};
/// let builder = BloomFilter::builder().capacity(1000).error_rate(0.01);
/// assert_eq!(builder.layout(Layout::Classic).build()?.bits(), 9600);
/// assert_eq!(builder.layout(Layout::Blocked).build()?.bits(), 10_240);
/// # Ok::<(), everbloom::BuildError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Layout {
    /// RedisBloom's layout, bit for bit: spread over the whole bit array. Take it to exchange filters
    /// with RedisBloom.
    Classic,
    /// All in one block of 512 bits, which is a cache line, chosen by a keyed hash: several times
    /// faster, and safe from items crafted to collide, for a few per cent more bits. The default.
    #[default]
    Blocked,
}

impl Layout {
    /// The error rate of a whole filter, whose first layer has this capacity and rate. The layer
    /// has the whole of it in a filter that does not grow, and in one of valkey-bloom.
    pub(crate) fn whole_rate(self, is_whole: bool, capacity: u64, rate: f64) -> f64 {
        match self {
            _ if is_whole => rate,
            Layout::Classic => rate * 2.0,
            // A share is a power of two, so this is exactly the given rate.
            Layout::Blocked => rate / BlockedSize::share(capacity),
        }
    }

    /// The key of a new filter: none in the classic layout; in the blocked layout the given key, or
    /// else a random one.
    pub(crate) fn key(self, given: Option<Key>) -> Result<Option<Key>, BuildError> {
        match (self, given) {
            (Layout::Classic, None) => Ok(None),
            (Layout::Classic, Some(_)) => Err(BuildError::UnexpectedKey),
            (Layout::Blocked, given) => {
                let key = given.or_else(random_key).ok_or(BuildError::NoKey)?;
                Ok(Some(key))
            }
        }
    }
}
