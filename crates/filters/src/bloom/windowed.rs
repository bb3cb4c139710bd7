//! A filter that forgets.

use alloc::boxed::Box;

use super::layered::LayeredFilter;
use super::sets::UnionError;
use super::stats::Stats;
use super::window::Window;
use crate::bits::memory::out_of_memory;
use crate::error::InsertError;
use crate::hash::Key;
use crate::hash::item::Item;

/// A Bloom filter that remembers the items of a window: of the last days, or so many of the last.
///
/// ```
/// use everbloom::{Span, WindowedBloomFilter};
///
/// const DAY: u64 = 24 * 60 * 60;
/// let mut seen = WindowedBloomFilter::new(1_000_000, 0.01, Span::Ticks(30 * DAY));
/// assert!(seen.insert_at("a", 0));
/// assert!(!seen.insert_at("a", 20 * DAY));
/// // It came again, so it lives on.
/// assert!(seen.contains_at("a", 50 * DAY));
/// assert!(!seen.contains_at("a", 80 * DAY));
///
/// let mut last = WindowedBloomFilter::new(1000, 0.001, Span::Items);
/// (0..10_000).for_each(|number| _ = last.insert_at(&number, 0));
/// assert!((9000..10_000).all(|number| last.contains_at(&number, 0)));
/// assert!(!last.contains_at(&1, 0));
/// ```
///
/// What was inserted within the window is always found. What was inserted before, and not since, is
/// found for at most a g-th part of the window longer, with four generations a quarter, and after
/// that only by the error rate. That rate holds at any time: for up to the capacity in a window,
/// and beyond it as a window of ticks grows. With four generations a window takes 18 bits an item
/// at 1 % and 26 at 0.1 %, and a lookup may ask five of them.
///
/// An item that is inserted again lives on. A feed that may show an article again after the window
/// asks [`contains_at`](Self::contains_at), and inserts only what it shows.
///
/// The clock is the caller's: any number that grows, such as seconds. If it goes back, nothing is
/// forgotten earlier. If it goes back by more than a generation, the window begins again at the
/// next insertion: what is found then is found for one window from then on.
#[derive(Clone, Debug, PartialEq)]
pub struct WindowedBloomFilter(pub(crate) LayeredFilter<Box<Window>>);

impl WindowedBloomFilter {
    /// A filter that remembers this many items of a window, in four generations and the one that is
    /// being filled, with a random key.
    ///
    /// # Panics
    ///
    /// When the capacity is 0 or so large that its bits cannot be counted, the span is 0, the error
    /// rate is not less than 1 or too low for any filter (see
    /// [`MIN_RATE`](crate::sizing::BlockedSize::MIN_RATE)), or there is no memory.
    /// [`builder`](Self::builder) returns these as errors.
    #[cfg(feature = "std")]
    #[must_use]
    #[track_caller]
    pub fn new(capacity: u64, error_rate: f64, span: crate::Span) -> WindowedBloomFilter {
        let builder = Self::builder().capacity(capacity).error_rate(error_rate);
        crate::error::or_panic(builder.span(span).build())
    }

    /// The usual number of generations. [Example](Self::window).
    pub const GENERATIONS: u32 = 4;

    /// Inserts an item at a time; true when the filter did not have it in its window. Either way,
    /// the item is remembered from now on.
    ///
    /// Without memory for a new generation or layer the program ends, as with [`Vec::push`];
    /// [`try_insert_at`](Self::try_insert_at) returns an error instead.
    ///
    /// [`Vec::push`]: alloc::vec::Vec::push
    ///
    /// ```
    /// # use everbloom::{Span, WindowedBloomFilter};
    /// let mut seen = WindowedBloomFilter::new(1000, 0.01, Span::Ticks(60));
    /// seen.insert_at("a", 1_000_000); // The clock was wrong.
    /// seen.insert_at("b", 100);
    /// assert!(seen.contains_at("a", 160) && !seen.contains_at("a", 176));
    /// ```
    pub fn insert_at<T: Item + ?Sized>(&mut self, item: &T, now: u64) -> bool {
        match self.0.advance_to(now) {
            Ok(_) => {}
            Err(InsertError::OutOfMemory { bytes }) => out_of_memory(bytes),
            // There is no size for another generation, so this one goes on.
            Err(InsertError::Full | InsertError::CannotGrow | InsertError::Copies) => {
                self.0.prolong(now)
            }
        }
        self.0.insert(item)
    }

    /// [`insert_at`](Self::insert_at), or an error.
    ///
    /// ```
    /// # use everbloom::{Span, WindowedBloomFilter};
    /// let mut seen = WindowedBloomFilter::new(1000, 0.01, Span::Ticks(60));
    /// assert_eq!(seen.try_insert_at("a", 7), Ok(true));
    /// assert_eq!(seen.try_insert_at("a", 8), Ok(false));
    /// ```
    ///
    /// # Errors
    ///
    /// There is no new generation or layer for the item, which is not inserted then.
    pub fn try_insert_at<T: Item + ?Sized>(
        &mut self,
        item: &T,
        now: u64,
    ) -> Result<bool, InsertError> {
        self.0.advance_to(now)?;
        self.0.try_insert(item)
    }

