//! A chain of layers that grows with its items.

use alloc::vec::Vec;
use core::fmt;
use core::mem::size_of;
use core::ops::ControlFlow;

use crate::classic::{BuildError, ClassicLayer};
use crate::hash::{HashPair, HashWidth};
use crate::sizing::{LayerSize, RATE_CAP, Rounding};

/// How many items of a batch are hashed and prefetched ahead of the tests.
const GROUP: usize = 32;

/// The option bits kept with a filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options(u32);

impl Options {
    /// Bit counts are not rounded up to a power of two.
    pub const NO_ROUND: u32 = 1;
    /// A capacity is the logarithm of a bit count.
    pub const ENTRIES_ARE_BITS: u32 = 2;
    /// Items are hashed to 64 bits.
    pub const FORCE_64: u32 = 4;
    /// The filter never grows.
    pub const NO_SCALING: u32 = 8;
    /// Every bit that has a meaning.
    pub const KNOWN: u32 = 15;

    pub(crate) fn new(bits: u32) -> Options {
        Options(bits)
    }

    /// The bits.
    #[must_use]
    pub fn bits(self) -> u32 {
        self.0
    }

    /// Whether all of `bits` are set.
    #[must_use]
    pub fn has(self, bits: u32) -> bool {
        self.0 & bits == bits
    }

    /// How the layers of the filter are sized.
    #[must_use]
    pub fn rounding(self) -> Rounding {
        if self.has(Options::ENTRIES_ARE_BITS) {
            Rounding::Log2
        } else if self.has(Options::NO_ROUND) {
            Rounding::Words
        } else {
            Rounding::PowerOfTwo
        }
    }

    /// How the items of the filter are hashed.
    #[must_use]
    #[inline]
    pub fn hash_width(self) -> HashWidth {
        if self.has(Options::FORCE_64) {
            HashWidth::Bits64
        } else {
            HashWidth::Bits32
        }
    }
}

/// Why an item was not inserted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InsertError {
    /// The filter does not grow and has taken as many items as its capacity.
    #[error("the filter is full")]
    Full,
    /// The newest layer is full and no further one can be made: its error rate or its capacity
    /// would be 0, it would be over a limit, or there is no memory.
    #[error("the filter cannot grow")]
    CannotGrow,
}

/// What a filter may grow to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GrowthLimit {
    /// The most bytes the bit array of a new layer may have.
    pub max_layer_bytes: u64,
}

impl Default for GrowthLimit {
    /// No limit but the allocator's.
    fn default() -> GrowthLimit {
        GrowthLimit {
            max_layer_bytes: u64::MAX,
        }
    }
}

/// Parameters of a [`ScalableBloomFilter`] to be.
#[derive(Clone, Copy, Debug, PartialEq)]
#[must_use = "a builder does nothing until build is called"]
pub struct ScalableBuilder {
    error_rate: f64,
    capacity: u64,
    expansion: u32,
    fixed: bool,
    max_layer_bytes: u64,
}

impl ScalableBuilder {
    /// The error rate, 0.01 by default. A rate above [`RATE_CAP`] is lowered to it.
    pub fn error_rate(mut self, rate: f64) -> Self {
        self.error_rate = rate;
        self
    }

    /// Items the first layer is made for, 100 by default.
    pub fn capacity(mut self, items: u64) -> Self {
        self.capacity = items;
        self
    }

    /// How many times the capacity of a layer the next one has, 2 by default. 0 makes a filter
    /// that does not grow.
    pub fn expansion(mut self, factor: u32) -> Self {
        self.expansion = factor;
        self
    }

    /// Makes a filter that does not grow. It keeps the expansion as a number without effect.
    pub fn fixed(mut self) -> Self {
        self.fixed = true;
        self
    }

    /// The most bytes the bit array may have; no limit by default.
    pub fn max_layer_bytes(mut self, bytes: u64) -> Self {
        self.max_layer_bytes = bytes;
        self
    }

    /// Makes the filter.
    ///
    /// # Errors
    ///
    /// [`BuildError`] says which parameter is out of its range, or that memory is missing.
    pub fn build(self) -> Result<ScalableBloomFilter, BuildError> {
        if !(self.error_rate > 0.0 && self.error_rate < 1.0) {
            return Err(BuildError::ErrorRate);
        }
        if self.capacity == 0 {
            return Err(BuildError::Capacity);
        }
        let rate = self.error_rate.min(RATE_CAP);
        let mut options = Options::NO_ROUND | Options::FORCE_64;
        // Each layer has half the error rate of the one before, and 1/2 + 1/4 + ... = 1.
        let first_rate = if self.fixed || self.expansion == 0 {
            options |= Options::NO_SCALING;
            rate
        } else {
            rate * 0.5
        };
        let options = Options(options);
        let size = LayerSize::new(self.capacity, first_rate, options.rounding())
            .ok_or(BuildError::Unsizable)?;
        let layer = ClassicLayer::new(&size, self.max_layer_bytes)?;
        let mut layers = Vec::new();
        layers
            .try_reserve_exact(1)
            .map_err(|_| BuildError::OutOfMemory { bytes: size.bytes })?;
        layers.push(layer);
        Ok(ScalableBloomFilter {
            layers,
            items: 0,
            options,
            growth: self.expansion,
        })
    }
}

