//! The expiry times of a database's keys: a heap with 16 bytes for each key that has an expiry.
//! Another such heap has the times at which generations of windows expire.
//!
//! The heap is never searched. An item is out of date if its key was removed or now expires later;
//! this is noticed when the item's time comes. Every key with an expiry has an item with its hash
//! and a time not after the key's, so a key that is renewed again and again needs only one. When
//! most items are out of date, the heap is rebuilt.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The heap is rebuilt when it has more than twice as many items as there are keys, and this many
/// more. A few keys are not worth it.
const SPARE_ITEMS: usize = 16;

/// The expiry times of a database's keys.
#[derive(Debug, Default)]
pub(super) struct Expiries {
    /// Times with the hashes of their keys, the earliest on top.
    heap: BinaryHeap<Reverse<(u64, u64)>>,
    /// The number of keys that have an expiry.
    keys: usize,
    /// The sum of their times.
    sum: u128,
    /// The earliest time added since it was last taken.
    added: Option<u64>,
}

impl Expiries {
    /// The number of keys that have an expiry.
    #[inline]
    pub(super) fn keys(&self) -> usize {
        self.keys
    }

    /// Bytes of the heap.
    #[inline]
    pub(super) fn memory(&self) -> usize {
        self.heap.capacity() * size_of::<Reverse<(u64, u64)>>()
    }

    /// No key expires before this time.
    #[inline]
    pub(super) fn earliest(&self) -> Option<u64> {
        self.heap.peek().map(|Reverse((at, _))| *at)
    }

    /// The sum of the times left, in milliseconds.
    pub(super) fn time_left(&self, now: u64) -> u64 {
        // A number of keys fits 64 bits, so the product fits 128.
        let passed = self.keys as u128 * u128::from(now);
        u64::try_from(self.sum.saturating_sub(passed)).unwrap_or(u64::MAX)
    }

    /// Records that the expiry of a key has changed. If this returns true, call
    /// [`Expiries::rebuild`].
    pub(super) fn change(&mut self, hash: u64, before: Option<u64>, after: Option<u64>) {
        if let Some(before) = before {
            self.keys -= 1;
            self.sum -= u128::from(before);
        }
        if let Some(after) = after {
            self.keys += 1;
            self.sum += u128::from(after);
            if before.is_none_or(|before| after < before) {
                self.push(hash, after);
            }
        }
        if self.keys == 0 {
            self.heap = BinaryHeap::new();
        }
    }

    /// Adds an item.
    pub(super) fn push(&mut self, hash: u64, at: u64) {
        self.heap.push(Reverse((at, hash)));
        self.added = Some(self.added.map_or(at, |added| added.min(at)));
    }

    /// The earliest time added since the last call.
    #[inline]
    pub(super) fn take_added(&mut self) -> Option<u64> {
        self.added.take()
    }

    /// Takes out an item whose time has come, and returns its hash.
    pub(super) fn pop_due(&mut self, now: u64) -> Option<u64> {
        if self.earliest()? > now {
            return None;
        }
        let Reverse((_, hash)) = self.heap.pop()?;
        if self.heap.len() < self.heap.capacity() / 4 {
            self.heap.shrink_to(self.heap.len() * 2);
        }
        Some(hash)
    }

    /// Whether most items are out of date.
    #[inline]
    pub(super) fn is_stale(&self) -> bool {
        self.heap.len() > 2 * self.keys + SPARE_ITEMS
    }

    /// Keeps one item for each key; `times` returns the expiries of the keys with a hash.
    pub(super) fn rebuild<I: Iterator<Item = u64>>(&mut self, times: impl Fn(u64) -> I) {
        let items = std::mem::take(&mut self.heap).into_iter();
        let mut hashes: Vec<u64> = items.map(|Reverse((_, hash))| hash).collect();
        hashes.sort_unstable();
        hashes.dedup();
        let mut items = Vec::with_capacity(self.keys);
        for hash in hashes {
            items.extend(times(hash).map(|at| Reverse((at, hash))));
        }
        self.heap = items.into();
    }

    /// The number of items.
    #[cfg(test)]
    pub(super) fn items(&self) -> usize {
        self.heap.len()
    }

    /// Whether there is an item for a key that expires then.
    #[cfg(test)]
    pub(super) fn has_item_for(&self, hash: u64, expires_at: u64) -> bool {
        let mut items = self.heap.iter();
        items.any(|Reverse((at, of))| *of == hash && *at <= expires_at)
    }
}
