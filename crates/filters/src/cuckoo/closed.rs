//! Buckets from which no kick leads to an empty slot.
//!
//! A table that cannot take an item is not always full. Some buckets may be full of fingerprints
//! whose other buckets are among them, too, while the empty slots are elsewhere: a closed set, such
//! as the two buckets of one item that is inserted repeatedly. An item with both buckets in the set
//! finds no room, but only after the maximum number of kicks. So while kicks fail, an insert now
//! and then follows all ways out of the buckets where it is, and stops when they are closed.

use alloc::collections::BTreeSet;
use alloc::vec;

use super::place::other;
use super::table::{Scheme, Table};

/// The numbers of failed kicks after which an insert searches, each time among as many buckets as
/// half the kicks. So a search takes about as long as the kicks before it.
const SEARCH_AFTER: core::ops::RangeInclusive<usize> = 64..=2048;

/// Whether it is time to search after so many kicks, and no kick leads out of the buckets that can
/// be reached from these two, which are full.
pub(super) fn are_closed<S: Scheme>(table: &Table, two: [u64; 2], kicks: usize) -> bool {
    // With another number of buckets, the other bucket of the other bucket is a third one.
    if !kicks.is_power_of_two()
        || !SEARCH_AFTER.contains(&kicks)
        || !table.buckets().is_power_of_two()
    {
        return false;
    }
    let two = two.map(|bucket| S::reduce(table, bucket));
    let (mut seen, mut open) = (BTreeSet::from(two), vec![two[0], two[1]]);
    while let Some(bucket) = open.pop() {
        for at in S::slots(table, bucket) {
            let fingerprint = S::get(table, at);
            if fingerprint == 0 || seen.len() > kicks / 2 {
                return false;
            }
            let next = S::reduce(table, other(bucket, fingerprint));
            if seen.insert(next) {
                open.push(next);
            }
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::super::CuckooFilter;
    use super::super::table::EXCHANGED;
    use super::*;

    #[test]
    fn items_without_room_cost_few_kicks() {
        let builder = CuckooFilter::builder().slots(1024).expansion(0);
        let builder = builder.bucket_size(1).max_kicks(u16::MAX);
        let mut filter = builder.build().unwrap();
        let refused = |filter: &mut CuckooFilter, items: core::ops::Range<u32>| {
            items.filter(|item| filter.insert(item).is_err()).count()
        };
        assert!(refused(&mut filter, 0..1250) > 225);
        EXCHANGED.set(0);
        let count = refused(&mut filter, 1250..1500);
        assert!(count > 125);
        assert!(filter.used() < filter.slots(), "it is not full");
        // Each that was refused had 131 070.
        let most = count * 2 * SEARCH_AFTER.end() + 250;
        assert!(EXCHANGED.get() <= most, "{}", EXCHANGED.get());
    }

    #[test]
    fn one_item_again_and_again_costs_few_kicks() {
        let mut filter = CuckooFilter::builder().max_kicks(u16::MAX).build().unwrap();
        EXCHANGED.set(0);
        (0..400).for_each(|_| filter.insert("a").unwrap());
        assert_eq!(filter.tables(), 100);
        let most = 100 * (2 * SEARCH_AFTER.start() + 4);
        assert!(EXCHANGED.get() <= most, "{}", EXCHANGED.get());
    }
}
