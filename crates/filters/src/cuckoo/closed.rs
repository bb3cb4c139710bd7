//! Buckets from which no kick leads to an empty slot.
//!
//! A table that cannot take an item is not always full. Most buckets may be full of fingerprints
//! whose other buckets are full, too, while the empty slots are elsewhere. Then each insert fails,
//! but only after the maximum number of kicks. So after many failed kicks the filter searches for a
//! closed set: full buckets whose fingerprints all have their other bucket in the set. An item with
//! both buckets in the set finds no room, however many kicks it tries.
//!
//! A few kicks find a small set ([`are_closed`]), such as the two buckets of one item that is
//! inserted repeatedly. For a larger set the filter searches the table and keeps the result.
//!
//! Inserts do not change the set. Its buckets are full, so they take nothing; and a chain of kicks
//! from outside leaves them with the same fingerprint that came in. So the set stays the same until
//! a slot is emptied or overwritten.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::mem::size_of_val;

use smallvec::SmallVec;

use super::place::{Place, other};
use super::table::Table;

/// The search starts after this many failed kicks per slot, which took longer than the search.
const VAIN_KICKS_PER_SLOT: u64 = 8;

/// Tables with more slots are not searched: one search would take too long.
const MAX_SLOTS: u64 = 1 << 24;

/// The most passes over the buckets; a few are enough for sets that arise by chance.
const MAX_PASSES: usize = 32;

/// After this many failed kicks the filter checks whether a few buckets are closed.
pub(super) const KICKS_BEFORE_LOOK: usize = 64;

/// The most buckets of that check.
const MAX_LOOK: usize = 32;

/// Whether no kick leads out of a few buckets, which contain these two and are full.
pub(super) fn are_closed(table: &Table, two: [u64; 2]) -> bool {
    if !table.buckets().is_power_of_two() {
        return false;
    }
    let mut few = SmallVec::<[u64; MAX_LOOK]>::new();
    let add = |few: &mut SmallVec<_>, bucket| {
        let bucket = table.reduce(bucket);
        if !few.contains(&bucket) {
            few.push(bucket);
        }
    };
    two.into_iter().for_each(|bucket| add(&mut few, bucket));
    let mut next = 0;
    while let Some(&bucket) = few.get(next) {
        for &fingerprint in table.slots_of(bucket) {
            if fingerprint == 0 || few.len() >= MAX_LOOK {
                return false;
            }
            add(&mut few, other(bucket, fingerprint));
        }
        next += 1;
    }
    true
}

/// What is known about the newest table. It is not part of the filter's value.
#[derive(Default)]
pub(crate) struct DeadEnds {
    /// Failed kicks since the last search.
    vain_kicks: u64,
    /// A bit for each bucket, or none at all.
    buckets: Box<[u64]>,
}

impl DeadEnds {
    /// Whether it is known that no kick makes room for the fingerprint.
    #[inline]
    pub(super) fn contain(&self, table: &Table, place: Place) -> bool {
        !self.buckets.is_empty()
            && place
                .buckets()
                .into_iter()
                .all(|bucket| is_one(&self.buckets, table.reduce(bucket)))
    }

    /// Counts kicks that did not find an empty slot.
    pub(super) fn add_vain(&mut self, table: &Table, kicks: usize) {
        self.vain_kicks += kicks as u64;
        if self.vain_kicks / VAIN_KICKS_PER_SLOT >= table.len() {
            self.vain_kicks = 0;
            self.buckets = find(table).unwrap_or_default().into_boxed_slice();
        }
    }

    /// A slot was emptied or overwritten, or another table is the newest.
    #[inline]
    pub(crate) fn forget(&mut self) {
        if self.vain_kicks > 0 || !self.buckets.is_empty() {
            *self = DeadEnds::default();
        }
    }

    /// Bytes of memory.
    pub(super) fn memory_usage(&self) -> usize {
        size_of_val(&*self.buckets)
    }
}

impl Clone for DeadEnds {
    fn clone(&self) -> Self {
        DeadEnds::default()
    }
}

