//! One table of a cuckoo filter.
//!
//! ```text
//! bucket    0         1         2          of bucket size 2
//! byte      0    1    2    3    4    5     a slot each: a fingerprint, or 0 when it is empty
//! ```

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::num::NonZeroU64;
use core::ops::Range;

use smallvec::SmallVec;

use super::place::{Place, other};
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
    buckets: NonZeroU64,
    bucket_size: u8,
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
    pub(crate) fn empty(buckets: NonZeroU64, bucket_size: u8) -> Result<Table, AllocError> {
        let slots = buckets.get().checked_mul(bucket_size.into());
        let slots = usize::try_from(slots.ok_or(AllocError)?).map_err(|_| AllocError)?;
        Ok(Table {
            slots: memory::zeroed(slots)?,
            buckets,
            bucket_size,
            used: 0,
        })
    }

    /// A table of these slots. Their number must match the buckets and the bucket size.
    pub(crate) fn with_slots(
        buckets: NonZeroU64,
        bucket_size: u8,
        slots: Vec<u8>,
    ) -> Option<Table> {
        if buckets.get().checked_mul(bucket_size.into()) != Some(slots.len() as u64) {
            return None;
        }
        let mut table = Table {
            slots: memory::boxed(slots),
            buckets,
            bucket_size,
            used: 0,
        };
        table.used = count(&table.slots);
        table.huge_pages().collapse_since(0, table.used);
        Some(table)
    }

    pub(crate) fn buckets(&self) -> u64 {
        self.buckets.get()
    }

    pub(crate) fn len(&self) -> u64 {
        self.slots.len() as u64
    }

    fn is_full(&self) -> bool {
        self.used == self.len()
    }

    /// The slots of a bucket, given before reduction.
    #[inline]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a reduced bucket's slots lie in the table, which is in memory"
    )]
    fn bucket(&self, bucket: u64) -> Range<usize> {
        let size = usize::from(self.bucket_size);
        let start = self.reduce(bucket) as usize * size;
        start..start + size
    }

    #[inline]
    pub(super) fn reduce(&self, bucket: u64) -> u64 {
        // Filters made here have a power of two of buckets.
        if self.buckets.is_power_of_two() {
            bucket & (self.buckets.get() - 1)
        } else {
            bucket % self.buckets
        }
    }

    #[inline]
    pub(super) fn slots_of(&self, bucket: u64) -> &[u8] {
        self.slots.get(self.bucket(bucket)).unwrap_or_default()
    }

    /// Prefetches both buckets of a place.
    #[inline]
    pub(crate) fn prefetch(&self, place: Place) {
        for bucket in place.buckets() {
            memory::prefetch(self.slots.as_ptr().wrapping_add(self.bucket(bucket).start));
        }
    }

    /// Whether one of both buckets has the fingerprint.
    #[inline]
    pub(crate) fn contains(&self, place: Place) -> bool {
        let has = |bucket| {
            let slots = self.slots_of(bucket).iter();
            slots.fold(false, |found, slot| found | (*slot == place.fingerprint))
        };
        let [first, second] = place.buckets();
        has(first) | has(second)
    }

    /// How often the fingerprint is in both buckets. When the two are one, each counts twice.
    #[inline]
    pub(crate) fn count(&self, place: Place) -> u64 {
        let slots = place.buckets().into_iter().flat_map(|at| self.slots_of(at));
        slots.filter(|slot| **slot == place.fingerprint).count() as u64
    }

    /// Puts the fingerprint into the first empty slot of its buckets; false when there is none.
    #[inline]
    pub(crate) fn place(&mut self, place: Place, watch: &mut Watch<'_>) -> bool {
        if self.is_full() {
            return false;
        }
        let mut buckets = place.buckets().into_iter();
        buckets.any(|bucket| self.put(bucket, place.fingerprint, watch))
    }

    /// Puts the fingerprint into the first empty slot of the bucket; false when there is none.
    #[inline]
    fn put(&mut self, bucket: u64, fingerprint: u8, watch: &mut Watch<'_>) -> bool {
        let Some(at) = self.find(bucket, 0) else {
            return false;
        };
        self.exchange(at, fingerprint, watch);
        self.used += 1;
        if self.used.is_multiple_of(STEP) {
            self.huge_pages().collapse_since(self.used - 1, self.used);
        }
        true
    }

    /// Whether a bucket has an empty slot.
    #[inline]
    pub(super) fn has_room(&self, bucket: u64) -> bool {
        !self.is_full() && self.find(bucket, 0).is_some()
    }

    /// The first slot of the bucket with this in it.
    #[inline]
    fn find(&self, bucket: u64, value: u8) -> Option<usize> {
        #[cfg(test)]
        LOOKED.set(LOOKED.get() + 1);
        let mut slots = self.bucket(bucket);
        slots.find(|at| self.slots.get(*at) == Some(&value))
    }

    /// Puts a value into a slot; what was there.
    #[inline]
    fn exchange(&mut self, at: usize, value: u8, watch: &mut Watch<'_>) -> u8 {
        #[cfg(test)]
        EXCHANGED.set(EXCHANGED.get() + 1);
        let Some(slot) = self.slots.get(at) else {
            return value;
        };
        let old = *slot;
        watch.note(&self.slots, at..at + 1);
        if let Some(slot) = self.slots.get_mut(at) {
            *slot = value;
        }
        old
    }

    /// Frees a slot: the fingerprint replaces another one in its first bucket, and that goes to its
    /// own other bucket, and so on, at most `max_kicks` times. False when that found no empty slot;
    /// then everything is as it was.
    #[cold]
    pub(super) fn kick(&mut self, place: Place, max_kicks: u16, watch: &mut Watch<'_>) -> bool {
        if self.is_full() {
            return false;
        }
        let mut in_hand = place.fingerprint;
        let mut bucket = self.reduce(place.hash);
        let mut victim = 0;
        let mut trail = SmallVec::<[usize; 32]>::new();
        for _ in 0..max_kicks {
            let at = self.bucket(bucket).start + usize::from(victim);
            in_hand = self.exchange(at, in_hand, watch);
            trail.push(at);
            bucket = self.reduce(other(bucket, in_hand));
            if self.put(bucket, in_hand, watch) {
                return true;
            }
            if self.are_closed([bucket, other(bucket, in_hand)], trail.len()) {
                break;
            }
            victim = (victim + 1) % self.bucket_size.max(1);
        }
        for at in trail.into_iter().rev() {
            in_hand = self.exchange(at, in_hand, watch);
        }
        false
    }

    /// Empties the first slot of its buckets that has the fingerprint; false when none has it.
    #[inline]
    pub(crate) fn remove(&mut self, place: Place, watch: &mut Watch<'_>) -> bool {
        let mut buckets = place.buckets().into_iter();
        let found = buckets.find_map(|bucket| self.find(bucket, place.fingerprint));
        if let Some(at) = found {
            self.clear(at, watch);
        }
        found.is_some()
    }

    /// The first slot from this one on that is not empty, and the place of what is in it.
    pub(super) fn next_used(&self, from: usize) -> Option<(usize, Place)> {
        let rest = self.slots.get(from..)?;
        let (next, fingerprint) = rest.iter().enumerate().find(|(_, slot)| **slot != 0)?;
        let at = from + next;
        let place = Place {
            hash: at as u64 / u64::from(self.bucket_size.max(1)),
            fingerprint: *fingerprint,
        };
        Some((at, place))
    }

    /// Empties a slot that is not empty.
    pub(super) fn clear(&mut self, at: usize, watch: &mut Watch<'_>) {
        self.exchange(at, 0, watch);
        self.used -= 1;
    }

    /// Overwrites a part of the slots; false when the part is not within them.
    pub(crate) fn load(&mut self, start: usize, data: &[u8], watch: &mut Watch<'_>) -> bool {
        let part = start..start.saturating_add(data.len());
        let Some(old) = self.slots.get(part.clone()) else {
            return false;
        };
        let less = count(old);
        watch.note(&self.slots, part.clone());
        self.used = self.used - less + count(data);
        self.huge_pages().prepare(part.clone(), self.used);
        if let Some(place) = self.slots.get_mut(part) {
            pages::copy(place, data);
        }
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

/// The slots that are not empty.
fn count(slots: &[u8]) -> u64 {
    slots.iter().filter(|slot| **slot != 0).count() as u64
}

impl Clone for Table {
    fn clone(&self) -> Table {
        let slots = memory::copied(&self.slots);
        let copy = Table { slots, ..*self };
        copy.huge_pages().collapse_since(0, copy.used);
        copy
    }
}
