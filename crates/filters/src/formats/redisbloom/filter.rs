//! Splitting a filter into parts, and rebuilding it.

use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::vec::Vec;

use super::parts::{Check, ChunkError, FilterParts, LayerParts, PartsError, locate};
use crate::bits::pages;
use crate::bloom::layered::LayeredFilter;
use crate::bloom::options::Options;
use crate::bloom::window::MaybeWindow;
use crate::error::BuildError;
use crate::layer::Layer;

impl LayeredFilter {
    /// A filter of these parts, all its bits 0; [`load_chunk`](Self::load_chunk) loads the bits.
    /// `limit` is the most bytes all bit arrays may have together. [Example](crate::redisbloom).
    ///
    /// # Errors
    ///
    /// The first rule that the parts break, or that there is no memory.
    pub fn from_parts(parts: &FilterParts, limit: u64) -> Result<Self, PartsError> {
        Self::from_parts_checked(parts, limit, Check::DumpHeader)
    }

    /// As [`from_parts`](Self::from_parts), with the checks for this origin.
    /// [Example](FilterParts::validate).
    ///
    /// # Errors
    ///
    /// The first rule that the parts break, or that there is no memory.
    pub fn from_parts_checked(
        parts: &FilterParts,
        limit: u64,
        check: Check,
    ) -> Result<Self, PartsError> {
        parts.validate(limit, check)?;
        let empty = |layer: &LayerParts| Layer::empty(&layer.size(), parts.kind(), limit);
        Self::assembled(parts, limit, empty)
    }

    /// As [`from_parts_checked`](Self::from_parts_checked), with the bit arrays, one for each
    /// layer. In the classic layout a vector without spare capacity becomes part of the filter
    /// without being copied.
    ///
    /// ```
    /// use everbloom::host::LayeredFilter;
    /// use everbloom::redisbloom::Check;
    /// let mut seen = LayeredFilter::builder().build()?;
    /// seen.insert("a");
    /// let bits = vec![seen.layers()[0].as_bytes().into_owned()];
    /// let (parts, check) = (seen.parts(), Check::RdbValue);
    /// let copy = LayeredFilter::from_parts_and_bits(&parts, bits, 1 << 20, check)?;
    /// assert_eq!(copy, seen);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
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
        let filter = Self::assembled(parts, limit, |layer| {
            let bits = bits.next().ok_or(BuildError::Unsizable)?;
            Layer::with_bits(&layer.size(), parts.kind(), bits, limit)
        })?;
        filter.layers().iter().for_each(Layer::collapse_loaded);
        Ok(filter)
    }

    /// `make` makes each layer without its item count, of at most `limit` bytes.
    fn assembled(
        parts: &FilterParts,
        limit: u64,
        mut make: impl FnMut(&LayerParts) -> Result<Layer, BuildError>,
    ) -> Result<Self, PartsError> {
        let mut layers = Vec::new();
        layers
            .try_reserve_exact(parts.layers.len())
            .map_err(|_| PartsError::OutOfMemory)?;
        for (index, part) in parts.layers.iter().enumerate() {
            let mut layer = make(part).map_err(|error| match error {
                BuildError::OutOfMemory { .. } => PartsError::OutOfMemory,
                BuildError::TooLarge { .. } => PartsError::TooLarge { limit },
                _ => PartsError::Bits { layer: index },
            })?;
            layer.set_len(part.items);
            layers.push(layer);
        }
        let options = Options(parts.options);
        let window = parts.window.clone().map(Box::new);
        let (items, expansion) = (parts.items, parts.expansion);
        Ok(Self::from_layers(layers, items, options, expansion, window))
    }
}

impl<W: MaybeWindow> LayeredFilter<W> {
    /// Everything about the filter except its bits. [Example](FilterParts).
    #[must_use]
    pub fn parts(&self) -> FilterParts {
        FilterParts {
            items: self.len(),
            options: self.options().bits(),
            expansion: self.expansion(),
            key: self.key(),
            valkey: self.valkey().copied(),
            window: self.window().cloned(),
            layers: self.layers().iter().map(Layer::parts).collect(),
        }
    }

    /// The number of the first byte of the bit arrays in a dump, as
    /// [`FilterParts::stream_start`] has it. [Example](ChunkError).
    #[must_use]
    pub fn stream_start(&self) -> u64 {
        self.window().map_or(0, |window| window.dropped)
    }

    /// Bytes of all bit arrays laid end to end, oldest layer first. [Example](crate::redisbloom).
    #[must_use]
    pub fn stream_len(&self) -> u64 {
        self.layers().iter().map(Layer::bytes).sum()
    }

    /// The bytes of that stream from `offset` to the end of that layer, at most `max`; `None` at
    /// and past the end. [Example](crate::redisbloom).
    #[must_use]
    pub fn stream_chunk(&self, offset: u64, max: usize) -> Option<Cow<'_, [u8]>> {
        let (number, start) = locate(self.layers.iter().map(Layer::bytes), offset)?;
        Some(match self.layers.get(number)?.as_bytes() {
            Cow::Borrowed(bytes) => Cow::Borrowed(at_most(max, bytes.get(start..)?)),
            Cow::Owned(bytes) => at_most(max, bytes.get(start..)?).to_vec().into(),
        })
    }

    /// Writes bytes of that stream at `offset`; they must lie within one layer.
    /// [Example](crate::redisbloom).
    ///
    /// # Errors
    ///
    /// [`ChunkError`] when they do not; nothing has changed then.
    pub fn load_chunk(&mut self, offset: u64, data: &[u8]) -> Result<(), ChunkError> {
        let place = locate(self.layers.iter().map(Layer::bytes), offset);
        let (number, start) = place.ok_or(ChunkError::NoLayer)?;
        self.load_layer(number, start, data)
    }

    /// Writes bytes at `start` of a layer, numbered from 0.
    ///
    /// ```
    /// # use everbloom::Layout;
    /// # use everbloom::host::LayeredFilter;
    /// let builder = LayeredFilter::builder().layout(Layout::Classic);
    /// let mut seen = builder.build()?;
    /// let mut copy = seen.clone();
    /// seen.insert("a");
    /// copy.load_layer(0, 0, &seen.layers()[0].as_bytes())?;
    /// assert!(copy.contains("a"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// There is no such layer, or they do not lie within it; nothing has changed then.
    pub fn load_layer(
        &mut self,
        number: usize,
        start: usize,
        data: &[u8],
    ) -> Result<(), ChunkError> {
        let layer = self.layers.get_mut(number).ok_or(ChunkError::NoLayer)?;
        let end = start.saturating_add(data.len());
        if end as u64 > layer.bytes() {
            return Err(ChunkError::TooLong);
        }
        if self.capture.is_active() {
            let part = start as u64..end as u64;
            self.capture.note(number, &layer.as_bytes(), part);
        }
        let place = layer.place(start..end).ok_or(ChunkError::TooLong)?;
        pages::copy(place, data);
        layer.shrink();
        Ok(())
    }
}

fn at_most(max: usize, bytes: &[u8]) -> &[u8] {
    bytes.get(..max).unwrap_or(bytes)
}

impl Layer {
    /// Everything about the layer except its bits. [Example](FilterParts).
    #[must_use]
    pub fn parts(&self) -> LayerParts {
        let size = self.size();
        LayerParts {
            bytes: size.bytes,
            bits: self.bits(),
            items: self.len(),
            error_rate: size.error_rate,
            bits_per_entry: size.bits_per_entry,
            hashes: size.hashes,
            capacity: size.capacity,
            log2_bits: size.log2_bits,
        }
    }
}
