//! A filter as typed fields, in an order that never changes.
//!
//! What a host keeps of a value, an RDB file or a module's, is a row of fields of three types.
//! These modules know their order and meaning; how a field becomes bytes is the host's affair,
//! behind [`FieldWriter`] and [`FieldReader`]. Each layout has a type of its own: [`classic`] is
//! RedisBloom's, [`blocked`] ours. Both have the same shape: fields of the filter, then for each
//! layer its fields, its bit array, and last its item count.

pub mod blocked;
pub mod classic;

use everbloom::{FilterParts, LayerParts, Layout, PartsError, ScalableBloomFilter};
use thiserror::Error;

/// A type of values, as an RDB file and a module's host know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ValueType {
    /// Its name, nine characters as a module type must have. TYPE answers it.
    pub name: &'static str,
    /// The version that is written, and the newest that is read.
    pub version: u32,
}

/// The type of filters in a layout.
pub const fn value_type(layout: Layout) -> ValueType {
    match layout {
        Layout::Classic => classic::TYPE,
        Layout::Blocked => blocked::TYPE,
    }
}

/// Where fields go.
pub trait FieldWriter {
    /// Why a field was not taken.
    type Error;

    /// A whole number.
    ///
    /// # Errors
    ///
    /// As the host says.
    fn unsigned(&mut self, value: u64) -> Result<(), Self::Error>;

    /// A floating-point number.
    ///
    /// # Errors
    ///
    /// As the host says.
    fn double(&mut self, value: f64) -> Result<(), Self::Error>;

    /// A string of bytes, perhaps a very long one.
    ///
    /// # Errors
    ///
    /// As the host says.
    fn bytes(&mut self, value: &[u8]) -> Result<(), Self::Error>;
}

/// Where fields come from.
pub trait FieldReader {
    /// Why there is no such field.
    type Error;

    /// A whole number.
    ///
    /// # Errors
    ///
    /// The next field is none, or there is no next field.
    fn unsigned(&mut self) -> Result<u64, Self::Error>;

    /// A floating-point number.
    ///
    /// # Errors
    ///
    /// The next field is none, or there is no next field.
    fn double(&mut self) -> Result<f64, Self::Error>;

    /// A string of bytes, which should be `expected` long. A reader need not give one that is not,
    /// must not keep more memory than has arrived, and best leaves no spare capacity.
    ///
    /// # Errors
    ///
    /// The next field is none, or there is no next field.
    fn bytes(&mut self, expected: u64) -> Result<Vec<u8>, Self::Error>;
}

/// Why fields do not make a filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum LoadError<E> {
    /// A field is missing or of another type.
    #[error("{0}")]
    Read(E),
    /// No such version of the type is known.
    #[error("version {version} of {type_name} is not known")]
    Version {
        /// The name of the type.
        type_name: &'static str,
        /// The version.
        version: u32,
    },
    /// A field has a value that no filter has.
    #[error("{0}: a value that no filter has")]
    Field(&'static str),
    /// The fields contradict each other, or are too large.
    #[error("{0}")]
    Parts(PartsError),
    /// A bit array has another length than its layer says.
    #[error("layer {layer}: a bit array of {bytes} bytes instead of {expected}")]
    BitArray {
        /// Which layer, from 0.
        layer: usize,
        /// Its length.
        bytes: u64,
        /// The length that the layer says.
        expected: u64,
    },
}

impl<E> From<PartsError> for LoadError<E> {
    fn from(error: PartsError) -> Self {
        LoadError::Parts(error)
    }
}

/// Writes a filter as a value of [its layout's type](value_type).
///
/// # Errors
///
/// The writer's.
pub fn save<W: FieldWriter>(filter: &ScalableBloomFilter, writer: &mut W) -> Result<(), W::Error> {
    save_head(&filter.parts(), writer)?;
    for layer in filter.layers() {
        save_layer_head(layer.layout(), &layer.parts(), writer)?;
        writer.bytes(&layer.as_bytes())?;
        writer.unsigned(layer.len())?;
    }
    Ok(())
}

/// Writes the fields before the first layer.
///
/// # Errors
///
/// The writer's.
pub fn save_head<W: FieldWriter>(parts: &FilterParts, writer: &mut W) -> Result<(), W::Error> {
    match parts.key {
        None => classic::save_head(parts, writer),
        Some(key) => blocked::save_head(parts, key, writer),
    }
}

/// Writes the fields of a layer before its bit array. After that, its item count remains.
///
/// # Errors
///
/// The writer's.
pub fn save_layer_head<W: FieldWriter>(
    layout: Layout,
    layer: &LayerParts,
    writer: &mut W,
) -> Result<(), W::Error> {
    match layout {
        Layout::Classic => classic::save_layer_head(layer, writer),
        Layout::Blocked => blocked::save_layer_head(layer, writer),
    }
}

/// Reads a value of a layout's type: a filter whose bit arrays together have at most `limit` bytes.
///
/// # Errors
///
/// [`LoadError`]
pub fn load<R: FieldReader>(
    layout: Layout,
    reader: &mut R,
    version: u32,
    limit: u64,
) -> Result<ScalableBloomFilter, LoadError<R::Error>> {
    match layout {
        Layout::Classic => classic::load(reader, version, limit),
        Layout::Blocked => blocked::load(reader, version, limit),
    }
}

/// Layers that have arrived, and their bit arrays.
struct Arrived {
    layers: Vec<LayerParts>,
    arrays: Vec<Vec<u8>>,
    /// Bytes that bit arrays may still have.
    left: u64,
    limit: u64,
}

impl Arrived {
    fn new(limit: u64) -> Arrived {
        Arrived {
            layers: Vec::new(),
            arrays: Vec::new(),
            left: limit,
            limit,
        }
    }

    /// Reads the bit array and the item count of a layer whose other fields were read and are
    /// valid.
    fn push<R: FieldReader>(
        &mut self,
        mut layer: LayerParts,
        reader: &mut R,
    ) -> Result<(), LoadError<R::Error>> {
        self.left = self
            .left
            .checked_sub(layer.bytes)
            .ok_or(PartsError::TooLarge { limit: self.limit })?;
        let array = reader.bytes(layer.bytes).map_err(LoadError::Read)?;
        if array.len() as u64 != layer.bytes {
            return Err(LoadError::BitArray {
                layer: self.layers.len(),
                bytes: array.len() as u64,
                expected: layer.bytes,
            });
        }
        layer.items = reader.unsigned().map_err(LoadError::Read)?;
        self.arrays.push(array);
        self.layers.push(layer);
        Ok(())
    }
}
