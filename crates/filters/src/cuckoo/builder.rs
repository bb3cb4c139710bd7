//! The parameters of a cuckoo filter.

use super::CuckooFilter;
use super::growth::expected_items;
use super::parts::CuckooParts;
use crate::error::CuckooError;

/// Parameters of a new [`CuckooFilter`].
///
/// ```
/// use everbloom::redisbloom::CuckooError;
/// use everbloom::{CuckooFilter, InsertError};
/// let builder = CuckooFilter::builder().slots(1_000_000).bucket_size(4).max_kicks(100);
/// let filter = builder.build()?;
/// assert_eq!((filter.buckets(), filter.slots()), (1 << 18, 1 << 20));
/// assert_eq!(builder.max_bytes(1000).build(), Err(CuckooError::TooLarge { limit: 1000 }));
///
/// let mut small = CuckooFilter::builder().slots(2).expansion(0).build()?;
/// let full = (0..10).find_map(|item| small.insert(&item).err());
/// assert_eq!(full, Some(InsertError::Full));
/// # Ok::<(), CuckooError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[must_use = "a builder does nothing until build is called"]
pub struct CuckooBuilder {
    first: First,
    bucket_size: u8,
    max_kicks: u16,
    expansion: u16,
    max_bytes: u64,
}

/// What the size of the first table follows from.
#[derive(Clone, Copy, Debug, PartialEq)]
enum First {
    Slots(u64),
    Items(u64),
}

impl CuckooFilter {
    /// A filter for this many items, in buckets of 2 slots. It grows when it gets more.
    /// [Example](CuckooFilter).
    ///
    /// # Panics
    ///
    /// When the items are so many that the slots for them cannot be counted, or there is no memory.
    /// [`builder`](Self::builder) returns these as errors.
    #[cfg(feature = "std")]
    #[must_use]
    #[track_caller]
    pub fn new(items: u64) -> CuckooFilter {
        crate::error::or_panic(Self::builder().capacity(items).build())
    }

    /// Starts with RedisBloom's defaults: 1024 slots, bucket size 2, 20 kicks, expansion 1.
    /// [Example](CuckooBuilder).
    pub fn builder() -> CuckooBuilder {
        CuckooBuilder {
            first: First::Slots(1024),
            bucket_size: 2,
            max_kicks: 20,
            expansion: 1,
            max_bytes: u64::MAX,
        }
    }
}

impl CuckooBuilder {
    /// The slots of the first table, 1024 by default, in place of a capacity. Its buckets are
    /// rounded up to a power of two, so there may be nearly twice as many.
    pub fn slots(mut self, slots: u64) -> Self {
        self.first = First::Slots(slots);
        self
    }

    /// Sizes the first table for this many items, instead of by its slots: a filter is expected to
    /// take them before it grows. Chance decides when one does; see
    /// [`expected_until_growth`](CuckooFilter::expected_until_growth).
    ///
    /// ```
    /// # use everbloom::CuckooFilter;
    /// let filter = CuckooFilter::builder().capacity(100_000).bucket_size(4).build()?;
    /// assert_eq!(filter.slots(), 1 << 17);
    /// assert!(filter.expected_until_growth() >= Some(100_000));
    /// # Ok::<(), everbloom::redisbloom::CuckooError>(())
    /// ```
    pub fn capacity(mut self, items: u64) -> Self {
        self.first = First::Items(items);
        self
    }

    /// Slots of a bucket, 2 by default. Larger buckets are filled better and err more often, see
    /// [`CuckooFilter`].
    pub fn bucket_size(mut self, slots: u8) -> Self {
        self.bucket_size = slots;
        self
    }

    /// The most fingerprints that are moved to free a slot for one, 20 by default. More fill the
    /// tables better, and make the inserts into a nearly full one slower.
    pub fn max_kicks(mut self, kicks: u16) -> Self {
        self.max_kicks = kicks;
        self
    }

    /// The growth factor from one table's bucket count to the next, 1 by default, rounded up to a
    /// power of two. 0 makes a filter that does not grow.
    pub fn expansion(mut self, factor: u16) -> Self {
        self.expansion = factor;
        self
    }

    /// The most bytes the first table may take; no limit by default.
    pub fn max_bytes(mut self, bytes: u64) -> Self {
        self.max_bytes = bytes;
        self
    }

    /// Makes the filter.
    ///
    /// # Errors
    ///
    /// [`CuckooError`] says which parameter is out of range, or that there is no memory.
    pub fn build(self) -> Result<CuckooFilter, CuckooError> {
        CuckooFilter::from_parts(&self.parts()?, self.max_bytes)
    }

    /// Everything about the new filter except its slots. [Example](CuckooParts).
    ///
    /// # Errors
    ///
    /// [`CuckooError`] says which parameter is out of its range.
    pub fn parts(self) -> Result<CuckooParts, CuckooError> {
        let slots = match self.first {
            First::Slots(slots) | First::Items(slots) => slots,
        };
        let buckets = slots.checked_div(self.bucket_size.into());
        let buckets = buckets.ok_or(CuckooError::BucketSize)?.max(1);
        let buckets = match self.first {
            First::Slots(_) => buckets.checked_next_power_of_two(),
            First::Items(items) => self.buckets_for(items, buckets),
        };
        let expansion = match self.expansion {
            0 => Some(0),
            factor => factor.checked_next_power_of_two(),
        };
        let parts = CuckooParts {
            items: 0,
            removed: 0,
            buckets: buckets.ok_or(CuckooError::Buckets)?,
            tables: 1,
            bucket_size: self.bucket_size,
            max_kicks: self.max_kicks,
            expansion: expansion.ok_or(CuckooError::Expansion)?,
        };
        Ok(parts)
    }

    /// The fewest buckets, from these on, that are expected to take so many items.
    fn buckets_for(self, items: u64, least: u64) -> Option<u64> {
        let mut buckets = least.checked_next_power_of_two()?;
        loop {
            let slots = buckets.checked_mul(self.bucket_size.into())?;
            if expected_items(slots, self.bucket_size, self.max_kicks) >= items {
                return Some(buckets);
            }
            buckets = buckets.checked_mul(2)?;
        }
    }
}
