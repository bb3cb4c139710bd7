//! A filter whose items can be removed.
//!
//! (Fan, Andersen, Kaminsky and Mitzenmacher, "Cuckoo Filter: Practically Better Than Bloom",
//! 2014.) The filter keeps a fingerprint of each item, in one of two buckets. When both are full,
//! another fingerprint of the bucket makes room and goes to its own other bucket. That bucket is
//! found from the fingerprint alone, so the item is not needed for it.
//!
//! There are two kinds. RedisBloom's has fingerprints of one byte, and the [reference's
//! hash](place). In a filter with a chosen error rate ([`keyed`]) the fingerprints are as long as
//! the rate needs, and [`packed`]. All else is written once, for either [`Scheme`].

pub(crate) mod builder;
mod bytes;
mod closed;
mod compact;
mod facts;
mod growth;
pub(crate) mod keyed;
mod packed;
pub(crate) mod parts;
mod place;
mod shape;
mod table;
mod union;

use alloc::boxed::Box;
use core::fmt;
use core::mem::size_of;
use core::ops::ControlFlow;

use smallvec::SmallVec;

use crate::error::InsertError;
use crate::hash::CuckooHash;
use crate::hash::item::Item;
use crate::layer::capture::Capture;
use crate::limits::{self, MAX_GROUP};
use crate::list::List;
pub(crate) use bytes::Bytes;
pub(crate) use keyed::Keyed;
pub(crate) use packed::Packed;
use parts::CuckooParts;
pub(crate) use place::Place;
pub(crate) use table::{Scheme, Table, Watch};

/// The largest expansion.
pub(crate) const MAX_EXPANSION: u16 = 32768;

/// The most tables a filter grows to.
pub(crate) const MAX_TABLES: usize = u16::MAX as usize;

/// A filter whose items can be removed, and that counts how often it has each.
///
/// ```
/// use everbloom::CuckooFilter;
///
/// let mut absent = CuckooFilter::builder().capacity(10_000).error_rate(0.001).build()?;
/// absent.insert("user 7")?;
/// assert!(absent.contains("user 7"));
///
/// assert!(absent.remove("user 7"));
/// assert!(!absent.contains("user 7"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Which kind
///
/// With an [error rate](crate::CuckooBuilder::error_rate) the filter keeps that rate, also when it
/// grows, and has a random key. Without one it equals, bit for bit, the value of a key of
/// RedisBloom's `CF.*` commands. Both beside a Bloom filter, which cannot remove items but is
/// several times faster; made for a million items and full (the example `deletable` has the times):
///
/// | filter | bits an item | error rate |
/// |---|--:|--:|
/// | `CuckooFilter`, error rate 1 % | 10.5 | 0.74 % |
/// | 0.1 % | 13.7 | 0.093 % |
/// | 0.01 % | 17.9 | 0.0057 % |
/// | 10<sup>−6</sup> | 24.2 | 10<sup>−6</sup> |
/// | `CuckooFilter` of RedisBloom's kind, bucket size 2 | 33.6 | 0.37 % |
/// | bucket size 4, 500 kicks | 8.4 | 2.9 % |
/// | [`BloomFilter`](crate::BloomFilter), 1 % | 9.9 | 0.99 % |
/// | 0.1 % | 15.6 | 0.098 % |
/// | 0.01 % | 22.1 | 0.010 % |
///
/// # What to know before
///
/// - **Remove only what was inserted.** If an item was never inserted but the filter finds it, it
///   shares its fingerprint and bucket with another item. Removing it removes that other item,
///   which lookups then miss. This is the only way in which a filter misses an item.
/// - **An item inserted again is stored again**, and is there until it was removed as often. A table
///   holds at most 2b copies of an item in buckets of size b, 8 with an error rate. One more makes
///   the filter grow by a table, and each lookup then reads two more buckets. With an error rate the
///   newest table must be used to an eighth for that; else the copy is refused with
///   [`InsertError::Copies`]. Items that the table does not have are still taken.
///   [`insert_if_absent`](Self::insert_if_absent) keeps one copy only. Copies fill the buckets
///   unevenly, too: when every item is there twice, a table takes 92 % of its capacity.
/// - **A filter that grows takes more memory.** It keeps its error rate by longer fingerprints: at
///   1 % those of the second table have 13 bits, and one more in each table after it. Give the
///   capacity that you expect.
///
/// # Of RedisBloom's kind
///
/// - **The error rate is not chosen.** It follows from the bucket size: a lookup compares one byte
///   with at most two buckets, so it errs for 1 − (1 − 1/255)<sup>2b</sup> of the other items when
///   all slots of buckets of size b are in use. That is 0.78 % for size 1, 1.56 % for size 2, 3.1 %
///   for size 4, and never less than 0.78 % in a full filter. Each table that it grows by adds as
///   much.
/// - **The hash is public.** An attacker who chooses the items can make any number of them share
///   their buckets.
///
/// The average load of its first table when an item finds no room in it, for 1024 slots and for a
/// million ([`expected_until_growth`](Self::expected_until_growth) is the forecast for one filter):
///
/// | bucket size | 20 kicks | 500 kicks | error rate when full |
/// |--:|--:|--:|--:|
/// | 1 | 51 %, 27 % | 54 %, 27 % | 0.78 % |
/// | 2 | 71 %, 45 % | 74 %, 46 % | 1.56 % |
/// | 4 | 90 %, 78 % | 97 %, 96 % | 3.1 % |
/// | 8 | 95 %, 87 % | 99.6 %, 99 % | 6.1 % |
#[derive(Clone, PartialEq)]
pub struct CuckooFilter {
    /// Oldest first, never empty.
    pub(crate) tables: List<Table>,
    pub(crate) items: u64,
    pub(crate) removed: u64,
    pub(crate) max_kicks: u16,
    pub(crate) expansion: u16,
    pub(crate) bucket_size: u8,
    /// Only with a chosen error rate.
    pub(crate) keyed: Option<Box<Keyed>>,
    pub(crate) capture: Capture,
}

