//! A filter that several threads change at the same time.

use alloc::sync::Arc;
use core::mem::size_of;

use super::builder::BloomBuilder;
use super::fixed::BloomFilter;
use super::group::{self, Group};
use super::stats::Stats;
use crate::bits::blocks::AtomicBits;
use crate::error::BuildError;
use crate::hash::item::Item;
use crate::hash::{DoubleHash, Hasher, Key};
use crate::layer::Layer;
use crate::layer::shape::Shape;

/// A Bloom filter of fixed size that several threads use at the same time, without a lock.
///
/// ```
/// use everbloom::AtomicBloomFilter;
///
/// let seen = AtomicBloomFilter::new(10_000, 0.001);
/// std::thread::scope(|scope| {
///     scope.spawn(|| seen.insert("a"));
///     scope.spawn(|| seen.insert("b"));
/// });
/// assert!(seen.contains("a") && seen.contains("b"));
/// assert!(!seen.contains("c"));
/// ```
///
/// It is a [`BloomFilter`] in the blocked layout: sizes, bits and answers are the same. Each type
/// converts to the other without a copy, and one builder makes both:
///
/// ```
/// use everbloom::{AtomicBloomFilter, BloomFilter};
///
/// let seen = BloomFilter::builder().capacity(1000).seed(7).build_atomic()?;
/// seen.insert("a");
///
/// let bytes = BloomFilter::from(seen).to_bytes();
/// let seen = AtomicBloomFilter::try_from(BloomFilter::from_bytes(&bytes)?)?;
/// assert!(seen.contains("a"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// The example `shared` fills one from all cores, with rayon.
///
/// # What threads see
///
/// Every later lookup of the same thread finds an inserted item. Lookups of other threads find it
/// after the threads have synchronised in another way, such as by a channel or by joining the
/// thread. The insert itself does not order other memory accesses of its thread.
///
/// When several threads insert the same new item at once, more than one may get `true`. None gets
/// it only where other items, inserted at the same time, set the last of its bits: then the item
/// was found by error before, as any item may be.
///
/// # What is not there
///
/// The filter does not count its items, because all threads would wait for that counter. So there
/// is no `len`; [`stats`](Self::stats) estimates it. Without a count the filter does not know when
/// huge pages pay. It gets them only through a [`BloomFilter`]: when it is made from a filled one,
/// or when it becomes one.
///
/// The type exists where the platform has atomic operations on 64 bits.
#[derive(Clone, Debug)]
pub struct AtomicBloomFilter {
    bits: AtomicBits,
    shape: Arc<Shape>,
}

impl AtomicBloomFilter {
    /// A filter for this many items and this error rate, with a random key. The error rate is the
    /// part of items never inserted for which the full filter answers `true`: 0.01 is one in a
    /// hundred.
    ///
    /// ```
    /// use everbloom::AtomicBloomFilter;
    /// let seen = AtomicBloomFilter::new(1_000_000, 0.001);
    /// assert!(seen.insert("a"));
    /// assert!(seen.contains("a"));
    /// ```
    ///
    /// # Panics
    ///
    /// When the capacity is 0 or so large that its bits cannot be counted, the error rate is not
    /// less than 1 or too low for any filter (see
    /// [`MIN_RATE`](crate::sizing::BlockedSize::MIN_RATE)), or there is no memory.
    /// [`BloomBuilder::build_atomic`] returns these as errors.
    #[cfg(feature = "std")]
    #[must_use]
    #[track_caller]
    pub fn new(capacity: u64, error_rate: f64) -> AtomicBloomFilter {
        let builder = BloomFilter::builder().capacity(capacity);
        crate::error::or_panic(builder.error_rate(error_rate).build_atomic())
    }

    /// Inserts an item; true when it is new: [`contains`](Self::contains) was false before.
    ///
    /// ```
    /// # use everbloom::AtomicBloomFilter;
    /// let seen = AtomicBloomFilter::new(1000, 0.01);
    /// assert!(seen.insert("a"));
    /// assert!(!seen.insert("a"));
    /// ```
    #[inline]
    pub fn insert<T: Item + ?Sized>(&self, item: &T) -> bool {
        self.insert_hash(self.hash(item))
    }

