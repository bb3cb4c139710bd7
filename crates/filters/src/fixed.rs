//! One layer on its own: a filter of fixed size.

use alloc::borrow::Cow;
use alloc::vec;
use alloc::vec::Vec;
use core::mem::size_of;
use core::slice;

use crate::error::BuildError;
use crate::group::{self, Group};
use crate::hash::{HashPair, HashWidth, Hasher, Key};
use crate::layer::Layer;
use crate::layout::Layout;
use crate::math::whole;
use crate::options::Options;
use crate::scalable::ScalableBloomFilter;
use crate::sizing::blocked::{self, BlockedSize};
use crate::sizing::{self, LayerSize, MAX_HASHES, Rounding, textbook};

/// Parameters of a [`BloomFilter`] to be.
///
/// | given | the rest follows |
/// |---|---|
/// | `capacity`, `error_rate` (0.01 unless given) | RedisBloom's sizes of a non-scaling filter |
/// | `bits`, `hashes` | capacity for which the hash count is the best, error rate at it |
/// | `bits`, `hashes`, `capacity` | error rate at that capacity |
/// | `bits`, `capacity` | the best hash count, error rate at that capacity |
/// | `bits`, `error_rate` | capacity and hash count |
///
/// Bits are rounded up to a multiple of 64, in the blocked layout of 512. There, hashes are from
/// [`blocked::MIN_HASHES`] to [`blocked::MAX_HASHES`], and error rates at least
/// [`blocked::MIN_RATE`].
///
/// ```
/// use everbloom::BloomFilter;
/// let by_items = BloomFilter::builder().capacity(1000).error_rate(0.001).build()?;
/// assert_eq!((by_items.bits(), by_items.hashes()), (14400, 10));
/// let by_bits = BloomFilter::builder().bits(1 << 20).hashes(7).build()?;
/// assert_eq!(by_bits.capacity(), 103_831);
/// assert!(by_bits.error_rate() < 0.008);
/// # Ok::<(), everbloom::BuildError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[must_use = "a builder does nothing until build is called"]
pub struct BloomBuilder {
    capacity: Option<u64>,
    error_rate: Option<f64>,
    bits: Option<u64>,
    hashes: Option<u32>,
    max_bytes: Option<u64>,
    layout: Layout,
    key: Option<Key>,
}

impl BloomBuilder {
    /// Items the filter is made for.
    pub fn capacity(mut self, items: u64) -> Self {
        self.capacity = Some(items);
        self
    }

    /// The error rate when it holds as many items as its capacity. Unlike that of a
    /// [`ScalableBloomFilter`] it is not capped.
    pub fn error_rate(mut self, rate: f64) -> Self {
        self.error_rate = Some(rate);
        self
    }

    /// Length of the bit array in bits.
    pub fn bits(mut self, bits: u64) -> Self {
        self.bits = Some(bits);
        self
    }

    /// Bits set by an item.
    pub fn hashes(mut self, hashes: u32) -> Self {
        self.hashes = Some(hashes);
        self
    }

    /// Where the bits of an item lie: [`Layout::Classic`] by default.
    pub fn layout(mut self, layout: Layout) -> Self {
        self.layout = layout;
        self
    }

    /// The key of the blocked layout's hash; by default a random one. Filters can be united that
    /// have the same key.
    pub fn key(mut self, key: Key) -> Self {
        self.key = Some(key);
        self
    }

    /// The key that a seed stands for: filters with the same seed and parameters that get the same
    /// items are the same.
    pub fn seed(self, seed: u64) -> Self {
        self.key(Key::from_seed(seed))
    }

    /// The most bytes the bit array may have; no limit by default.
    pub fn max_bytes(mut self, bytes: u64) -> Self {
        self.max_bytes = Some(bytes);
        self
    }

    /// Makes the filter.
    ///
    /// # Errors
    ///
    /// [`BuildError`] says which parameter is missing or out of its range, or that memory is
    /// missing.
    pub fn build(self) -> Result<BloomFilter, BuildError> {
        self.check()?;
        let max_bytes = self.max_bytes.unwrap_or(u64::MAX);
        let layer = match self.layout.key(self.key)? {
            None => Layer::classic(&self.classic_size()?, max_bytes)?,
            Some(key) => Layer::blocked(&self.blocked_size()?, key, max_bytes)?,
        };
        Ok(BloomFilter { layer })
    }

