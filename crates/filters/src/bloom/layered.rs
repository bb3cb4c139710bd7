//! A chain of layers that grows with its items.
//!
//! (Almeida, Baquero, Preguiça and Hutchison, "Scalable Bloom Filters", 2007.) Each layer has half
//! the error rate of the one before, and as 1/2 + 1/4 + ... = 1 the whole keeps the given rate, as
//! far as double hashing is as good as independent hashes. In the blocked layout each layer takes a
//! part of the error rate that the layers before it left, see
//! [`BlockedSize`](crate::sizing::BlockedSize).

use alloc::boxed::Box;
use core::convert::Infallible;
use core::mem::size_of;
use core::ops::ControlFlow;

use smallvec::SmallVec;

use super::fixed::BloomFilter;
use super::group::{Group, is_one_at_most};
use super::options::Options;
use super::stats::Stats;
use super::window::{Generation, MaybeWindow, Span, Window};
use crate::bits::memory::spilled;
use crate::error::InsertError;
use crate::hash::item::Item;
use crate::hash::item_hash::ItemHash;
use crate::hash::valkey::ValkeyBloom;
use crate::hash::{DoubleHash, Hasher, Key};
use crate::layer::Layer;
use crate::layer::capture::Capture;
use crate::layer::layout::Layout;
use crate::math::saturating_sum;
use crate::sizing::BlockedSize;