    /// Whether the item was inserted: false is certain, true may be an error.
    ///
    /// ```
    /// # use everbloom::AtomicBloomFilter;
    /// let seen = AtomicBloomFilter::new(1000, 0.01);
    /// seen.insert("a");
    /// assert!(seen.contains("a") && !seen.contains("b"));
    /// ```
    #[must_use]
    #[inline]
    pub fn contains<T: Item + ?Sized>(&self, item: &T) -> bool {
        self.contains_hash(self.hash(item))
    }

    /// [`insert`](Self::insert) for each item in turn, faster than one by one where the filter is
    /// larger than the processor's caches. Calls `emit` with whether the item is new. It reads
    /// ahead in the iterator.
    ///
    /// ```
    /// # use everbloom::AtomicBloomFilter;
    /// let seen = AtomicBloomFilter::new(1000, 0.01);
    /// let mut new = 0;
    /// seen.insert_each(["a", "b", "a"], |is_new| new += u32::from(is_new));
    /// assert_eq!(new, 2);
    /// ```
    pub fn insert_each(&self, items: impl IntoIterator<Item: Item>, mut emit: impl FnMut(bool)) {
        self.each(items, |bits, pair| emit(bits.insert(pair)));
    }

    /// [`contains`](Self::contains) for each item in turn, faster than one by one where the filter
    /// is larger than the processor's caches. Calls `emit` with each answer. It reads ahead in the
    /// iterator.
    ///
    /// ```
    /// # use everbloom::AtomicBloomFilter;
    /// # let seen = AtomicBloomFilter::new(1000, 0.01);
    /// # seen.insert("b");
    /// let mut answers = Vec::new();
    /// seen.contains_each(["a", "b", "c"], |found| answers.push(found));
    /// assert_eq!(answers, [false, true, false]);
    /// ```
    pub fn contains_each(&self, items: impl IntoIterator<Item: Item>, mut emit: impl FnMut(bool)) {
        self.each(items, |bits, pair| emit(bits.contains(pair)));
    }

    /// Calls `answer` with each item in turn, whose block was prefetched.
    #[inline]
    fn each(
        &self,
        items: impl IntoIterator<Item: Item>,
        mut answer: impl FnMut(&AtomicBits, DoubleHash),
    ) {
        let hasher = Hasher::Blocked(self.bits.key().secrets());
        let prefetch = |bits: &&AtomicBits, group: &Group| {
            group.pairs().iter().for_each(|pair| bits.prefetch(*pair));
        };
        let (bits, items) = (&mut &self.bits, items.into_iter());
        group::each_group(bits, &hasher, items, prefetch, |bits, group| {
            group.pairs().iter().for_each(|pair| answer(bits, *pair));
        });
    }

    /// The two hash values of an item in this filter, and in every other one with the same key.
    ///
    /// ```
    /// # use everbloom::AtomicBloomFilter;
    /// let seen = AtomicBloomFilter::new(1000, 0.01);
    /// let hash = seen.hash("a");
    /// assert!(seen.insert_hash(hash));
    /// assert!(seen.contains_hash(hash) && seen.contains("a"));
    /// ```
    #[must_use]
    #[inline]
    pub fn hash<T: Item + ?Sized>(&self, item: &T) -> DoubleHash {
        item.hash_with(self.bits.key())
    }

    /// [`insert`](Self::insert) for an item that is hashed already: by [`hash`](Self::hash), or by
    /// your own 128-bit hash function, whose bits must all be evenly spread.
    #[inline]
    pub fn insert_hash(&self, hash: DoubleHash) -> bool {
        self.bits.insert(hash)
    }

    /// [`contains`](Self::contains) for an item that is hashed already, as in
    /// [`hash`](Self::hash).
    #[must_use]
    #[inline]
    pub fn contains_hash(&self, hash: DoubleHash) -> bool {
        self.bits.contains(hash)
    }

    /// The number of items the filter is made for.
    ///
    /// ```
    /// # use everbloom::AtomicBloomFilter;
    /// let seen = AtomicBloomFilter::new(1000, 0.01);
    /// assert_eq!((seen.capacity(), seen.error_rate()), (1000, 0.01));
    /// ```
    #[must_use]
    pub fn capacity(&self) -> u64 {
        self.shape.size.capacity
    }

