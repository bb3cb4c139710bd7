//! A filter as typed fields, in an order that never changes.
//!
//! A host stores a value (in an RDB file, or for a module) as a sequence of fields of three types.
//! These modules know the order and meaning of the fields. The host turns fields into bytes, behind
//! [`FieldWriter`] and [`FieldReader`]. Each layout has its own type: [`classic`] is RedisBloom's,
//! [`blocked`] is ours. Both have the same shape: the fields of the filter, then for each layer its
//! fields, its bit array, and last its item count.

pub mod blocked;
pub mod classic;

use everbloom::{FilterParts, LayerParts, Layout, PartsError, ScalableBloomFilter};
use thiserror::Error;

/// A type of values in RDB files and in the hosts of a module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ValueType {
    /// The name that TYPE answers. A module type's name has nine characters.
    pub name: &'static str,
    /// The version that is written. It is also the newest that is read.
    pub version: u32,
}

/// The type of filters in a layout.
pub const fn value_type(layout: Layout) -> ValueType {
    match layout {
        Layout::Classic => classic::TYPE,
        Layout::Blocked => blocked::TYPE,
    }
}

/// The host's writer of fields.
pub trait FieldWriter {
    /// Why a field could not be written.
    type Error;

    /// Writes an unsigned number.
    ///
    /// # Errors
    ///
    /// The host's.
    fn unsigned(&mut self, value: u64) -> Result<(), Self::Error>;

    /// Writes a floating-point number.
    ///
    /// # Errors
    ///
    /// The host's.
    fn double(&mut self, value: f64) -> Result<(), Self::Error>;

    /// Writes a string of bytes, which may be very long.
    ///
    /// # Errors
    ///
    /// The host's.
    fn bytes(&mut self, value: &[u8]) -> Result<(), Self::Error>;
}

/// The host's reader of fields.
pub trait FieldReader {
    /// Why a field could not be read.
    type Error;

    /// Reads an unsigned number.
    ///
    /// # Errors
    ///
    /// The next field has another type, or there is no next field.
    fn unsigned(&mut self) -> Result<u64, Self::Error>;

    /// Reads a floating-point number.
    ///
    /// # Errors
    ///
    /// The next field has another type, or there is no next field.
    fn double(&mut self) -> Result<f64, Self::Error>;

    /// Reads a string of bytes, which should be `expected` bytes long. A reader may refuse another
    /// length. It must not take more memory than the bytes that have arrived, and should leave no
    /// spare capacity.
    ///
    /// # Errors
    ///
    /// The next field has another type, or there is no next field.
    fn bytes(&mut self, expected: u64) -> Result<Vec<u8>, Self::Error>;
}

/// Why fields do not make a filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum LoadError<E> {
    /// A field is missing or of another type.
    #[error("{0}")]
    Read(E),
    /// This version of the type is not known.
    #[error("version {version} of {type_name} is not known")]
    Version {
        /// The name of the type.
        type_name: &'static str,
        /// The version.
        version: u32,
    },
    /// The named field has a value that no filter can have.
    #[error("{0}: a value that no filter has")]
    Field(&'static str),
    /// The fields contradict each other, or are too large.
    #[error("{0}")]
    Parts(PartsError),
    /// A bit array does not have the length that its layer states.
    #[error("layer {layer}: a bit array of {bytes} bytes instead of {expected}")]
    BitArray {
        /// The layer's number, from 0.
        layer: usize,
        /// Its length in bytes.
        bytes: u64,
        /// The length in bytes that the layer states.
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

/// Writes the fields of a layer that come before its bit array. The item count comes behind it.
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

/// Reads a filter as a value of a layout's type. Its bit arrays may have `limit` bytes together.
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

/// The layers that have arrived, and their bit arrays.
struct Arrived {
    layers: Vec<LayerParts>,
    arrays: Vec<Vec<u8>>,
    /// The bytes that further bit arrays may take.
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

    /// Reads the bit array and the item count of a layer. Its other fields were read and are valid.
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