    /// [`insert_at`](Self::insert_at) for each item in turn, faster than one by one. Calls `emit`
    /// with whether the item is new. It reads ahead in the iterator.
    ///
    /// ```
    /// # use everbloom::{Span, WindowedBloomFilter};
    /// let mut seen = WindowedBloomFilter::new(1000, 0.01, Span::Ticks(60));
    /// let mut new = Vec::new();
    /// seen.insert_each_at(["a", "b", "a"], 7, |is_new| new.push(is_new))?;
    /// assert_eq!(new, [true, true, false]);
    /// # Ok::<(), everbloom::InsertError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// There is no memory for a new generation or layer; the items before were inserted.
    pub fn insert_each_at(
        &mut self,
        items: impl IntoIterator<Item: Item>,
        now: u64,
        emit: impl FnMut(bool),
    ) -> Result<(), InsertError> {
        self.0.advance_to(now)?;
        self.0.insert_until_refused(items, emit)
    }

    /// Whether the item was inserted within the window: false is certain, true may be an error.
    ///
    /// ```
    /// # use everbloom::{Span, WindowedBloomFilter};
    /// let mut seen = WindowedBloomFilter::new(1000, 0.01, Span::Ticks(60));
    /// seen.insert_at("a", 100);
    /// assert!(seen.contains_at("a", 160));
    /// assert!(!seen.contains_at("a", 100 + 60 + 15));
    /// ```
    #[must_use]
    pub fn contains_at<T: Item + ?Sized>(&self, item: &T, now: u64) -> bool {
        self.0.contains_in(self.0.layers_at(now), item)
    }

    /// [`contains_at`](Self::contains_at) for each item in turn, faster than one by one. Calls
    /// `emit` with each answer. It reads ahead in the iterator.
    ///
    /// ```
    /// # use everbloom::{Span, WindowedBloomFilter};
    /// let mut seen = WindowedBloomFilter::new(1000, 0.01, Span::Ticks(60));
    /// seen.insert_at("a", 100);
    /// let mut known = Vec::new();
    /// seen.contains_each_at(["a", "b"], 160, |found| known.push(found));
    /// assert_eq!(known, [true, false]);
    /// ```
    pub fn contains_each_at(
        &self,
        items: impl IntoIterator<Item: Item>,
        now: u64,
        emit: impl FnMut(bool),
    ) {
        self.0.contains_each_at(items, now, emit);
    }

    /// Begins so many generations, whatever the clock and the number of items say, and forgets
    /// those that are too old then.
    ///
    /// ```
    /// # use everbloom::{Span, WindowedBloomFilter};
    /// let mut seen = WindowedBloomFilter::new(1000, 0.01, Span::Items);
    /// seen.insert_at("a", 0);
    /// seen.advance(4, 0)?;
    /// assert!(seen.contains_at("a", 0));
    /// seen.advance(1, 0)?;
    /// assert!(!seen.contains_at("a", 0));
    /// # Ok::<(), everbloom::InsertError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// There is no memory for the new generation; nothing has changed then.
    pub fn advance(&mut self, count: u64, now: u64) -> Result<(), InsertError> {
        self.0.advance(count, now)
    }

    /// Adds all items of another filter, which must remember as many ticks and have as many
    /// generations and the same key. Each stays at least as long as it would have stayed there.
    /// Returns the error rate to expect, which may exceed the given one.
    ///
    /// ```
    /// use everbloom::{Span, WindowedBloomFilter};
    /// let builder = WindowedBloomFilter::builder().capacity(1000).span(Span::Ticks(60)).seed(7);
    /// let (mut one, mut other) = (builder.build()?, builder.build()?);
    /// one.insert_at("a", 10);
    /// other.insert_at("b", 50);
    /// let rate = one.union(&other).unwrap();
    /// assert!(rate <= 0.01 && one.contains_at("a", 70) && one.contains_at("b", 110));
    /// assert!(!one.contains_at("a", 90) && !one.contains_at("b", 125));
    /// # Ok::<(), everbloom::BuildError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`UnionError`] names a parameter in which the filters differ, or says that there is no
    /// memory. The items and what is found have not changed then.
    pub fn union(&mut self, other: &WindowedBloomFilter) -> Result<f64, UnionError> {
        self.union_at(other, u64::MAX)
    }

