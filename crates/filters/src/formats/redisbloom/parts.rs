//! Everything about a filter except its bits, and the checks of these parts.

use alloc::vec::Vec;

use crate::bloom::options::Options;
use crate::bloom::window::Window;
use crate::error::first_broken;
use crate::hash::Key;
use crate::hash::valkey::ValkeyBloom;
use crate::layer::kind::Kind;
use crate::layer::layout::Layout;
use crate::sizing::{BlockedSize, LayerSize};

/// Everything about a filter except its bits.
///
/// ```
/// use everbloom::Layout;
/// use everbloom::host::LayeredFilter;
/// let parts = LayeredFilter::builder().layout(Layout::Classic).build()?.parts();
/// assert_eq!((parts.layout(), parts.options, parts.layers.len()), (Layout::Classic, 5, 1));
/// assert_eq!((parts.layers[0].bits, parts.layers[0].hashes), (1152, 8));
/// # Ok::<(), everbloom::BuildError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FilterParts {
    /// Items inserted.
    pub items: u64,
    /// Option bits, see [`Options`].
    pub options: u32,
    /// Expansion.
    pub expansion: u32,
    /// The key of a filter in the blocked layout; one in the classic layout has none.
    pub key: Option<Key>,
    /// What only a filter of valkey-bloom has, in the classic layout.
    pub valkey: Option<ValkeyBloom>,
    /// The window of a filter that forgets, in the blocked layout only.
    pub window: Option<Window>,
    /// Oldest first.
    pub layers: Vec<LayerParts>,
}

/// Everything about a layer except its bits. [Example](FilterParts).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LayerParts {
    /// Length of the bit array in bytes.
    pub bytes: u64,
    /// Length of the bit array in bits.
    pub bits: u64,
    /// Items in this layer.
    pub items: u64,
    /// Error rate of this layer.
    pub error_rate: f64,
    /// Bits per item. In the blocked layout it follows from the rest, and is not read.
    pub bits_per_entry: f64,
    /// Bits set by an item.
    pub hashes: u32,
    /// Items the layer is made for.
    pub capacity: u64,
    /// Logarithm of the modulus, 0 when that is `bits`.
    pub log2_bits: u8,
}

/// The source of parts, which determines the checks. [Example](FilterParts::validate).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Check {
    /// The header of a dump: everything.
    #[default]
    DumpHeader,
    /// A value of an RDB file: everything but the sum of the items and unknown option bits,
    /// which RedisBloom does not check there.
    RdbValue,
}

/// Why parts do not make a filter. [Example](FilterParts::validate).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PartsError {
    /// There are no layers.
    NoLayers,
    /// An option bit without a meaning is set, or one that the blocked layout does not have.
    Options,
    /// The filter's item count is not the sum of the layers'.
    Items,
    /// The error rate is not strictly between 0 and 1.
    ErrorRate {
        /// Which layer, from 0.
        layer: usize,
    },
    /// Bytes, bits and the modulus do not fit each other.
    Bits {
        /// Which layer, from 0.
        layer: usize,
    },
    /// The hash count does not follow from the bits per item, or those are no sensible number.
    Hashes {
        /// Which layer, from 0.
        layer: usize,
    },
    /// A layer in the blocked layout has capacity 0.
    Capacity {
        /// Which layer, from 0.
        layer: usize,
    },
    /// The window does not fit the layers, or one of its numbers is out of range.
    Window,
    /// The bit arrays together, or those of a window's next generation, are over the limit.
    TooLarge {
        /// The limit.
        limit: u64,
    },
    /// The allocator refused.
    OutOfMemory,
}

messages! {
    PartsError {
        NoLayers => "a filter has at least one layer";
        Options => "unknown option bits";
        Items => "the item count is not the sum of the layers' counts";
        ErrorRate { layer } =>
            "layer {layer}: the error rate must be greater than 0 and less than 1";
        Bits { layer } => "layer {layer}: bytes, bits and modulus do not agree";
        Hashes { layer } => "layer {layer}: the hash count does not follow from the bits per item";
        Capacity { layer } => "layer {layer}: the capacity is 0";
        Window => "the window does not fit the layers";
        TooLarge { limit } => "the bit arrays are larger than {limit} bytes";
        OutOfMemory => "no memory for the bit arrays";
    }
}

