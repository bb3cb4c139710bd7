//! The parameters of a filter of fixed size.

use crate::bloom::fixed::BloomFilter;
use crate::error::{BuildError, first_broken};
use crate::hash::Key;
use crate::layer::Layer;
use crate::layer::kind::Kind;
use crate::layer::layout::Layout;
use crate::math::whole;
use crate::sizing::BlockedSize;
use crate::sizing::{LayerSize, Rounding, textbook};

/// The error rate where a capacity alone is given.
const ERROR_RATE: f64 = 0.01;

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
/// [`BlockedSize::MIN_HASHES`] to [`BlockedSize::MAX_HASHES`], and error rates at least
/// [`BlockedSize::MIN_RATE`].
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
    /// When the capacity is 0 or so large that its bits cannot be counted, the error rate is not
    /// less than 1 or too low for any filter (see
    /// [`MIN_RATE`](crate::sizing::BlockedSize::MIN_RATE)), or there is no memory.
    /// [`builder`](Self::builder) returns these as errors.
    #[cfg(feature = "std")]
    #[must_use]
    #[track_caller]
    pub fn new(capacity: u64, error_rate: f64) -> BloomFilter {
        let built = Self::builder()
            .capacity(capacity)
            .error_rate(error_rate)
            .build();
        crate::error::or_panic(built)
    }

    /// Starts without parameters; [`BloomBuilder`] says which ones make a filter.
    pub fn builder() -> BloomBuilder {
        BloomBuilder::default()
    }
}

impl BloomBuilder {
    /// Items the filter is made for.
    pub fn capacity(mut self, items: u64) -> Self {
        self.capacity = Some(items);
        self
    }

    /// The error rate when it holds as many items as its capacity. Unlike that of a
    /// [`ScalableBloomFilter`](crate::ScalableBloomFilter) it is not capped.
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

    /// Where the bits of an item lie: [`Layout::Blocked`] by default.
    pub fn layout(mut self, layout: Layout) -> Self {
        self.layout = layout;
        self
    }

    /// The key of the blocked layout's hash; by default a random one. Filters with the same key can
    /// be united.
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

    /// Makes the filter.
    ///
    /// # Errors
    ///
    /// [`BuildError`] says which parameter is missing or out of range, or that there is no memory.
    pub fn build(self) -> Result<BloomFilter, BuildError> {
        self.check()?;
        let max_bytes = self.max_bytes.unwrap_or(u64::MAX);
        let kind = Kind::of(self.layout.key(self.key)?, None);
        let layer = Layer::empty(&self.size()?, kind, max_bytes)?;
        Ok(BloomFilter { layer })
    }

    /// Whether each parameter is in its range.
    fn check(&self) -> Result<(), BuildError> {
        let rate = self.error_rate.unwrap_or(ERROR_RATE);
        let hashes = self.hashes.unwrap_or(1);
        first_broken([
            (rate > 0.0 && rate < 1.0, BuildError::ErrorRate),
            (self.capacity != Some(0), BuildError::Capacity),
            (self.bits != Some(0), BuildError::Bits),
            (
                (1..=LayerSize::MAX_HASHES).contains(&hashes),
                BuildError::Hashes,
            ),
        ])
    }

    /// The size of the layer: whole words, or whole blocks.
    fn size(&self) -> Result<LayerSize, BuildError> {
        let is_blocked = self.layout == Layout::Blocked;
        let of_capacity = |capacity, rate| match self.layout {
            // The rate of the blocked layout's formulas; below it, no filter keeps any.
            Layout::Classic if rate < BlockedSize::MIN_RATE => None,
            Layout::Classic => LayerSize::new(capacity, rate, Rounding::Words),
            Layout::Blocked => BlockedSize::new(capacity, rate).map(BlockedSize::as_layer),
        };
        let of_bits = |bits, hashes, capacity| match self.layout {
            Layout::Classic => LayerSize::from_bits(bits, hashes, capacity),
            Layout::Blocked => {
                BlockedSize::from_bits(bits, hashes, capacity).map(BlockedSize::as_layer)
            }
        };
        let unit = if is_blocked {
            BlockedSize::BLOCK_BITS
        } else {
            64
        };
        let whole_units = |bits: u64| bits.div_ceil(unit.into()).saturating_mul(unit.into());
        let size = match (self.bits, self.hashes, self.capacity, self.error_rate) {
            (None, None, Some(capacity), rate) => of_capacity(capacity, rate.unwrap_or(ERROR_RATE)),
            (Some(_), Some(hashes), ..)
                if is_blocked
                    && !(BlockedSize::MIN_HASHES..=BlockedSize::MAX_HASHES).contains(&hashes) =>
            {
                return Err(BuildError::Hashes);
            }
            (Some(bits), Some(hashes), capacity, None) => of_bits(bits, hashes, capacity),
            (Some(bits), None, Some(capacity), None) => {
                let hashes = match self.layout {
                    Layout::Classic => classic_hashes(whole_units(bits), capacity),
                    Layout::Blocked => BlockedSize::best_hashes(whole_units(bits), capacity),
                };
                of_bits(bits, hashes, Some(capacity))
            }
            (Some(bits), None, None, Some(rate)) => {
                let bits = whole_units(bits);
                let capacity = match self.layout {
                    Layout::Classic => LayerSize::max_capacity(bits, rate),
                    Layout::Blocked => BlockedSize::max_capacity(bits, rate),
                };
                // At a low rate there may not be room for one item; the filter is then made for
                // one.
                of_capacity(capacity.max(1), rate).map(|size| LayerSize {
                    bytes: size.bytes.max(bits / 8),
                    ..size
                })
            }
            (None, None, None, _) => return Err(BuildError::Capacity),
            (Some(_), None, None, None) => return Err(BuildError::Hashes),
            _ => return Err(BuildError::Conflict),
        };
        size.ok_or(BuildError::Unsizable)
    }
}

/// The best hash count of the classic layout.
fn classic_hashes(bits: u64, capacity: u64) -> u32 {
    let best = whole(textbook::hashes(bits as f64, capacity as f64) + 0.5);
    u32::try_from(best.max(1)).map_or(LayerSize::MAX_HASHES, |best| {
        best.min(LayerSize::MAX_HASHES)
    })
}