/// What a compaction does after a table that some of the items cannot leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stuck {
    /// The older tables are emptied as far as possible, too.
    GoOn,
    /// The compaction ends.
    Stop,
}

impl CuckooFilter {
    /// The largest expansion. [Example](Self::expansion).
    pub const MAX_EXPANSION: u16 = MAX_EXPANSION;

    /// The bytes of each table except the first in addition to those of its slots. Limits count them,
    /// because small tables take memory, too. [Example](Self::table_bytes).
    pub const BYTES_BESIDE_SLOTS: u64 = size_of::<Table>() as u64;

    /// The item's place in every table.
    #[inline]
    pub(crate) fn place_of(&self, item: &(impl Item + ?Sized)) -> Place {
        match &self.keyed {
            None => Place::of(item.hash_with(&CuckooHash)),
            Some(keyed) => keyed.place_of(item),
        }
    }

    /// Inserts an item, even if it is there already.
    ///
    /// # Errors
    ///
    /// [`InsertError`] when there is no room for it: nothing has changed then.
    pub fn insert<T: Item + ?Sized>(&mut self, item: &T) -> Result<(), InsertError> {
        self.insert_place(self.place_of(item), u64::MAX)
    }

    /// Inserts an item unless it seems to be there; true when it was inserted.
    ///
    /// ```
    /// # let mut filter = everbloom::CuckooFilter::new(1000);
    /// assert_eq!(filter.insert_if_absent("a"), Ok(true));
    /// assert_eq!(filter.insert_if_absent("a"), Ok(false));
    /// assert_eq!(filter.count("a"), 1);
    /// ```
    ///
    /// # Errors
    ///
    /// [`InsertError`] when there is no room for it: nothing has changed then.
    pub fn insert_if_absent<T: Item + ?Sized>(&mut self, item: &T) -> Result<bool, InsertError> {
        self.insert_place_if_absent(self.place_of(item), u64::MAX)
    }

    /// Whether the item was inserted and not removed: false is certain as long as only inserted
    /// items are removed, true may be an error.
    #[must_use]
    pub fn contains<T: Item + ?Sized>(&self, item: &T) -> bool {
        self.contains_place(self.place_of(item))
    }

