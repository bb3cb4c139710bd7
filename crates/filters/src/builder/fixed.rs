//! The parameters of a filter of fixed size.

use crate::error::BuildError;
#[cfg(feature = "std")]
use crate::error::or_panic;
use crate::fixed::BloomFilter;
use crate::hash::Key;
use crate::layer::Layer;
use crate::layout::Layout;
use crate::math::whole;
use crate::sizing::blocked::{self, BlockedSize};
use crate::sizing::{self, LayerSize, MAX_HASHES, Rounding, textbook};

/// Parameters of a new [`BloomFilter`].
///
/// | given | the rest follows |
/// |---|---|
/// | `capacity`, `error_rate` (0.01 unless given) | the fewest bits; or RedisBloom's, see below |
/// | `bits`, `hashes` | capacity for which the hash count is the best, error rate at it |
/// | `bits`, `hashes`, `capacity` | error rate at that capacity |
/// | `bits`, `capacity` | the best hash count, error rate at that capacity |
/// | `bits`, `error_rate` | capacity and hash count |
///
/// Bits are rounded up to a multiple of 64 in the classic layout, whose sizes are those of
/// RedisBloom's non-scaling filters, and of 512 in the blocked one. There, hashes are from
/// [`blocked::MIN_HASHES`] to [`blocked::MAX_HASHES`], and error rates at least
/// [`blocked::MIN_RATE`].
///
/// ```
/// use everbloom::hash::Key;
/// use everbloom::{BloomFilter, Layout};
/// let by_items = BloomFilter::builder().capacity(1000).error_rate(0.001).build()?;
/// assert_eq!((by_items.bits(), by_items.hashes()), (15872, 9));
/// let by_bits = BloomFilter::builder().bits(1 << 20).hashes(7).build()?;
/// assert_eq!(by_bits.capacity(), 103_831);
/// assert!(by_bits.error_rate() < 0.01);
/// let classic = BloomFilter::builder().capacity(1000).layout(Layout::Classic).build()?;
/// assert_eq!((classic.bits(), classic.hashes()), (9600, 7));
/// let keyed = BloomFilter::builder().capacity(1000).key(Key::from_seed(7)).build()?;
/// assert_eq!(keyed.key(), Some(Key::from_seed(7)));
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

impl BloomFilter {
    /// A filter for this many items and this error rate, in the blocked layout, with a random key.
    /// The error rate is the part of items never inserted for which the full filter answers `true`:
    /// 0.01 is one in a hundred.
    ///
    /// ```
    /// use everbloom::BloomFilter;
    /// let mut seen = BloomFilter::new(1_000_000, 0.001);
    /// assert!(seen.insert("a"));
    /// assert!(seen.contains("a"));
    /// ```
    ///
    /// # Panics
    ///
    /// When the capacity is 0, the error rate is not greater than 0 and less than 1, or there is no
    /// memory. [`builder`](Self::builder) returns these as errors.
    #[cfg(feature = "std")]
    #[must_use]
    #[track_caller]
    pub fn new(capacity: u64, error_rate: f64) -> BloomFilter {
        let built = Self::builder()
            .capacity(capacity)
            .error_rate(error_rate)
            .build();
        or_panic(built)
    }

    /// Starts without parameters; [`BloomBuilder`] says which ones make a filter.
    pub fn builder() -> BloomBuilder {
        BloomBuilder::default()
    }
}

impl BloomBuilder {
    /// Items the filter is made for. [Example](Self).
    pub fn capacity(mut self, items: u64) -> Self {
        self.capacity = Some(items);
        self
    }

    /// The error rate when it holds as many items as its capacity. Unlike that of a
    /// [`ScalableBloomFilter`](crate::ScalableBloomFilter) it is not capped. [Example](Self).
    pub fn error_rate(mut self, rate: f64) -> Self {
        self.error_rate = Some(rate);
        self
    }

    /// Length of the bit array in bits. [Example](Self).
    pub fn bits(mut self, bits: u64) -> Self {
        self.bits = Some(bits);
        self
    }

    /// Bits set by an item. [Example](Self).
    pub fn hashes(mut self, hashes: u32) -> Self {
        self.hashes = Some(hashes);
        self
    }

    /// Where the bits of an item lie: [`Layout::Blocked`] by default. [Example](Self).
    pub fn layout(mut self, layout: Layout) -> Self {
        self.layout = layout;
        self
    }

    /// The key of the blocked layout's hash; by default a random one. Filters with the same key can
    /// be united. [Example](Self).
    pub fn key(mut self, key: Key) -> Self {
        self.key = Some(key);
        self
    }

    /// Derives the key from a seed: filters with the same seed, parameters and items are equal.
    ///
    /// ```
    /// # use everbloom::BloomFilter;
    /// let builder = BloomFilter::builder().capacity(1000).seed(7);
    /// let (mut one, mut other) = (builder.build()?, builder.build()?);
    /// one.insert("a");
    /// other.insert("a");
    /// assert_eq!(one, other);
    /// # Ok::<(), everbloom::BuildError>(())
    /// ```
    pub fn seed(self, seed: u64) -> Self {
        self.key(Key::from_seed(seed))
    }

    /// The most bytes the bit array may have; no limit by default.
    ///
    /// ```
    /// # use everbloom::{BloomFilter, BuildError};
    /// let builder = BloomFilter::builder().capacity(1_000_000).max_bytes(1 << 20);
    /// assert_eq!(builder.build(), Err(BuildError::TooLarge { bytes: 1_242_816 }));
    /// ```
    pub fn max_bytes(mut self, bytes: u64) -> Self {
        self.max_bytes = Some(bytes);
        self
    }

    /// Makes the filter. [Example](Self).
    ///
    /// # Errors
    ///
    /// [`BuildError`] says which parameter is missing or out of range, or that there is no memory.
    pub fn build(self) -> Result<BloomFilter, BuildError> {
        self.check()?;
        let max_bytes = self.max_bytes.unwrap_or(u64::MAX);
        let layer = match self.layout.key(self.key)? {
            None => Layer::classic(&self.classic_size()?, max_bytes)?,
            Some(key) => Layer::blocked(&self.blocked_size()?, key, max_bytes)?,
        };
        Ok(BloomFilter::from_layer(layer))
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
                // At a low rate there may not be room for one item; the filter is then made for
                // one.
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
                // At a low rate there may not be room for one item; the filter is then made for
                // one.
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
