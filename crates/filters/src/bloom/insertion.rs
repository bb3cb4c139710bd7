//! How items enter the layers of a filter, one by one and in groups, and how the filter grows.

use core::convert::Infallible;
use core::ops::ControlFlow;

use super::group::{Group, is_one_at_most};
use super::layered::LayeredFilter;
use super::window::{MaybeWindow, Span};
use crate::bits::memory;
use crate::error::InsertError;
use crate::hash::DoubleHash;
use crate::hash::item::Item;
use crate::layer::Layer;
use crate::layer::kind::Kind;
use crate::sizing::BlockedSize;

/// What an insertion has done. [Example](LayeredFilter::try_insert_each).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inserted {
    /// The filter did not have the item.
    New,
    /// Only older generations of a [window](crate::WindowedBloomFilter) had it. It is in the
    /// newest now.
    Renewed,
    /// Nothing: the filter had it.
    Known,
}

impl<W: MaybeWindow> LayeredFilter<W> {
    /// As [`ScalableBloomFilter::insert`](crate::ScalableBloomFilter::insert).
    pub fn insert<T: Item + ?Sized>(&mut self, item: &T) -> bool {
        let Ok(inserted) = self.insert_item(item, Self::insert_surely);
        inserted == Inserted::New
    }

    /// As [`ScalableBloomFilter::try_insert`](crate::ScalableBloomFilter::try_insert).
    ///
    /// # Errors
    ///
    /// [`InsertError`] when the item is new and there is no room for it; nothing has changed then.
    pub fn try_insert<T: Item + ?Sized>(&mut self, item: &T) -> Result<bool, InsertError> {
        let insert = |filter: &mut Self, pair| filter.insert_new(pair, u64::MAX);
        let inserted = self.insert_item(item, insert)?;
        Ok(inserted == Inserted::New)
    }

    /// [`insert`](Self::insert) for each item in turn, faster than one by one. Calls `emit` with
    /// whether the item is new. It reads ahead in the iterator.
    pub fn insert_each(
        &mut self,
        items: impl IntoIterator<Item: Item>,
        mut emit: impl FnMut(bool),
    ) {
        let mut refusals = Refusals::default();
        let insert = |filter: &mut Self, pair| {
            let inserted = refusals.retry(|| filter.insert_new(pair, u64::MAX));
            filter.insert_if_refused(pair, inserted)
        };
        self.insert_groups(items.into_iter(), insert, |Ok(inserted)| {
            emit(inserted == Inserted::New);
            ControlFlow::Continue(())
        });
    }

    /// [`insert_each`](Self::insert_each), which stops at an item for which the filter would have
    /// to grow and cannot. The items before that one were inserted.
    ///
    /// ```
    /// use everbloom::InsertError;
    /// use everbloom::host::LayeredFilter;
    /// let mut seen = LayeredFilter::builder().capacity(1).fixed().build()?;
    /// let mut new = Vec::new();
    /// let refused = seen.insert_until_refused(["a", "a", "b"], |is_new| new.push(is_new));
    /// assert_eq!((refused, new), (Err(InsertError::Full), vec![true, false]));
    /// # Ok::<(), everbloom::BuildError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`try_insert`](Self::try_insert).
    pub fn insert_until_refused(
        &mut self,
        items: impl IntoIterator<Item: Item>,
        mut emit: impl FnMut(bool),
    ) -> Result<(), InsertError> {
        let mut outcome = Ok(());
        self.try_insert_each(items, u64::MAX, |inserted| match inserted {
            Ok(inserted) => {
                emit(inserted == Inserted::New);
                ControlFlow::Continue(())
            }
            Err(error) => {
                outcome = Err(error);
                ControlFlow::Break(())
            }
        });
        outcome
    }

