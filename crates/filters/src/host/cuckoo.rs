//! Cuckoo filters for hosts: prefetching, reading while they change, moving slots.

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::prefetch::Prepared;
use super::recording::Capture;
use crate::cuckoo::{CuckooFilter, Place, Table};
use crate::error::InsertError;
use crate::item::Item;
use crate::redisbloom::CuckooParts;

impl CuckooFilter {
    /// Prefetches what lies between the filter and its slots, if there is anything. It reads the
    /// filter itself, which [`prefetch`](super::prefetch) should have fetched.
    /// [Example](Self::prepare).
    #[inline]
    pub fn prefetch_tables(&self) {
        if self.tables.spilled() {
            super::prefetch(self.tables.as_slice());
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
    /// assert!(filter.contains_prepared(a) && filter.remove_prepared(a));
    /// ```
    #[inline]
    #[must_use]
    pub fn prepare<T: Item + ?Sized>(&self, item: &T) -> Prepared {
        let pair = Self::hash(item);
        self.prefetch_place(Place::of(pair));
        Prepared(pair)
    }

    /// [`contains`](Self::contains) for a prepared item. [Example](Self::prepare).
    #[inline]
    #[must_use]
    pub fn contains_prepared(&self, item: Prepared) -> bool {
        self.contains_place(Place::of(item.0))
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
        self.insert_place(Place::of(item.0), max_table_bytes)
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
        self.insert_place_if_absent(Place::of(item.0), max_table_bytes)
    }

    /// [`remove`](Self::remove) for a prepared item. [Example](Self::prepare).
    #[inline]
    pub fn remove_prepared(&mut self, item: Prepared) -> bool {
        self.remove_place(Place::of(item.0))
    }

    /// Begins to capture the filter as it is now, and returns all of it but the slots. A capture
    /// that was in progress is given up. `id` is the caller's, to know the capture by.
    ///
    /// ```
    /// # use everbloom::CuckooFilter;
    /// let mut filter = CuckooFilter::new(1000);
    /// filter.insert("before")?;
    /// let then = filter.clone();
    ///
    /// let parts = filter.begin_capture(1);
    /// assert_eq!(filter.capture_id(), Some(1));
    /// let mut captured = CuckooFilter::from_parts(&parts, 1 << 20)?;
    /// let (mut piece, mut at) = (Vec::new(), 0);
    /// filter.remove("before");
    /// while filter.capture_next(&mut piece) {
    ///     captured.load_chunk(at, &piece)?;
    ///     at += piece.len() as u64;
    ///     piece.clear();
    /// }
    /// assert!(captured == then);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn begin_capture(&mut self, id: u64) -> CuckooParts {
        let capture = Capture::new(id, self.tables.len());
        self.recording.0 = Some(Box::new(capture));
        self.parts()
    }

    /// The id of the capture in progress. [Example](Self::begin_capture).
    #[must_use]
    pub fn capture_id(&self) -> Option<u64> {
        self.recording.0.as_ref().map(|capture| capture.id())
    }

    /// Gives up the capture in progress, if there is one.
    ///
    /// ```
    /// # let mut filter = everbloom::CuckooFilter::new(1000);
    /// filter.begin_capture(1);
    /// filter.end_capture();
    /// assert_eq!(filter.capture_id(), None);
    /// ```
    pub fn end_capture(&mut self) {
        self.recording.0 = None;
    }

    /// Appends the next captured slots to `out`, at most 256 KiB and of one table. False when there
    /// are none: then the capture has ended, or none was begun. [Example](Self::begin_capture).
    pub fn capture_next(&mut self, out: &mut Vec<u8>) -> bool {
        let mut recording = self.take_recording();
        let Some(capture) = &mut recording.0 else {
            return false;
        };
        let Some(number) = capture.next_layer() else {
            return false;
        };
        // A table that was dropped since then is with the capture.
        let slots = self.tables.get(number).map(Table::slots);
        capture.hand_out(slots.unwrap_or_default(), out);
        self.recording = recording;
        true
    }

    /// Hands the slots of a table, by its number from 0, to `relocate` and takes back what that
    /// gives: the same bytes, at another place perhaps. Nothing happens without such a table.
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
    /// When it gives back another number of bytes; the table is of no use then.
    pub fn relocate_slots(&mut self, table: usize, relocate: impl FnOnce(Box<[u8]>) -> Box<[u8]>) {
        if let Some(table) = self.tables.get_mut(table) {
            table.relocate(relocate);
        }
    }
}