    /// How often the item was inserted and not removed, or more when other items share its
    /// fingerprint and buckets. If both of its buckets are the same one, each copy counts twice.
    ///
    /// ```
    /// # let mut filter = everbloom::CuckooFilter::new(1000);
    /// filter.insert("a")?;
    /// filter.insert("a")?;
    /// assert_eq!((filter.count("a"), filter.count("b")), (2, 0));
    /// # Ok::<(), everbloom::InsertError>(())
    /// ```
    #[must_use]
    pub fn count<T: Item + ?Sized>(&self, item: &T) -> u64 {
        let place = self.place_of(item);
        let tables = self.tables.iter();
        match self.keyed {
            None => tables.map(|table| table.count::<Bytes>(place)).sum(),
            Some(_) => tables.map(|table| table.count::<Packed>(place)).sum(),
        }
    }

    /// Removes an item once; false when it is not there. Only for items that were inserted, see
    /// [above](Self).
    ///
    /// When more than a tenth of the items were removed, a filter of several tables
    /// [compacts](Self::compact) itself, which takes time linear in its size.
    pub fn remove<T: Item + ?Sized>(&mut self, item: &T) -> bool {
        self.remove_place(self.place_of(item))
    }

    /// Calls `emit` with [`contains`](Self::contains) of each item in turn. The memory of a group
    /// of items is prefetched before the first of them is looked up. It reads ahead in the
    /// iterator.
    ///
    /// ```
    /// # let mut filter = everbloom::CuckooFilter::new(1000);
    /// filter.insert("a")?;
    /// let mut found = Vec::new();
    /// filter.contains_each(["a", "b"], |one| found.push(one));
    /// assert_eq!(found, [true, false]);
    /// # Ok::<(), everbloom::InsertError>(())
    /// ```
    pub fn contains_each(&self, items: impl IntoIterator<Item: Item>, mut emit: impl FnMut(bool)) {
        let mut items = items.into_iter();
        let mut group = SmallVec::<[Place; MAX_GROUP]>::new();
        while self.prepare_group(&mut items, &mut group) {
            let places = group.iter();
            places.for_each(|place| emit(self.contains_place(*place)));
        }
    }

    /// Calls `emit` with [`insert`](Self::insert) of each item in turn. When `emit` breaks, the
    /// items after that one are not inserted. It reads ahead in the iterator. New tables may take
    /// `max_growth` bytes together, those [beside their slots](Self::BYTES_BESIDE_SLOTS) included;
    /// an item that would need more is refused.
    ///
    /// ```
    /// # let mut filter = everbloom::CuckooFilter::new(1000);
    /// filter.insert_each(["a", "b", "a"], u64::MAX, |reply| {
    ///     assert_eq!(reply, Ok(()));
    ///     std::ops::ControlFlow::Continue(())
    /// });
    /// assert_eq!(filter.count("a"), 2);
    /// ```
    pub fn insert_each(
        &mut self,
        items: impl IntoIterator<Item: Item>,
        max_growth: u64,
        emit: impl FnMut(Result<(), InsertError>) -> ControlFlow<()>,
    ) {
        self.insert_groups(items, max_growth, Self::insert_place, emit);
    }

    /// [`insert_each`](Self::insert_each) with [`insert_if_absent`](Self::insert_if_absent):
    /// `Ok(false)` is an item that seems to be there.
    ///
    /// ```
    /// # let mut filter = everbloom::CuckooFilter::new(1000);
    /// let mut replies = Vec::new();
    /// filter.insert_each_if_absent(["a", "b", "a"], u64::MAX, |reply| {
    ///     replies.push(reply);
    ///     std::ops::ControlFlow::Continue(())
    /// });
    /// assert_eq!(replies, [Ok(true), Ok(true), Ok(false)]);
    /// ```
    pub fn insert_each_if_absent(
        &mut self,
        items: impl IntoIterator<Item: Item>,
        max_growth: u64,
        emit: impl FnMut(Result<bool, InsertError>) -> ControlFlow<()>,
    ) {
        self.insert_groups(items, max_growth, Self::insert_place_if_absent, emit);
    }

