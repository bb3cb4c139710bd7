//! Adding the items of another filter.
//!
//! A log and a replica repeat a union, and must come to the same filter, or to the same refusal. So the
//! order in which tables are tried, and when kicks end, are a promise to later versions, as a format is.

use super::bytes::Bytes;
use super::packed::{self, Packed};
use super::place::Place;
use super::table::{Scheme, Watch};
use super::{CuckooFilter, CuckooParts};
use crate::bloom::sets::UnionError;
use crate::error::{CuckooError, InsertError, first_broken};

/// The most tables in which a union looks for room for an item. A header may announce thousands.
const TRIED: usize = 16;
/// The most items of a table for which kicks may find no room.
const MAX_FAILED: u32 = 16;
/// The most kicks of a union, and more for each of its items; about. After these, only empty slots are
/// looked for. A filter of a client may have tables in which each item takes 65 535 kicks.
const MAX_KICKS: u64 = 1 << 18;
const MAX_KICKS_OF_ITEM: u64 = 64;

/// Which kicks a union may still make.
struct Patience {
    /// How often they may be in vain, for items of the table whose items are added.
    failures: u32,
    kicks: u64,
    /// What kicks in vain count as.
    most: u64,
}

impl Patience {
    fn new(to: &CuckooFilter, from: &CuckooFilter) -> Patience {
        let most = match to.keyed {
            None => to.max_kicks,
            Some(_) => packed::MAX_KICKS,
        };
        let kicks = MAX_KICKS_OF_ITEM.saturating_mul(from.used());
        Patience {
            failures: 0,
            kicks: kicks.saturating_add(MAX_KICKS),
            most: most.into(),
        }
    }

    /// The items of another table begin, or there is another table for them.
    fn begin_table(&mut self) {
        self.failures = MAX_FAILED;
    }

    fn may_kick(&self) -> bool {
        self.failures > 0 && self.kicks > 0
    }

    /// Counts so many kicks, or kicks in vain; whether they were not in vain.
    fn count(&mut self, kicks: Option<usize>) -> bool {
        self.failures -= u32::from(kicks.is_none());
        let kicks_made = kicks.map_or(self.most, |kicks| kicks as u64);
        self.kicks = self.kicks.saturating_sub(kicks_made);
        kicks.is_some()
    }
}

impl CuckooFilter {
    /// An empty filter with the same parameters and key, so that the two can be
    /// [united](Self::union). It has one table.
    ///
    /// # Errors
    ///
    /// There is no memory.
    pub fn empty_like(&self) -> Result<CuckooFilter, CuckooError> {
        let parts = CuckooParts {
            items: 0,
            removed: 0,
            tables: 1,
            ..self.parts()
        };
        CuckooFilter::from_parts(&parts, u64::MAX)
    }

    /// Adds all items of another filter, as if each had been inserted here, too: an item that is in
    /// both is there twice. The filters must have the same parameters and key, but for the kicks.
    /// Where the filter does not grow for them, a table holds two buckets of copies of one item, which
    /// are 8 with an error rate.
    ///
    /// A filter of RedisBloom's kind whose tables are all of one size, as they are by default, grows
    /// when it needs room. In the others, a fingerprint does not say where an item belongs in a larger
    /// table. So it goes to the table that has its number here, or to an older one, and the filter
    /// grows only to as many tables as the other one has. When both have grown, their first tables
    /// are full, and the union is nearly always refused. Make both filters for all items together,
    /// with an error rate: a table of RedisBloom's kind may refuse an item when a quarter of it is in
    /// use.
    ///
    /// ```
    /// use everbloom::{CuckooFilter, UnionError};
    /// let builder = CuckooFilter::builder().capacity(1000).error_rate(0.001);
    /// let mut one = builder.build()?;
    /// let mut other = one.empty_like()?;
    /// one.insert("a")?;
    /// other.insert("a")?;
    /// other.insert("b")?;
    /// one.union(&other)?;
    /// assert_eq!((one.len(), one.count("a"), one.count("b")), (3, 2, 1));
    /// assert_eq!(one.union(&builder.build()?), Err(UnionError::Key));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`UnionError`] names a parameter in which the filters differ, or says that there is no room or
    /// no memory. No item was added then, but perhaps some when it grows and
    /// [memory](UnionError::OutOfMemory) is missing.
    pub fn union(&mut self, other: &CuckooFilter) -> Result<(), UnionError> {
        self.check_parameters(other)?;
        // Where a copy has room, the filter does.
        self.try_clone().map_err(out_of_memory)?.add_all(other)?;
        self.add_all(other)
    }

