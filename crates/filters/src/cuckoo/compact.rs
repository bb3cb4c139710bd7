//! Moving items to older tables.

use alloc::vec::Vec;

use super::bytes::Bytes;
use super::packed::Packed;
use super::place::Place;
use super::table::{Scheme, Table, Watch};
use super::{CuckooFilter, Stuck};

/// With this many tables, it pays to record for each bucket which table has room in it.
const MANY_TABLES: usize = 8;

impl CuckooFilter {
    #[cold]
    pub(super) fn compact_tables(&mut self, stuck: Stuck) {
        match self.keyed {
            None => self.compact_in::<Bytes>(stuck),
            Some(_) => self.compact_in::<Packed>(stuck),
        }
    }

    fn compact_in<S: Scheme>(&mut self, stuck: Stuck) {
        let mut rooms = Rooms::of(&self.tables);
        for number in (1..self.tables.len()).rev() {
            self.empty_table::<S>(number, &mut rooms);
            let Some(table) = self.tables.get(number) else {
                break;
            };
            let is_empty = table.used == 0;
            if is_empty
                && number + 1 == self.tables.len()
                && let Some(table) = self.tables.pop()
            {
                self.capture.keep_last(number, table.slots);
            }
            if !is_empty && stuck == Stuck::Stop {
                break;
            }
        }
        self.removed = 0;
    }

    /// Moves each fingerprint of a table, by its number, to the oldest table that has room for it,
    /// if it is an older one.
    fn empty_table<S: Scheme>(&mut self, number: usize, rooms: &mut Option<Rooms>) {
        let (older, rest) = self.tables.split_at_mut(number);
        let Some(table) = rest.first_mut() else {
            return;
        };
        let capture = &mut self.capture;
        let mut from = 0;
        // Not to the end of a table of which a few slots are in use.
        for _ in 0..table.used {
            let Some((at, place)) = S::next_used(table, from) else {
                break;
            };
            let has_room = |table: &Table| {
                let mut buckets = S::home(table, place).0.into_iter();
                buckets.any(|bucket| table.has_room::<S>(bucket))
            };
            let to = match rooms {
                Some(rooms) => rooms.oldest::<S>(older, place),
                None => older.iter().position(has_room),
            };
            let target = to.and_then(|to| Some((to, older.get_mut(to)?)));
            let is_moved = target.is_some_and(|(number, target)| {
                target.place::<S>(place, &mut Watch { capture, number })
            });
            if is_moved {
                table.clear::<S>(at, &mut Watch { capture, number });
            }
            from = at + 1;
        }
    }
}

/// For each bucket, a table number; no older table has room in that bucket.
///
/// While a table is emptied, older tables only gain fingerprints, and newer ones get no more. So
/// these numbers only rise, and a compaction takes one step per slot. (A search of each table for
/// each item would take items times tables, and a loaded filter may have 65 535 tables.)
struct Rooms(Vec<u16>);

impl Rooms {
    /// None unless there are many tables of equal length, and memory.
    fn of(tables: &[Table]) -> Option<Rooms> {
        let first = tables.first()?.buckets();
        if tables.len() <= MANY_TABLES || tables.iter().any(|table| table.buckets() != first) {
            return None;
        }
        let buckets = usize::try_from(first).ok()?;
        let mut numbers = Vec::new();
        numbers.try_reserve_exact(buckets).ok()?;
        numbers.resize(buckets, 0);
        Some(Rooms(numbers))
    }

