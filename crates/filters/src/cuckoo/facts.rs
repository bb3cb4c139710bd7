//! Properties of a whole cuckoo filter.

use core::mem::size_of;

use super::CuckooFilter;
use super::table::Table;
use crate::bloom::stats::Stats;
use crate::hash::Key;
use crate::math::{exp_m1, ln_1p};

impl CuckooFilter {
    /// Items inserted and not removed.
    ///
    /// ```
    /// # use everbloom::CuckooFilter;
    /// let mut filter = CuckooFilter::builder().slots(1000).bucket_size(4).build()?;
    /// filter.insert("a")?;
    /// assert_eq!((filter.len(), filter.is_empty(), filter.removed()), (1, false, 0));
    /// assert_eq!((filter.tables(), filter.buckets(), filter.slots()), (1, 256, 1024));
    /// assert_eq!((filter.bucket_size(), filter.max_kicks()), (4, 20));
    /// assert_eq!((filter.used(), filter.stats().fill_ratio), (1, 1.0 / 1024.0));
    /// assert!(filter.memory_usage() > 1024);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn len(&self) -> u64 {
        self.items
    }

    /// Whether it has no items. [Example](Self::len).
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.items == 0
    }

    /// The key of the hash, in a filter with a chosen error rate. RedisBloom's kind has none.
    ///
    /// ```
    /// # use everbloom::{CuckooFilter, hash::Key};
    /// let builder = CuckooFilter::builder().capacity(100).error_rate(0.01);
    /// assert_eq!(builder.seed(7).build()?.key(), Some(Key::from_seed(7)));
    /// assert_eq!(CuckooFilter::new(100).key(), None);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    #[must_use]
    pub fn key(&self) -> Option<Key> {
        self.keyed.as_ref().map(|keyed| keyed.parts.key)
    }

    /// Items removed since the last compaction. [Example](Self::compact).
    #[must_use]
    pub fn removed(&self) -> u64 {
        self.removed
    }

    /// The number of tables; at least one. [Example](Self::len).
    #[must_use]
    pub fn tables(&self) -> usize {
        self.tables.len()
    }

    /// The buckets of the first table. [Example](Self::len).
    #[must_use]
    pub fn buckets(&self) -> u64 {
        self.tables.first().map_or(0, Table::buckets)
    }

    /// The slots of all tables. [Example](Self::len).
    #[must_use]
    pub fn slots(&self) -> u64 {
        self.tables.iter().map(Table::len).sum()
    }

    /// The most slots in use that its tables allow: all of them, or with a chosen error rate 19 of
    /// 20. No filter takes more items before it grows. With a chosen error rate it takes at least
    /// those of the [builder's capacity](crate::CuckooBuilder::capacity), if all are different; of
    /// the slots beyond, which are there for chance, a small filter may leave some unused.
    ///
    /// ```
    /// # use everbloom::CuckooFilter;
    /// let builder = CuckooFilter::builder().capacity(1000);
    /// let filter = builder.error_rate(0.001).seed(7).build()?;
    /// assert_eq!((filter.slots(), filter.capacity()), (1080, 1026));
    /// assert_eq!(CuckooFilter::new(1000).capacity(), 2048);
    /// # Ok::<(), everbloom::redisbloom::CuckooError>(())
    /// ```
    #[must_use]
    pub fn capacity(&self) -> u64 {
        self.tables.iter().map(Table::capacity).sum()
    }

    /// The bytes of the slots of all tables, which are those of
    /// [`stream_chunk`](Self::stream_chunk). A slot is one byte, or as many bits as the error rate
    /// needs.
    ///
    /// ```
    /// # use everbloom::CuckooFilter;
    /// let builder = CuckooFilter::builder().capacity(1000);
    /// let filter = builder.error_rate(0.001).seed(7).build()?;
    /// assert_eq!((filter.slots(), filter.stream_len()), (1080, 1080 * 13 / 8));
    /// assert_eq!(CuckooFilter::new(1000).stream_len(), 2048);
    /// # Ok::<(), everbloom::redisbloom::CuckooError>(())
    /// ```
    #[must_use]
    pub fn stream_len(&self) -> u64 {
        self.tables.iter().map(Table::bytes).sum()
    }

    /// The bytes of all tables, as limits count them: the slots, and for each table except the
    /// first its [overhead](Self::BYTES_BESIDE_SLOTS).
    ///
    /// ```
    /// # use everbloom::CuckooFilter;
    /// let mut filter = CuckooFilter::builder().slots(8).build()?;
    /// assert_eq!(filter.table_bytes(), 8);
    /// while filter.tables() == 1 {
    ///     filter.insert("a")?;
    /// }
    /// assert_eq!(filter.table_bytes(), 16 + CuckooFilter::BYTES_BESIDE_SLOTS);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn table_bytes(&self) -> u64 {
        let more = (self.tables.len() as u64).saturating_sub(1);
        self.stream_len() + more * Self::BYTES_BESIDE_SLOTS
    }

    /// Slots of a bucket. [Example](Self::len).
    #[must_use]
    pub fn bucket_size(&self) -> u8 {
        self.bucket_size
    }

    /// The most fingerprints that are moved to free a slot for one. [Example](Self::len).
    #[must_use]
    pub fn max_kicks(&self) -> u16 {
        self.max_kicks
    }

    /// The growth factor from one table's bucket count to the next; 0 when the filter does not
    /// grow.
    ///
    /// ```
    /// # use everbloom::redisbloom::CuckooError;
    /// # use everbloom::CuckooFilter;
    /// let builder = CuckooFilter::builder();
    /// assert_eq!(builder.expansion(3).build()?.expansion(), 4);
    /// let beyond = CuckooFilter::MAX_EXPANSION + 1;
    /// assert_eq!(builder.expansion(beyond).build(), Err(CuckooError::Expansion));
    /// # Ok::<(), CuckooError>(())
    /// ```
    #[must_use]
    pub fn expansion(&self) -> u16 {
        self.expansion
    }

    /// The slots of all tables that are in use. [Example](Self::len).
    #[must_use]
    pub fn used(&self) -> u64 {
        self.tables.iter().map(|table| table.used).sum()
    }

    /// The contents and error rate of the filter. Takes time linear in the number of tables.
    /// [Example](Stats).
    ///
    /// The error rate to expect is 1 − (1 − 1/255)<sup>2bl</sup>, where l is the load of all tables
    /// added up. A lookup compares with 2bl fingerprints, of which each is the item's with
    /// probability 1/255 (section 5.1 of the paper, with 255 for 2<sup>f</sup> and the slots in
    /// use). With a chosen error rate each table has its own number of fingerprints instead of 255.
    ///
    /// ```
    /// # let mut filter = everbloom::CuckooFilter::new(1000);
    /// for item in 0..600 {
    ///     filter.insert(&item)?;
    /// }
    /// let errors = (600..100_600).filter(|item| filter.contains(item)).count();
    /// let rate = filter.stats().estimated_error_rate;
    /// assert!(rate < filter.full_error_rate() && filter.full_error_rate() < 0.0157);
    /// assert!((errors as f64 / 100_000.0 - rate).abs() < 0.002);
    /// # Ok::<(), everbloom::InsertError>(())
    /// ```
    #[must_use]
    pub fn stats(&self) -> Stats {
        Stats {
            items: self.items,
            estimated_items: self.used(),
            capacity: Some(self.capacity()),
            bits: self.stream_len().saturating_mul(8),
            hashes: 2,
            fill_ratio: self.used() as f64 / self.slots() as f64,
            error_rate: self.keyed.as_ref().map(|keyed| keyed.parts.error_rate),
            estimated_error_rate: error_rate(&self.tables, |table| {
                table.used as f64 / table.len() as f64
            }),
        }
    }

    /// The error rate when every slot of all tables is in use: 1 − (1 − 1/255)<sup>2bt</sup> for t
    /// tables. With a chosen error rate, that of full tables, which is at most as large.
    /// [Example](Self::stats).
    #[must_use]
    pub fn full_error_rate(&self) -> f64 {
        error_rate(&self.tables, |table| {
            table.capacity() as f64 / table.len() as f64
        })
    }

    /// The memory of the filter in bytes, the struct included. [Example](Self::len).
    #[must_use]
    pub fn memory_usage(&self) -> usize {
        let slots: usize = self.tables.iter().map(|table| table.slots.len()).sum();
        let keyed = self.keyed.as_ref().map_or(0, |keyed| size_of_val(&**keyed));
        size_of::<Self>() + keyed + self.tables.heap_bytes() + slots + self.capture.memory_usage()
    }
}

/// The error rate of a lookup in tables of these loads.
fn error_rate(tables: &[Table], load: impl Fn(&Table) -> f64) -> f64 {
    let logarithms = tables.iter().map(|table| {
        let compared = 2.0 * f64::from(table.bucket_size()) * load(table);
        compared * ln_1p(-1.0 / table.fingerprints() as f64)
    });
    -exp_m1(logarithms.sum())
}
