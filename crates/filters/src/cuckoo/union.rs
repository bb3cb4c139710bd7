//! Adding the items of another filter.

use super::bytes::Bytes;
use super::packed::Packed;
use super::table::{Scheme, Watch};
use super::{CuckooFilter, CuckooParts};
use crate::bloom::sets::UnionError;
use crate::error::{CuckooError, InsertError, first_broken};

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
    /// both is there twice. The filters must have the same parameters and key.
    ///
    /// A fingerprint of the other filter does not say what a longer one would be. So it goes to the
    /// table that has its number here, or to an older one, and the filter grows only to as many
    /// tables as the other one has. When both filters have grown, their first tables are full, and
    /// the union is nearly always refused. Make both filters for all items together.
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
    /// no memory. No item was added then.
    pub fn union(&mut self, other: &CuckooFilter) -> Result<(), UnionError> {
        self.check_parameters(other)?;
        let mut attempt = self.copied()?;
        for filter in [&mut attempt, self] {
            filter.grow_to(other.tables.len())?;
            // Where the attempt found room, the filter does.
            match filter.keyed {
                None => filter.unite::<Bytes>(other)?,
                Some(_) => filter.unite::<Packed>(other)?,
            }
        }
        Ok(())
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

    /// A copy, if there is memory for it.
    fn copied(&self) -> Result<CuckooFilter, UnionError> {
        let copy = CuckooFilter::from_parts(&self.parts(), u64::MAX);
        let mut copy = copy.map_err(|_| UnionError::OutOfMemory)?;
        for (number, table) in self.tables.iter().enumerate() {
            // A copy has tables of the same sizes.
            let loaded = copy.load_table(number, 0, &table.slots);
            loaded.map_err(|_| UnionError::OutOfMemory)?;
        }
        Ok(copy)
    }

    fn unite<S: Scheme>(&mut self, other: &CuckooFilter) -> Result<(), UnionError> {
        for (number, table) in other.tables.iter().enumerate() {
            let mut from = 0;
            for _ in 0..table.used {
                let Some((at, place)) = S::next_used(table, from) else {
                    break;
                };
                let capture = &mut self.capture;
                let tables = self.tables.iter_mut().enumerate().take(number + 1);
                let is_placed = tables.rev().any(|(number, table)| {
                    let watch = &mut Watch { capture, number };
                    table.place::<S>(place, watch) || S::kick(table, place, self.max_kicks, watch)
                });
                if !is_placed {
                    return Err(UnionError::Room);
                }
                from = at + 1;
            }
        }
        self.items = self.items.saturating_add(other.items);
        Ok(())
    }
}

fn refusal(error: InsertError) -> UnionError {
    match error {
        InsertError::OutOfMemory { .. } => UnionError::OutOfMemory,
        InsertError::Full | InsertError::CannotGrow | InsertError::Copies => UnionError::Room,
    }
}

#[cfg(test)]
mod tests {
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
}