/// A Bloom filter that grows: a chain of layers, each larger than the one before and with half its
/// error rate. It is what a key of the `BF.*` commands holds.
///
/// ```
/// use everbloom::ScalableBloomFilter;
///
/// let mut seen = ScalableBloomFilter::builder().error_rate(0.001).capacity(1000).build()?;
/// assert!(seen.insert("a"));
/// assert!(!seen.insert("a"));
/// assert!(seen.contains("a"));
/// assert!(!seen.contains("b"));
/// # Ok::<(), everbloom::BuildError>(())
/// ```
#[derive(Clone, PartialEq)]
pub struct ScalableBloomFilter {
    /// Oldest first, never empty.
    layers: Vec<ClassicLayer>,
    items: u64,
    options: Options,
    growth: u32,
}

impl ScalableBloomFilter {
    /// Starts with RedisBloom's defaults: error rate 0.01, capacity 100, expansion 2.
    pub fn builder() -> ScalableBuilder {
        ScalableBuilder {
            error_rate: 0.01,
            capacity: 100,
            expansion: 2,
            fixed: false,
            max_layer_bytes: u64::MAX,
        }
    }

    /// Only for values that [`dump`](crate::dump) has validated.
    pub(crate) fn from_layers(
        layers: Vec<ClassicLayer>,
        items: u64,
        options: Options,
        growth: u32,
    ) -> ScalableBloomFilter {
        debug_assert!(!layers.is_empty());
        ScalableBloomFilter {
            layers,
            items,
            options,
            growth,
        }
    }

    /// Inserts an item; true when it is new, which is to say that [`contains`](Self::contains)
    /// was false.
    ///
    /// A filter that cannot grow, or may not, takes the item all the same: the item will be found,
    /// and the error rate rises. [`try_insert`](Self::try_insert) refuses instead.
    pub fn insert<T: AsRef<[u8]> + ?Sized>(&mut self, item: &T) -> bool {
        let pair = self.hash(item.as_ref());
        match self.insert_pair(pair, GrowthLimit::default()) {
            Ok(new) => new,
            Err(InsertError::Full | InsertError::CannotGrow) => {
                self.insert_into_newest(pair);
                true
            }
        }
    }

    /// Inserts an item as the `BF.ADD` command does; true when it is new.
    ///
    /// # Errors
    ///
    /// [`InsertError`] when the item is new and there is no room for it; nothing has changed then.
    pub fn try_insert<T: AsRef<[u8]> + ?Sized>(&mut self, item: &T) -> Result<bool, InsertError> {
        self.insert_pair(self.hash(item.as_ref()), GrowthLimit::default())
    }

    /// Whether the item was inserted: false is certain, true may be an error.
    #[must_use]
    pub fn contains<T: AsRef<[u8]> + ?Sized>(&self, item: &T) -> bool {
        self.contains_pair(self.hash(item.as_ref()))
    }

    /// [`insert`](Self::insert) for each item in turn.
    pub fn insert_all<T: AsRef<[u8]>>(&mut self, items: &[T]) -> Vec<bool> {
        items.iter().map(|item| self.insert(item)).collect()
    }

    /// [`contains`](Self::contains) for each item in turn, faster than one by one.
    #[must_use]
    pub fn contains_all<T: AsRef<[u8]>>(&self, items: &[T]) -> Vec<bool> {
        let mut replies = Vec::with_capacity(items.len());
        self.contains_batch(items.iter().map(AsRef::as_ref), |reply| replies.push(reply));
        replies
    }

