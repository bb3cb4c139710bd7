//! RedisBloom's values, with the fields in RedisBloom's order.
//!
//! ```text
//! field                              type      versions
//! items in the filter                unsigned  all
//! number of layers                   unsigned  all
//! options                            unsigned  from 2 on; before: 0
//! expansion                          unsigned  from 4 on; before: 2
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

use everbloom::ScalableBloomFilter;
use everbloom::redisbloom::{Check, FilterParts, LayerParts};

use super::arrived::Arrived;
use super::fields::{FieldReader, FieldWriter, ValueError, ValueType};

/// The type.
pub const TYPE: ValueType = ValueType {
    name: "MBbloom--",
    version: 4,
};

/// A value has the filter's options from this version on.
const OPTIONS_SINCE: u32 = 2;
/// A value has the expansion from this version on. Before, it was always [`OLD_EXPANSION`].
const EXPANSION_SINCE: u32 = 4;
const OLD_EXPANSION: u32 = 2;
/// A value has bit counts from this version on. Before, they followed from the capacity.
const BITS_SINCE: u32 = 1;

pub(super) fn save_head<W: FieldWriter>(
    parts: &FilterParts,
    writer: &mut W,
) -> Result<(), W::Error> {
    writer.unsigned(parts.items)?;
    writer.unsigned(parts.layers.len() as u64)?;
    writer.unsigned(parts.options.into())?;
    writer.unsigned(parts.expansion.into())
}

pub(super) fn save_layer_head<W: FieldWriter>(
    layer: &LayerParts,
    writer: &mut W,
) -> Result<(), W::Error> {
    writer.unsigned(layer.capacity)?;
    writer.double(layer.error_rate)?;
    writer.unsigned(layer.hashes.into())?;
    writer.double(layer.bits_per_entry)?;
    writer.unsigned(layer.bits)?;
    writer.unsigned(layer.log2_bits.into())
}

/// Reads a filter. As in RedisBloom, a field too wide for its place is cut, and neither the sum of
/// the items nor unknown option bits are checked.
pub(super) fn load<R: FieldReader>(
    reader: &mut R,
    version: u32,
    limit: u64,
) -> Result<ScalableBloomFilter, ValueError<R::Error>> {
    if version > TYPE.version {
        return Err(ValueError::Version {
            type_name: TYPE.name,
            version,
        });
    }
    let items = reader.unsigned().map_err(ValueError::Read)?;
    let count = reader.unsigned().map_err(ValueError::Read)?;
    let (mut options, mut expansion) = (0, OLD_EXPANSION);
    if version >= OPTIONS_SINCE {
        options = low_32(reader.unsigned().map_err(ValueError::Read)?);
    }
    if version >= EXPANSION_SINCE {
        expansion = low_32(reader.unsigned().map_err(ValueError::Read)?);
    }
    // Takes memory only for layers that have arrived.
    let mut arrived = Arrived::new(limit);
    for _ in 0..count {
        let layer = load_layer_head(reader, version)?;
        layer.validate(arrived.layers.len())?;
        arrived.push(layer, reader)?;
    }
    let parts = FilterParts {
        items,
        options,
        expansion,
        key: None,
        valkey: None,
        window: None,
        layers: arrived.layers,
    };
    let check = Check::RdbValue;
    Ok(ScalableBloomFilter::from_parts_and_bits(
        &parts,
        arrived.arrays,
        limit,
        check,
    )?)
}

fn load_layer_head<R: FieldReader>(
    reader: &mut R,
    version: u32,
) -> Result<LayerParts, ValueError<R::Error>> {
    let capacity = reader.unsigned().map_err(ValueError::Read)?;
    let error_rate = reader.double().map_err(ValueError::Read)?;
    let hashes = low_32(reader.unsigned().map_err(ValueError::Read)?);
    let bits_per_entry = reader.double().map_err(ValueError::Read)?;
    let (bits, log2_bits) = if version >= BITS_SINCE {
        let bits = reader.unsigned().map_err(ValueError::Read)?;
        (bits, low_8(reader.unsigned().map_err(ValueError::Read)?))
    } else {
        (bits_of_version_0(capacity, bits_per_entry), 0)
    };
    Ok(LayerParts {
        // The check of the parts refuses a bit count that is not a multiple of 8.
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
