//! Splitting a cuckoo filter into parts, and rebuilding it.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::num::NonZeroU64;

use super::keyed::KeyedParts;
use super::packed::BUCKET_SIZE;
use super::shape::{Packing, Shape};
use super::{Bytes, CuckooFilter, Keyed, MAX_EXPANSION, Packed, Table};
use crate::bits::memory::AllocError;
use crate::error::{CuckooError, first_broken};
use crate::layer::capture::Capture;

/// Everything about a cuckoo filter except its slots.
///
/// Table i, from 0, has `buckets * expansion^i` buckets of `bucket_size` slots. A slot is a byte, or
/// has the [width](KeyedParts::width_of) that the error rate needs.
///
/// The expansion of a filter made by [`CuckooBuilder`](crate::CuckooBuilder) is a power of two.
/// Parts from outside may have other values, as in RedisBloom. Such a filter misses items, in
/// RedisBloom and here: the two buckets of a fingerprint do not lead to each other, so lookups miss
/// a moved fingerprint.
///
/// ```
/// use everbloom::CuckooFilter;
/// let mut filter = CuckooFilter::new(1000);
/// filter.insert("a")?;
/// let parts = filter.parts();
/// assert_eq!((parts.items, parts.buckets, parts.tables), (1, 1024, 1));
///
/// let mut copy = CuckooFilter::from_parts(&parts, 1 << 20)?;
/// let mut at = 0;
/// while let Some(chunk) = filter.stream_chunk(at, 1 << 16) {
///     copy.load_chunk(at, &chunk)?;
///     at += chunk.len() as u64;
/// }
/// assert_eq!(at, filter.slots());
/// assert_eq!(copy, filter);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CuckooParts {
    /// Items inserted and not removed.
    pub items: u64,
    /// Items removed since the last compaction.
    pub removed: u64,
    /// The buckets of the first table.
    pub buckets: u64,
    /// The number of tables.
    pub tables: u16,
    /// Slots of a bucket.
    pub bucket_size: u8,
    /// The most fingerprints that are moved to free a slot for one.
    pub max_kicks: u16,
    /// How many times the buckets of a table the next one has.
    pub expansion: u16,
    /// What a filter with a chosen error rate has in addition. `None` in a filter of RedisBloom's
    /// kind.
    pub keyed: Option<KeyedParts>,
}

impl CuckooParts {
    /// Checks everything that a filter's parts must satisfy; allocates nothing. `limit` is the most
    /// bytes that its tables may take.
    ///
    /// ```
    /// # use everbloom::redisbloom::CuckooError;
    /// # use everbloom::CuckooFilter;
    /// let mut parts = CuckooFilter::builder().parts()?;
    /// assert_eq!(parts.validate(2000), Ok(()));
    /// assert_eq!(parts.validate(1000), Err(CuckooError::TooLarge { limit: 1000 }));
    /// parts.buckets = 3;
    /// assert_eq!(parts.validate(2000), Err(CuckooError::Buckets));
    /// # Ok::<(), CuckooError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The first rule that is broken.
    pub fn validate(&self, limit: u64) -> Result<(), CuckooError> {
        let is_growing = self.expansion > 0;
        let buckets = match self.keyed {
            None => self.buckets.is_power_of_two(),
            Some(_) => self.buckets > 0 && self.buckets.is_multiple_of(2),
        };
        let bucket_size = match self.keyed {
            None => self.bucket_size > 0,
            Some(_) => self.bucket_size == BUCKET_SIZE,
        };
        first_broken([
            (bucket_size, CuckooError::BucketSize),
            (self.max_kicks > 0, CuckooError::Kicks),
            (self.expansion <= MAX_EXPANSION, CuckooError::Expansion),
            (
                self.tables == 1 || self.tables > 1 && is_growing,
                CuckooError::Tables,
            ),
            (buckets && self.buckets < 1 << 56, CuckooError::Buckets),
        ])?;
        if let Some(keyed) = &self.keyed {
            keyed.validate(is_growing)?;
            if keyed
                .width_of(usize::from(self.tables.saturating_sub(1)))
                .is_none()
            {
                return Err(CuckooError::Tables);
            }
            if is_growing && !self.expansion.is_power_of_two() {
                return Err(CuckooError::Expansion);
            }
        }
        match self.bytes() {
            Some(bytes) if bytes <= limit => Ok(()),
            _ => Err(CuckooError::TooLarge { limit }),
        }
    }

    /// The bytes of memory of all tables, if they are countable. A table takes some beside its
    /// slots, so that tables of few slots count, too.
    fn bytes(&self) -> Option<u64> {
        let mut sum = 0_u64;
        for number in 0..self.tables {
            let (_, bytes) = self.table(number)?;
            sum = sum.checked_add(bytes)?;
            // The first has its place within the filter.
            if number > 0 {
                sum = sum.checked_add(CuckooFilter::BYTES_BESIDE_SLOTS)?;
            }
        }
        Some(sum)
    }

    /// The shape of a table by its number, if there is one with so many buckets and bits.
    pub(super) fn shape(&self, number: usize) -> Option<Shape> {
        let factor = u64::from(self.expansion).checked_pow(u32::try_from(number).ok()?)?;
        let buckets = self.buckets.checked_mul(factor)?;
        let packing = match &self.keyed {
            None => None,
            Some(keyed) => {
                let width = keyed.width_of(number)?;
                let shift = factor.trailing_zeros();
                Some(Packing {
                    width,
                    more: width.get().checked_sub(keyed.width)?,
                    shift: u8::try_from(shift).ok()?,
                })
            }
        };
        Some(Shape {
            buckets: NonZeroU64::new(buckets)?,
            bucket_size: self.bucket_size,
            packing,
        })
    }

