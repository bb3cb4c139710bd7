//! A filter as plain named parts, and back: the one gate for filters from outside.
//!
//! Every loader (a dump, an RDB file, [`from_bytes`](crate::ScalableBloomFilter)) ends in
//! [`ScalableBloomFilter::from_parts`], which checks all parts before it allocates anything.

use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::blocked::BlockedLayer;
use crate::classic::{BuildError, ClassicLayer};
use crate::hash::Key;
use crate::layer::{Layer, Layout};
use crate::options::Options;
use crate::scalable::ScalableBloomFilter;
use crate::sizing::blocked::{self, BlockedSize};
use crate::sizing::{self, LayerSize};

/// Everything about a filter but its bits.
#[derive(Clone, Debug, PartialEq)]
pub struct FilterParts {
    /// Items inserted.
    pub items: u64,
    /// Option bits, see [`Options`].
    pub options: u32,
    /// Expansion.
    pub growth: u32,
    /// The key of a filter in the blocked layout; one in the classic layout has none.
    pub key: Option<Key>,
    /// Oldest first.
    pub layers: Vec<LayerParts>,
}

/// Everything about a layer but its bits.
#[derive(Clone, Copy, Debug, PartialEq)]
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

/// Where parts come from, which decides what is checked of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Check {
    /// The header of a dump: everything.
    #[default]
    DumpHeader,
    /// A value of an RDB file: everything but the sum of the items and unknown option bits,
    /// which RedisBloom does not check there.
    RdbValue,
}

/// Why parts do not make a filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PartsError {
    /// There are no layers.
    #[error("a filter has at least one layer")]
    NoLayers,
    /// An option bit without a meaning is set, or one that the blocked layout does not have.
    #[error("unknown option bits")]
    Options,
    /// The filter's item count is not the sum of the layers'.
    #[error("the item count is not the sum of the layers' counts")]
    Items,
    /// The error rate is not strictly between 0 and 1.
    #[error("layer {layer}: the error rate must be greater than 0 and less than 1")]
    ErrorRate {
        /// Which layer, from 0.
        layer: usize,
    },
    /// Bytes, bits and the modulus do not fit each other.
    #[error("layer {layer}: bytes, bits and modulus do not agree")]
    Bits {
        /// Which layer, from 0.
        layer: usize,
    },
    /// The hash count does not follow from the bits per item, or those are no sensible number.
    #[error("layer {layer}: the hash count does not follow from the bits per item")]
    Hashes {
        /// Which layer, from 0.
        layer: usize,
    },
    /// A layer in the blocked layout has capacity 0.
    #[error("layer {layer}: the capacity is 0")]
    Capacity {
        /// Which layer, from 0.
        layer: usize,
    },
    /// The bit arrays together are over the limit.
    #[error("the bit arrays are larger than {limit} bytes")]
    TooLarge {
        /// The limit.
        limit: u64,
    },
    /// The allocator refused.
    #[error("no memory for the bit arrays")]
    OutOfMemory,
}

/// Why a chunk of bits was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChunkError {
    /// It starts outside the bit arrays.
    #[error("the chunk starts outside the filter")]
    NoLayer,
    /// It runs past the end of its layer.
    #[error("the chunk runs past the end of its layer")]
    TooLong,
}

impl LayerParts {
    fn size(&self) -> LayerSize {
        LayerSize {
            capacity: self.capacity,
            error_rate: self.error_rate,
            bits_per_entry: self.bits_per_entry,
            hashes: self.hashes,
            bytes: self.bytes,
            log2_bits: self.log2_bits,
        }
    }

    fn blocked_size(&self) -> BlockedSize {
        BlockedSize {
            capacity: self.capacity,
            error_rate: self.error_rate,
            hashes: self.hashes,
            bytes: self.bytes,
        }
    }

    /// Checks everything that the parts of a layer in the blocked layout must satisfy; `layer` is
    /// its number, for the error.
    ///
    /// # Errors
    ///
    /// The first rule that is broken.
    pub fn validate_blocked(&self, layer: usize) -> Result<(), PartsError> {
        // Written so that NaN fails.
        if !(self.error_rate > 0.0 && self.error_rate < 1.0) {
            return Err(PartsError::ErrorRate { layer });
        }
        let block = u64::from(blocked::BLOCK_BITS / 8);
        if self.bytes == 0
            || !self.bytes.is_multiple_of(block)
            || self.bytes.checked_mul(8) != Some(self.bits)
            || self.log2_bits != 0
        {
            return Err(PartsError::Bits { layer });
        }
        if !(blocked::MIN_HASHES..=blocked::MAX_HASHES).contains(&self.hashes) {
            return Err(PartsError::Hashes { layer });
        }
        if self.capacity == 0 {
            return Err(PartsError::Capacity { layer });
        }
        Ok(())
    }

