//! Errors of making a filter and of inserting an item.

/// Why a filter cannot be made.
///
/// ```
/// use everbloom::{BloomFilter, BuildError};
/// let builder = BloomFilter::builder();
/// assert_eq!(builder.capacity(0).build(), Err(BuildError::Capacity));
/// assert_eq!(builder.capacity(10).error_rate(1.5).build(), Err(BuildError::ErrorRate));
/// assert_eq!(builder.bits(1024).build(), Err(BuildError::Hashes));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BuildError {
    /// The error rate is not strictly between 0 and 1.
    #[error("the error rate must be greater than 0 and less than 1")]
    ErrorRate,
    /// The capacity is 0.
    #[error("the capacity must be at least 1")]
    Capacity,
    /// The hash count is 0 or too large, or it does not follow from what was given.
    #[error(
        "the hash count is missing or out of its range: 1 to {}, in the blocked layout {} to {}",
        crate::sizing::MAX_HASHES,
        crate::sizing::blocked::MIN_HASHES,
        crate::sizing::blocked::MAX_HASHES
    )]
    Hashes,
    /// The bit count is 0.
    #[error("the bit count must be at least 1")]
    Bits,
    /// A bit count was given together with both a hash count and an error rate, or a hash count
    /// without a bit count.
    #[error("a bit count and a hash count belong together and leave no error rate to choose")]
    Conflict,
    /// No size fits: the bits are too many to count, or the error rate is below
    /// [`MIN_RATE`](crate::sizing::blocked::MIN_RATE). A
    /// [`ScalableBloomFilter`](crate::ScalableBloomFilter) in the classic layout takes any rate
    /// half of which is not 0, as RedisBloom does.
    #[error("no filter has such a capacity and error rate")]
    Unsizable,
    /// A key or a seed was given for the classic layout, whose hash has none.
    #[error("a key or a seed is for the blocked layout")]
    UnexpectedKey,
    /// The blocked layout needs a key or a seed where no system provides random numbers.
    #[error("the blocked layout needs a key or a seed")]
    NoKey,
    /// The classic layout was given where only the blocked one is possible.
    #[error("only a filter in the blocked layout can be changed by several threads at once")]
    Layout,
    /// A window was given for the classic layout, or its numbers are out of range.
    #[error("a window needs the blocked layout, a length, and 1 to 64 generations")]
    Window,
    /// A layer would be larger than the limit.
    #[error("a bit array of {bytes} bytes is over the limit")]
    TooLarge {
        /// The bytes it would need.
        bytes: u64,
    },
    /// The allocator refused.
    #[error("no memory for a bit array of {bytes} bytes")]
    OutOfMemory {
        /// The bytes it would need.
        bytes: u64,
    },
}

/// Why an item was not inserted.
///
/// ```
/// use everbloom::{InsertError, ScalableBloomFilter};
/// let mut seen = ScalableBloomFilter::builder().capacity(1).fixed().build()?;
/// assert_eq!(seen.try_insert("a"), Ok(true));
/// assert_eq!(seen.try_insert("a"), Ok(false));
/// assert_eq!(seen.try_insert("b"), Err(InsertError::Full));
/// # Ok::<(), everbloom::BuildError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InsertError {
    /// The filter does not grow and has reached its capacity; or it is a cuckoo filter without room
    /// for this item.
    #[error("the filter is full")]
    Full,
    /// The newest layer is full and no further one can be made: its error rate or its capacity
    /// would be 0, it would be over a limit, or there is no memory.
    #[error("the filter cannot grow")]
    CannotGrow,
}

/// Why a cuckoo filter cannot be made from these parameters or from these parts.
///
/// ```
/// use everbloom::{CuckooError, CuckooFilter};
/// assert_eq!(CuckooFilter::builder().bucket_size(0).build(), Err(CuckooError::BucketSize));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CuckooError {
    /// The bucket size is 0.
    #[error("the bucket size must be at least 1")]
    BucketSize,
    /// The first table has no buckets, or their number is no power of two, or is 2^56 or more.
    #[error("the buckets of the first table must be a power of two below 2^56")]
    Buckets,
    /// The most kicks are 0.
    #[error("the most kicks must be at least 1")]
    Kicks,
    /// The expansion is above [`MAX_EXPANSION`](crate::CuckooFilter::MAX_EXPANSION).
    #[error("the expansion must be at most 32768")]
    Expansion,
    /// There is no table, or there are several although the expansion is 0.
    #[error("a filter has one table, or several when it grows")]
    Tables,
    /// The number of slots of a table does not match its buckets.
    #[error("table {table}: the slots are not as many as its buckets have")]
    Slots {
        /// Which table, from 0.
        table: usize,
    },
    /// The tables together are over the limit.
    #[error("the tables are larger than {limit} bytes")]
    TooLarge {
        /// The limit.
        limit: u64,
    },
    /// The allocator refused.
    #[error("no memory for the tables")]
    OutOfMemory,
}

/// The error of the first rule that is broken.
pub(crate) fn first_broken<E>(rules: impl IntoIterator<Item = (bool, E)>) -> Result<(), E> {
    let broken = rules.into_iter().find(|(holds, _)| !holds);
    broken.map_or(Ok(()), |(_, error)| Err(error))
}

/// Returns the filter, or panics with the error.
#[cfg(feature = "std")]
#[track_caller]
#[expect(clippy::panic, reason = "the constructors that call this say so")]
pub(crate) fn or_panic<T>(built: Result<T, impl core::fmt::Display>) -> T {
    match built {
        Ok(built) => built,
        // Not in a closure, whose place in the source would be named instead of the caller's.
        Err(error) => panic!("{error}"),
    }
}