/// What a host of filters holds: the chain of layers of a
/// [`ScalableBloomFilter`](crate::ScalableBloomFilter), or of a
/// [`WindowedBloomFilter`](crate::WindowedBloomFilter). A key of the `BF.*` commands holds one.
///
/// `W` says whether there is a window: `()` never has one, `Box<Window>` always has, and an
/// `Option` of it, the default, may have one. Both types convert into the default, and back if the
/// window is as they have it.
///
/// ```
/// use everbloom::host::LayeredFilter;
/// use everbloom::{ScalableBloomFilter, WindowedBloomFilter};
///
/// let mut seen = LayeredFilter::from(ScalableBloomFilter::new(1000, 0.001));
/// seen.extend((0..5000).map(|i| format!("item {i}")));
/// assert_eq!(seen.layers().len(), 2);
/// assert!(seen.contains("item 4711"));
///
/// let seen = WindowedBloomFilter::try_from(seen).unwrap_err();
/// assert!(ScalableBloomFilter::try_from(seen).is_ok());
/// ```
///
/// Insertion and lookup take time linear in the number of layers times hashes.
#[derive(Clone, Debug, PartialEq)]
pub struct LayeredFilter<W = Option<Box<Window>>> {
    /// Oldest first, never empty.
    pub(crate) layers: SmallVec<[Layer; 1]>,
    pub(crate) items: u64,
    options: Options,
    expansion: u32,
    /// Only in the blocked layout.
    pub(crate) window: W,
    pub(crate) capture: Capture,
}

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
    /// Only for values that the builder made or [`redisbloom`](crate::redisbloom) has validated,
    /// and a window for which the layers were made.
    pub(crate) fn from_layers(
        layers: impl Into<SmallVec<[Layer; 1]>>,
        items: u64,
        options: Options,
        expansion: u32,
        window: W,
    ) -> Self {
        let layers = layers.into();
        debug_assert!(!layers.is_empty());
        LayeredFilter {
            layers,
            items,
            options,
            expansion,
            window,
            capture: Capture::default(),
        }
    }

    /// A filter of this single layer, which does not grow.
    pub(crate) fn of_fixed(filter: BloomFilter, window: W) -> Self {
        let (items, options) = (filter.len(), Options::modern(false));
        Self::from_layers([filter.layer], items, options, 0, window)
    }

    /// The same filter with its window in another type.
    pub(crate) fn map_window<V>(self, window: impl FnOnce(W) -> V) -> LayeredFilter<V> {
        LayeredFilter {
            layers: self.layers,
            items: self.items,
            options: self.options,
            expansion: self.expansion,
            window: window(self.window),
            capture: self.capture,
        }
    }

    /// As [`ScalableBloomFilter::insert`](crate::ScalableBloomFilter::insert).
    pub fn insert<T: Item + ?Sized>(&mut self, item: &T) -> bool {
        let pair = self.hash(item);
        let Ok(inserted) = self.insert_if_new(pair, Self::insert_surely);
        inserted == Inserted::New
    }

    /// As [`ScalableBloomFilter::try_insert`](crate::ScalableBloomFilter::try_insert).
    ///
    /// # Errors
    ///
    /// [`InsertError`] when the item is new and there is no room for it; nothing has changed then.
    pub fn try_insert<T: Item + ?Sized>(&mut self, item: &T) -> Result<bool, InsertError> {
        let insert = |filter: &mut Self, pair| filter.insert_new(pair, u64::MAX);
        let inserted = self.insert_if_new(self.hash(item), insert)?;
        Ok(inserted == Inserted::New)
    }

    /// Whether the item was inserted: false is certain, true may be an error.
    #[must_use]
    pub fn contains<T: Item + ?Sized>(&self, item: &T) -> bool {
        self.found_from(0, self.hash(item))
    }

    /// [`insert`](Self::insert) for each item in turn, faster than one by one. Calls `emit` with
    /// whether the item is new. It reads ahead in the iterator.
    pub fn insert_each(
        &mut self,
        items: impl IntoIterator<Item: Item>,
        mut emit: impl FnMut(bool),
    ) {
        self.insert_groups(items.into_iter(), Self::insert_surely, |Ok(inserted)| {
            emit(inserted == Inserted::New);
            ControlFlow::Continue(())
        });
    }

    /// Calls `emit` with [`contains`](Self::contains) of each item in turn.
    ///
    /// A group of items is hashed and its memory prefetched before the first of them is tested, so
    /// that the waits for a large filter's cache lines overlap. It reads ahead in the iterator.
    pub fn contains_each(&self, items: impl IntoIterator<Item: Item>, emit: impl FnMut(bool)) {
        self.contains_each_at(items, 0, emit);
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
        let insert = |filter: &mut Self, pair| filter.insert_new(pair, max_layer_bytes);
        self.insert_groups(items.into_iter(), insert, emit);
    }

    /// The number of items inserted, without those that [`contains`](Self::contains) found already.
    /// A window counts an item once in each generation that has it.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.items
    }

    /// Whether nothing was inserted yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.items == 0
    }

    /// The sum of the layers' capacities; `u64::MAX` when that is more.
    #[must_use]
    pub fn capacity(&self) -> u64 {
        saturating_sum(self.layers.iter().map(Layer::capacity))
    }

    /// The error rate given at creation, after the cap.
    #[must_use]
    pub fn error_rate(&self) -> f64 {
        let is_whole = self.is_fixed() || self.valkey().is_some();
        let rate = |first: &Layer| {
            let (capacity, rate) = (first.capacity(), first.error_rate());
            first.layout().whole_rate(is_whole, capacity, rate)
        };
        let window = self.window().map(|window| window.error_rate);
        window
            .or_else(|| self.layers.first().map(rate))
            .unwrap_or(0.0)
    }

    /// Where the bits of an item lie.
    #[must_use]
    pub fn layout(&self) -> Layout {
        self.layers.first().map_or(Layout::Classic, Layer::layout)
    }

    /// The key of the hash, in the blocked layout.
    #[must_use]
    pub fn key(&self) -> Option<Key> {
        self.layers.first().and_then(Layer::key)
    }

    /// What only a filter of valkey-bloom has.
    /// [Example](crate::redisbloom::ValkeyBloom::FIXED_SEED).
    #[must_use]
    pub fn valkey(&self) -> Option<&ValkeyBloom> {
        let first = self.layers.first().and_then(Layer::valkey_bloom);
        first.map(|valkey| &**valkey)
    }

    /// How many times the capacity of a layer the next one has; in the blocked layout of a large
    /// layer.
    #[must_use]
    pub fn expansion(&self) -> u32 {
        self.expansion
    }

    /// Whether the filter does not grow.
    #[must_use]
    pub fn is_fixed(&self) -> bool {
        self.options.has(Options::NO_SCALING)
    }

    /// The layers, oldest first; at least one.
    #[must_use]
    pub fn layers(&self) -> &[Layer] {
        &self.layers
    }

    /// The option bits. [Example](Options).
    #[must_use]
    pub fn options(&self) -> Options {
        self.options
    }

    /// The parameters, contents and error rate of the filter. Takes time linear in the number of
    /// bits; [`sample`](Self::sample) reads some of them.
    #[must_use]
    pub fn stats(&self) -> Stats {
        let layers = self.layers.iter().map(Layer::measured);
        Stats::of_layers(self.items, self.error_rate(), layers)
    }

    /// The memory of the filter in bytes, the struct included.
    #[must_use]
    #[inline]
    pub fn memory_usage(&self) -> usize {
        if self.layers.spilled() || self.window().is_some() || self.capture.is_active() {
            return self.memory_of_parts();
        }
        size_of::<Self>() + self.layers.first().map_or(0, Layer::heap_bytes)
    }

    /// The same of a filter that has more than a layer.
    #[inline(never)]
    fn memory_of_parts(&self) -> usize {
        let layers: usize = self.layers.iter().map(Layer::heap_bytes).sum();
        let window = self.window().map_or(0, |window| {
            size_of::<Window>() + window.kept.capacity() * size_of::<Generation>()
        });
        size_of::<Self>() + spilled(&self.layers) + layers + window + self.capture.memory_usage()
    }

    #[inline]
    pub(crate) fn hash(&self, item: &(impl Item + ?Sized)) -> DoubleHash {
        match self.layers.first() {
            Some(layer) => layer.hash(item, self.options.hash_width()),
            None => DoubleHash::default(),
        }
    }

    /// What hashes items as this filter does. [Example](ItemHash).
    #[must_use]
    pub fn hasher(&self) -> ItemHash {
        let width = self.options.hash_width();
        let first = self.layers.first();
        ItemHash(first.map_or(Hasher::Classic(width), |layer| layer.hasher(width)))
    }

    /// Whether the item is in one of the layers from that one on.
    #[inline]
    pub(crate) fn found_from(&self, oldest: usize, pair: DoubleHash) -> bool {
        // The newest layer is the largest, so it is the likeliest to have the item.
        self.layers
            .iter()
            .skip(oldest)
            .rev()
            .any(|layer| layer.contains(pair))
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
                let pair = self.hash(&item);
                let reply = self.insert_if_new(pair, &mut insert);
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
        let mut far = now.prefetch_blocks(&self.layers);
        while more {
            more = next.fill(&mut items, &hasher);
            let far_next = next.prefetch_blocks(&self.layers);
            let began = self.began();
            let (older, current) = self.layers.split_at(self.past());
            let found = now.contained_before_insert(current, far.min(current.len()));
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
                    self.insert_if_new(pair, &mut insert)
                } else if found >> index & 1 == 1 {
                    Ok(Inserted::Known)
                } else if let Some(new) = self.insert_where_room(newest, pair, Layer::insert_if_new)
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
            far = far_next;
        }
    }

    /// Inserts an item that is in none of the layers before number `newest`, if that layer is still
    /// the newest, has room and has no captures; whether the item was new.
    #[inline]
    fn insert_where_room(
        &mut self,
        newest: usize,
        pair: DoubleHash,
        insert: impl FnOnce(&mut Layer, DoubleHash) -> bool,
    ) -> Option<bool> {
        let is_newest = self.layers.len() == newest + 1;
        let layer = self.layers.get_mut(newest)?;
        if !is_newest || layer.is_full() || self.capture.is_active() || self.items == u64::MAX {
            return None;
        }
        let new = insert(layer, pair);
        self.items += u64::from(new);
        Some(new)
    }

    /// Inserts an item, if it is not in the newest generation. `insert` takes an item that is not
    /// in there.
    #[inline]
    fn insert_if_new<E>(
        &mut self,
        pair: DoubleHash,
        insert: impl FnOnce(&mut Self, DoubleHash) -> Result<(), E>,
    ) -> Result<Inserted, E> {
        // One pass over the only layer tests and inserts.
        if let Some(new) = self.insert_where_room(0, pair, Layer::insert_unless_known) {
            return Ok(if new { Inserted::New } else { Inserted::Known });
        }
        self.insert_unless_found(pair, insert)
    }

    /// The same, after a search of all layers.
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

    /// As [`insert_new`](Self::insert_new), into the newest layer when there is no room.
    #[inline]
    fn insert_surely(&mut self, pair: DoubleHash) -> Result<(), Infallible> {
        if self.insert_new(pair, u64::MAX).is_err() {
            self.insert_into_newest(pair);
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
            Some(window) if window.span == Span::Items => self.advance(1, 0),
            _ if self.is_fixed() => Err(InsertError::Full),
            _ => self.grow(max_layer_bytes),
        }
    }

    fn grow(&mut self, max_bytes: u64) -> Result<(), InsertError> {
        let newest = self.layers.last().ok_or(InsertError::CannotGrow)?;
        let size = match (newest.key(), newest.valkey_bloom(), self.window()) {
            (None, Some(valkey), _) => {
                let (number, capacity) = (self.layers.len(), newest.capacity());
                valkey.next_size(number, capacity, self.error_rate(), self.expansion)
            }
            (None, None, _) => newest.size().next(self.expansion, self.options.rounding()),
            (Some(_), _, Some(window)) => self.next_in_generation(window),
            (Some(_), _, None) => {
                let taken: f64 = self.layers.iter().map(Layer::error_rate).sum();
                // A union may have exceeded the given error rate.
                let left = (self.error_rate() - taken).max(newest.error_rate() / 2.0);
                let size = BlockedSize::of_layer(newest.size()).next(self.expansion, left);
                size.map(BlockedSize::as_layer)
            }
        };
        let layer = size.and_then(|size| newest.like(&size, max_bytes).ok());
        let layer = layer.ok_or(InsertError::CannotGrow)?;
        self.layers
            .try_reserve_exact(1)
            .map_err(|_| InsertError::CannotGrow)?;
        self.layers.push(layer);
        self.note_growth();
        Ok(())
    }
}

impl<T: Item, W: MaybeWindow> Extend<T> for LayeredFilter<W> {
    /// [`insert`](LayeredFilter::insert) for each item, as fast as
    /// [`insert_each`](LayeredFilter::insert_each).
    fn extend<I: IntoIterator<Item = T>>(&mut self, items: I) {
        self.insert_each(items, drop);
    }
}

impl From<BloomFilter> for LayeredFilter {
    /// A filter of this single layer, which does not grow.
    fn from(filter: BloomFilter) -> LayeredFilter {
        LayeredFilter::of_fixed(filter, None)
    }
}