    /// The [`union`](Self::union) of both. It needs no copy of the filter: when it fails, the filter
    /// is gone.
    ///
    /// ```
    /// use everbloom::CuckooFilter;
    /// let builder = CuckooFilter::builder().capacity(1000).error_rate(0.001).seed(7);
    /// let mut days = [builder.build()?, builder.build()?];
    /// days[0].insert("a")?;
    /// days[1].insert("b")?;
    /// let both = days.iter().try_fold(builder.build()?, |both, day| both.united(day))?;
    /// assert!(both.contains("a") && both.contains("b"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Those of [`union`](Self::union).
    pub fn united(mut self, other: &CuckooFilter) -> Result<CuckooFilter, UnionError> {
        self.check_parameters(other)?;
        self.add_all(other)?;
        Ok(self)
    }

    /// Adds all items of a filter with the same parameters. Some are added when it fails.
    fn add_all(&mut self, other: &CuckooFilter) -> Result<(), UnionError> {
        if !self.are_alike() {
            self.grow_to(other.tables.len())?;
        }
        match self.keyed {
            None => self.unite::<Bytes>(other),
            Some(_) => self.unite::<Packed>(other),
        }
    }

    /// Grows to so many tables, or not at all.
    fn grow_to(&mut self, tables: usize) -> Result<(), UnionError> {
        let own = self.tables.len();
        while self.tables.len() < tables {
            if let Err(error) = self.grow(u64::MAX) {
                // Nobody who reads the filter knows of the new tables.
                while self.tables.len() > own {
                    self.tables.pop();
                }
                return Err(refusal(error));
            }
        }
        Ok(())
    }

    fn check_parameters(&self, other: &CuckooFilter) -> Result<(), UnionError> {
        let (own, others) = (self.parts(), other.parts());
        let keyed = own.keyed.zip(others.keyed);
        let is_nested = own.expansion == 0 || own.expansion.is_power_of_two();
        first_broken([
            (
                own.keyed.is_some() == others.keyed.is_some(),
                UnionError::Hash,
            ),
            (
                keyed.is_none_or(|(one, other)| one.key == other.key),
                UnionError::Key,
            ),
            (
                own.expansion == others.expansion && is_nested,
                UnionError::Growth,
            ),
            (
                keyed.is_none_or(|(one, other)| one == other),
                UnionError::ErrorRate,
            ),
            (own.buckets == others.buckets, UnionError::Capacity),
            (own.bucket_size == others.bucket_size, UnionError::Capacity),
        ])
    }

    /// A copy, as `clone` makes it where there is memory.
    ///
    /// # Errors
    ///
    /// There is no memory.
    pub fn try_clone(&self) -> Result<CuckooFilter, CuckooError> {
        let mut copy = CuckooFilter::from_parts(&self.parts(), u64::MAX)?;
        for (number, table) in self.tables.iter().enumerate() {
            // A copy has tables of the same sizes.
            let loaded = copy.load_table(number, 0, &table.slots);
            loaded.map_err(|_| CuckooError::OutOfMemory)?;
        }
        Ok(copy)
    }

