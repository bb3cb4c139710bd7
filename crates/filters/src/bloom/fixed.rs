//! A filter of fixed size: a single layer.

use alloc::borrow::Cow;
use core::mem::size_of;
use core::slice;

use super::group;
use super::stats::Stats;
use crate::hash::item::Item;
use crate::hash::item_hash::ItemHash;
use crate::hash::{DoubleHash, HashWidth, Key};
use crate::layer::Layer;
use crate::layer::layout::Layout;

/// A Bloom filter of fixed size, the smallest and fastest: for a number of items that you know, or its
/// upper bound.
///
/// ```
/// use everbloom::BloomFilter;
///
/// let mut seen = BloomFilter::new(10_000, 0.001);
/// assert!(seen.insert("a"));
/// assert!(!seen.insert("a"));
/// assert!(seen.contains("a"));
/// assert!(!seen.contains("b"));
///
/// let mut more = seen.empty_like()?;
/// more.extend(["b", "c"]);
/// seen.union(&more)?;
/// assert!(seen.contains("b"));
/// assert_eq!(seen.len(), 3);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// It takes any [`Item`]: text, bytes, numbers, tuples, and more through [`Hashed`](crate::Hashed).
/// In the classic layout its bits are those of a non-scaling filter of RedisBloom with the same
/// parameters; [`LayeredFilter`](crate::host::LayeredFilter), which it converts to, has dumps.
///
/// It never refuses an item. Beyond its capacity the error rate rises: from 0.1 % to 3.8 % at twice
/// the capacity, and to 5.6 % in the classic layout, see
/// [`textbook::error_rate`](crate::sizing::textbook::error_rate).
#[derive(Clone, Debug, PartialEq)]
pub struct BloomFilter {
    pub(crate) layer: Layer,
}

impl BloomFilter {
    /// Where the bits of an item lie. [Example](Self::capacity).
    #[must_use]
    pub fn layout(&self) -> Layout {
        self.layer.layout()
    }

    /// The key of the hash, in the blocked layout. [Example](Self::capacity).
    #[must_use]
    pub fn key(&self) -> Option<Key> {
        self.layer.key()
    }

    /// Inserts an item; true when it is new: [`contains`](Self::contains) was false before.
    pub fn insert<T: Item + ?Sized>(&mut self, item: &T) -> bool {
        self.layer.insert_item(item, HashWidth::Bits64)
    }

    /// Whether the item was inserted: false is certain, true may be an error.
    #[must_use]
    pub fn contains<T: Item + ?Sized>(&self, item: &T) -> bool {
        self.layer.contains_item(item)
    }

    /// [`insert`](Self::insert) for each item in turn, faster than one by one. Calls `emit` with
    /// whether the item is new. It reads ahead in the iterator.
    ///
    /// ```
    /// # use everbloom::BloomFilter;
    /// let mut seen = BloomFilter::new(1000, 0.01);
    /// let mut new = 0;
    /// seen.insert_each(["a", "b", "a"], |is_new| new += u32::from(is_new));
    /// assert_eq!(new, 2);
    /// ```
    pub fn insert_each(&mut self, items: impl IntoIterator<Item: Item>, emit: impl FnMut(bool)) {
        let hasher = self.hasher().0;
        group::insert_groups(&mut self.layer, &hasher, items.into_iter(), emit);
    }

    /// [`contains`](Self::contains) for each item in turn, several times faster than one by one
    /// where the filter is larger than the processor's caches. Calls `emit` with each answer. It
    /// reads ahead in the iterator.
    ///
    /// ```
    /// # use everbloom::BloomFilter;
    /// # let mut seen = BloomFilter::new(1000, 0.01);
    /// # seen.insert("b");
    /// let urls = ["a", "b", "c"];
    /// let mut answers = Vec::new();
    /// seen.contains_each(urls, |found| answers.push(found));
    /// assert_eq!(answers, [false, true, false]);
    /// ```
    pub fn contains_each(&self, items: impl IntoIterator<Item: Item>, emit: impl FnMut(bool)) {
        let layers = slice::from_ref(&self.layer);
        group::contained_groups(layers, &self.hasher().0, items.into_iter(), emit);
    }

    /// The two hash values of an item in this filter, and in every other one with the same key. In
    /// the classic layout all filters have the same hash.
    ///
    /// ```
    /// # use everbloom::BloomFilter;
    /// let mut seen = BloomFilter::new(1000, 0.01);
    /// let hash = seen.hash("a");
    /// assert!(seen.insert_hash(hash));
    /// assert!(seen.contains_hash(hash) && seen.contains("a"));
    /// ```
    #[must_use]
    #[inline]
    pub fn hash<T: Item + ?Sized>(&self, item: &T) -> DoubleHash {
        self.layer.hash(item, HashWidth::Bits64)
    }

    /// [`insert`](Self::insert) for an item that is hashed already: by [`hash`](Self::hash), or by
    /// your own 128-bit hash function, whose bits must all be evenly spread. [Example](Self::hash).
    pub fn insert_hash(&mut self, hash: DoubleHash) -> bool {
        self.layer.insert_if_new(hash)
    }

