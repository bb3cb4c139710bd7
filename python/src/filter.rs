//! The operations of the filters, which batches use.

use everbloom::host::LayeredFilter;
use everbloom::{BloomFilter, CuckooFilter, InsertError, Item};

use crate::raw::LentView;

/// A filter that can be asked. `now` is the time of a window's clock; others ignore it.
pub(crate) trait Lookup: Send + Sync + Sized {
    fn contains(&self, item: &(impl Item + ?Sized), now: u64) -> bool;
    fn contains_each(&self, items: &[impl Item], now: u64, emit: impl FnMut(bool));
}

/// A filter that takes items; true for each one that is new.
pub(crate) trait Filter: Lookup {
    /// Whether an item that is inserted again changes nothing.
    fn is_set(&self) -> bool;

    fn insert(&mut self, item: &(impl Item + ?Sized), now: u64) -> Result<bool, InsertError>;
    fn insert_each(
        &mut self,
        items: &[impl Item],
        now: u64,
        emit: impl FnMut(bool),
    ) -> Result<(), InsertError>;
}

impl Lookup for BloomFilter {
    #[inline]
    fn contains(&self, item: &(impl Item + ?Sized), _now: u64) -> bool {
        self.contains(item)
    }

    fn contains_each(&self, items: &[impl Item], _now: u64, emit: impl FnMut(bool)) {
        self.contains_each(items, emit);
    }
}

impl Filter for BloomFilter {
    fn is_set(&self) -> bool {
        true
    }

    #[inline]
    fn insert(&mut self, item: &(impl Item + ?Sized), _now: u64) -> Result<bool, InsertError> {
        Ok(self.insert(item))
    }

    fn insert_each(
        &mut self,
        items: &[impl Item],
        _now: u64,
        emit: impl FnMut(bool),
    ) -> Result<(), InsertError> {
        self.insert_each(items, emit);
        Ok(())
    }
}

/// With a window or without.
impl Lookup for LayeredFilter {
    #[inline]
    fn contains(&self, item: &(impl Item + ?Sized), now: u64) -> bool {
        if self.window().is_none() {
            return self.contains(item);
        }
        let mut found = false;
        self.contains_each_at([item], now, |answer| found = answer);
        found
    }

    fn contains_each(&self, items: &[impl Item], now: u64, emit: impl FnMut(bool)) {
        self.contains_each_at(items, now, emit);
    }
}

impl Filter for LayeredFilter {
    /// A window remembers an item that comes again for longer.
    fn is_set(&self) -> bool {
        self.window().is_none()
    }

    #[inline]
    fn insert(&mut self, item: &(impl Item + ?Sized), now: u64) -> Result<bool, InsertError> {
        self.advance_to(now)?;
        // One that does not grow takes all items, as a filter of fixed size does.
        match self.is_fixed() {
            true => Ok(self.insert(item)),
            false => self.try_insert(item),
        }
    }

    fn insert_each(
        &mut self,
        items: &[impl Item],
        now: u64,
        emit: impl FnMut(bool),
    ) -> Result<(), InsertError> {
        self.advance_to(now)?;
        if self.is_fixed() {
            self.insert_each(items, emit);
            return Ok(());
        }
        self.insert_until_refused(items, emit)
    }
}

impl Lookup for CuckooFilter {
    #[inline]
    fn contains(&self, item: &(impl Item + ?Sized), _now: u64) -> bool {
        self.contains(item)
    }

    fn contains_each(&self, items: &[impl Item], _now: u64, emit: impl FnMut(bool)) {
        self.contains_each(items, emit);
    }
}

/// An item that seems to be there is inserted again: the one that it is taken for may be removed.
impl Filter for CuckooFilter {
    fn is_set(&self) -> bool {
        false
    }

    fn insert(&mut self, item: &(impl Item + ?Sized), _now: u64) -> Result<bool, InsertError> {
        let known = self.contains(item);
        self.insert(item)?;
        Ok(!known)
    }

    fn insert_each(
        &mut self,
        items: &[impl Item],
        now: u64,
        mut emit: impl FnMut(bool),
    ) -> Result<(), InsertError> {
        items
            .iter()
            .try_for_each(|item| Filter::insert(self, item, now).map(&mut emit))
    }
}

impl Lookup for LentView {
    #[inline]
    fn contains(&self, item: &(impl Item + ?Sized), _now: u64) -> bool {
        self.view().contains(item)
    }

    fn contains_each(&self, items: &[impl Item], _now: u64, emit: impl FnMut(bool)) {
        self.view().contains_each(items, emit);
    }
}