    fn unite<S: Scheme>(&mut self, other: &CuckooFilter) -> Result<(), UnionError> {
        let are_alike = self.are_alike();
        let mut patience = Patience::new(self, other);
        for (number, table) in other.tables.iter().enumerate() {
            let mut from = 0;
            patience.begin_table();
            for _ in 0..table.used {
                let Some((at, place)) = S::next_used(table, from) else {
                    break;
                };
                let newest = if are_alike {
                    self.tables.len().saturating_sub(1)
                } else {
                    number
                };
                let mut is_placed = self.put_into::<S>(newest, place, &mut patience);
                if !is_placed && are_alike {
                    is_placed = self.put_into_new::<S>(place)?;
                    patience.begin_table();
                }
                if !is_placed {
                    return Err(UnionError::Room);
                }
                from = at + 1;
            }
        }
        self.items = self.items.saturating_add(other.items);
        Ok(())
    }

    /// Whether a place in one table is one in any other, as all are of one size.
    fn are_alike(&self) -> bool {
        self.keyed.is_none() && self.expansion == 1
    }

    /// Puts a fingerprint into the table of this number or one of the older ones.
    fn put_into<S: Scheme>(
        &mut self,
        newest: usize,
        place: Place,
        patience: &mut Patience,
    ) -> bool {
        let capture = &mut self.capture;
        let oldest = newest.saturating_sub(TRIED - 1);
        let tables = self.tables.get_mut(oldest..=newest).unwrap_or_default();
        for (at, table) in tables.iter_mut().enumerate().rev() {
            let number = oldest + at;
            if table.place::<S>(place, &mut Watch { capture, number }) {
                return true;
            }
        }
        for (at, table) in tables.iter_mut().enumerate().rev() {
            let number = oldest + at;
            if table.used >= S::capacity(table) || !patience.may_kick() {
                continue;
            }
            let watch = &mut Watch { capture, number };
            if patience.count(S::kick(table, place, self.max_kicks, watch)) {
                return true;
            }
        }
        false
    }

    /// Grows, and puts a fingerprint into the new table.
    #[cold]
    fn put_into_new<S: Scheme>(&mut self, place: Place) -> Result<bool, UnionError> {
        let number = self.grow(u64::MAX).map_err(refusal)?;
        let capture = &mut self.capture;
        let table = self.tables.last_mut();
        Ok(table.is_some_and(|it| it.place::<S>(place, &mut Watch { capture, number })))
    }
}

fn out_of_memory(_: CuckooError) -> UnionError {
    UnionError::OutOfMemory
}

fn refusal(error: InsertError) -> UnionError {
    match error {
        InsertError::OutOfMemory { .. } => UnionError::OutOfMemory,
        InsertError::Full | InsertError::CannotGrow | InsertError::Copies => UnionError::Room,
    }
}

#[cfg(test)]
mod tests {
    use super::super::place::other;
    use super::super::table::EXCHANGED;
    use super::*;

    #[test]
    fn a_filter_that_cannot_grow_enough_does_not_grow() {
        let builder = CuckooFilter::builder().capacity(1).error_rate(0.01).seed(1);
        let mut filter = builder.expansion(1).build().unwrap();
        assert_eq!(filter.grow_to(46), Err(UnionError::Room));
        assert_eq!(filter.tables(), 1);
        assert_eq!(filter.grow_to(45), Ok(()));
        assert_eq!(filter.tables(), 45);
    }