    #[inline]
    fn insert_groups<T>(
        &mut self,
        items: impl IntoIterator<Item: Item>,
        max_growth: u64,
        insert: impl Fn(&mut Self, Place, u64) -> Result<T, InsertError>,
        mut emit: impl FnMut(Result<T, InsertError>) -> ControlFlow<()>,
    ) {
        let mut items = items.into_iter();
        let (mut left, mut tables) = (max_growth, self.tables.len());
        let mut group = SmallVec::<[Place; MAX_GROUP]>::new();
        while self.prepare_group(&mut items, &mut group) {
            for &place in &group {
                let reply = insert(self, place, left);
                if self.tables.len() > tables {
                    tables = self.tables.len();
                    let bytes = self.tables.last().map_or(0, Table::bytes);
                    left = left.saturating_sub(bytes.saturating_add(Self::BYTES_BESIDE_SLOTS));
                }
                if emit(reply).is_break() {
                    return;
                }
            }
        }
    }

    /// Hashes the next items, and prefetches the buckets of all of them; false when there are none.
    #[inline]
    fn prepare_group(
        &self,
        items: &mut impl Iterator<Item: Item>,
        group: &mut SmallVec<[Place; MAX_GROUP]>,
    ) -> bool {
        group.clear();
        group.extend(
            items
                .take(limits::GROUP.get())
                .map(|item| self.place_of(&item)),
        );
        if group.len() > 1 {
            group.iter().for_each(|place| self.prefetch_place(*place));
        }
        !group.is_empty()
    }