impl PartialEq for DeadEnds {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

/// The largest set of full buckets that no fingerprint leads out of: all full ones, without those
/// that lead out, without those that then lead out, and so on.
fn find(table: &Table) -> Option<Vec<u64>> {
    // With another number, the other bucket of the other bucket is a third one.
    if !table.buckets().is_power_of_two() || table.len() > MAX_SLOTS {
        return None;
    }
    let words = usize::try_from(table.buckets().div_ceil(64)).ok()?;
    let mut dead = Vec::new();
    dead.try_reserve_exact(words).ok()?;
    dead.resize(words, 0);
    for bucket in 0..table.buckets() {
        if !table.has_room(bucket) {
            flip(&mut dead, bucket);
        }
    }
    for _ in 0..MAX_PASSES {
        let mut changed = false;
        for bucket in 0..table.buckets() {
            let leads_out = |fingerprint: &u8| {
                let other = other(bucket, *fingerprint);
                !is_one(&dead, table.reduce(other))
            };
            if is_one(&dead, bucket) && table.slots_of(bucket).iter().any(leads_out) {
                flip(&mut dead, bucket);
                changed = true;
            }
        }
        if !changed {
            return Some(dead);
        }
    }
    None
}

#[inline]
fn is_one(bits: &[u64], at: u64) -> bool {
    let word = usize::try_from(at / 64).ok().and_then(|at| bits.get(at));
    word.is_some_and(|word| word >> (at % 64) & 1 == 1)
}

fn flip(bits: &mut [u64], at: u64) {
    let word = usize::try_from(at / 64)
        .ok()
        .and_then(|at| bits.get_mut(at));
    if let Some(word) = word {
        *word ^= 1 << (at % 64);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::table::EXCHANGED;
    use super::super::{CuckooFilter, Stuck};
    use super::*;

    fn filter(capacity: u64, bucket_size: u8, kicks: u16) -> CuckooFilter {
        let builder = CuckooFilter::builder().capacity(capacity).expansion(0);
        let builder = builder.bucket_size(bucket_size).max_kicks(kicks);
        builder.build().unwrap()
    }

    #[test]
    fn items_without_room_cost_few_kicks() {
        let mut filter = filter(4096, 1, u16::MAX);
        let refused = |filter: &mut CuckooFilter, items: core::ops::Range<u32>| {
            items.filter(|item| filter.insert(item).is_err()).count()
        };
        assert!(refused(&mut filter, 0..5000) > 900);
        EXCHANGED.set(0);
        assert!(refused(&mut filter, 5000..6000) > 500);
        assert!(filter.used() < filter.slots(), "it is not full");
        // Each that was refused had 131 070.
        assert!(EXCHANGED.get() < 50 * 131_070, "{}", EXCHANGED.get());
        assert!(filter.memory_usage() > 4096 + size_of::<CuckooFilter>());
    }

    #[test]
    fn one_item_again_and_again_costs_few_kicks() {
        let mut filter = CuckooFilter::builder().max_kicks(u16::MAX).build().unwrap();
        EXCHANGED.set(0);
        (0..400).for_each(|_| filter.insert("a").unwrap());
        assert_eq!(filter.tables(), 100);
        let most = 100 * (2 * KICKS_BEFORE_LOOK + 4);
        assert!(EXCHANGED.get() <= most, "{}", EXCHANGED.get());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]

        /// With the same inserts and removals, a filter that knows its dead ends, which it looks
        /// for after each kick in vain, and one that forgets them are equal.
        #[test]
        fn what_is_known_changes_no_answer(
            capacity in prop::sample::select(alloc::vec![2_u64, 4, 16, 64, 128]),
            bucket_size in 1..4_u8, kicks in 1..200_u16, growing: bool,
            steps in prop::collection::vec((0..400_u16, 0..100_u8), 1..900),
        ) {
            let mut knowing = filter(capacity.max(2 * u64::from(bucket_size)), bucket_size, kicks);
            knowing.expansion = u16::from(growing);
            let mut forgetful = knowing.clone();
            for (item, chance) in steps {
                if chance < 4 {
                    prop_assert_eq!(knowing.remove(&item), forgetful.remove(&item));
                } else if chance < 6 {
                    let at = u64::from(item) % knowing.slots();
                    prop_assert_eq!(knowing.load_chunk(at, &[0]), forgetful.load_chunk(at, &[0]));
                } else if knowing.tables.len() < 20 {
                    // The next failed kick starts a search.
                    if knowing.dead_ends.vain_kicks > 0 {
                        knowing.dead_ends.vain_kicks = u64::MAX / 2;
                    }
                    forgetful.dead_ends.forget();
                    prop_assert_eq!(knowing.insert(&item), forgetful.insert(&item));
                }
                prop_assert!(knowing == forgetful);
            }
            knowing.compact_tables(Stuck::Stop);
            forgetful.compact_tables(Stuck::Stop);
            prop_assert!(knowing == forgetful);
        }
    }
}
