//! A filter that grows.

use super::fixed::BloomFilter;
use super::layered::LayeredFilter;
use super::sets::UnionError;
use super::shrink::ShrinkError;
use super::stats::Stats;
#[cfg(feature = "std")]
use crate::error::or_panic;
use crate::error::{BuildError, InsertError};
use crate::hash::Key;
use crate::hash::item::Item;
use crate::layer::layout::Layout;

/// A Bloom filter that grows, for a number of items that you do not know: a chain of layers, each
/// larger than the one before and with a smaller error rate.
///
/// ```
/// use everbloom::ScalableBloomFilter;
///
/// let mut seen = ScalableBloomFilter::new(1000, 0.001);
/// assert!(seen.insert("a"));
/// assert!(!seen.insert("a"));
/// assert!(seen.contains("a"));
/// assert!(!seen.contains("b"));
///
/// seen.extend((0..5000).map(|i| format!("item {i}")));
/// assert!(seen.capacity() > 5000);
/// assert!(seen.contains("item 4711"));
/// ```
///
/// Insertion and lookup take time linear in the number of layers times hashes. A filter that
/// starts with the right capacity is smaller and faster than one that has to grow.
#[derive(Clone, Debug, PartialEq)]
pub struct ScalableBloomFilter(pub(crate) LayeredFilter<()>);

impl ScalableBloomFilter {
    /// A filter that begins with room for this many items, grows, and keeps this error rate. In the
    /// blocked layout, with a random key. [Example](ScalableBloomFilter).
    ///
    /// # Panics
    ///
    /// When the capacity is 0 or so large that its bits cannot be counted, the error rate is not
    /// less than 1 or too low for any filter (see
    /// [`MIN_RATE`](crate::sizing::BlockedSize::MIN_RATE)), or there is no memory.
    /// [`builder`](Self::builder) returns these as errors.
    #[cfg(feature = "std")]
    #[must_use]
    #[track_caller]
    pub fn new(capacity: u64, error_rate: f64) -> ScalableBloomFilter {
        let builder = Self::builder().capacity(capacity).error_rate(error_rate);
        or_panic(builder.build())
    }

    /// Inserts an item; true when it is new: [`contains`](Self::contains) was false before.
    ///
    /// A filter that must not grow, or for which there is no further layer (see
    /// [`InsertError::CannotGrow`]), still takes the item: lookups find it, and the error rate
    /// rises. Without memory for a layer the program ends, as with [`Vec::push`].
    /// [`try_insert`](Self::try_insert) returns an error instead, in all three cases.
    ///
    /// [`Vec::push`]: alloc::vec::Vec::push
    #[inline]
    pub fn insert<T: Item + ?Sized>(&mut self, item: &T) -> bool {
        self.0.insert(item)
    }

    /// Inserts an item as the `BF.ADD` command does; true when it is new. [Example](InsertError).
    ///
    /// # Errors
    ///
    /// [`InsertError`] when the item is new and there is no room for it; nothing has changed then.
    #[inline]
    pub fn try_insert<T: Item + ?Sized>(&mut self, item: &T) -> Result<bool, InsertError> {
        self.0.try_insert(item)
    }

    /// Whether the item was inserted: false is certain, true may be an error.
    #[must_use]
    #[inline]
    pub fn contains<T: Item + ?Sized>(&self, item: &T) -> bool {
        self.0.contains(item)
    }

    /// [`insert`](Self::insert) for each item in turn, faster than one by one. Calls `emit` with
    /// whether the item is new. It reads ahead in the iterator.
    /// [Example](BloomFilter::insert_each).
    pub fn insert_each(&mut self, items: impl IntoIterator<Item: Item>, emit: impl FnMut(bool)) {
        self.0.insert_each(items, emit);
    }

    /// [`try_insert`](Self::try_insert) of each item in turn, until one is refused; the items
    /// before that one were inserted. It reads ahead in the iterator.
    ///
    /// ```
    /// # use everbloom::ScalableBloomFilter;
    /// let mut seen = ScalableBloomFilter::new(1000, 0.001);
    /// let mut new = Vec::new();
    /// seen.try_insert_each(["a", "b", "a"], |is_new| new.push(is_new))?;
    /// assert_eq!(new, [true, true, false]);
    /// # Ok::<(), everbloom::InsertError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`try_insert`](Self::try_insert).
    pub fn try_insert_each(
        &mut self,
        items: impl IntoIterator<Item: Item>,
        emit: impl FnMut(bool),
    ) -> Result<(), InsertError> {
        self.0.insert_until_refused(items, emit)
    }

