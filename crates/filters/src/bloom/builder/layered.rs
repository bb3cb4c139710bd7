//! The parameters of a filter with layers.

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::bloom::layered::LayeredFilter;
use crate::bloom::options::Options;
use crate::bloom::window::{Generation, MAX_GENERATIONS, Span, Window};
use crate::error::BuildError;
use crate::hash::Key;
use crate::hash::valkey::ValkeyBloom;
use crate::layer::Layer;
use crate::layer::kind::Kind;
use crate::layer::layout::Layout;
use crate::sizing::BlockedSize;
use crate::sizing::{LayerSize, RATE_CAP};

/// Parameters of a new [`LayeredFilter`]: all that a filter with layers has.
///
/// ```
/// use everbloom::Layout;
/// use everbloom::Span;
/// use everbloom::host::LayeredFilter;
/// let builder = LayeredFilter::builder().error_rate(0.001).capacity(1_000_000);
/// assert_eq!(builder.build()?.layers()[0].hashes(), 11);
/// assert!(builder.max_layer_bytes(1 << 20).build().is_err());
/// assert!(builder.window(Span::Ticks(60), 4, 0).build()?.window().is_some());
/// let classic = LayeredFilter::builder().layout(Layout::Classic);
/// assert_eq!(classic.build()?.layers()[0].bits(), 1152);
/// # Ok::<(), everbloom::BuildError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[must_use = "a builder does nothing until build is called"]
pub struct LayeredBuilder {
    error_rate: f64,
    capacity: u64,
    expansion: u32,
    fixed: bool,
    max_layer_bytes: u64,
    layout: Layout,
    key: Option<Key>,
    valkey: Option<ValkeyBloom>,
    window: Option<(Span, u32, u64)>,
}

impl LayeredFilter {
    /// Starts with RedisBloom's defaults: error rate 0.01, capacity 100, expansion 2.
    /// [Example](LayeredBuilder).
    pub fn builder() -> LayeredBuilder {
        LayeredBuilder {
            error_rate: 0.01,
            capacity: 100,
            expansion: 2,
            fixed: false,
            max_layer_bytes: u64::MAX,
            layout: Layout::default(),
            key: None,
            valkey: None,
            window: None,
        }
    }
}

impl LayeredBuilder {
    /// The error rate, 0.01 by default. A rate above [`RATE_CAP`] is lowered to it.
    ///
    /// [`RATE_CAP`]: crate::sizing::RATE_CAP
    pub fn error_rate(mut self, rate: f64) -> Self {
        self.error_rate = rate;
        self
    }

    /// Items the first layer is made for, 100 by default.
    pub fn capacity(mut self, items: u64) -> Self {
        self.capacity = items;
        self
    }

    /// The growth factor from one layer's capacity to the next, 2 by default. 0 disables growth.
    pub fn expansion(mut self, factor: u32) -> Self {
        self.expansion = factor;
        self
    }

    /// Makes a filter that does not grow. It stores the expansion, which then has no effect.
    pub fn fixed(mut self) -> Self {
        self.fixed = true;
        self
    }

    /// Where the bits of an item lie: [`Layout::Blocked`] by default.
    pub fn layout(mut self, layout: Layout) -> Self {
        self.layout = layout;
        self
    }

    /// A filter as valkey-bloom makes it, with its hash and its sizes. It has the classic layout,
    /// whatever [`layout`](Self::layout) says, and no [`window`](Self::window).
    /// [Example](ValkeyBloom::FIXED_SEED).
    pub fn valkey(mut self, valkey: ValkeyBloom) -> Self {
        self.valkey = Some(valkey);
        self
    }

    /// The key of the blocked layout's hash; by default a random one.
    pub fn key(mut self, key: Key) -> Self {
        self.key = Some(key);
        self
    }

    /// Derives the key from a seed: filters with the same seed and parameters are equal after the
    /// same items in the same order.
    pub fn seed(self, seed: u64) -> Self {
        self.key(Key::from_seed(seed))
    }

    /// The most bytes the bit array may have; no limit by default.
    pub fn max_layer_bytes(mut self, bytes: u64) -> Self {
        self.max_layer_bytes = bytes;
        self
    }

    /// Makes a filter that forgets: of so many generations, the first of which begins now. The
    /// capacity is how many items the window holds. [Example](crate::WindowedBloomFilter).
    pub fn window(mut self, span: Span, generations: u32, now: u64) -> Self {
        self.window = Some((span, generations, now));
        self
    }

    /// Makes the filter.
    ///
    /// # Errors
    ///
    /// [`BuildError`] says which parameter is out of range, or that there is no memory.
    pub fn build(self) -> Result<LayeredFilter, BuildError> {
        if !(self.error_rate > 0.0 && self.error_rate < 1.0) {
            return Err(BuildError::ErrorRate);
        }
        if self.capacity == 0 {
            return Err(BuildError::Capacity);
        }
        let scaling = !self.fixed && self.expansion > 0;
        let window = self.window_of_one()?;
        if self.valkey.is_some_and(|valkey| !valkey.tightens()) {
            return Err(BuildError::ErrorRate);
        }
        let kind = match self.valkey {
            Some(valkey) => Kind::Valkey(valkey),
            None => Kind::of(self.layout.key(self.key)?, None),
        };
        let (capacity, rate) = (self.capacity, self.error_rate);
        let size = match (kind, &window) {
            (Kind::Valkey(_), _) => ValkeyBloom::first_size(capacity, rate),
            (_, Some(window)) => window.size(0).map(BlockedSize::as_layer),
            (Kind::Classic, None) if scaling => LayerSize::first(capacity, rate),
            (Kind::Classic, None) => LayerSize::only(capacity, rate),
            (Kind::Blocked(_), None) => {
                let size = match scaling {
                    true => BlockedSize::first(capacity, rate),
                    false => BlockedSize::only(capacity, rate),
                };
                size.map(BlockedSize::as_layer)
            }
        };
        let size = size.ok_or(BuildError::Unsizable)?;
        let layer = Layer::empty(&size, kind, self.max_layer_bytes)?;
        let options = match self.valkey {
            Some(_) => Options::of_valkey(scaling),
            None => Options::modern(scaling).with_window(window.is_some()),
        };
        let window = window.map(Box::new);
        let (layers, expansion) = ([layer], self.expansion);
        Ok(LayeredFilter::from_layers(
            layers, 0, options, expansion, window,
        ))
    }

    /// The window, if there is one, with its first generation.
    fn window_of_one(&self) -> Result<Option<Window>, BuildError> {
        let Some((span, generations, now)) = self.window else {
            return Ok(None);
        };
        let began = match span {
            Span::Items => 0,
            Span::Ticks(_) => now,
        };
        let is_known = (1..=MAX_GENERATIONS).contains(&generations);
        let window = Window {
            span,
            generations: match is_known {
                true => span.generations(self.capacity, generations),
                false => generations,
            },
            capacity: self.capacity,
            error_rate: self.error_rate.min(RATE_CAP),
            dropped: 0,
            kept: Vec::from([Generation { layers: 1, began }]),
        };
        let is_possible = self.layout == Layout::Blocked && self.valkey.is_none();
        let is_possible = is_possible && window.is_valid(1);
        is_possible
            .then_some(Some(window))
            .ok_or(BuildError::Window)
    }
}
