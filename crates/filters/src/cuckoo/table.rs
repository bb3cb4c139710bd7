//! One table of a cuckoo filter.
//!
//! ```text
//! bucket    0         1         2          of bucket size 2
//! slot      0    1    2    3    4    5     a fingerprint, or 0 when it is empty
//! ```
//!
//! In RedisBloom's kind a slot is a byte. With a chosen error rate slots are [packed](super::packed).

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::ops::Range;

use smallvec::SmallVec;

use super::packed::{Packed, Path};
use super::place::{Place, other};
use super::scheme::{Bytes, Scheme};
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
    pub(crate) fn with_slots(shape: Shape, slots: Vec<u8>) -> Option<Table> {
        if shape.bytes() != Some(slots.len() as u64) {
            return None;
        }
        let mut table = Table {
            slots: memory::boxed(slots),
            shape,
            used: 0,
        };
        table.used = table.used_in(&(0..table.slots.len()));
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
    fn put<S: Scheme>(&mut self, bucket: u64, fingerprint: u64, watch: &mut Watch<'_>) -> bool {
        let Some(at) = self.find::<S>(bucket, 0) else {
            return false;
        };
        self.fill::<S>(at, fingerprint, watch);
        true
    }

    /// Puts the fingerprint into an empty slot.
    #[inline]
    fn fill<S: Scheme>(&mut self, at: usize, fingerprint: u64, watch: &mut Watch<'_>) {
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
    fn exchange<S: Scheme>(&mut self, at: usize, value: u64, watch: &mut Watch<'_>) -> u64 {
        #[cfg(test)]
        EXCHANGED.set(EXCHANGED.get() + 1);
        let old = S::get(self, at);
        watch.note(&self.slots, S::bytes(self, at));
        S::set(self, at, value);
        old
    }

    /// Frees a slot: the fingerprint replaces another one in its first bucket, and that goes to its
    /// own other bucket, and so on, at most `max_kicks` times. False when that found no empty slot;
    /// then everything is as it was.
    #[cold]
    pub(super) fn kick_along(
        &mut self,
        place: Place,
        max_kicks: u16,
        watch: &mut Watch<'_>,
    ) -> bool {
        if self.used >= Bytes::capacity(self) {
            return false;
        }
        let mut in_hand = place.fingerprint;
        let mut bucket = Bytes::reduce(self, place.hash);
        let mut victim = 0;
        let mut trail = SmallVec::<[usize; 32]>::new();
        for _ in 0..max_kicks {
            let at = Bytes::slots(self, bucket).start + usize::from(victim);
            in_hand = self.exchange::<Bytes>(at, in_hand, watch);
            trail.push(at);
            bucket = Bytes::reduce(self, other(bucket, in_hand));
            if self.put::<Bytes>(bucket, in_hand, watch) {
                return true;
            }
            if self.are_closed([bucket, other(bucket, in_hand)], trail.len()) {
                break;
            }
            victim = (victim + 1) % self.shape.bucket_size.max(1);
        }
        for at in trail.into_iter().rev() {
            in_hand = self.exchange::<Bytes>(at, in_hand, watch);
        }
        false
    }

    /// Frees a packed slot by moving as few fingerprints as possible. False when it found no empty
    /// slot; then everything is as it was.
    #[cold]
    pub(super) fn kick_shortest(&mut self, place: Place, watch: &mut Watch<'_>) -> bool {
        if self.used >= Packed::capacity(self) {
            return false;
        }
        let (buckets, fingerprint) = Packed::home(self, place);
        let Some(path) = Path::shortest(self, buckets) else {
            return false;
        };
        // From the end, where the slot is empty, so that no fingerprint is ever missing.
        let mut free = path.end;
        for at in path.slots {
            let moved = Packed::get(self, at);
            self.exchange::<Packed>(free, moved, watch);
            free = at;
        }
        self.fill::<Packed>(free, fingerprint, watch);
        true
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
    pub(crate) fn load(&mut self, start: usize, data: &[u8], watch: &mut Watch<'_>) -> bool {
        let part = start..start.saturating_add(data.len());
        if self.slots.get(part.clone()).is_none() {
            return false;
        }
        let less = self.used_in(&part);
        watch.note(&self.slots, part.clone());
        self.huge_pages().prepare(part.clone(), self.used);
        if let Some(place) = self.slots.get_mut(part.clone()) {
            pages::copy(place, data);
        }
        self.used = self.used - less + self.used_in(&part);
        true
    }

    /// Passes the slots to `relocate`, which may move them; their number must not change.
    pub(crate) fn relocate(&mut self, relocate: impl FnOnce(Box<[u8]>) -> Box<[u8]>) {
        memory::relocate(&mut self.slots, relocate);
    }

    /// The slots in use of which a part lies in these bytes.
    fn used_in(&self, part: &Range<usize>) -> u64 {
        match self.shape.packing {
            None => {
                let slots = self.slots.get(part.clone()).unwrap_or_default();
                slots.iter().filter(|slot| **slot != 0).count() as u64
            }
            Some(_) => Packed::used_in(self, part),
        }
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
