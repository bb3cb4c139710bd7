//! The parameters of a filter that grows.

use super::layered::LayeredBuilder;
use crate::bloom::layered::LayeredFilter;
use crate::bloom::scalable::ScalableBloomFilter;
use crate::error::BuildError;
use crate::hash::Key;
use crate::layer::layout::Layout;

/// Parameters of a new [`ScalableBloomFilter`].
///
/// ```
/// use everbloom::hash::Key;
/// use everbloom::{BuildError, Layout, ScalableBloomFilter};
/// let builder = ScalableBloomFilter::builder().error_rate(0.001).capacity(1_000_000);
/// assert_eq!(builder.build()?.stats().hashes, 11);
/// assert_eq!(builder.capacity(0).build(), Err(BuildError::Capacity));
/// assert!(builder.max_layer_bytes(1 << 20).build().is_err());
///
/// let builder = ScalableBloomFilter::builder().expansion(4);
/// assert_eq!(builder.build()?.expansion(), 4);
/// assert!(builder.fixed().build()?.is_fixed());
/// assert_eq!(builder.key(Key::from_seed(7)).build(), builder.seed(7).build());
/// assert_eq!(builder.layout(Layout::Classic).build()?.stats().bits, 1152);
/// # Ok::<(), BuildError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[must_use = "a builder does nothing until build is called"]
pub struct ScalableBuilder(LayeredBuilder);

impl ScalableBloomFilter {
    /// Starts with RedisBloom's defaults: error rate 0.01, capacity 100, expansion 2.
    /// [Example](ScalableBuilder).
    pub fn builder() -> ScalableBuilder {
        ScalableBuilder(LayeredFilter::builder())
    }
}

impl ScalableBuilder {
    /// The error rate, 0.01 by default. A rate above [`RATE_CAP`] is lowered to it.
    ///
    /// [`RATE_CAP`]: crate::sizing::RATE_CAP
    pub fn error_rate(self, rate: f64) -> Self {
        Self(self.0.error_rate(rate))
    }

    /// Items the first layer is made for, 100 by default.
    pub fn capacity(self, items: u64) -> Self {
        Self(self.0.capacity(items))
    }

    /// The growth factor from one layer's capacity to the next, 2 by default. 0 disables growth.
    pub fn expansion(self, factor: u32) -> Self {
        Self(self.0.expansion(factor))
    }

    /// Makes a filter that does not grow. It stores the expansion, which then has no effect.
    pub fn fixed(self) -> Self {
        Self(self.0.fixed())
    }

    /// Where the bits of an item lie: [`Layout::Blocked`] by default.
    pub fn layout(self, layout: Layout) -> Self {
        Self(self.0.layout(layout))
    }

    /// The key of the blocked layout's hash; by default a random one.
    pub fn key(self, key: Key) -> Self {
        Self(self.0.key(key))
    }

    /// Derives the key from a seed: filters with the same seed and parameters are equal after the
    /// same items in the same order.
    pub fn seed(self, seed: u64) -> Self {
        Self(self.0.seed(seed))
    }

    /// The most bytes the bit array may have; no limit by default.
    pub fn max_layer_bytes(self, bytes: u64) -> Self {
        Self(self.0.max_layer_bytes(bytes))
    }

    /// Makes the filter.
    ///
    /// # Errors
    ///
    /// [`BuildError`] says which parameter is out of range, or that there is no memory.
    pub fn build(self) -> Result<ScalableBloomFilter, BuildError> {
        // There is no window to drop.
        Ok(ScalableBloomFilter(self.0.build()?.map_window(drop)))
    }
}
