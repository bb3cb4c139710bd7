//! Errors of making a filter and of inserting an item, and what gives an error its words.

/// Implements `Display` and `Error` for an enum: a text for each variant, which may name its
/// fields.
///
/// A procedural macro would be most of what a program with one filter compiles.
macro_rules! messages {
    ($name:ident {
        $($variant:ident $(($value:ident))? $({ $($field:ident),+ })?
            => $text:literal $(, $number:expr)*;)+
    }) => {
        impl core::fmt::Display for $name {
            fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                match self {
                    $($name::$variant $(($value))? $({ $($field),+ })?
                        => write!(out, $text $(, $number)*),)+
                }
            }
        }

        impl core::error::Error for $name {}
    };
}

/// Why a filter cannot be made.
///
/// ```
/// use everbloom::{BloomFilter, BuildError};
/// let builder = BloomFilter::builder();
/// assert_eq!(builder.capacity(0).build(), Err(BuildError::Capacity));
/// assert_eq!(builder.capacity(10).error_rate(1.5).build(), Err(BuildError::ErrorRate));
/// assert_eq!(builder.bits(1024).build(), Err(BuildError::Hashes));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BuildError {
    /// The error rate is not strictly between 0 and 1.
    ErrorRate,
    /// The capacity is 0.
    Capacity,
    /// The hash count is 0 or too large, or it does not follow from what was given.
    Hashes,
    /// The bit count is 0.
    Bits,
    /// A bit count was given together with both a hash count and an error rate, or a hash count
    /// without a bit count.
    Conflict,
    /// No size fits: the bits are too many to count, or the error rate is below
    /// [`MIN_RATE`](crate::sizing::BlockedSize::MIN_RATE). A
    /// [`ScalableBloomFilter`](crate::ScalableBloomFilter) in the classic layout takes any rate
    /// half of which is not 0, as RedisBloom does.
    Unsizable,
    /// A key or a seed was given for the classic layout, whose hash has none.
    UnexpectedKey,
    /// The blocked layout needs a key or a seed where no system provides random numbers.
    NoKey,
    /// The classic layout was given where only the blocked one is possible.
    Layout,
    /// A window was given for the classic layout, or its numbers are out of range.
    Window,
    /// A layer would be larger than the limit.
    TooLarge {
        /// The bytes it would need.
        bytes: u64,
    },
    /// The allocator refused.
    OutOfMemory {
        /// The bytes it would need.
        bytes: u64,
    },
}

messages! {
    BuildError {
        ErrorRate => "the error rate must be greater than 0 and less than 1";
        Capacity => "the capacity must be at least 1";
        Hashes =>
            "the hash count is missing or out of its range: 1 to {}, in the blocked layout {} to \
             {}",
            crate::sizing::LayerSize::MAX_HASHES,
            crate::sizing::BlockedSize::MIN_HASHES,
            crate::sizing::BlockedSize::MAX_HASHES;
        Bits => "the bit count must be at least 1";
        Conflict =>
            "a bit count and a hash count belong together and leave no error rate to choose";
        Unsizable => "no filter has such a capacity and error rate";
        UnexpectedKey => "a key or a seed is for the blocked layout";
        NoKey => "the blocked layout needs a key or a seed";
        Layout => "only a filter in the blocked layout can be changed by several threads at once";
        Window => "a window needs the blocked layout, a length, and 1 to 64 generations";
        TooLarge { bytes } => "a bit array of {bytes} bytes is over the limit";
        OutOfMemory { bytes } => "no memory for a bit array of {bytes} bytes";
    }
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InsertError {
    /// The filter does not grow and has reached its capacity; or it is a cuckoo filter without room
    /// for this item.
    Full,
    /// The newest layer is full and there is no further one: its error rate would be too low, its
    /// capacity cannot be counted, or it would be over a limit.
    CannotGrow,
    /// The newest layer is full, and the allocator refused the memory of a further one.
    OutOfMemory {
        /// The bytes it would need.
        bytes: u64,
    },
    /// A cuckoo filter with a chosen error rate has no room for one more copy of an item that it
    /// has, and does not grow for copies while less than an eighth of its newest table is in use.
    Copies,
}

messages! {
    InsertError {
        Full => "the filter is full";
        CannotGrow => "the filter cannot grow";
        OutOfMemory { bytes } => "no memory for the {bytes} bytes by which the filter must grow";
        Copies => "a table that is nearly empty has no room for one more copy of the item";
    }
}

impl InsertError {
    /// A full filter needs a layer that cannot be made.
    pub(crate) fn of_growth(error: BuildError) -> InsertError {
        /// More than any processor can address, so such a size comes from forged parameters.
        const UNADDRESSABLE: u64 = 1 << 57;
        match error {
            BuildError::OutOfMemory { bytes } if bytes < UNADDRESSABLE => {
                InsertError::OutOfMemory { bytes }
            }
            _ => InsertError::CannotGrow,
        }
    }
}

/// Why a cuckoo filter cannot be made from these parameters or from these parts.
///
/// ```
/// use everbloom::redisbloom::CuckooError;
/// use everbloom::CuckooFilter;
/// assert_eq!(CuckooFilter::builder().bucket_size(0).build(), Err(CuckooError::BucketSize));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CuckooError {
    /// The bucket size is 0.
    BucketSize,
    /// The first table has no buckets, or their number is no power of two (with a chosen error rate:
    /// is odd), or is 2^56 or more.
    Buckets,
    /// The most kicks are 0.
    Kicks,
    /// The expansion is above [`MAX_EXPANSION`](crate::CuckooFilter::MAX_EXPANSION), or with a
    /// chosen error rate it is no power of two.
    Expansion,
    /// The error rate is out of its range, or the widths of the fingerprints do not give it.
    ErrorRate,
    /// An error rate was given together with slots, a bucket size or kicks, or without a capacity.
    Conflict,
    /// A key or a seed was given without an error rate: RedisBloom's kind has none.
    UnexpectedKey,
    /// A filter with a chosen error rate needs a key or a seed where no system provides random
    /// numbers.
    NoKey,
    /// There is no table, or there are several although the expansion is 0, or so many that the
    /// fingerprints of the last one would have more than 56 bits.
    Tables,
    /// The number of slots of a table does not match its buckets.
    Slots {
        /// Which table, from 0.
        table: usize,
    },
    /// The tables together are over the limit.
    TooLarge {
        /// The limit.
        limit: u64,
    },
    /// The allocator refused.
    OutOfMemory,
}

messages! {
    CuckooError {
        BucketSize => "the bucket size must be at least 1";
        Buckets =>
            "the buckets of the first table must be a power of two below 2^56, or with an error \
             rate an even number";
        Kicks => "the most kicks must be at least 1";
        Expansion => "the expansion must be at most 32768, and with an error rate a power of two";
        ErrorRate => "the error rate must be from 1e-9 to 0.5";
        Conflict =>
            "an error rate goes with a capacity; it leaves no slots, bucket size or kicks to choose";
        UnexpectedKey => "a key or a seed is for cuckoo filters with an error rate";
        NoKey => "a cuckoo filter with an error rate needs a key or a seed";
        Tables =>
            "a filter has one table, or several when it grows: with an error rate only as many as \
             have fingerprints of 56 bits or less";
        Slots { table } => "table {table}: the slots are not as many as its buckets have";
        TooLarge { limit } => "the tables are larger than {limit} bytes";
        OutOfMemory => "no memory for the tables";
    }
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
