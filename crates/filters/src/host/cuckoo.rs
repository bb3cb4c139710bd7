//! Cuckoo filters for hosts: prefetching, reading while they change, moving slots.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::ops::Range;

use crate::bits::memory::prefetch_value;
use crate::cuckoo::{CuckooFilter, Place, Table};
use crate::error::InsertError;
use crate::hash::item::Item;
use crate::layer::capture::{Capture, part_of};

/// An item hashed for a cuckoo filter. [Example](CuckooFilter::prepare).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prepared(Place);

impl CuckooFilter {
    /// Prefetches the headers of the slots, if there are any. It reads the filter struct, so call
    /// [`prefetch`](super::prefetch) for that first. [Example](Self::prepare).
    #[inline]
    pub fn prefetch_tables(&self) {
        if self.tables.only().is_none() {
            prefetch_value(&*self.tables);
        }
        if let Some(keyed) = &self.keyed {
            prefetch_value(&**keyed);
        }
    }

    /// Hashes an item, and prefetches its buckets.
    ///
    /// ```
    /// # use everbloom::{CuckooFilter, host};
    /// let mut filter = CuckooFilter::new(1000);
    /// host::prefetch(&filter);
    /// filter.prefetch_tables();
    /// let a = filter.prepare("a");
    /// assert_eq!(filter.try_insert_prepared(a, u64::MAX), Ok(()));
    /// assert_eq!(filter.try_insert_prepared_if_absent(a, u64::MAX), Ok(false));
    /// assert!(filter.contains("a") && filter.remove_prepared(a));
    /// ```
    #[inline]
    #[must_use]
    pub fn prepare<T: Item + ?Sized>(&self, item: &T) -> Prepared {
        let place = self.place_of(item);
        self.prefetch_place(place);
        Prepared(place)
    }

    /// [`insert`](Self::insert) for a prepared item. One that would need a new table of more than
    /// `max_table_bytes` is refused. [Example](Self::prepare).
    ///
    /// # Errors
    ///
    /// [`InsertError`] when there is no room for it: nothing has changed then.
    #[inline]
    pub fn try_insert_prepared(
        &mut self,
        item: Prepared,
        max_table_bytes: u64,
    ) -> Result<(), InsertError> {
        self.insert_place(item.0, max_table_bytes)
    }

    /// [`insert_if_absent`](Self::insert_if_absent) for a prepared item. One that would need a new
    /// table of more than `max_table_bytes` is refused. [Example](Self::prepare).
    ///
    /// # Errors
    ///
    /// [`InsertError`] when there is no room for it: nothing has changed then.
    #[inline]
    pub fn try_insert_prepared_if_absent(
        &mut self,
        item: Prepared,
        max_table_bytes: u64,
    ) -> Result<bool, InsertError> {
        self.insert_place_if_absent(item.0, max_table_bytes)
    }

    /// [`remove`](Self::remove) for a prepared item. [Example](Self::prepare).
    #[inline]
    pub fn remove_prepared(&mut self, item: Prepared) -> bool {
        self.remove_place(item.0)
    }

    /// Begins to read a part of the slots as they are now: of all tables laid end to end, as
    /// [`stream_chunk`](Self::stream_chunk) reads them. The caller chooses `id`, which must be
    /// unique among the readers.
    ///
    /// ```
    /// use everbloom::CuckooFilter;
    /// let mut filter = CuckooFilter::new(1000);
    /// filter.insert("before")?;
    /// let then = filter.clone();
    ///
    /// let mut captured = CuckooFilter::from_parts(&filter.parts(), 1 << 20)?;
    /// filter.begin_capture(1, 0..filter.stream_len());
    /// let (mut piece, mut at) = (Vec::new(), 0);
    /// filter.remove("before");
    /// while filter.capture_next(1, &mut piece) {
    ///     captured.load_chunk(at, &piece)?;
    ///     at += piece.len() as u64;
    ///     piece.clear();
    /// }
    /// filter.capture_mut().end(1);
    /// assert!(captured == then);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn begin_capture(&mut self, id: u64, part: Range<u64>) {
        let lengths = self.tables.iter().map(Table::bytes);
        self.capture.begin(id, lengths, part);
    }

    /// Appends the next captured slots to `out`, at most 64 KiB and of one table; false when there
    /// are none. [Example](Self::begin_capture).
    pub fn capture_next(&mut self, id: u64, out: &mut Vec<u8>) -> bool {
        let tables = &self.tables;
        let slots = |number: usize| tables.get(number).map_or(&[][..], |table| &table.slots);
        self.capture.next(id, |number| slots(number).into(), out)
    }

    /// The readers of the filter.
    #[must_use]
    pub fn capture(&self) -> &Capture {
        &self.capture
    }

    /// The readers of the filter, to end some of them.
    pub fn capture_mut(&mut self) -> &mut Capture {
        &mut self.capture
    }

    /// Makes a copy, which has what this reader has read, a copy of the filter as it is now: only
    /// what has changed since is copied. False, and then the copy is of no use, if the reader does
    /// not [track changes](Capture::track_changes) of this filter, or the tables are others by now.
    /// [Example](crate::host::LayeredFilter::update_copy).
    #[must_use]
    pub fn update_copy(&self, id: u64, copy: &mut Self) -> bool {
        let is_same = self.keyed == copy.keyed
            && self.tables.len() == copy.tables.len()
            && self.stream_len() == copy.stream_len();
        let Some(changes) = self.capture.changes(id).filter(|_| is_same) else {
            return false;
        };
        for (number, part) in changes {
            let (start, slots) = part_of(self.table(number).unwrap_or_default(), part);
            if copy.load_table(number, start, slots).is_err() {
                return false;
            }
        }
        (copy.items, copy.removed) = (self.items, self.removed);
        true
    }

    /// Passes the slots of a table (numbered from 0) to `relocate`, which returns the same bytes,
    /// perhaps at another address. Does nothing if there is no such table.
    ///
    /// ```
    /// # let mut filter = everbloom::CuckooFilter::new(1000);
    /// filter.insert("a")?;
    /// filter.relocate_slots(0, |slots| slots.clone());
    /// assert!(filter.contains("a"));
    /// # Ok::<(), everbloom::InsertError>(())
    /// ```
    ///
    /// # Panics
    ///
    /// When `relocate` returns another number of bytes; the table is then unusable.
    pub fn relocate_slots(&mut self, table: usize, relocate: impl FnOnce(Box<[u8]>) -> Box<[u8]>) {
        if let Some(table) = self.tables.get_mut(table) {
            table.relocate(relocate);
        }
    }
}