    /// Checks everything that the parts of a layer in the classic layout must satisfy; `layer` is
    /// its number, for the error.
    ///
    /// # Errors
    ///
    /// The first rule that is broken.
    pub fn validate(&self, layer: usize) -> Result<(), PartsError> {
        // Written so that NaN fails.
        if !(self.error_rate > 0.0 && self.error_rate < 1.0) {
            return Err(PartsError::ErrorRate { layer });
        }
        let covers_modulus = self.log2_bits == 0
            || 1_u64
                .checked_shl(u32::from(self.log2_bits))
                .is_some_and(|modulus| modulus <= self.bits);
        if self.bits == 0 || self.bytes.checked_mul(8) != Some(self.bits) || !covers_modulus {
            return Err(PartsError::Bits { layer });
        }
        // A negative zero in the ceiling of a negative number would pass as 0 hashes.
        let expected = sizing::hashes(self.bits_per_entry);
        if self.bits_per_entry < 0.0 || expected != Some(self.hashes) {
            return Err(PartsError::Hashes { layer });
        }
        Ok(())
    }
}

impl FilterParts {
    /// The layout, which is the blocked one when there is a key.
    #[must_use]
    pub fn layout(&self) -> Layout {
        if self.key.is_some() {
            Layout::Blocked
        } else {
            Layout::Classic
        }
    }

    /// Checks everything that a filter's parts must satisfy; allocates nothing.
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
                Layout::Classic => layer.validate(index)?,
                Layout::Blocked => layer.validate_blocked(index)?,
            }
        }
        let sum = |field: fn(&LayerParts) -> u64| {
            self.layers
                .iter()
                .try_fold(0_u64, |sum, layer| sum.checked_add(field(layer)))
        };
        // Nobody else writes the blocked layout, so that nothing odd in it is let pass.
        let blocked = self.layout() == Layout::Blocked;
        if blocked && self.options & !Options::NO_SCALING != Options::modern(true).bits() {
            return Err(PartsError::Options);
        }
        if check == Check::DumpHeader || blocked {
            if self.options & !Options::KNOWN != 0 {
                return Err(PartsError::Options);
            }
            if sum(|layer| layer.items) != Some(self.items) {
                return Err(PartsError::Items);
            }
        }
        match sum(|layer| layer.bytes) {
            Some(bytes) if bytes <= limit => Ok(()),
            _ => Err(PartsError::TooLarge { limit }),
        }
    }
}

impl ScalableBloomFilter {
    /// Everything about the filter but its bits.
    #[must_use]
    pub fn parts(&self) -> FilterParts {
        FilterParts {
            items: self.len(),
            options: self.options().bits(),
            growth: self.expansion(),
            key: self.key(),
            layers: self.layers().iter().map(Layer::parts).collect(),
        }
    }

    /// A filter of these parts, all its bits 0; [`load_chunk`](Self::load_chunk) brings the bits.
    /// `limit` is the most bytes all bit arrays may have together.
    ///
    /// # Errors
    ///
    /// The first rule that the parts break, or that memory is missing.
    pub fn from_parts(parts: &FilterParts, limit: u64) -> Result<Self, PartsError> {
        Self::from_parts_checked(parts, limit, Check::DumpHeader)
    }

    /// As [`from_parts`](Self::from_parts), with the checks for parts of that origin.
    ///
    /// # Errors
    ///
    /// The first rule that the parts break, or that memory is missing.
    pub fn from_parts_checked(
        parts: &FilterParts,
        limit: u64,
        check: Check,
    ) -> Result<Self, PartsError> {
        parts.validate(limit, check)?;
        Self::assembled(parts, |layer| empty_layer(layer, parts.key, limit))
    }

    /// As [`from_parts_checked`](Self::from_parts_checked), with the bit arrays, one for each
    /// layer. In the classic layout a vector without spare capacity becomes part of the filter
    /// without being copied.
    ///
    /// # Errors
    ///
    /// The first rule that the parts break; a bit array that is missing or has another length than
    /// its layer says breaks [`PartsError::Bits`].
    pub fn from_parts_and_bits(
        parts: &FilterParts,
        bits: Vec<Vec<u8>>,
        limit: u64,
        check: Check,
    ) -> Result<Self, PartsError> {
        parts.validate(limit, check)?;
        let mut bits = bits.into_iter();
        Self::assembled(parts, |layer| {
            let bits = bits.next().ok_or(None)?;
            if parts.key.is_none() {
                let layer = ClassicLayer::with_bits(&layer.size(), bits).map_err(|_| None)?;
                return Ok(Layer::Classic(layer));
            }
            // Blocks have an alignment that a vector of bytes does not have.
            if bits.len() as u64 != layer.bytes {
                return Err(None);
            }
            let mut layer = empty_layer(layer, parts.key, limit)?;
            layer.as_bytes_mut().copy_from_slice(&bits);
            Ok(layer)
        })
    }