/// Why a chunk of bits was not taken.
///
/// ```
/// use everbloom::host::LayeredFilter;
/// use everbloom::redisbloom::ChunkError;
/// let mut filter = LayeredFilter::builder().build()?;
/// let end = filter.stream_len();
/// assert_eq!(filter.stream_start(), 0);
/// assert_eq!(filter.load_chunk(end, &[1]), Err(ChunkError::NoLayer));
/// assert_eq!(filter.load_chunk(end - 1, &[1, 2]), Err(ChunkError::TooLong));
/// # Ok::<(), everbloom::BuildError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChunkError {
    /// It starts outside the bit arrays.
    NoLayer,
    /// It runs past the end of its layer.
    TooLong,
}

messages! {
    ChunkError {
        NoLayer => "the chunk starts outside the filter";
        TooLong => "the chunk runs past the end of its layer";
    }
}

/// The number of the array that holds a byte, and the byte's position in it. The arrays have these
/// lengths and lie end to end.
pub(super) fn locate(lengths: impl Iterator<Item = u64>, offset: u64) -> Option<(usize, usize)> {
    let mut offset = offset;
    for (number, len) in lengths.enumerate() {
        if offset < len {
            return Some((number, usize::try_from(offset).ok()?));
        }
        offset -= len;
    }
    None
}

impl LayerParts {
    pub(crate) fn size(&self) -> LayerSize {
        LayerSize {
            capacity: self.capacity,
            error_rate: self.error_rate,
            bits_per_entry: self.bits_per_entry,
            hashes: self.hashes,
            bytes: self.bytes,
            log2_bits: self.log2_bits,
        }
    }

    /// Checks everything that the parts of a layer in the blocked layout must satisfy; `layer` is
    /// its number, for the error. [Example](FilterParts::validate).
    ///
    /// # Errors
    ///
    /// The first rule that is broken.
    pub fn validate_blocked(&self, layer: usize) -> Result<(), PartsError> {
        let bits = self.bits.is_multiple_of(BlockedSize::BLOCK_BITS.into()) && self.log2_bits == 0;
        let hashes = (BlockedSize::MIN_HASHES..=BlockedSize::MAX_HASHES).contains(&self.hashes);
        self.check(layer, bits, hashes, self.capacity > 0)
    }

    /// Checks everything that the parts of a layer of valkey-bloom must satisfy.
    fn validate_valkey(&self, layer: usize) -> Result<(), PartsError> {
        let hashes = (1..=LayerSize::MAX_HASHES).contains(&self.hashes);
        self.check(layer, self.log2_bits == 0, hashes, self.capacity > 0)
    }

    /// Checks everything that the parts of a layer in the classic layout must satisfy; `layer` is
    /// its number, for the error. [Example](FilterParts::validate).
    ///
    /// # Errors
    ///
    /// The first rule that is broken.
    pub fn validate(&self, layer: usize) -> Result<(), PartsError> {
        let modulus = 1_u64.checked_shl(self.log2_bits.into());
        let covers_modulus = modulus.is_some_and(|modulus| modulus <= self.bits);
        // A negative zero in the ceiling of a negative number would pass as 0 hashes.
        let hashes = self.bits_per_entry >= 0.0
            && LayerSize::hashes_of(self.bits_per_entry) == Some(self.hashes);
        self.check(layer, self.log2_bits == 0 || covers_modulus, hashes, true)
    }

    /// Checks what the layouts have in common, and the rules that they have of their own.
    fn check(
        &self,
        layer: usize,
        bits: bool,
        hashes: bool,
        capacity: bool,
    ) -> Result<(), PartsError> {
        // Written so that NaN fails.
        let is_rate = self.error_rate > 0.0 && self.error_rate < 1.0;
        let are_bits = self.bits > 0 && self.bytes.checked_mul(8) == Some(self.bits);
        first_broken([
            (is_rate, PartsError::ErrorRate { layer }),
            (are_bits && bits, PartsError::Bits { layer }),
            (hashes, PartsError::Hashes { layer }),
            (capacity, PartsError::Capacity { layer }),
        ])
    }
}