    /// Calls `emit` with [`contains`](Self::contains) of each item in turn.
    pub fn contains_batch<'a>(
        &self,
        items: impl Iterator<Item = &'a [u8]>,
        mut emit: impl FnMut(bool),
    ) {
        self.for_groups(items, |group| {
            for &pair in group {
                emit(self.contains_pair(pair));
            }
        });
    }

    /// Calls `emit` with [`try_insert`](Self::try_insert) of each item in turn; when `emit` breaks,
    /// the items after that one are not inserted.
    pub fn insert_batch<'a>(
        &mut self,
        items: impl Iterator<Item = &'a [u8]>,
        growth: GrowthLimit,
        mut emit: impl FnMut(Result<bool, InsertError>) -> ControlFlow<()>,
    ) {
        let mut items = items;
        let mut group = [HashPair::default(); GROUP];
        loop {
            let count = self.next_group(&mut items, &mut group);
            for &pair in group.iter().take(count) {
                if emit(self.insert_pair(pair, growth)).is_break() {
                    return;
                }
            }
            if count < GROUP {
                return;
            }
        }
    }

    /// Items inserted, not counting those that were there already or seemed to be.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.items
    }

    /// Whether nothing was inserted yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.items == 0
    }

    /// Items the layers are made for, together; `u64::MAX` when that is more.
    #[must_use]
    pub fn capacity(&self) -> u64 {
        self.layers
            .iter()
            .fold(0, |sum, layer| sum.saturating_add(layer.capacity()))
    }

    /// The error rate asked for.
    #[must_use]
    pub fn error_rate(&self) -> f64 {
        let first = self.layers.first().map_or(0.0, ClassicLayer::error_rate);
        if self.is_fixed() { first } else { first * 2.0 }
    }

    /// How many times the capacity of a layer the next one has.
    #[must_use]
    pub fn expansion(&self) -> u32 {
        self.growth
    }

    /// Whether the filter does not grow.
    #[must_use]
    pub fn is_fixed(&self) -> bool {
        self.options.has(Options::NO_SCALING)
    }

    /// The layers, oldest first; at least one.
    #[must_use]
    pub fn layers(&self) -> &[ClassicLayer] {
        &self.layers
    }

    /// The option bits.
    #[must_use]
    pub fn options(&self) -> Options {
        self.options
    }

    /// What the filter occupies in memory, in bytes, itself included.
    #[must_use]
    pub fn memory_usage(&self) -> usize {
        let spare = self.layers.capacity() - self.layers.len();
        let layers: usize = self.layers.iter().map(ClassicLayer::memory_usage).sum();
        size_of::<Self>() + spare * size_of::<ClassicLayer>() + layers
    }

    pub(crate) fn layers_mut(&mut self) -> &mut [ClassicLayer] {
        &mut self.layers
    }

    #[inline]
    fn hash(&self, item: &[u8]) -> HashPair {
        HashPair::new(item, self.options.hash_width())
    }

    #[inline]
    fn contains_pair(&self, pair: HashPair) -> bool {
        // The newest layer is the largest, so it is the likeliest to have the item.
        self.layers.iter().rev().any(|layer| layer.contains(pair))
    }

    #[inline]
    fn insert_pair(&mut self, pair: HashPair, growth: GrowthLimit) -> Result<bool, InsertError> {
        if self.contains_pair(pair) {
            return Ok(false);
        }
        if self.layers.last().is_none_or(ClassicLayer::is_full) {
            if self.is_fixed() {
                return Err(InsertError::Full);
            }
            self.grow(growth)?;
        }
        self.insert_into_newest(pair);
        Ok(true)
    }

    #[inline]
    fn insert_into_newest(&mut self, pair: HashPair) {
        if let Some(layer) = self.layers.last_mut() {
            layer.insert(pair);
            self.items = self.items.saturating_add(1);
        }
    }

    #[cold]
    fn grow(&mut self, limit: GrowthLimit) -> Result<(), InsertError> {
        let newest = self.layers.last().ok_or(InsertError::CannotGrow)?;
        let size = newest
            .capacity()
            .checked_mul(u64::from(self.growth))
            .and_then(|n| LayerSize::new(n, newest.error_rate() * 0.5, self.options.rounding()))
            .ok_or(InsertError::CannotGrow)?;
        self.layers
            .try_reserve_exact(1)
            .map_err(|_| InsertError::CannotGrow)?;
        let layer =
            ClassicLayer::new(&size, limit.max_layer_bytes).map_err(|_| InsertError::CannotGrow)?;
        self.layers.push(layer);
        Ok(())
    }

    /// Hashes up to a group of items and asks for the cache lines of all their bits.
    #[inline]
    fn next_group<'a>(
        &self,
        items: &mut impl Iterator<Item = &'a [u8]>,
        group: &mut [HashPair; GROUP],
    ) -> usize {
        let mut count = 0;
        for (slot, item) in group.iter_mut().zip(items) {
            *slot = self.hash(item);
            count += 1;
        }
        for layer in self.layers.iter().rev() {
            for &pair in group.iter().take(count) {
                layer.prefetch(pair);
            }
        }
        count
    }

    #[inline]
    fn for_groups<'a>(
        &self,
        mut items: impl Iterator<Item = &'a [u8]>,
        mut each: impl FnMut(&[HashPair]),
    ) {
        let mut group = [HashPair::default(); GROUP];
        loop {
            let count = self.next_group(&mut items, &mut group);
            each(group.get(..count).unwrap_or_default());
            if count < GROUP {
                return;
            }
        }
    }
}

impl fmt::Debug for ScalableBloomFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScalableBloomFilter")
            .field("items", &self.items)
            .field("options", &self.options.0)
            .field("growth", &self.growth)
            .field("layers", &self.layers)
            .finish()
    }
}