    /// Each of a chain of tables has nothing but a closed set that is too large to be seen, and the
    /// oldest one has room after a kick.
    #[test]
    fn many_tables_that_take_nothing_more_cost_few_kicks() {
        let builder = CuckooFilter::builder().slots(1 << 13).expansion(1);
        let builder = builder.bucket_size(2).max_kicks(u16::MAX);
        let parts = |tables| CuckooParts {
            tables,
            ..builder.parts().unwrap()
        };
        let mut filter = CuckooFilter::from_parts(&parts(40), u64::MAX).unwrap();
        let mut other = CuckooFilter::from_parts(&parts(40), u64::MAX).unwrap();
        // Even fingerprints lead from an even bucket to an even one, and odd ones are elsewhere.
        let full: std::vec::Vec<u8> = (0..1_u32 << 13)
            .map(|slot| match slot / 2 % 2 {
                0 => 2 + (slot * 7919 % 126) as u8 * 2,
                _ => 0,
            })
            .collect();
        for number in 0..40 {
            filter.load_table(number, 0, &full).unwrap();
            other.load_table(number, 0, &[2]).unwrap();
        }
        EXCHANGED.set(0);
        let united = filter.united(&other);
        assert!(united.is_ok() || united == Err(UnionError::Room));
        let kicks = usize::try_from(MAX_KICKS).unwrap();
        let most = 2 * (kicks + 2 * usize::from(u16::MAX));
        assert!(EXCHANGED.get() <= most, "{}", EXCHANGED.get());
        let least = kicks / 2;
        assert!(EXCHANGED.get() > least, "{}", EXCHANGED.get());
    }

    /// Fingerprints that lead from bucket to bucket to the only empty one, as a client can forge them.
    #[test]
    fn kicks_that_find_room_count_too() {
        let builder = CuckooFilter::builder().slots(1 << 12).bucket_size(1);
        let mut filter = builder.max_kicks(u16::MAX).build().unwrap();
        let mut slots = std::vec![0_u8; 1 << 12];
        let mut bucket = 0_u64;
        let at = |bucket: u64| usize::try_from(bucket).unwrap();
        let mut length = 0;
        while length < 3000 {
            let next = |fingerprint: u8| other(bucket, fingerprint.into()) % (1 << 12);
            let is_free = |fingerprint: &u8| {
                let next = next(*fingerprint);
                next != bucket && slots[at(next)] == 0
            };
            let fingerprint = (1..=255).find(is_free).unwrap();
            let after = next(fingerprint);
            slots[at(bucket)] = fingerprint;
            (bucket, length) = (after, length + 1);
        }
        filter.load_table(0, 0, &slots).unwrap();
        let place = Place {
            hash: 0,
            fingerprint: u64::from(slots[0]),
        };
        let mut patience = Patience::new(&filter, &filter);
        patience.begin_table();
        let left = patience.kicks;
        let capture = &mut filter.capture;
        let watch = &mut Watch { capture, number: 0 };
        let kicks = Bytes::kick(&mut filter.tables[0], place, u16::MAX, watch);
        assert_eq!(kicks, Some(length));
        assert!(patience.count(kicks) && patience.may_kick());
        assert_eq!(patience.kicks, left - 3000);
        while patience.kicks > 0 {
            assert!(patience.may_kick() && patience.count(kicks));
        }
        assert!(!patience.may_kick());
    }

    /// Items for whose table there is no room go to an older one, and few of them try kicks before.
    #[test]
    fn tables_that_take_nothing_more_cost_few_kicks() {
        let builder = CuckooFilter::builder().slots(1024).expansion(2);
        let builder = builder.bucket_size(2).max_kicks(u16::MAX);
        let parts = CuckooParts {
            tables: 2,
            ..builder.parts().unwrap()
        };
        let mut filter = CuckooFilter::from_parts(&parts, u64::MAX).unwrap();
        let mut other = CuckooFilter::from_parts(&parts, u64::MAX).unwrap();
        // Each fingerprint goes to and fro between two buckets, and one slot is empty.
        filter.load_table(1, 0, &[1; 2047]).unwrap();
        for number in 0..2_u32 {
            let mut items = builder.slots(1024 << number).build().unwrap();
            (0..395).for_each(|item| items.insert(&(number << 16 | item)).unwrap());
            let table = &items.tables[0].slots;
            other.load_table(number as usize, 0, table).unwrap();
        }
        EXCHANGED.set(0);
        let united = filter.united(&other);
        assert!(united.is_ok() || united == Err(UnionError::Room));
        assert!(EXCHANGED.get() < 10_000, "{}", EXCHANGED.get());
    }
}