    /// Inserts each item without making room: the newest layer may hold more than its capacity
    /// then, and the error rate rises. For items that must be remembered although the filter could
    /// not grow.
    ///
    /// ```
    /// use everbloom::host::LayeredFilter;
    /// let mut seen = LayeredFilter::builder().capacity(1).build()?;
    /// seen.insert_each_into_newest(["a", "b"]);
    /// assert!(seen.contains("b") && seen.layers().len() == 1 && seen.len() == 2);
    /// # Ok::<(), everbloom::BuildError>(())
    /// ```
    pub fn insert_each_into_newest(&mut self, items: impl IntoIterator<Item: Item>) {
        let insert = |filter: &mut Self, pair| {
            filter.insert_into_newest(pair);
            Ok::<(), Infallible>(())
        };
        self.insert_groups(items.into_iter(), insert, |_| ControlFlow::Continue(()));
    }

    /// Calls `emit` with what [`try_insert`](Self::try_insert) of each item in turn has done; when
    /// `emit` breaks, the items after that one are not inserted. It may read ahead in the iterator.
    /// An item that would need a new layer of more than `max_layer_bytes` is refused.
    ///
    /// ```
    /// use everbloom::InsertError;
    /// use everbloom::host::{Inserted, LayeredFilter};
    /// use std::ops::ControlFlow;
    ///
    /// let mut seen = LayeredFilter::builder().capacity(1).build()?;
    /// let mut replies = Vec::new();
    /// seen.try_insert_each(["a", "b"], 0, |reply| {
    ///     replies.push(reply);
    ///     ControlFlow::Continue(())
    /// });
    /// assert_eq!(replies, [Ok(Inserted::New), Err(InsertError::CannotGrow)]);
    /// # Ok::<(), everbloom::BuildError>(())
    /// ```
    pub fn try_insert_each(
        &mut self,
        items: impl IntoIterator<Item: Item>,
        max_layer_bytes: u64,
        emit: impl FnMut(Result<Inserted, InsertError>) -> ControlFlow<()>,
    ) {
        let mut refusals = Refusals::default();
        let insert =
            |filter: &mut Self, pair| refusals.retry(|| filter.insert_new(pair, max_layer_bytes));
        self.insert_groups(items.into_iter(), insert, emit);
    }

    /// `insert` takes an item that is not in the newest generation.
    #[inline]
    fn insert_groups<E>(
        &mut self,
        items: impl Iterator<Item: Item>,
        mut insert: impl FnMut(&mut Self, DoubleHash) -> Result<(), E>,
        mut emit: impl FnMut(Result<Inserted, E>) -> ControlFlow<()>,
    ) {
        if is_one_at_most(&items) {
            for item in items {
                let reply = self.insert_item(&item, &mut insert);
                if emit(reply).is_break() {
                    return;
                }
            }
            return;
        }
        let mut items = items;
        let hasher = self.hasher().0;
        let (mut now, mut next) = (&mut Group::default(), &mut Group::default());
        let mut more = now.fill(&mut items, &hasher);
        now.prefetch_blocks(&self.layers);
        while more {
            more = next.fill(&mut items, &hasher);
            next.prefetch_blocks(&self.layers);
            let began = self.began();
            let (older, current) = self.layers.split_at(self.past());
            let found = now.contained_before_insert(current);
            let renewed = match older {
                [] => 0,
                _ => now.contained_in_any(older, now.all() & !found),
            };
            let mut is_outdated = false;
            let newest = self.layers.len().saturating_sub(1);
            for (index, &pair) in now.pairs().iter().enumerate() {
                // Items found before are still found. The others can only be in the layer that was
                // the newest and in later ones: an earlier item of the group may have set their
                // bits there.
                let done = match renewed >> index & 1 {
                    1 => Inserted::Renewed,
                    _ => Inserted::New,
                };
                let reply = if is_outdated {
                    self.insert_unless_found(pair, &mut insert)
                } else if found >> index & 1 == 1 {
                    Ok(Inserted::Known)
                } else if let Some(new) =
                    self.insert_where_room(newest, |layer| layer.insert_if_new(pair))
                {
                    Ok(if new { done } else { Inserted::Known })
                } else if self.found_from(newest, pair) {
                    Ok(Inserted::Known)
                } else {
                    let inserted = insert(self, pair);
                    // A new generation makes what was found in the layers out of date.
                    is_outdated = self.began() != began;
                    inserted.map(|()| done)
                };
                if emit(reply).is_break() {
                    return;
                }
            }
            core::mem::swap(&mut now, &mut next);
        }
    }

