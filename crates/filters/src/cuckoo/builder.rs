//! The parameters of a cuckoo filter.

use super::CuckooFilter;
use super::growth::expected_items;
use super::keyed::KeyedParts;
use super::packed;
use super::parts::CuckooParts;
use crate::error::CuckooError;
use crate::hash::{Key, random_key};

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
    bucket_size: Option<u8>,
    max_kicks: Option<u16>,
    expansion: Option<u16>,
    error_rate: Option<f64>,
    key: Option<Key>,
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
            bucket_size: None,
            max_kicks: None,
            expansion: None,
            error_rate: None,
            key: None,
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
        self.bucket_size = Some(slots);
        self
    }

    /// The most fingerprints that are moved to free a slot for one, 20 by default. More fill the
    /// tables better, and make the inserts into a nearly full one slower.
    pub fn max_kicks(mut self, kicks: u16) -> Self {
        self.max_kicks = Some(kicks);
        self
    }

    /// The growth factor from one table's bucket count to the next, 1 by default, rounded up to a
    /// power of two. 0 makes a filter that does not grow. With an
    /// [error rate](Self::error_rate) it is 2 by default.
    pub fn expansion(mut self, factor: u16) -> Self {
        self.expansion = Some(factor);
        self
    }

    /// Chooses the error rate, from 10<sup>−9</sup> to 0.5. Without one the filter is of RedisBloom's
    /// kind, which errs for at least 0.78 % when it is full.
    ///
    /// The filter keeps the rate however much it grows. Its first table takes the
    /// [capacity](Self::capacity) without growing, and each next one is twice as large, or as
    /// [`expansion`](Self::expansion) says. It has longer fingerprints, of at most 56 bits: so a
    /// filter grows to at most 45 tables at 1 %, 39 at 10<sup>−4</sup>, 21 at 10<sup>−9</sup>, and
    /// then refuses items. The number of slots, the bucket size and the kicks are not chosen.
    ///
    /// ```
    /// use everbloom::CuckooFilter;
    /// use everbloom::redisbloom::CuckooError;
    /// let builder = CuckooFilter::builder().capacity(100_000).error_rate(0.001);
    /// let mut filter = builder.build()?;
    /// filter.insert_each(0..100_000, 0, |reply| {
    ///     assert_eq!(reply, Ok(()));
    ///     std::ops::ControlFlow::Continue(())
    /// });
    /// let errors = (100_000..200_000).filter(|item| filter.contains(item)).count();
    /// assert!(errors < 140);
    /// assert_eq!((filter.parts().keyed.map(|it| it.width), filter.expansion()), (Some(13), 2));
    /// assert_eq!(builder.bucket_size(2).build(), Err(CuckooError::Conflict));
    /// # Ok::<(), CuckooError>(())
    /// ```
    pub fn error_rate(mut self, rate: f64) -> Self {
        self.error_rate = Some(rate);
        self
    }

    /// The key of the hash of a filter with a chosen [error rate](Self::error_rate); a random one by
    /// default.
    ///
    /// ```
    /// # use everbloom::CuckooFilter;
    /// # use everbloom::hash::Key;
    /// let builder = CuckooFilter::builder().capacity(1000).error_rate(0.01);
    /// assert_eq!(builder.seed(7).build()?, builder.key(Key::from_seed(7)).build()?);
    /// # Ok::<(), everbloom::redisbloom::CuckooError>(())
    /// ```
    pub fn key(mut self, key: Key) -> Self {
        self.key = Some(key);
        self
    }

    /// The key [of a seed](Key::from_seed). [Example](Self::key).
    pub fn seed(self, seed: u64) -> Self {
        self.key(Key::from_seed(seed))
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
        if let Some(rate) = self.error_rate {
            return self.keyed_parts(rate);
        }
        if self.key.is_some() {
            return Err(CuckooError::UnexpectedKey);
        }
        let bucket_size = self.bucket_size.unwrap_or(2);
        let max_kicks = self.max_kicks.unwrap_or(20);
        let slots = match self.first {
            First::Slots(slots) | First::Items(slots) => slots,
        };
        let buckets = slots.checked_div(bucket_size.into());
        let buckets = buckets.ok_or(CuckooError::BucketSize)?.max(1);
        let buckets = match self.first {
            First::Slots(_) => buckets.checked_next_power_of_two(),
            First::Items(items) => buckets_for(items, buckets, (bucket_size, max_kicks)),
        };
        Ok(CuckooParts {
            buckets: buckets.ok_or(CuckooError::Buckets)?,
            tables: 1,
            bucket_size,
            max_kicks,
            expansion: self.expansion_or(1)?,
            ..CuckooParts::default()
        })
    }

    /// The expansion as a power of two or 0.
    fn expansion_or(self, default: u16) -> Result<u16, CuckooError> {
        match self.expansion.unwrap_or(default) {
            0 => Ok(0),
            factor => factor
                .checked_next_power_of_two()
                .ok_or(CuckooError::Expansion),
        }
    }

    /// The parts of a filter with a chosen error rate.
    fn keyed_parts(self, rate: f64) -> Result<CuckooParts, CuckooError> {
        let First::Items(items) = self.first else {
            return Err(CuckooError::Conflict);
        };
        if self.bucket_size.is_some() || self.max_kicks.is_some() {
            return Err(CuckooError::Conflict);
        }
        let expansion = self.expansion_or(2)?;
        let key = self.key.or_else(random_key).ok_or(CuckooError::NoKey)?;
        let keyed = KeyedParts::new(key, rate, expansion > 0);
        Ok(CuckooParts {
            buckets: packed::buckets_for(items).ok_or(CuckooError::Buckets)?,
            tables: 1,
            bucket_size: packed::BUCKET_SIZE,
            max_kicks: packed::MAX_KICKS,
            expansion,
            keyed: Some(keyed.ok_or(CuckooError::ErrorRate)?),
            ..CuckooParts::default()
        })
    }
}

/// The fewest buckets, from these on, that are expected to take so many items.
fn buckets_for(items: u64, least: u64, (bucket_size, max_kicks): (u8, u16)) -> Option<u64> {
    let mut buckets = least.checked_next_power_of_two()?;
    loop {
        let slots = buckets.checked_mul(bucket_size.into())?;
        if expected_items(slots, bucket_size, max_kicks) >= items {
            return Some(buckets);
        }
        buckets = buckets.checked_mul(2)?;
    }
}
