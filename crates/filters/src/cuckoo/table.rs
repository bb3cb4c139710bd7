//! One table of a cuckoo filter.
//!
//! ```text
//! bucket    0         1         2          of bucket size 2
//! slot      0    1    2    3    4    5     a fingerprint, or 0 when it is empty
//! ```
//!
//! In RedisBloom's kind a slot is [a byte](super::bytes). With a chosen error rate slots are
//! [packed](super::packed). The code of both is a [`Scheme`].

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::ops::Range;

use super::place::Place;
use super::shape::Shape;
use crate::bits::huge::HugePages;
use crate::bits::memory::{self, AllocError};
use crate::bits::pages::{self, STEP};
use crate::layer::capture::Capture;

#[cfg(test)]
std::thread_local! {
    /// Counts the buckets searched and the slots changed by this thread, for tests of cost.
    pub(super) static LOOKED: core::cell::Cell<usize> = const { core::cell::Cell::new(0) };
    pub(super) static EXCHANGED: core::cell::Cell<usize> = const { core::cell::Cell::new(0) };
}

/// A fixed number of buckets.
#[derive(PartialEq)]
pub(crate) struct Table {
    pub(crate) slots: Box<[u8]>,
    pub(super) shape: Shape,
    /// The slots that are not empty.
    pub(crate) used: u64,
}

/// One way of keeping fingerprints in slots. Slots are numbered through the table, 0 is an empty
/// one. A bucket may be given before it is reduced to the number of buckets.
pub(crate) trait Scheme {
    /// Both buckets of a place, and its fingerprint in this table.
    fn home(table: &Table, place: Place) -> ([u64; 2], u64);

    /// The number of a bucket.
    fn reduce(table: &Table, bucket: u64) -> u64;

    /// The slots of a bucket.
    #[inline]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a reduced bucket's slots lie in the table, which is in memory"
    )]
    fn slots(table: &Table, bucket: u64) -> Range<usize> {
        let size = usize::from(table.shape.bucket_size);
        let start = Self::reduce(table, bucket) as usize * size;
        start..start + size
    }

    /// The most slots in use.
    fn capacity(table: &Table) -> u64;

    /// Whether one of both buckets of a place has its fingerprint.
    fn contains(table: &Table, place: Place) -> bool;

    /// Puts the fingerprint of a place into a slot that it frees by moving others, and says how many
    /// it moved. `None` when it found no empty slot; then everything is as it was.
    fn kick(
        table: &mut Table,
        place: Place,
        max_kicks: u16,
        watch: &mut Watch<'_>,
    ) -> Option<usize>;

    /// The first slot from this one on that is not empty, and a place that has its fingerprint and
    /// its buckets, in this table and in all older ones.
    fn next_used(table: &Table, from: usize) -> Option<(usize, Place)>;

    /// The first slot of a bucket with this in it.
    fn find(table: &Table, bucket: u64, value: u64) -> Option<usize>;

    /// What is in a slot.
    fn get(table: &Table, at: usize) -> u64;

    /// Puts a value into a slot.
    fn set(table: &mut Table, at: usize, value: u64);

    /// The bytes in which a slot lies.
    fn bytes(table: &Table, at: usize) -> Range<usize>;

    /// The slots in use of which a part lies in these bytes.
    fn used_in(table: &Table, part: &Range<usize>) -> u64;
}

/// Notes the changes in a table, for the readers of the filter.
pub(crate) struct Watch<'a> {
    pub(crate) capture: &'a mut Capture,
    /// The table's number.
    pub(crate) number: usize,
}

impl Watch<'_> {
    #[inline]
    fn note(&mut self, slots: &[u8], part: Range<usize>) {
        let part = part.start as u64..part.end as u64;
        self.capture.note(self.number, slots, part);
    }
}

impl Table {
    /// All slots empty. Large tables get their memory from the system only as they are written.
    pub(crate) fn empty(shape: Shape) -> Result<Table, AllocError> {
        let bytes = usize::try_from(shape.bytes().ok_or(AllocError)?).map_err(|_| AllocError)?;
        Ok(Table {
            slots: memory::zeroed(bytes)?,
            shape,
            used: 0,
        })
    }

    /// A table of these slots. The shape must have as many bytes.
    pub(super) fn with_slots<S: Scheme>(shape: Shape, slots: Vec<u8>) -> Option<Table> {
        if shape.bytes() != Some(slots.len() as u64) {
            return None;
        }
        let mut table = Table {
            slots: memory::boxed(slots),
            shape,
            used: 0,
        };
        table.used = S::used_in(&table, &(0..table.slots.len()));
        table.huge_pages().collapse_since(0, table.used);
        Some(table)
    }

    pub(crate) fn buckets(&self) -> u64 {
        self.shape.buckets.get()
    }

    /// The number of slots.
    pub(crate) fn len(&self) -> u64 {
        match self.shape.packing {
            None => self.bytes(),
            Some(_) => self.shape.slots().unwrap_or(u64::MAX),
        }
    }

    /// The most slots in use.
    pub(crate) fn capacity(&self) -> u64 {
        self.shape.capacity()
    }

    pub(super) fn bucket_size(&self) -> u8 {
        self.shape.bucket_size
    }

    /// How many fingerprints there are.
    pub(super) fn fingerprints(&self) -> u64 {
        self.shape.fingerprints()
    }