    /// `make` makes each layer without its item count; without an error of its own, that is an
    /// error in the layer's bits.
    fn assembled(
        parts: &FilterParts,
        mut make: impl FnMut(&LayerParts) -> Result<Layer, Option<PartsError>>,
    ) -> Result<Self, PartsError> {
        let mut layers = Vec::new();
        layers
            .try_reserve_exact(parts.layers.len())
            .map_err(|_| PartsError::OutOfMemory)?;
        for (index, part) in parts.layers.iter().enumerate() {
            let layer = make(part);
            let mut layer =
                layer.map_err(|error| error.unwrap_or(PartsError::Bits { layer: index }))?;
            layer.set_len(part.items);
            layers.push(layer);
        }
        Ok(Self::from_layers(
            layers,
            parts.items,
            Options::new(parts.options),
            parts.growth,
        ))
    }

    /// Bytes of all bit arrays laid end to end, oldest layer first.
    #[must_use]
    pub fn stream_len(&self) -> u64 {
        self.layers().iter().map(Layer::bytes).sum()
    }

    /// The bytes of that stream from `offset` to the end of that layer, at most `max`; `None` at
    /// and past the end.
    #[must_use]
    pub fn stream_chunk(&self, offset: u64, max: usize) -> Option<Cow<'_, [u8]>> {
        let mut offset = offset;
        for layer in self.layers() {
            if offset < layer.bytes() {
                let start = usize::try_from(offset).ok()?;
                return Some(match layer.as_bytes() {
                    Cow::Borrowed(bytes) => Cow::Borrowed(at_most(max, bytes.get(start..)?)),
                    Cow::Owned(bytes) => at_most(max, bytes.get(start..)?).to_vec().into(),
                });
            }
            offset -= layer.bytes();
        }
        None
    }

    /// Writes bytes of that stream at `offset`; they must lie within one layer.
    ///
    /// # Errors
    ///
    /// [`ChunkError`] when they do not; nothing has changed then.
    pub fn load_chunk(&mut self, offset: u64, data: &[u8]) -> Result<(), ChunkError> {
        let mut offset = offset;
        let (layers, mut capture) = self.layers_and_capture();
        for (number, layer) in layers.iter_mut().enumerate() {
            if offset < layer.bytes() {
                let start = usize::try_from(offset).map_err(|_| ChunkError::NoLayer)?;
                let end = start.checked_add(data.len()).ok_or(ChunkError::TooLong)?;
                if end as u64 > layer.bytes() {
                    return Err(ChunkError::TooLong);
                }
                if let Some(capture) = &mut capture {
                    capture.note_range(&layer.as_bytes(), number, offset, data.len() as u64);
                }
                let place = layer
                    .as_bytes_mut()
                    .get_mut(start..end)
                    .ok_or(ChunkError::TooLong)?;
                place.copy_from_slice(data);
                layer.shrink();
                return Ok(());
            }
            offset -= layer.bytes();
        }
        Err(ChunkError::NoLayer)
    }
}

fn at_most(max: usize, bytes: &[u8]) -> &[u8] {
    bytes.get(..max).unwrap_or(bytes)
}

/// A layer of these parts, which are valid, all its bits 0. Without an error of its own, its bits
/// are wrong.
fn empty_layer(
    parts: &LayerParts,
    key: Option<Key>,
    limit: u64,
) -> Result<Layer, Option<PartsError>> {
    let layer = match key {
        None => ClassicLayer::new(&parts.size(), limit).map(Layer::Classic),
        Some(key) => BlockedLayer::new(&parts.blocked_size(), key, limit)
            .map(|layer| Layer::Blocked(Box::new(layer))),
    };
    layer.map_err(|error| match error {
        BuildError::OutOfMemory { .. } => Some(PartsError::OutOfMemory),
        BuildError::TooLarge { .. } => Some(PartsError::TooLarge { limit }),
        _ => None,
    })
}

impl Layer {
    /// Everything about the layer but its bits.
    #[must_use]
    pub fn parts(&self) -> LayerParts {
        LayerParts {
            bytes: self.bytes(),
            bits: self.bits(),
            items: self.len(),
            error_rate: self.error_rate(),
            bits_per_entry: self.bits_per_entry(),
            hashes: self.hashes(),
            capacity: self.capacity(),
            log2_bits: self.log2_bits(),
        }
    }
}
