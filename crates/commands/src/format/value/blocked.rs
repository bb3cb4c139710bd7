//! Values of the blocked layout.
//!
//! ```text
//! field                        type      what it must be
//! items in the filter          unsigned  the sum of the layers' items
//! number of layers             unsigned  at least 1
//! options                      unsigned  5; 8 more when the filter does not grow, 16 with a window
//! expansion                    unsigned  below 2^32
//! key of the hash              bytes     16 of them
//! then, with a window:
//!   milliseconds of the window unsigned  0 for a window of items
//!   generations of a span      unsigned  1 to 64
//!   capacity of the window     unsigned  at least 1
//!   error rate of the window   double    between 0 and 1
//!   bytes dropped so far       unsigned
//!   generations kept           unsigned  1 to 1 more than those of a span
//!   then for each, oldest first:
//!     layers of the generation unsigned  their sum is the number of layers
//!     when it began            unsigned  Unix milliseconds, or how many items came before
//! then for each layer, oldest first:
//!   capacity                   unsigned  at least 1
//!   error rate                 double    between 0 and 1
//!   hashes                     unsigned  2 to 32
//!   bytes of the bit array     unsigned  a multiple of 64, not 0
//!   bit array                  bytes     as many as that says
//!   items in the layer         unsigned
//! ```
//!
//! This is version 1. Nobody else writes this type, so the checks are strict.

use everbloom::ScalableBloomFilter;
use everbloom::hash::Key;
use everbloom::redisbloom::{Check, FilterParts, LayerParts, Options};

use super::arrived::Arrived;
use super::fields::{FieldReader, FieldWriter, ValueError, ValueType, narrow};
use super::window;

/// The type.
pub const TYPE: ValueType = ValueType {
    name: "everbloom",
    version: 1,
};

pub(super) fn save_head<W: FieldWriter>(
    parts: &FilterParts,
    key: Key,
    writer: &mut W,
) -> Result<(), W::Error> {
    writer.unsigned(parts.items)?;
    writer.unsigned(parts.layers.len() as u64)?;
    writer.unsigned(parts.options.into())?;
    writer.unsigned(parts.expansion.into())?;
    writer.bytes(&key.to_bytes())?;
    parts
        .window
        .as_ref()
        .map_or(Ok(()), |window| window::save(window, writer))
}

pub(super) fn save_layer_head<W: FieldWriter>(
    layer: &LayerParts,
    writer: &mut W,
) -> Result<(), W::Error> {
    writer.unsigned(layer.capacity)?;
    writer.double(layer.error_rate)?;
    writer.unsigned(layer.hashes.into())?;
    writer.unsigned(layer.bytes)
}

pub(super) fn load<R: FieldReader>(
    reader: &mut R,
    version: u32,
    limit: u64,
) -> Result<ScalableBloomFilter, ValueError<R::Error>> {
    if version != TYPE.version {
        return Err(ValueError::Version {
            type_name: TYPE.name,
            version,
        });
    }
    let items = reader.unsigned().map_err(ValueError::Read)?;
    let count = reader.unsigned().map_err(ValueError::Read)?;
    let options = narrow(reader, "options")?;
    let expansion = narrow(reader, "expansion")?;
    let key = reader.bytes(16).map_err(ValueError::Read)?;
    let key = key.try_into().map_err(|_| ValueError::Field("key"))?;
    let window = match options & Options::WINDOW {
        0 => None,
        _ => Some(window::load(reader)?),
    };
    // Takes memory only for layers that have arrived.
    let mut arrived = Arrived::new(limit);
    for _ in 0..count {
        let layer = load_layer_head(reader)?;
        layer.validate_blocked(arrived.layers.len())?;
        arrived.push(layer, reader)?;
    }
    let parts = FilterParts {
        items,
        options,
        expansion,
        key: Some(Key::from_bytes(key)),
        valkey: None,
        window,
        layers: arrived.layers,
    };
    let check = Check::DumpHeader;
    Ok(ScalableBloomFilter::from_parts_and_bits(
        &parts,
        arrived.arrays,
        limit,
        check,
    )?)
}

pub(super) fn load_layer_head<R: FieldReader>(
    reader: &mut R,
) -> Result<LayerParts, ValueError<R::Error>> {
    let capacity = reader.unsigned().map_err(ValueError::Read)?;
    let error_rate = reader.double().map_err(ValueError::Read)?;
    let hashes = narrow(reader, "hashes")?;
    let bytes = reader.unsigned().map_err(ValueError::Read)?;
    Ok(LayerParts {
        bytes,
        // The check of the parts refuses a number that is too large for a bit count.
        bits: bytes.wrapping_mul(8),
        items: 0,
        error_rate,
        bits_per_entry: 0.0,
        hashes,
        capacity,
        log2_bits: 0,
    })
}