    /// Whether each parameter is in its range.
    fn check(&self) -> Result<(), BuildError> {
        if self
            .error_rate
            .is_some_and(|rate| !(rate > 0.0 && rate < 1.0))
        {
            return Err(BuildError::ErrorRate);
        }
        if self.capacity == Some(0) {
            return Err(BuildError::Capacity);
        }
        if self.bits == Some(0) {
            return Err(BuildError::Bits);
        }
        if self
            .hashes
            .is_some_and(|hashes| !(1..=MAX_HASHES).contains(&hashes))
        {
            return Err(BuildError::Hashes);
        }
        Ok(())
    }

    fn blocked_size(&self) -> Result<BlockedSize, BuildError> {
        let whole_blocks = |bits: u64| bits.div_ceil(512).saturating_mul(512);
        let size = match (self.bits, self.hashes, self.capacity, self.error_rate) {
            (None, None, Some(capacity), rate) => BlockedSize::new(capacity, rate.unwrap_or(0.01)),
            (Some(_), Some(hashes), ..)
                if !(blocked::MIN_HASHES..=blocked::MAX_HASHES).contains(&hashes) =>
            {
                return Err(BuildError::Hashes);
            }
            (Some(bits), Some(hashes), capacity, None) => {
                BlockedSize::from_bits(bits, hashes, capacity)
            }
            (Some(bits), None, Some(capacity), None) => {
                let best = blocked::hashes(whole_blocks(bits), capacity);
                BlockedSize::from_bits(bits, best, Some(capacity))
            }
            (Some(bits), None, None, Some(rate)) => {
                let bits = whole_blocks(bits);
                // At a low rate not even one item may have room; it still gets a filter for one.
                let capacity = blocked::capacity(bits, rate).max(1);
                BlockedSize::new(capacity, rate).map(|size| BlockedSize {
                    bytes: size.bytes.max(bits / 8),
                    ..size
                })
            }
            _ => return Err(self.not_enough()),
        };
        size.ok_or(BuildError::Unsizable)
    }

    /// What is wrong with parameters that do not make a size.
    fn not_enough(&self) -> BuildError {
        match (self.bits, self.hashes, self.capacity, self.error_rate) {
            (None, None, None, _) => BuildError::Capacity,
            (Some(_), None, None, None) => BuildError::Hashes,
            _ => BuildError::Conflict,
        }
    }

    fn classic_size(&self) -> Result<LayerSize, BuildError> {
        let size = match (self.bits, self.hashes, self.capacity, self.error_rate) {
            (None, None, Some(capacity), rate) => {
                LayerSize::new(capacity, rate.unwrap_or(0.01), Rounding::Words)
            }
            (Some(bits), Some(hashes), capacity, None) => {
                LayerSize::from_bits(bits, hashes, capacity)
            }
            (Some(bits), None, Some(capacity), None) => {
                let bits = bits.div_ceil(64).saturating_mul(64);
                let best = textbook::hashes(bits as f64, capacity as f64);
                let best = whole(best + 0.5).clamp(1, u64::from(MAX_HASHES));
                let best = u32::try_from(best).unwrap_or(MAX_HASHES);
                LayerSize::from_bits(bits, best, Some(capacity))
            }
            (Some(bits), None, None, Some(rate)) => {
                let bits = bits.div_ceil(64).saturating_mul(64);
                // At a low rate not even one item may have room; it still gets a filter for one.
                let capacity = sizing::capacity(bits, rate).max(1);
                LayerSize::new(capacity, rate, Rounding::Words).map(|size| LayerSize {
                    bytes: size.bytes.max(bits / 8),
                    ..size
                })
            }
            _ => return Err(self.not_enough()),
        };
        size.ok_or(BuildError::Unsizable)
    }
}