    /// Moves items from newer tables to free slots of older ones, and drops newest tables that have
    /// become empty. Takes time linear in the size of all tables but the first.
    ///
    /// ```
    /// # use everbloom::CuckooFilter;
    /// let mut filter = CuckooFilter::builder().slots(16).build()?;
    /// for item in 0..40 {
    ///     filter.insert(&item)?;
    /// }
    /// assert_eq!(filter.tables(), 3);
    /// for item in 0..3 {
    ///     assert!(filter.remove(&item));
    /// }
    /// assert_eq!(filter.removed(), 3);
    /// filter.compact();
    /// assert_eq!((filter.removed(), filter.len()), (0, 37));
    /// assert!((3..40).all(|item| filter.contains(&item)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn compact(&mut self) {
        self.compact_tables(Stuck::GoOn);
    }

    /// Prefetches the item's buckets in all tables.
    #[inline]
    pub(crate) fn prefetch_place(&self, place: Place) {
        let newest_first = self.tables.iter().rev();
        match self.keyed {
            None => newest_first.for_each(|table| table.prefetch::<Bytes>(place)),
            Some(_) => newest_first.for_each(|table| table.prefetch::<Packed>(place)),
        }
    }

    #[inline]
    pub(crate) fn contains_place(&self, place: Place) -> bool {
        match self.keyed {
            None => self.contains_in::<Bytes>(place),
            Some(_) => self.contains_packed(place),
        }
    }

    #[inline(never)]
    fn contains_packed(&self, place: Place) -> bool {
        self.contains_in::<Packed>(place)
    }

    #[inline]
    fn contains_in<S: Scheme>(&self, place: Place) -> bool {
        let mut newest_first = self.tables.iter().rev();
        newest_first.any(|table| S::contains(table, place))
    }

    /// Inserts an item unless it seems to be there; whether it was inserted.
    #[inline]
    pub(crate) fn insert_place_if_absent(
        &mut self,
        place: Place,
        max_table_bytes: u64,
    ) -> Result<bool, InsertError> {
        if self.contains_place(place) {
            return Ok(false);
        }
        self.insert_place(place, max_table_bytes).map(|()| true)
    }

    /// Inserts an item, even if it is there already.
    #[inline]
    pub(crate) fn insert_place(
        &mut self,
        place: Place,
        max_table_bytes: u64,
    ) -> Result<(), InsertError> {
        match self.keyed {
            None => self.insert_in::<Bytes>(place, max_table_bytes),
            Some(_) => self.insert_packed(place, max_table_bytes),
        }
    }

    #[inline(never)]
    fn insert_packed(&mut self, place: Place, max_table_bytes: u64) -> Result<(), InsertError> {
        self.insert_in::<Packed>(place, max_table_bytes)
    }

    #[inline]
    fn insert_in<S: Scheme>(
        &mut self,
        place: Place,
        max_table_bytes: u64,
    ) -> Result<(), InsertError> {
        if !self.put::<S>(place) {
            self.check_copies(place)?;
            let number = self.grow(max_table_bytes)?;
            let capture = &mut self.capture;
            // All slots of a new table are empty.
            if let Some(table) = self.tables.last_mut() {
                table.place::<S>(place, &mut Watch { capture, number });
            }
        }
        self.items = self.items.saturating_add(1);
        Ok(())
    }

    /// Puts a fingerprint into an empty slot, or makes room for it in the newest table.
    #[inline]
    fn put<S: Scheme>(&mut self, place: Place) -> bool {
        let capture = &mut self.capture;
        for (number, table) in self.tables.iter_mut().enumerate().rev() {
            if table.place::<S>(place, &mut Watch { capture, number }) {
                return true;
            }
        }
        let number = self.tables.len().saturating_sub(1);
        let watch = &mut Watch { capture, number };
        let newest = self.tables.last_mut();
        newest.is_some_and(|table| S::kick(table, place, self.max_kicks, watch).is_some())
    }

    /// Refuses one more copy of an item that the newest table has, while less than an eighth of that
    /// table is in use. Else a few copies would be enough for each next table, which is larger than
    /// all before it.
    #[cold]
    fn check_copies(&self, place: Place) -> Result<(), InsertError> {
        let Some(newest) = self.tables.last().filter(|_| self.keyed.is_some()) else {
            return Ok(());
        };
        let is_nearly_empty = newest.used < newest.capacity() / 8;
        match is_nearly_empty && self.expansion > 0 && newest.count::<Packed>(place) > 0 {
            true => Err(InsertError::Copies),
            false => Ok(()),
        }
    }

    /// Appends a table; its number.
    #[cold]
    fn grow(&mut self, max_bytes: u64) -> Result<usize, InsertError> {
        let number = self.tables.len();
        if self.expansion == 0 {
            return Err(InsertError::Full);
        }
        let shape = self.parts().shape(number).ok_or(InsertError::CannotGrow)?;
        let bytes = shape.bytes();
        let bytes = bytes.and_then(|bytes| bytes.checked_add(Self::BYTES_BESIDE_SLOTS));
        let allowed = bytes.filter(|bytes| *bytes <= max_bytes && number < MAX_TABLES);
        let bytes = allowed.ok_or(InsertError::CannotGrow)?;
        let refused = InsertError::OutOfMemory { bytes };
        self.tables.try_reserve_one().map_err(|_| refused)?;
        let table = Table::empty(shape);
        self.tables.push(table.map_err(|_| refused)?);
        Ok(number)
    }

    #[inline]
    pub(crate) fn remove_place(&mut self, place: Place) -> bool {
        match self.keyed {
            None => self.remove_in::<Bytes>(place),
            Some(_) => self.remove_packed(place),
        }
    }

    #[inline(never)]
    fn remove_packed(&mut self, place: Place) -> bool {
        self.remove_in::<Packed>(place)
    }

    #[inline]
    fn remove_in<S: Scheme>(&mut self, place: Place) -> bool {
        let capture = &mut self.capture;
        let mut newest_first = self.tables.iter_mut().enumerate().rev();
        let found = newest_first
            .any(|(number, table)| table.remove::<S>(place, &mut Watch { capture, number }));
        if found {
            // A filter that is being loaded may hold less than its counts say.
            self.items = self.items.saturating_sub(1);
            self.removed = self.removed.saturating_add(1);
            if self.tables.len() > 1 && self.removed as f64 > self.items as f64 * 0.10 {
                self.compact_tables(Stuck::Stop);
            }
        }
        found
    }
}

impl fmt::Debug for CuckooFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CuckooFilter").field(&self.parts()).finish()
    }
}