    /// The bytes of the slots.
    pub(crate) fn bytes(&self) -> u64 {
        self.slots.len() as u64
    }

    /// Prefetches both buckets of a place.
    #[inline]
    pub(super) fn prefetch<S: Scheme>(&self, place: Place) {
        for bucket in S::home(self, place).0 {
            let bytes = S::bytes(self, S::slots(self, bucket).start);
            memory::prefetch(self.slots.as_ptr().wrapping_add(bytes.start));
        }
    }

    /// How often the fingerprint is in both buckets. When the two are one, each counts twice.
    #[inline]
    pub(super) fn count<S: Scheme>(&self, place: Place) -> u64 {
        let (buckets, fingerprint) = S::home(self, place);
        let slots = buckets.into_iter().flat_map(|at| S::slots(self, at));
        slots.filter(|at| S::get(self, *at) == fingerprint).count() as u64
    }

    /// Puts the fingerprint into the first empty slot of its buckets; false when there is none.
    #[inline]
    pub(super) fn place<S: Scheme>(&mut self, place: Place, watch: &mut Watch<'_>) -> bool {
        if self.used >= S::capacity(self) {
            return false;
        }
        let (buckets, fingerprint) = S::home(self, place);
        let mut buckets = buckets.into_iter();
        buckets.any(|bucket| self.put::<S>(bucket, fingerprint, watch))
    }

    /// Puts the fingerprint into the first empty slot of the bucket; false when there is none.
    #[inline]
    pub(super) fn put<S: Scheme>(
        &mut self,
        bucket: u64,
        fingerprint: u64,
        watch: &mut Watch<'_>,
    ) -> bool {
        let Some(at) = self.find::<S>(bucket, 0) else {
            return false;
        };
        self.fill::<S>(at, fingerprint, watch);
        true
    }

    /// Puts the fingerprint into an empty slot.
    #[inline]
    pub(super) fn fill<S: Scheme>(&mut self, at: usize, fingerprint: u64, watch: &mut Watch<'_>) {
        self.exchange::<S>(at, fingerprint, watch);
        self.used += 1;
        if self.used.is_multiple_of(STEP) {
            self.huge_pages().collapse_since(self.used - 1, self.used);
        }
    }

    /// Whether a bucket has an empty slot.
    #[inline]
    pub(super) fn has_room<S: Scheme>(&self, bucket: u64) -> bool {
        self.used < S::capacity(self) && self.find::<S>(bucket, 0).is_some()
    }

    /// The first slot of the bucket with this in it.
    #[inline]
    fn find<S: Scheme>(&self, bucket: u64, value: u64) -> Option<usize> {
        #[cfg(test)]
        LOOKED.set(LOOKED.get() + 1);
        S::find(self, bucket, value)
    }

    /// Puts a value into a slot; what was there.
    #[inline]
    pub(super) fn exchange<S: Scheme>(
        &mut self,
        at: usize,
        value: u64,
        watch: &mut Watch<'_>,
    ) -> u64 {
        #[cfg(test)]
        EXCHANGED.set(EXCHANGED.get() + 1);
        let old = S::get(self, at);
        watch.note(&self.slots, S::bytes(self, at));
        S::set(self, at, value);
        old
    }

    /// Empties the first slot of its buckets that has the fingerprint; false when none has it.
    #[inline]
    pub(super) fn remove<S: Scheme>(&mut self, place: Place, watch: &mut Watch<'_>) -> bool {
        let (buckets, fingerprint) = S::home(self, place);
        let mut buckets = buckets.into_iter();
        let found = buckets.find_map(|bucket| self.find::<S>(bucket, fingerprint));
        if let Some(at) = found {
            self.clear::<S>(at, watch);
        }
        found.is_some()
    }

    /// Empties a slot that is not empty.
    #[inline]
    pub(super) fn clear<S: Scheme>(&mut self, at: usize, watch: &mut Watch<'_>) {
        self.exchange::<S>(at, 0, watch);
        self.used -= 1;
    }

    /// Overwrites a part of the slots, by bytes; false when the part is not within them.
    pub(crate) fn load<S: Scheme>(
        &mut self,
        start: usize,
        data: &[u8],
        watch: &mut Watch<'_>,
    ) -> bool {
        let part = start..start.saturating_add(data.len());
        if self.slots.get(part.clone()).is_none() {
            return false;
        }
        let less = S::used_in(self, &part);
        watch.note(&self.slots, part.clone());
        self.huge_pages().prepare(part.clone(), self.used);
        if let Some(place) = self.slots.get_mut(part.clone()) {
            pages::copy(place, data);
        }
        self.used = self.used - less + S::used_in(self, &part);
        true
    }

    /// Passes the slots to `relocate`, which may move them; their number must not change.
    pub(crate) fn relocate(&mut self, relocate: impl FnOnce(Box<[u8]>) -> Box<[u8]>) {
        memory::relocate(&mut self.slots, relocate);
    }

    fn huge_pages(&self) -> HugePages<'_> {
        HugePages {
            bytes: &self.slots,
            touched: 1,
        }
    }
}

impl Clone for Table {
    fn clone(&self) -> Table {
        let slots = memory::copied(&self.slots);
        let copy = Table { slots, ..*self };
        copy.huge_pages().collapse_since(0, copy.used);
        copy
    }
}