/// A Bloom filter of fixed size.
///
/// In the classic layout its bits are those of a non-scaling filter of RedisBloom with the same
/// parameters; `From` makes it one that dumps.
///
/// ```
/// use everbloom::BloomFilter;
///
/// let mut seen = BloomFilter::builder().capacity(10_000).error_rate(0.001).build()?;
/// assert!(seen.insert("a"));
/// assert!(!seen.insert("a"));
/// assert_eq!(seen.contains_all(&["a", "b"]), [true, false]);
///
/// let mut more = BloomFilter::builder().capacity(10_000).error_rate(0.001).build()?;
/// more.extend(["b", "c"]);
/// seen.union(&more)?;
/// assert_eq!(seen.contains_all(&["a", "b", "c", "d"]), [true, true, true, false]);
/// assert_eq!(seen.len(), 3);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// It never refuses an item. Beyond its capacity the error rate rises: at twice the capacity from
/// 0.1 % to 5.6 %, see [`textbook::error_rate`].
#[derive(Clone, Debug, PartialEq)]
pub struct BloomFilter {
    layer: Layer,
}

/// Why two filters cannot be united: a parameter in which they differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnionError {
    /// The layouts differ.
    #[error("the filters have different layouts")]
    Layout,
    /// The keys of the blocked layout differ, or the seeds they were made from.
    #[error("the filters have different keys")]
    Key,
    /// The bit counts differ.
    #[error("the filters have different bit counts")]
    Bits,
    /// The hash counts differ.
    #[error("the filters have different hash counts")]
    Hashes,
    /// The capacities differ.
    #[error("the filters have different capacities")]
    Capacity,
    /// The error rates differ.
    #[error("the filters have different error rates")]
    ErrorRate,
}

impl BloomFilter {
    /// Starts without parameters; [`BloomBuilder`] says which ones make a filter.
    pub fn builder() -> BloomBuilder {
        BloomBuilder::default()
    }

    /// Only for layers as [`BloomBuilder`] makes them.
    pub(crate) fn from_layer(layer: Layer) -> BloomFilter {
        BloomFilter { layer }
    }

    /// Its one layer.
    pub(crate) fn layer(&self) -> &Layer {
        &self.layer
    }

    /// Where the bits of an item lie.
    #[must_use]
    pub fn layout(&self) -> Layout {
        self.layer.layout()
    }

    /// The key of the hash, in the blocked layout.
    #[must_use]
    pub fn key(&self) -> Option<Key> {
        self.layer.key()
    }

    /// Inserts an item; true when it is new, which is to say that [`contains`](Self::contains)
    /// was false.
    pub fn insert<T: AsRef<[u8]> + ?Sized>(&mut self, item: &T) -> bool {
        self.insert_pair(self.layer.hash(item.as_ref(), HashWidth::Bits64))
    }

    /// Whether the item was inserted: false is certain, true may be an error.
    #[must_use]
    pub fn contains<T: AsRef<[u8]> + ?Sized>(&self, item: &T) -> bool {
        self.layer.contains_item(item.as_ref())
    }

    /// [`insert`](Self::insert) for each item in turn, faster than one by one.
    pub fn insert_all<T: AsRef<[u8]>>(&mut self, items: &[T]) -> Vec<bool> {
        let mut replies = Vec::with_capacity(items.len());
        let mut items = items.iter().map(AsRef::as_ref);
        let hasher = self.hasher();
        let mut group = Group::default();
        while group.fill(&mut items, &hasher) {
            let found = group.contained(slice::from_ref(&self.layer));
            group.prefetch_others(&self.layer, found);
            for (index, &pair) in group.pairs().iter().enumerate() {
                // An item may have come with one before it in the group.
                replies.push(found >> index & 1 == 0 && self.layer.insert_if_new(pair));
            }
        }
        replies
    }

    /// [`contains`](Self::contains) for each item in turn, faster than one by one.
    #[must_use]
    pub fn contains_all<T: AsRef<[u8]>>(&self, items: &[T]) -> Vec<bool> {
        let mut replies = Vec::with_capacity(items.len());
        let layers = slice::from_ref(&self.layer);
        let items = items.iter().map(AsRef::as_ref);
        group::contained_groups(layers, &self.hasher(), items, |found, count| {
            replies.extend((0..count).map(|index| found >> index & 1 == 1));
        });
        replies
    }