    /// [`contains`](Self::contains) for an item that is hashed already. [Example](Self::hash).
    #[must_use]
    pub fn contains_hash(&self, hash: DoubleHash) -> bool {
        self.layer.contains(hash)
    }

    /// The number of items inserted, without those that [`contains`](Self::contains) found already.
    /// After a [`union`](Self::union) or an [`intersect`](Self::intersect) it is an estimate.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.layer.len()
    }

    /// Whether nothing was inserted yet. True means that no item is found, also after an
    /// [`intersect`](Self::intersect). [Example](Self::clear).
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.layer.is_empty()
    }

    /// The number of items the filter is made for.
    ///
    /// ```
    /// # use everbloom::{BloomFilter, Layout};
    /// # use everbloom::hash::Key;
    /// let seen = BloomFilter::builder().capacity(1000).error_rate(0.01).seed(7).build()?;
    /// assert_eq!((seen.capacity(), seen.error_rate()), (1000, 0.01));
    /// assert_eq!((seen.bits(), seen.hashes()), (10_240, 6));
    /// assert_eq!((seen.layout(), seen.key()), (Layout::Blocked, Some(Key::from_seed(7))));
    /// # Ok::<(), everbloom::BuildError>(())
    /// ```
    #[must_use]
    pub fn capacity(&self) -> u64 {
        self.layer.capacity()
    }

    /// The error rate that it is made for, at its capacity. [Example](Self::capacity).
    ///
    /// Small layers in [`Layout::Classic`] err more often when they are full.
    /// [`LayerSize::rate_at`](crate::sizing::LayerSize::rate_at) says how often.
    #[must_use]
    pub fn error_rate(&self) -> f64 {
        self.layer.error_rate()
    }

    /// Length of the bit array in bits. [Example](Self::capacity).
    #[must_use]
    pub fn bits(&self) -> u64 {
        self.layer.bits()
    }

    /// Bits set by an item. [Example](Self::capacity).
    #[must_use]
    pub fn hashes(&self) -> u32 {
        self.layer.hashes()
    }

    /// The bit array: bit `p` is bit `p % 8`, least significant first, of byte `p / 8`.
    ///
    /// Borrowed, except for a small array with few ones, which keeps only their positions.
    ///
    /// ```
    /// # use everbloom::BloomFilter;
    /// let mut seen = BloomFilter::new(1000, 0.01);
    /// seen.insert("a");
    /// let ones: u32 = seen.as_bytes().iter().map(|byte| byte.count_ones()).sum();
    /// assert!((1..=seen.hashes()).contains(&ones));
    /// assert_eq!(seen.as_bytes().len() as u64 * 8, seen.bits());
    /// ```
    #[must_use]
    pub fn as_bytes(&self) -> Cow<'_, [u8]> {
        self.layer.as_bytes()
    }

    /// The part of the bits that are 1. Takes time linear in their number.
    ///
    /// ```
    /// # use everbloom::BloomFilter;
    /// let mut seen = BloomFilter::new(1000, 0.01);
    /// seen.extend(0..1000);
    /// assert!((0.4..0.5).contains(&seen.fill_ratio()));
    /// assert!((0.005..0.02).contains(&seen.estimated_error_rate()));
    /// assert!((900..1100).contains(&seen.estimated_len()));
    /// ```
    #[must_use]
    pub fn fill_ratio(&self) -> f64 {
        self.stats().fill_ratio
    }

    /// The error rate to expect now, from the bits that are 1. Takes time linear in their number.
    /// [Example](Self::fill_ratio).
    #[must_use]
    pub fn estimated_error_rate(&self) -> f64 {
        self.stats().estimated_error_rate
    }

    /// How many different items were inserted, estimated from the bits that are 1. Takes time
    /// linear in their number. [Example](Self::fill_ratio).
    #[must_use]
    pub fn estimated_len(&self) -> u64 {
        self.stats().estimated_items
    }

    /// The parameters, contents and error rate of the filter. Takes time linear in the number of
    /// bits. [Example](Stats).
    #[must_use]
    pub fn stats(&self) -> Stats {
        Stats::of_layers(self.len(), self.error_rate(), [self.layer.measured()])
    }

    /// The memory of the filter in bytes, the struct included.
    ///
    /// ```
    /// # use everbloom::BloomFilter;
    /// assert!(BloomFilter::new(1000, 0.01).memory_usage() < 2000);
    /// ```
    #[must_use]
    pub fn memory_usage(&self) -> usize {
        size_of::<Self>() + self.layer.heap_bytes_alone()
    }

    /// What hashes items as this filter does. [Example](ItemHash).
    #[must_use]
    pub fn hasher(&self) -> ItemHash {
        ItemHash(self.layer.hasher(HashWidth::Bits64))
    }
}

impl<T: Item> Extend<T> for BloomFilter {
    /// [`insert`](BloomFilter::insert) for each item, as fast as
    /// [`insert_each`](BloomFilter::insert_each).
    fn extend<I: IntoIterator<Item = T>>(&mut self, items: I) {
        self.insert_each(items, drop);
    }
}