/// Checks the window of so many layers. It must be able to begin generations, because a filter in
/// which that fails takes no items any more. The limit is for its next generation, too: otherwise
/// a header of a few bytes would be the reason for a layer of any size.
fn validate_window(window: &Window, layers: usize, limit: u64) -> Result<(), PartsError> {
    first_broken([(window.is_valid(layers), PartsError::Window)])?;
    let next = window.size(0).ok_or(PartsError::Window)?;
    first_broken([(next.bytes <= limit, PartsError::TooLarge { limit })])
}

impl FilterParts {
    /// The number of the first byte of the bit arrays in a dump: 0, or as many bytes as a window
    /// has dropped. [Example](ChunkError).
    #[must_use]
    pub fn stream_start(&self) -> u64 {
        self.window.as_ref().map_or(0, |window| window.dropped)
    }

    pub(crate) fn kind(&self) -> Kind {
        Kind::of(self.key, self.valkey)
    }

    /// The layout, which is the blocked one when there is a key.
    #[must_use]
    pub fn layout(&self) -> Layout {
        self.key.map_or(Layout::Classic, |_| Layout::Blocked)
    }

    /// Checks everything that a filter's parts must satisfy; allocates nothing.
    ///
    /// ```
    /// use everbloom::redisbloom::{Check, PartsError};
    /// use everbloom::Layout;
    /// use everbloom::host::LayeredFilter;
    /// let mut parts = LayeredFilter::builder().layout(Layout::Classic).build()?.parts();
    /// parts.items = 5;
    /// assert_eq!(parts.validate(1 << 20, Check::RdbValue), Ok(()));
    /// assert_eq!(parts.validate(1 << 20, Check::DumpHeader), Err(PartsError::Items));
    /// parts.layers[0].hashes = 3;
    /// assert_eq!(parts.layers[0].validate(0), Err(PartsError::Hashes { layer: 0 }));
    /// assert_eq!(parts.layers[0].validate_blocked(0), Err(PartsError::Bits { layer: 0 }));
    /// # Ok::<(), everbloom::BuildError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The first rule that is broken.
    pub fn validate(&self, limit: u64, check: Check) -> Result<(), PartsError> {
        if self.layers.is_empty() {
            return Err(PartsError::NoLayers);
        }
        for (index, layer) in self.layers.iter().enumerate() {
            match self.layout() {
                Layout::Classic if self.valkey.is_some() => layer.validate_valkey(index)?,
                Layout::Classic => layer.validate(index)?,
                Layout::Blocked => layer.validate_blocked(index)?,
            }
        }
        let sum = |field: fn(&LayerParts) -> u64| {
            self.layers
                .iter()
                .try_fold(0_u64, |sum, layer| sum.checked_add(field(layer)))
        };
        // RedisBloom writes neither of these, so every unusual value is refused.
        let blocked = self.layout() == Layout::Blocked;
        let is_ours = blocked || self.valkey.is_some();
        let own = match self.valkey {
            Some(_) => Options::VALKEY,
            None => Options::WINDOW,
        };
        let free = Options::NO_SCALING | own;
        let options = match is_ours {
            true => self.options & !free == Options::modern(true).bits(),
            false => check == Check::RdbValue || self.options & !Options::KNOWN == 0,
        };
        let has = |option| Options(self.options).has(option);
        let is_valkey =
            |valkey: &ValkeyBloom| !blocked && valkey.tightens() && has(Options::VALKEY);
        let valkey = self.valkey.as_ref().is_none_or(is_valkey);
        let window = self.window.is_some() == (blocked && has(Options::WINDOW));
        first_broken([(options && valkey && window, PartsError::Options)])?;
        if let Some(window) = &self.window {
            // Values of windows are checked as headers are. What else is loose are our own bytes,
            // whose limit is their length. That says nothing of layers to come.
            let limit = match check {
                Check::DumpHeader => limit,
                Check::RdbValue => u64::MAX,
            };
            validate_window(window, self.layers.len(), limit)?;
        }
        let is_loose = check == Check::RdbValue && !is_ours;
        let items = is_loose || sum(|layer| layer.items) == Some(self.items);
        let fits = sum(|layer| layer.bytes).is_some_and(|bytes| bytes <= limit);
        first_broken([
            (items, PartsError::Items),
            (fits, PartsError::TooLarge { limit }),
        ])
    }
}