    /// Calls `emit` with [`contains`](Self::contains) of each item in turn.
    ///
    /// A group of items is hashed and its memory prefetched before the first of them is tested, so
    /// that the waits for a large filter's cache lines overlap. It reads ahead in the iterator.
    /// [Example](BloomFilter::contains_each).
    pub fn contains_each(&self, items: impl IntoIterator<Item: Item>, emit: impl FnMut(bool)) {
        self.0.contains_each(items, emit);
    }

    /// The number of items inserted, without those that [`contains`](Self::contains) found already.
    ///
    /// ```
    /// # use everbloom::{Layout, ScalableBloomFilter, hash::Key};
    /// let mut seen = ScalableBloomFilter::builder().seed(7).build()?;
    /// seen.extend(0..1000);
    /// assert!(!seen.is_empty() && (990..=1000).contains(&seen.len()));
    /// assert_eq!((seen.capacity(), seen.error_rate()), (1500, 0.01));
    /// assert_eq!((seen.layout(), seen.key()), (Layout::Blocked, Some(Key::from_seed(7))));
    /// assert_eq!((seen.expansion(), seen.is_fixed()), (2, false));
    /// assert!(seen.memory_usage() < 8000);
    /// # Ok::<(), everbloom::BuildError>(())
    /// ```
    #[must_use]
    pub fn len(&self) -> u64 {
        self.0.len()
    }

    /// Whether nothing was inserted yet. [Example](Self::len).
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The sum of the layers' capacities; `u64::MAX` when that is more. [Example](Self::len).
    #[must_use]
    pub fn capacity(&self) -> u64 {
        self.0.capacity()
    }

    /// The error rate given at creation, after the cap. [Example](Self::len).
    ///
    /// Small layers in [`Layout::Classic`] err more often when they are full.
    /// [`LayerSize::rate_at`](crate::sizing::LayerSize::rate_at) says how often.
    #[must_use]
    pub fn error_rate(&self) -> f64 {
        self.0.error_rate()
    }

    /// Where the bits of an item lie. [Example](Self::len).
    #[must_use]
    pub fn layout(&self) -> Layout {
        self.0.layout()
    }

    /// The key of the hash, in the blocked layout. [Example](Self::len).
    #[must_use]
    pub fn key(&self) -> Option<Key> {
        self.0.key()
    }

    /// How many times the capacity of a layer the next one has; in the blocked layout of a large
    /// layer. [Example](Self::len).
    #[must_use]
    pub fn expansion(&self) -> u32 {
        self.0.expansion()
    }

    /// Whether the filter does not grow. [Example](Self::len).
    #[must_use]
    pub fn is_fixed(&self) -> bool {
        self.0.is_fixed()
    }