    /// [`union`](Self::union) at a time: filters that a wrong clock has moved ahead of it begin
    /// again, as in [`insert_at`](Self::insert_at), and do not move the other ones ahead. One that
    /// is ahead by at most a generation is waited for: nothing is forgotten before its time, and
    /// items may stay for one more generation.
    ///
    /// ```
    /// use everbloom::{Span, WindowedBloomFilter};
    /// let builder = WindowedBloomFilter::builder().capacity(1000).span(Span::Ticks(60)).seed(7);
    /// let (mut one, mut other) = (builder.build()?, builder.build()?);
    /// one.insert_at("a", 10);
    /// other.insert_at("b", 1_000_000);
    /// one.union_at(&other, 20).unwrap();
    /// assert!(one.contains_at("a", 70) && one.contains_at("b", 80));
    /// assert!(!one.contains_at("a", 95) && !one.contains_at("b", 95));
    /// # Ok::<(), everbloom::BuildError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`union`](Self::union).
    pub fn union_at(&mut self, other: &WindowedBloomFilter, now: u64) -> Result<f64, UnionError> {
        self.0.union_at(&other.0, now)?;
        Ok(self.0.rate_to_come())
    }

    /// The number of items in all generations that are kept. [Example](Self::window).
    #[must_use]
    pub fn len(&self) -> u64 {
        self.0.len()
    }

    /// Whether all generations that are kept are empty. [Example](Self::window).
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The generations, and the parameters.
    ///
    /// ```
    /// # use everbloom::{Span, WindowedBloomFilter};
    /// let mut seen = WindowedBloomFilter::new(1000, 0.01, Span::Ticks(60));
    /// assert!(seen.is_empty());
    /// seen.insert_at("a", 5);
    /// seen.insert_at("a", 40);
    /// let window = seen.window();
    /// assert_eq!((window.generations, window.next_generation()), (4, Some(45)));
    /// assert_eq!(Span::of_ticks(window.span.ticks().unwrap()), window.span);
    /// assert_eq!((window.ended(44), window.ended(45)), (0, 1));
    /// assert!(window.is_ahead_of(14) && !window.is_ahead_of(15));
    /// assert_eq!(window.kept.iter().map(|it| it.began).collect::<Vec<_>>(), [0, 30, 30]);
    /// assert_eq!((seen.len(), WindowedBloomFilter::GENERATIONS), (2, 4));
    /// ```
    #[must_use]
    pub fn window(&self) -> &Window {
        &self.0.window
    }

    /// The number of items of a window that the filter is made for.
    ///
    /// ```
    /// # use everbloom::{Span, WindowedBloomFilter};
    /// let mut seen = WindowedBloomFilter::new(1000, 0.01, Span::Ticks(60));
    /// assert_eq!((seen.capacity(), seen.error_rate()), (1000, 0.01));
    /// assert_eq!(seen.key(), seen.clone().key());
    /// seen.insert_at("a", 5);
    /// let stats = seen.stats();
    /// assert_eq!((stats.items, stats.capacity, stats.error_rate), (1, Some(1000), Some(0.01)));
    /// assert!(seen.memory_usage() as u64 > stats.bytes());
    /// seen.clear();
    /// assert!(seen.is_empty() && !seen.contains_at("a", 5));
    /// ```
    #[must_use]
    pub fn capacity(&self) -> u64 {
        self.window().capacity
    }

    /// The error rate given at creation, after the cap. [Example](Self::capacity).
    #[must_use]
    pub fn error_rate(&self) -> f64 {
        self.0.error_rate()
    }

    /// The key of the hash. [Example](Self::capacity).
    #[must_use]
    pub fn key(&self) -> Option<Key> {
        self.0.key()
    }

    /// The parameters, the items of all generations that are kept, and the current error rate.
    /// Takes time linear in the size. [Example](Self::capacity).
    #[must_use]
    pub fn stats(&self) -> Stats {
        Stats {
            capacity: Some(self.capacity()),
            ..self.0.stats()
        }
    }

    /// The memory of the filter in bytes, the struct included. [Example](Self::capacity).
    #[must_use]
    pub fn memory_usage(&self) -> usize {
        self.0.memory_usage()
    }

    /// Forgets all items. The newest generation goes on, empty. [Example](Self::capacity).
    pub fn clear(&mut self) {
        self.0.clear();
    }
}

impl From<WindowedBloomFilter> for LayeredFilter {
    fn from(filter: WindowedBloomFilter) -> LayeredFilter {
        filter.0.map_window(Some)
    }
}

impl TryFrom<LayeredFilter> for WindowedBloomFilter {
    type Error = LayeredFilter;

    /// The filter, if it has a window; gives back any other filter.
    fn try_from(mut filter: LayeredFilter) -> Result<WindowedBloomFilter, LayeredFilter> {
        match filter.window.take() {
            Some(window) => Ok(WindowedBloomFilter(filter.map_window(|_| window))),
            None => Err(filter),
        }
    }
}