    /// Inserts an item that is in none of the layers before number `newest`, if that layer is still
    /// the newest, has room and has no captures; whether the item was new.
    #[inline]
    fn insert_where_room(
        &mut self,
        newest: usize,
        insert: impl FnOnce(&mut Layer) -> bool,
    ) -> Option<bool> {
        if self.layers.len() != newest + 1 || self.capture.is_active() {
            return None;
        }
        insert_if_room(self.layers.get_mut(newest)?, &mut self.items, insert)
    }

    /// Inserts an item, if it is not in the newest generation. `insert` takes an item that is not
    /// in there.
    #[inline]
    fn insert_item<E>(
        &mut self,
        item: &(impl Item + ?Sized),
        insert: impl FnOnce(&mut Self, DoubleHash) -> Result<(), E>,
    ) -> Result<Inserted, E> {
        let width = self.options.hash_width();
        // One pass over the only layer tests and inserts; in the blocked layout it hashes, too.
        let inserted = match self.layers.only_mut() {
            Some(only) if !self.capture.is_active() => {
                insert_if_room(only, &mut self.items, |only| only.insert_item(item, width))
            }
            _ => None,
        };
        match inserted {
            Some(true) => Ok(Inserted::New),
            Some(false) => Ok(Inserted::Known),
            None => self.insert_unless_found(self.hash(item), insert),
        }
    }

    /// The same for a hashed item, after a search of all layers.
    #[inline(never)]
    fn insert_unless_found<E>(
        &mut self,
        pair: DoubleHash,
        insert: impl FnOnce(&mut Self, DoubleHash) -> Result<(), E>,
    ) -> Result<Inserted, E> {
        let past = self.past();
        if self.found_from(past, pair) {
            return Ok(Inserted::Known);
        }
        let older = self.layers.iter().take(past);
        let done = match older.rev().any(|layer| layer.contains(pair)) {
            true => Inserted::Renewed,
            false => Inserted::New,
        };
        insert(self, pair).map(|()| done)
    }

    /// Inserts an item that is not in the newest generation.
    #[inline]
    fn insert_new(&mut self, pair: DoubleHash, max_layer_bytes: u64) -> Result<(), InsertError> {
        if self.layers.last().is_none_or(Layer::is_full) {
            self.make_room(max_layer_bytes)?;
        }
        self.insert_into_newest(pair);
        Ok(())
    }

    /// As [`insert_new`](Self::insert_new), for callers without an error.
    #[inline]
    fn insert_surely(&mut self, pair: DoubleHash) -> Result<(), Infallible> {
        let inserted = self.insert_new(pair, u64::MAX);
        self.insert_if_refused(pair, inserted)
    }

    /// Inserts a refused item into the newest layer, unless there was no memory: this ends the
    /// program, as it does for a vector. Otherwise the filter would take new items for known ones.
    #[inline]
    fn insert_if_refused(
        &mut self,
        pair: DoubleHash,
        inserted: Result<(), InsertError>,
    ) -> Result<(), Infallible> {
        match inserted {
            Ok(()) => {}
            Err(InsertError::OutOfMemory { bytes }) => memory::out_of_memory(bytes),
            Err(InsertError::Full | InsertError::CannotGrow | InsertError::Copies) => {
                self.insert_into_newest(pair)
            }
        }
        Ok(())
    }

