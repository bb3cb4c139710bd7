//! The parameters of a filter that forgets.

use super::layered::LayeredBuilder;
use crate::bloom::layered::LayeredFilter;
use crate::bloom::window::Span;
use crate::bloom::windowed::WindowedBloomFilter;
use crate::error::BuildError;
use crate::hash::Key;

/// Parameters of a new [`WindowedBloomFilter`].
///
/// ```
/// use everbloom::hash::Key;
/// use everbloom::{BuildError, Span, WindowedBloomFilter};
/// let builder = WindowedBloomFilter::builder().capacity(1_000_000).error_rate(0.001);
/// assert_eq!(builder.build()?.window().span, Span::Items);
/// assert_eq!(builder.generations(0).build(), Err(BuildError::Window));
/// assert!(builder.max_layer_bytes(1 << 10).build().is_err());
///
/// let builder = builder.span(Span::Ticks(60)).generations(6).starts_at(100);
/// assert_eq!(builder.build()?.window().next_generation(), Some(110));
/// assert_eq!(builder.key(Key::from_seed(7)).build(), builder.seed(7).build());
/// # Ok::<(), BuildError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[must_use = "a builder does nothing until build is called"]
pub struct WindowedBuilder {
    layers: LayeredBuilder,
    span: Span,
    generations: u32,
    starts_at: u64,
}

impl WindowedBloomFilter {
    /// Starts with a window of the last 100 items, in four generations, and an error rate of 0.01.
    /// [Example](WindowedBuilder).
    pub fn builder() -> WindowedBuilder {
        WindowedBuilder {
            layers: LayeredFilter::builder(),
            span: Span::Items,
            generations: Self::GENERATIONS,
            starts_at: 0,
        }
    }
}

impl WindowedBuilder {
    /// How many items the window holds, 100 by default.
    pub fn capacity(mut self, items: u64) -> Self {
        self.layers = self.layers.capacity(items);
        self
    }

    /// The error rate that all generations keep together, 0.01 by default. A rate above
    /// [`RATE_CAP`](crate::sizing::RATE_CAP) is lowered to it.
    pub fn error_rate(mut self, rate: f64) -> Self {
        self.layers = self.layers.error_rate(rate);
        self
    }

    /// What the window remembers, by default the last items.
    pub fn span(mut self, span: Span) -> Self {
        self.span = span;
        self
    }

    /// How many generations a window has, 4 by default, from 1 to 64. With more of them an item is
    /// forgotten sooner after its window, and a lookup takes longer. A window of fewer ticks or
    /// items has one for each. One that the generations do not divide may have more of them, so
    /// that an item stays at most a g-th part longer all the same, within a hundredth; or, where no
    /// number up to 64 does that, the number that comes nearest, which may be smaller.
    pub fn generations(mut self, generations: u32) -> Self {
        self.generations = generations;
        self
    }

    /// When the first generation of a window of ticks begins, 0 by default.
    pub fn starts_at(mut self, now: u64) -> Self {
        self.starts_at = now;
        self
    }

    /// The key of the hash; by default a random one.
    pub fn key(mut self, key: Key) -> Self {
        self.layers = self.layers.key(key);
        self
    }

    /// Derives the key from a seed: filters with the same seed and parameters are equal after the
    /// same items in the same order.
    pub fn seed(self, seed: u64) -> Self {
        self.key(Key::from_seed(seed))
    }

    /// The most bytes that the bits of the first generation may have; no limit by default.
    pub fn max_layer_bytes(mut self, bytes: u64) -> Self {
        self.layers = self.layers.max_layer_bytes(bytes);
        self
    }

    /// Makes the filter.
    ///
    /// # Errors
    ///
    /// [`BuildError`] says which parameter is out of range, or that there is no memory.
    pub fn build(self) -> Result<WindowedBloomFilter, BuildError> {
        let layers = self
            .layers
            .window(self.span, self.generations, self.starts_at);
        WindowedBloomFilter::try_from(layers.build()?).map_err(|_| BuildError::Window)
    }
}
