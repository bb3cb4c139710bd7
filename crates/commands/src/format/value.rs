//! A filter as typed fields, in RedisBloom's order.
//!
//! What a host keeps of a value, an RDB file or a module's, is a row of fields of three types. This
//! module knows their order and meaning; how a field becomes bytes is the host's affair, behind
//! [`FieldWriter`] and [`FieldReader`].
//!
//! ```text
//! field                              type      versions
//! items in the filter                unsigned  all
//! number of layers                   unsigned  all
//! options                            unsigned  from 2 on; before: 0
//! growth (expansion)                 unsigned  from 4 on; before: 2
//! then for each layer, oldest first:
//!   capacity                         unsigned  all
//!   error rate                       double    all
//!   hashes                           unsigned  all
//!   bits per item                    double    all
//!   bits                             unsigned  from 1 on; before: floor(capacity * bits per item)
//!   n2, logarithm of the modulus     unsigned  from 1 on; before: 0
//!   bit array                        bytes     all; bits / 8 of them
//!   items in the layer               unsigned  all
//! ```
//!
//! Version 4 is written, 0 to 4 are read.

use everbloom::{Check, FilterParts, LayerParts, PartsError, ScalableBloomFilter};
use thiserror::Error;

/// The name of the type, nine characters as a module type must have.
pub const TYPE_NAME: &str = "MBbloom--";

/// The version that is written, and the newest that is read.
pub const ENCODING_VERSION: u32 = 4;

/// Options of a filter came with this version.
const OPTIONS_SINCE: u32 = 2;
/// The expansion came with this version; until then it was [`OLD_GROWTH`].
const GROWTH_SINCE: u32 = 4;
const OLD_GROWTH: u32 = 2;
/// Bit counts came with this version; until then they followed from the capacity.
const BITS_SINCE: u32 = 1;

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
    /// The version is newer than [`ENCODING_VERSION`].
    #[error("version {0} of {TYPE_NAME} is newer than {ENCODING_VERSION}")]
    Version(u32),
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
        /// The length that the bit count asks for.
        expected: u64,
    },
}

impl<E> From<PartsError> for LoadError<E> {
    fn from(error: PartsError) -> Self {
        LoadError::Parts(error)
    }
}

/// Writes a filter.
///
/// # Errors
///
/// The writer's.
pub fn save<W: FieldWriter>(filter: &ScalableBloomFilter, writer: &mut W) -> Result<(), W::Error> {
    save_head(&filter.parts(), writer)?;
    for layer in filter.layers() {
        save_layer_head(&layer.parts(), writer)?;
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
    writer.unsigned(parts.items)?;
    writer.unsigned(parts.layers.len() as u64)?;
    writer.unsigned(parts.options.into())?;
    writer.unsigned(parts.growth.into())
}

/// Writes the fields of a layer before its bit array. After that, its item count remains.
///
/// # Errors
///
/// The writer's.
pub fn save_layer_head<W: FieldWriter>(layer: &LayerParts, writer: &mut W) -> Result<(), W::Error> {
    writer.unsigned(layer.capacity)?;
    writer.double(layer.error_rate)?;
    writer.unsigned(layer.hashes.into())?;
    writer.double(layer.bits_per_entry)?;
    writer.unsigned(layer.bits)?;
    writer.unsigned(layer.log2_bits.into())
}

/// Reads a filter whose bit arrays together have at most `limit` bytes.
///
/// Fields wider than what they are kept in are cut, and neither the sum of the items nor unknown
/// option bits are looked at, all of it as RedisBloom does.
///
/// # Errors
///
/// [`LoadError`]
pub fn load<R: FieldReader>(
    reader: &mut R,
    version: u32,
    limit: u64,
) -> Result<ScalableBloomFilter, LoadError<R::Error>> {
    if version > ENCODING_VERSION {
        return Err(LoadError::Version(version));
    }
    let items = reader.unsigned().map_err(LoadError::Read)?;
    let count = reader.unsigned().map_err(LoadError::Read)?;
    let mut parts = FilterParts {
        items,
        options: 0,
        growth: OLD_GROWTH,
        key: None,
        layers: Vec::new(),
    };
    if version >= OPTIONS_SINCE {
        parts.options = low_32(reader.unsigned().map_err(LoadError::Read)?);
    }
    if version >= GROWTH_SINCE {
        parts.growth = low_32(reader.unsigned().map_err(LoadError::Read)?);
    }
    // Neither grows but with layers that have arrived.
    let mut arrays = Vec::new();
    let mut left = limit;
    for index in 0..count {
        let index = usize::try_from(index).unwrap_or(usize::MAX);
        let mut layer = load_layer_head(reader, version)?;
        layer.validate(index)?;
        left = left
            .checked_sub(layer.bytes)
            .ok_or(PartsError::TooLarge { limit })?;
        let array = reader.bytes(layer.bytes).map_err(LoadError::Read)?;
        if array.len() as u64 != layer.bytes {
            return Err(LoadError::BitArray {
                layer: index,
                bytes: array.len() as u64,
                expected: layer.bytes,
            });
        }
        layer.items = reader.unsigned().map_err(LoadError::Read)?;
        arrays.push(array);
        parts.layers.push(layer);
    }
    let check = Check::RdbValue;
    Ok(ScalableBloomFilter::from_parts_and_bits(
        &parts, arrays, limit, check,
    )?)
}

fn load_layer_head<R: FieldReader>(
    reader: &mut R,
    version: u32,
) -> Result<LayerParts, LoadError<R::Error>> {
    let capacity = reader.unsigned().map_err(LoadError::Read)?;
    let error_rate = reader.double().map_err(LoadError::Read)?;
    let hashes = low_32(reader.unsigned().map_err(LoadError::Read)?);
    let bits_per_entry = reader.double().map_err(LoadError::Read)?;
    let (bits, log2_bits) = if version >= BITS_SINCE {
        let bits = reader.unsigned().map_err(LoadError::Read)?;
        (bits, low_8(reader.unsigned().map_err(LoadError::Read)?))
    } else {
        (bits_of_version_0(capacity, bits_per_entry), 0)
    };
    Ok(LayerParts {
        // A bit count that is no multiple of 8 is left to the check of the parts.
        bytes: bits / 8,
        bits,
        items: 0,
        error_rate,
        bits_per_entry,
        hashes,
        capacity,
        log2_bits,
    })
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the cast saturates, and what is no number becomes 0, which no layer may have"
)]
fn bits_of_version_0(capacity: u64, bits_per_entry: f64) -> u64 {
    (capacity as f64 * bits_per_entry) as u64
}

fn low_32(value: u64) -> u32 {
    let [a, b, c, d, ..] = value.to_le_bytes();
    u32::from_le_bytes([a, b, c, d])
}

fn low_8(value: u64) -> u8 {
    let [low, ..] = value.to_le_bytes();
    low
}