    #[inline]
    fn insert_into_newest(&mut self, pair: DoubleHash) {
        let newest = self.layers.len().saturating_sub(1);
        if let Some(layer) = self.layers.last_mut() {
            if self.capture.is_active() {
                let bytes = layer.as_bytes();
                layer.note_insert(pair, |byte| {
                    self.capture.note(newest, &bytes, byte..byte + 1);
                });
            }
            match self.items.checked_add(1) {
                Some(items) => {
                    layer.insert(pair);
                    self.items = items;
                }
                // The sum of the layers' counts must stay the filter's count.
                None => layer.insert_uncounted(pair),
            }
        }
    }

    #[cold]
    fn make_room(&mut self, max_layer_bytes: u64) -> Result<(), InsertError> {
        match self.window() {
            Some(window) if window.span == Span::Items => {
                self.advance_within(1, 0, max_layer_bytes)
            }
            _ if self.is_fixed() => Err(InsertError::Full),
            _ => self.grow(max_layer_bytes),
        }
    }

    fn grow(&mut self, max_bytes: u64) -> Result<(), InsertError> {
        let newest = self.layers.last().ok_or(InsertError::CannotGrow)?;
        let size = match (newest.kind(), self.window()) {
            (Kind::Valkey(valkey), _) => {
                let (number, capacity) = (self.layers.len(), newest.capacity());
                valkey.next_size(number, capacity, self.error_rate(), self.expansion)
            }
            (Kind::Classic, _) => newest.size().next(self.expansion, self.options.rounding()),
            (Kind::Blocked(_), Some(window)) => self.next_in_generation(window),
            (Kind::Blocked(_), None) => {
                let taken: f64 = self.layers.iter().map(Layer::error_rate).sum();
                // A union may have exceeded the given error rate.
                let left = (self.error_rate() - taken).max(newest.error_rate() / 2.0);
                let size = BlockedSize::of_layer(newest.size()).next(self.expansion, left);
                size.map(BlockedSize::as_layer)
            }
        };
        let size = size.ok_or(InsertError::CannotGrow)?;
        let layer = newest
            .like(&size, max_bytes)
            .map_err(InsertError::of_growth)?;
        self.layers.reserve_one()?;
        self.layers.push(layer);
        self.note_growth();
        Ok(())
    }
}

/// Inserts an item into a layer that has room, and counts it among all items; whether it was new.
#[inline]
fn insert_if_room(
    layer: &mut Layer,
    items: &mut u64,
    insert: impl FnOnce(&mut Layer) -> bool,
) -> Option<bool> {
    if layer.is_full() || *items == u64::MAX {
        return None;
    }
    let new = insert(layer);
    *items += u64::from(new);
    Some(new)
}

/// What a group of items that found no room was told. Each try to make room computes a size and
/// asks the allocator, so it is repeated after 1, 2, 4, 8, ... refused items.
#[derive(Default)]
struct Refusals {
    count: u64,
    last: Option<InsertError>,
}

impl Refusals {
    /// Inserts an item, or refuses it as the one before. A filter that had no room still has none
    /// until a layer is made.
    #[inline]
    fn retry(
        &mut self,
        insert: impl FnOnce() -> Result<(), InsertError>,
    ) -> Result<(), InsertError> {
        let refused = match self.last {
            Some(error) if !self.count.is_power_of_two() => Err(error),
            _ => insert(),
        };
        self.last = refused.err();
        self.count = match refused {
            Ok(()) => 0,
            Err(_) => self.count.saturating_add(1),
        };
        refused
    }
}

impl<T: Item, W: MaybeWindow> Extend<T> for LayeredFilter<W> {
    /// [`insert`](LayeredFilter::insert) for each item, as fast as
    /// [`insert_each`](LayeredFilter::insert_each).
    fn extend<I: IntoIterator<Item = T>>(&mut self, items: I) {
        self.insert_each(items, drop);
    }
}