    /// Items inserted, not counting those that were there already or seemed to be. After a
    /// [`union`](Self::union) an estimate.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.layer.len()
    }

    /// Whether nothing was inserted yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.layer.is_empty()
    }

    /// Items it is made for.
    #[must_use]
    pub fn capacity(&self) -> u64 {
        self.layer.capacity()
    }

    /// The error rate at its capacity.
    #[must_use]
    pub fn error_rate(&self) -> f64 {
        self.layer.error_rate()
    }

    /// Length of the bit array in bits.
    #[must_use]
    pub fn bits(&self) -> u64 {
        self.layer.bits()
    }

    /// Bits set by an item.
    #[must_use]
    pub fn hashes(&self) -> u32 {
        self.layer.hashes()
    }

    /// The bit array: bit `p` is bit `p % 8`, least significant first, of byte `p / 8`.
    ///
    /// Borrowed, but for a small array with few ones, of which only their positions are kept.
    #[must_use]
    pub fn as_bytes(&self) -> Cow<'_, [u8]> {
        self.layer.as_bytes()
    }

    /// The part of the bits that are 1. Takes time linear in their number.
    #[must_use]
    pub fn fill_ratio(&self) -> f64 {
        self.layer.fill_ratio()
    }

    /// The error rate to expect now, from the bits that are 1. Takes time linear in their number.
    #[must_use]
    pub fn estimated_error_rate(&self) -> f64 {
        self.layer.estimated_error_rate()
    }

    /// How many different items were inserted, estimated from the bits that are 1. Takes time
    /// linear in their number.
    #[must_use]
    pub fn estimated_len(&self) -> u64 {
        self.layer.estimated_len()
    }

    /// What it occupies in memory, in bytes, itself included.
    #[must_use]
    pub fn memory_usage(&self) -> usize {
        size_of::<Self>() + self.layer.heap_bytes()
    }

    /// Adds all items of another filter, which must have the same parameters.
    ///
    /// How many items the two have in common is not known, so [`len`](Self::len) is afterwards
    /// what the fill suggests, at least the larger of both and at most their sum.
    ///
    /// # Errors
    ///
    /// [`UnionError`] names a parameter in which the filters differ; nothing has changed then.
    pub fn union(&mut self, other: &BloomFilter) -> Result<(), UnionError> {
        if self.layout() != other.layout() {
            return Err(UnionError::Layout);
        }
        if self.key() != other.key() {
            return Err(UnionError::Key);
        }
        if self.bits() != other.bits() {
            return Err(UnionError::Bits);
        }
        if self.hashes() != other.hashes() {
            return Err(UnionError::Hashes);
        }
        if self.capacity() != other.capacity() {
            return Err(UnionError::Capacity);
        }
        if self.error_rate() != other.error_rate() {
            return Err(UnionError::ErrorRate);
        }
        let least = self.len().max(other.len());
        let most = self.len().saturating_add(other.len());
        self.layer.union_bits(&other.layer);
        self.layer
            .set_len(self.layer.estimated_len().clamp(least, most));
        self.layer.collapse_loaded();
        Ok(())
    }

    fn hasher(&self) -> Hasher {
        self.layer.hasher(HashWidth::Bits64)
    }

    #[inline]
    fn insert_pair(&mut self, pair: HashPair) -> bool {
        let new = !self.layer.contains(pair);
        if new {
            self.layer.insert(pair);
        }
        new
    }
}

impl<T: AsRef<[u8]>> Extend<T> for BloomFilter {
    /// [`insert`](BloomFilter::insert) for each item.
    fn extend<I: IntoIterator<Item = T>>(&mut self, items: I) {
        for item in items {
            self.insert(&item);
        }
    }
}

impl From<BloomFilter> for ScalableBloomFilter {
    /// A filter of that one layer, which does not grow.
    fn from(filter: BloomFilter) -> ScalableBloomFilter {
        let items = filter.len();
        ScalableBloomFilter::from_layers(vec![filter.layer], items, Options::modern(false), 0)
    }
}