    /// The parameters, contents and error rate of the filter. Takes time linear in the number of
    /// bits. [Example](Stats).
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.0.stats()
    }

    /// The memory of the filter in bytes, the struct included. [Example](Self::len).
    #[must_use]
    pub fn memory_usage(&self) -> usize {
        self.0.memory_usage()
    }

    /// An empty filter with the same parameters and the same key, of one layer as large as the
    /// first of this one: the two can be united.
    ///
    /// ```
    /// use everbloom::ScalableBloomFilter;
    /// let mut seen: ScalableBloomFilter = (0..10_000).collect();
    /// let mut today = seen.empty_like()?;
    /// today.extend(10_000..20_000);
    /// seen.union(&today)?;
    /// assert!((0..20_000).all(|number| seen.contains(&number)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// There is no memory for it.
    pub fn empty_like(&self) -> Result<ScalableBloomFilter, BuildError> {
        self.0.empty_like().map(ScalableBloomFilter)
    }

    /// Adds all items of another filter, which must have the same layout and key:
    /// [`empty_like`](Self::empty_like) makes such a filter. Capacities and error rates may differ.
    /// Returns the error rate to expect, which may exceed the given one. A filter that takes more
    /// items afterwards, and grows, does not exceed what is returned.
    ///
    /// A layer is merged into one of the same size if that one has room for the items of both, or
    /// if the merged layer errs no more often than the two layers apart (layers of the same items,
    /// for example). Otherwise it becomes an additional layer. So the new error rate is at most the
    /// sum of both. [`len`](Self::len) counts an item twice if it is in two layers.
    ///
    /// ```
    /// use everbloom::ScalableBloomFilter;
    /// let builder = ScalableBloomFilter::builder().error_rate(0.01).seed(7);
    /// let (mut one, mut other) = (builder.build()?, builder.build()?);
    /// one.extend(0..20);
    /// other.extend(20..40);
    /// let rate = one.union(&other)?;
    /// assert!(rate <= 0.01);
    /// assert_eq!(one.capacity(), 100);
    ///
    /// // This one is full, and the other has no room for it.
    /// let mut more = one.empty_like()?;
    /// more.extend(100..200);
    /// one.union(&more)?;
    /// assert_eq!(one.capacity(), 200);
    /// assert!((0..40).chain(100..200).all(|number| one.contains(&number)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`UnionError`] names a parameter in which the filters differ; nothing has changed then. When
    /// it says that there is no memory, some of the other's layers may have been added.
    pub fn union(&mut self, other: &ScalableBloomFilter) -> Result<f64, UnionError> {
        self.0.union(&other.0)?;
        Ok(self.0.rate_to_come())
    }

    /// Makes the newest layer smaller, and keeps the items and the error rate: the smallest filter
    /// that has room for this many items before it grows. Returns the error rate to expect now. The
    /// new [`capacity`](Self::capacity) may be more than was asked for, see
    /// [`BloomFilter::shrink_to`].
    ///
    /// ```
    /// # use everbloom::ScalableBloomFilter;
    /// let mut seen = ScalableBloomFilter::new(1_000_000, 0.01);
    /// seen.extend(0..50_000);
    /// let before = seen.memory_usage();
    /// let rate = seen.shrink_to(50_000)?;
    /// assert!(rate < 0.01 && seen.memory_usage() * 14 < before);
    /// assert!((0..50_000).all(|number| seen.contains(&number)));
    /// assert!(seen.capacity() >= 50_000 && seen.error_rate() == 0.01);
    /// # Ok::<(), everbloom::ShrinkError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ShrinkError`], also when the filter would not become smaller; nothing has changed then.
    pub fn shrink_to(&mut self, capacity: u64) -> Result<f64, ShrinkError> {
        self.0.shrink_to(capacity)
    }

    /// Removes all items, and all layers except the first.
    ///
    /// ```
    /// # use everbloom::ScalableBloomFilter;
    /// let mut seen: ScalableBloomFilter = (0..10_000).collect();
    /// seen.clear();
    /// assert!(seen.is_empty() && !seen.contains(&7));
    /// ```
    pub fn clear(&mut self) {
        self.0.clear();
    }
}

impl<T: Item> Extend<T> for ScalableBloomFilter {
    /// [`insert`](ScalableBloomFilter::insert) for each item, as fast as
    /// [`insert_each`](ScalableBloomFilter::insert_each).
    fn extend<I: IntoIterator<Item = T>>(&mut self, items: I) {
        self.0.extend(items);
    }
}

#[cfg(feature = "std")]
impl<T: Item> FromIterator<T> for ScalableBloomFilter {
    /// A filter of these items with an error rate of 0.01. The capacity is the iterator's lower
    /// size hint, at least 100.
    ///
    /// # Panics
    ///
    /// When there is no memory.
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> ScalableBloomFilter {
        let items = items.into_iter();
        let promised = items.size_hint().0.max(100);
        let mut filter = ScalableBloomFilter::new(promised as u64, 0.01);
        filter.extend(items);
        filter
    }
}

impl From<BloomFilter> for ScalableBloomFilter {
    /// A filter of this single layer, which does not grow.
    fn from(filter: BloomFilter) -> ScalableBloomFilter {
        ScalableBloomFilter(LayeredFilter::of_fixed(filter, ()))
    }
}

impl From<ScalableBloomFilter> for LayeredFilter {
    fn from(filter: ScalableBloomFilter) -> LayeredFilter {
        filter.0.map_window(|()| None)
    }
}

impl TryFrom<LayeredFilter> for ScalableBloomFilter {
    type Error = LayeredFilter;

    /// The filter, if it has no window; gives back any other filter.
    fn try_from(filter: LayeredFilter) -> Result<ScalableBloomFilter, LayeredFilter> {
        match filter.window() {
            None => Ok(ScalableBloomFilter(filter.map_window(drop))),
            Some(_) => Err(filter),
        }
    }
}
