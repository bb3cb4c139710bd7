//! Buckets from which no kick leads to an empty slot.
//!
//! A table that cannot take an item need not be full: most buckets may be full of fingerprints
//! whose other buckets are among them, too, and the empty slots lie elsewhere. Then each insert
//! fails, and only after the most kicks. So when many kicks were in vain, those buckets are looked
//! for: full ones of which each fingerprint has its other bucket among them. An item both of whose
//! buckets are there finds no room, however often it kicks.
//!
//! Inserts do not change which these are. Nothing is put into them, because they are full; and
//! when kicks from outside come through them, they leave by the only fingerprint that can: the one
//! that came. So they stay what they are until a slot is emptied or overwritten.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::mem::size_of;

use super::place::{Place, other};
use super::table::Table;

/// They are looked for when so many kicks for each slot were in vain: that took longer.
const VAIN_KICKS_PER_SLOT: u64 = 8;

/// They are not looked for in tables of more slots: to look once would take too long.
const MAX_SLOTS: u64 = 1 << 24;

/// The most passes over the buckets; few are enough for what comes by chance.
const MAX_PASSES: usize = 32;

/// What is known of the newest table. It says nothing about the filter's value.
#[derive(Default)]
pub(crate) struct DeadEnds(Option<Box<Known>>);

#[derive(Default)]
struct Known {
    /// Kicks in vain since the buckets were looked for.
    vain_kicks: u64,
    /// A bit for each bucket, or none at all.
    buckets: Vec<u64>,
}

impl DeadEnds {
    /// Whether it is known that no kick makes room for the fingerprint.
    #[inline]
    pub(super) fn contain(&self, table: &Table, place: Place) -> bool {
        let has = |bucket| {
            let known = self.0.as_ref();
            known.is_some_and(|known| is_one(&known.buckets, table.reduce(bucket)))
        };
        place.buckets().into_iter().all(has)
    }

    /// So many kicks did not find an empty slot.
    pub(super) fn add_vain(&mut self, table: &Table, kicks: u16) {
        let known = self.0.get_or_insert_default();
        known.vain_kicks += u64::from(kicks);
        if known.vain_kicks / VAIN_KICKS_PER_SLOT >= table.len() {
            known.vain_kicks = 0;
            known.buckets = find(table).unwrap_or_default();
        }
    }

    /// A slot was emptied or overwritten, or another table is the newest.
    #[inline]
    pub(crate) fn forget(&mut self) {
        self.0 = None;
    }

    /// Bytes of memory.
    pub(super) fn memory_usage(&self) -> usize {
        let bytes = |known: &Known| size_of::<Known>() + known.buckets.capacity() * 8;
        self.0.as_deref().map_or(0, bytes)
    }
}

impl Clone for DeadEnds {
    fn clone(&self) -> Self {
        DeadEnds(None)
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
    use alloc::vec::Vec;

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
        let mut filter = filter(1024, 2, u16::MAX);
        let refused = |filter: &mut CuckooFilter, items: core::ops::Range<u32>| {
            items.filter(|item| filter.insert(item).is_err()).count()
        };
        assert!(refused(&mut filter, 0..2000) > 900);
        assert!(filter.used() < filter.slots(), "it is not full");
        EXCHANGED.set(0);
        assert!(refused(&mut filter, 2000..22_000) > 19_900);
        // Each of them had 131 070.
        assert!(EXCHANGED.get() < 100 * 131_070, "{}", EXCHANGED.get());
        assert!(filter.memory_usage() > 1024 + size_of::<CuckooFilter>());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]

        /// With the same inserts and removals, a filter that knows its dead ends, which it looks
        /// for after each kick in vain, and one that forgets them are equal.
        #[test]
        fn what_is_known_changes_no_answer(
            capacity in prop::sample::select(alloc::vec![2_u64, 4, 16, 64, 128]),
            bucket_size in 1..4_u8, kicks in 1..80_u16, growing: bool,
            steps in prop::collection::vec((0..400_u16, prop::bool::weighted(0.07)), 1..900),
        ) {
            let mut knowing = filter(capacity.max(2 * u64::from(bucket_size)), bucket_size, kicks);
            knowing.expansion = u16::from(growing);
            let mut forgetful = knowing.clone();
            for (item, removes) in steps {
                if removes {
                    prop_assert_eq!(knowing.remove(&item), forgetful.remove(&item));
                } else if knowing.tables.len() < 20 {
                    if let Some(known) = &mut knowing.dead_ends.0 {
                        known.vain_kicks = u64::MAX / 2;
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

    #[test]
    fn a_slot_that_becomes_empty_is_found_again() {
        let mut filter = filter(64, 2, 500);
        let taken: Vec<u32> = (0..2000).filter(|item| filter.insert(item).is_ok()).collect();
        for item in &taken {
            assert!(filter.remove(item));
            assert_eq!(filter.insert(item), Ok(()));
        }
        let first = filter.stream_chunk(0, 64).unwrap().into_owned();
        assert!((2000..2500_u32).all(|item| filter.insert(&item).is_err()));
        filter.load_chunk(0, &[0; 64]).unwrap();
        assert!((2000..2020_u32).all(|item| filter.insert(&item).is_ok()));
        assert_ne!(filter.stream_chunk(0, 64).unwrap(), first);
    }
}
