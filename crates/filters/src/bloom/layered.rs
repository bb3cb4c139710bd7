//! A chain of layers that grows with its items.
//!
//! (Almeida, Baquero, Preguiça and Hutchison, "Scalable Bloom Filters", 2007.) Each layer has half
//! the error rate of the one before, and as 1/2 + 1/4 + ... = 1 the whole keeps the given rate, as
//! far as double hashing is as good as independent hashes. In the blocked layout each layer takes a
//! part of the error rate that the layers before it left, see
//! [`BlockedSize`](crate::sizing::BlockedSize).

use alloc::boxed::Box;
use core::mem::size_of;

use super::fixed::BloomFilter;
use super::layers::Layers;
use super::options::Options;
use super::stats::Stats;
use super::window::{Generation, MaybeWindow, Window};
use crate::hash::item::Item;
use crate::hash::item_hash::ItemHash;
use crate::hash::valkey::ValkeyBloom;
use crate::hash::{DoubleHash, Hasher, Key};
use crate::layer::Layer;
use crate::layer::capture::Capture;
use crate::layer::layout::Layout;
use crate::math::saturating_sum;

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
/// assert_eq!(seen.layers().len(), 3);
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
    pub(crate) layers: Layers,
    pub(crate) items: u64,
    pub(super) options: Options,
    pub(super) expansion: u32,
    /// Only in the blocked layout.
    pub(crate) window: W,
    pub(crate) capture: Capture,
}

impl<W: MaybeWindow> LayeredFilter<W> {
    /// Only for values that the builder made or [`redisbloom`](crate::redisbloom) has validated,
    /// and a window for which the layers were made.
    pub(crate) fn from_layers(
        layers: impl Into<Layers>,
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

    /// Whether the item was inserted: false is certain, true may be an error.
    #[must_use]
    pub fn contains<T: Item + ?Sized>(&self, item: &T) -> bool {
        match self.layers.only() {
            // One function hashes the item and tests its bits.
            Some(only) if only.hashes_as(self.options.hash_width()) => only.contains_item(item),
            _ => self.contains_in_any(&self.layers, item),
        }
    }

    /// Whether the item is in one of these layers.
    #[inline]
    pub(super) fn contains_in(&self, layers: &[Layer], item: &(impl Item + ?Sized)) -> bool {
        match layers {
            [only] if only.hashes_as(self.options.hash_width()) => only.contains_item(item),
            _ => self.contains_in_any(layers, item),
        }
    }

    /// The same, one layer after the other: not inlined, so that the common path above saves no
    /// registers for it.
    #[inline(never)]
    fn contains_in_any(&self, layers: &[Layer], item: &(impl Item + ?Sized)) -> bool {
        let pair = self.hash(item);
        // The newest layer is the largest, so it is the likeliest to have the item.
        layers.iter().rev().any(|layer| layer.contains(pair))
    }

    /// Calls `emit` with [`contains`](Self::contains) of each item in turn.
    ///
    /// A group of items is hashed and its memory prefetched before the first of them is tested, so
    /// that the waits for a large filter's cache lines overlap. It reads ahead in the iterator.
    pub fn contains_each(&self, items: impl IntoIterator<Item: Item>, emit: impl FnMut(bool)) {
        self.contains_each_at(items, 0, emit);
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
    ///
    /// Small layers in [`Layout::Classic`] err more often when they are full.
    /// [`LayerSize::rate_at`](crate::sizing::LayerSize::rate_at) says how often.
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
        self.layers.first().and_then(Layer::valkey_bloom)
    }

    /// How many times the capacity of a layer the next one has.
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
        match self.layers.only() {
            Some(only) if self.window().is_none() && !self.capture.is_active() => {
                size_of::<Self>() + only.heap_bytes_alone()
            }
            _ => self.memory_of_parts(),
        }
    }

    /// The same of a filter that has more than a layer.
    #[inline(never)]
    fn memory_of_parts(&self) -> usize {
        let layers: usize = self.layers.iter().map(Layer::heap_bytes).sum();
        let window = self.window().map_or(0, |window| {
            size_of::<Window>() + window.kept.capacity() * size_of::<Generation>()
        });
        let key = self.layers.first().map_or(0, Layer::key_bytes);
        let beside = self.layers.list_bytes() + key + window + self.capture.memory_usage();
        size_of::<Self>() + layers + beside
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
}

impl From<BloomFilter> for LayeredFilter {
    /// A filter of this single layer, which does not grow.
    fn from(filter: BloomFilter) -> LayeredFilter {
        LayeredFilter::of_fixed(filter, None)
    }
}