    /// The oldest table that has room for a fingerprint.
    fn oldest<S: Scheme>(&mut self, tables: &[Table], place: Place) -> Option<usize> {
        let first = tables.first()?;
        let oldest = S::home(first, place).0.map(|bucket| {
            let number = usize::try_from(S::reduce(first, bucket)).ok();
            let number = number.and_then(|number| self.0.get_mut(number));
            let Some(number) = number else {
                return usize::MAX;
            };
            let rest = tables.get(usize::from(*number)..).unwrap_or_default();
            let full = rest.iter().take_while(|table| !table.has_room::<S>(bucket));
            // There are at most 65535 tables.
            *number = number.saturating_add(u16::try_from(full.count()).unwrap_or(u16::MAX));
            usize::from(*number)
        });
        let [first, second] = oldest;
        Some(first.min(second)).filter(|number| *number < tables.len())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::table::LOOKED;
    use super::*;
    use crate::formats::redisbloom::CuckooParts;

    /// A filter with these slots, in tables of as many buckets, or each of twice as many.
    fn loaded(slots: &[u8], buckets: u64, bucket_size: u8, expansion: u16) -> CuckooFilter {
        let parts = CuckooParts {
            items: slots.len() as u64,
            removed: 0,
            buckets,
            tables: 1,
            bucket_size,
            max_kicks: 20,
            expansion,
            keyed: None,
        };
        let tables = (1..).take_while(|tables| {
            let parts = CuckooParts {
                tables: *tables,
                ..parts
            };
            let slots_of = |number| parts.table(number).unwrap().1;
            (0..*tables).map(slots_of).sum::<u64>() <= slots.len() as u64
        });
        let parts = CuckooParts {
            tables: tables.last().unwrap_or(1),
            ..parts
        };
        let mut filter = CuckooFilter::from_parts(&parts, u64::MAX).unwrap();
        let mut at = 0;
        for number in 0..parts.tables {
            let end = (at + parts.table(number).unwrap().1).min(slots.len() as u64);
            let range = usize::try_from(at).unwrap()..usize::try_from(end).unwrap();
            filter.load_chunk(at, &slots[range]).unwrap();
            at = end;
        }
        filter
    }

    /// What the reference says, word by word.
    fn plainly(filter: &mut CuckooFilter) {
        for number in (1..filter.tables.len()).rev() {
            let (older, rest) = filter.tables.split_at_mut(number);
            let table = &mut rest[0];
            let size = u64::from(filter.bucket_size);
            for at in 0..table.slots.len() {
                let place = Place {
                    hash: at as u64 / size,
                    fingerprint: table.slots[at].into(),
                };
                let capture = &mut filter.capture;
                let mut watch = Watch { capture, number };
                if place.fingerprint != 0
                    && older
                        .iter_mut()
                        .any(|t| t.place::<Bytes>(place, &mut watch))
                {
                    table.clear::<Bytes>(at, &mut watch);
                }
            }
            if table.used == 0 && number + 1 == filter.tables.len() {
                filter.tables.pop();
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(500))]

        #[test]
        fn it_is_what_the_reference_says(
            bucket_size in 1..4_u8, buckets in 0..4_u32, expansion in 1..3_u16,
            empty in 0..10_u8,
            slots in prop::collection::vec((any::<u8>(), 0..10_u8), 24..1500),
        ) {
            let slot = |(value, chance): &(u8, u8)| if *chance < empty { 0 } else { *value };
            let slots: Vec<u8> = slots.iter().map(slot).collect();
            let mut filter = loaded(&slots, 1 << buckets, bucket_size, expansion);
            let mut plain = filter.clone();
            plainly(&mut plain);
            filter.compact();
            prop_assert!(filter == plain);
        }
    }

    /// A compaction does not read the rest of a table slot by slot.
    #[test]
    fn a_large_table_with_few_items_costs_few_steps() {
        let builder = CuckooFilter::builder().capacity(1).error_rate(0.01).seed(1);
        let mut filter = builder.expansion(32768).build().unwrap();
        while filter.tables() == 1 {
            filter.insert(&filter.len().clone()).unwrap();
        }
        assert!(filter.slots() > 500_000);
        LOOKED.set(0);
        filter.compact();
        assert!(LOOKED.get() < 30, "{} buckets", LOOKED.get());
        let mut parts = filter.parts();
        (parts.items, parts.tables) = (0, 2);
        let mut empty = CuckooFilter::from_parts(&parts, u64::MAX).unwrap();
        LOOKED.set(0);
        empty.compact();
        assert_eq!((LOOKED.get(), empty.tables()), (0, 1));
    }

    /// Each table has room in one bucket alone, which few of the fingerprints can go to.
    #[test]
    fn it_takes_as_many_steps_as_there_are_slots() {
        const TABLES: usize = 2000;
        let table: Vec<u8> = (0..64).map(|at| if at < 2 { 0 } else { at }).collect();
        let mut filter = loaded(&table.repeat(TABLES), 32, 2, 1);
        assert_eq!(filter.tables(), TABLES);
        LOOKED.set(0);
        filter.compact();
        assert!(LOOKED.get() < 10 * 64 * TABLES, "{} buckets", LOOKED.get());
    }
}