    /// The buckets and the bytes of a table by its number, if they are countable.
    ///
    /// ```
    /// # use everbloom::redisbloom::CuckooError;
    /// # use everbloom::CuckooFilter;
    /// let parts = CuckooFilter::builder().expansion(4).parts()?;
    /// assert_eq!((parts.table(0), parts.table(1)), (Some((512, 1024)), Some((2048, 4096))));
    /// assert_eq!(parts.table(60), None);
    /// # Ok::<(), CuckooError>(())
    /// ```
    #[must_use]
    pub fn table(&self, number: u16) -> Option<(u64, u64)> {
        let shape = self.shape(number.into())?;
        Some((shape.buckets.get(), shape.bytes()?))
    }

    /// The most items that a table takes, by its number, and how many fingerprints there are in it,
    /// if they are countable.
    ///
    /// ```
    /// # use everbloom::redisbloom::CuckooError;
    /// # use everbloom::CuckooFilter;
    /// let parts = CuckooFilter::builder().parts()?;
    /// assert_eq!(parts.table_capacity(0), Some((1024, 255)));
    /// let parts = CuckooFilter::builder().capacity(1000).error_rate(0.01).seed(1).parts()?;
    /// assert_eq!(parts.table_capacity(0), Some((1026, 1023)));
    /// # Ok::<(), CuckooError>(())
    /// ```
    #[must_use]
    pub fn table_capacity(&self, number: u16) -> Option<(u64, u64)> {
        let shape = self.shape(number.into())?;
        shape.slots()?;
        Some((shape.capacity(), shape.fingerprints()))
    }
}

impl CuckooFilter {
    /// Everything about the filter except its slots. [Example](CuckooParts).
    #[must_use]
    pub fn parts(&self) -> CuckooParts {
        CuckooParts {
            items: self.items,
            removed: self.removed,
            buckets: self.buckets(),
            // A filter never has more.
            tables: u16::try_from(self.tables.len()).unwrap_or(u16::MAX),
            bucket_size: self.bucket_size,
            max_kicks: self.max_kicks,
            expansion: self.expansion,
            keyed: self.keyed.as_ref().map(|keyed| keyed.parts),
        }
    }

    /// A filter of these parts, all its slots empty; [`load_chunk`](Self::load_chunk) fills them.
    /// `limit` is the most bytes all tables may take together. [Example](CuckooParts).
    ///
    /// # Errors
    ///
    /// The first rule that the parts break, or that there is no memory.
    pub fn from_parts(parts: &CuckooParts, limit: u64) -> Result<CuckooFilter, CuckooError> {
        parts.validate(limit)?;
        Self::assembled(parts, |shape, _| {
            Table::empty(shape).map_err(|AllocError| CuckooError::OutOfMemory)
        })
    }

    /// As [`from_parts`](Self::from_parts), with the slots of each table. A vector without spare
    /// capacity becomes part of the filter without being copied.
    ///
    /// ```
    /// # use everbloom::redisbloom::CuckooError;
    /// # use everbloom::CuckooFilter;
    /// let parts = CuckooFilter::builder().slots(4).parts()?;
    /// let full = CuckooFilter::from_parts_and_slots(&parts, vec![vec![1; 4]], 1 << 20)?;
    /// assert_eq!(full.stats().fill_ratio, 1.0);
    /// let error = CuckooFilter::from_parts_and_slots(&parts, vec![vec![1; 5]], 1 << 20);
    /// assert_eq!(error, Err(CuckooError::Slots { table: 0 }));
    /// # Ok::<(), CuckooError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The first rule that the parts break, or that there is no memory.
    pub fn from_parts_and_slots(
        parts: &CuckooParts,
        slots: Vec<Vec<u8>>,
        limit: u64,
    ) -> Result<CuckooFilter, CuckooError> {
        parts.validate(limit)?;
        let mut slots = slots.into_iter();
        Self::assembled(parts, |shape, table| {
            let table_of = |slots| match shape.packing {
                None => Table::with_slots::<Bytes>(shape, slots),
                Some(_) => Table::with_slots::<Packed>(shape, slots),
            };
            slots
                .next()
                .and_then(table_of)
                .ok_or(CuckooError::Slots { table })
        })
    }

    /// `make` makes each table from its shape and its number.
    fn assembled(
        parts: &CuckooParts,
        mut make: impl FnMut(Shape, usize) -> Result<Table, CuckooError>,
    ) -> Result<CuckooFilter, CuckooError> {
        let mut tables = Vec::new();
        tables
            .try_reserve_exact(parts.tables.into())
            .map_err(|_| CuckooError::OutOfMemory)?;
        for number in 0..parts.tables {
            let shape = parts.shape(number.into()).ok_or(CuckooError::Buckets)?;
            tables.push(make(shape, number.into())?);
        }
        Ok(CuckooFilter {
            tables: tables.into(),
            items: parts.items,
            removed: parts.removed,
            max_kicks: parts.max_kicks,
            expansion: parts.expansion,
            bucket_size: parts.bucket_size,
            keyed: parts.keyed.map(|keyed| Box::new(Keyed::new(keyed))),
            capture: Capture::default(),
        })
    }
}