    /// The error rate at its [`capacity`](Self::capacity).
    #[must_use]
    pub fn error_rate(&self) -> f64 {
        self.shape.size.error_rate
    }

    /// The key of the hash.
    ///
    /// ```
    /// use everbloom::BloomFilter;
    /// use everbloom::hash::Key;
    /// let seen = BloomFilter::builder().capacity(1000).seed(7).build_atomic()?;
    /// assert_eq!(seen.key(), Key::from_seed(7));
    /// # Ok::<(), everbloom::BuildError>(())
    /// ```
    #[must_use]
    pub fn key(&self) -> Key {
        self.bits.key().key()
    }

    /// The parameters, contents and error rate of the filter. Takes time linear in the number of
    /// bits. Items that are inserted meanwhile may or may not be counted. [Example](Stats).
    #[must_use]
    pub fn stats(&self) -> Stats {
        let fill = self.bits.fill();
        let size = self.shape.size;
        let layers = [(size, size.bits(), fill)];
        Stats::of_layers(fill.items, self.error_rate(), layers)
    }

    /// The memory of the filter in bytes, the struct included.
    ///
    /// ```
    /// # use everbloom::AtomicBloomFilter;
    /// assert!(AtomicBloomFilter::new(1000, 0.01).memory_usage() < 2000);
    /// ```
    #[must_use]
    pub fn memory_usage(&self) -> usize {
        size_of::<Self>() + self.bits.memory()
    }

    /// Removes all items. The filter keeps its shape and its key.
    ///
    /// ```
    /// # use everbloom::AtomicBloomFilter;
    /// let mut seen = AtomicBloomFilter::new(1000, 0.01);
    /// seen.insert("a");
    /// seen.clear();
    /// assert!(!seen.contains("a"));
    /// ```
    pub fn clear(&mut self) {
        self.bits.clear();
    }
}

impl<T: Item> Extend<T> for AtomicBloomFilter {
    /// [`insert`](AtomicBloomFilter::insert) for each item, as fast as
    /// [`insert_each`](AtomicBloomFilter::insert_each).
    fn extend<I: IntoIterator<Item = T>>(&mut self, items: I) {
        self.insert_each(items, drop);
    }
}

impl<T: Item> Extend<T> for &AtomicBloomFilter {
    /// The same for each of the threads that share a filter.
    fn extend<I: IntoIterator<Item = T>>(&mut self, items: I) {
        self.insert_each(items, drop);
    }
}

impl BloomBuilder {
    /// Makes the filter as [`build`](Self::build) does, for several threads.
    ///
    /// ```
    /// use everbloom::BloomFilter;
    /// let seen = BloomFilter::builder().capacity(1000).build_atomic()?;
    /// assert!(seen.insert("a"));
    /// # Ok::<(), everbloom::BuildError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Those of [`build`](Self::build), and [`BuildError::Layout`] in the classic layout.
    pub fn build_atomic(self) -> Result<AtomicBloomFilter, BuildError> {
        self.build()?.try_into()
    }
}

impl TryFrom<BloomFilter> for AtomicBloomFilter {
    type Error = BuildError;

    /// The same bits, in the same memory.
    ///
    /// # Errors
    ///
    /// [`BuildError::Layout`] when the filter is in the classic layout.
    fn try_from(filter: BloomFilter) -> Result<AtomicBloomFilter, BuildError> {
        let (bits, shape) = filter.layer.into_blocked().ok_or(BuildError::Layout)?;
        Ok(AtomicBloomFilter {
            bits: AtomicBits::from(bits),
            shape,
        })
    }
}

impl From<AtomicBloomFilter> for BloomFilter {
    /// The same bits, in the same memory. [`len`](BloomFilter::len) is an estimate from the bits
    /// that are 1, which takes time linear in their number.
    fn from(filter: AtomicBloomFilter) -> BloomFilter {
        let layer = Layer::from_blocked(filter.bits.into(), filter.shape);
        BloomFilter { layer }
    }
}
