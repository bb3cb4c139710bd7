//! A filter as typed fields, in an order that never changes.
//!
//! A host stores a value (in an RDB file, or for a module) as a sequence of fields of three types.
//! These modules know the order and meaning of the fields. The host turns fields into bytes, behind
//! [`FieldWriter`] and [`FieldReader`]. Each layout has its own type: [`classic`] is RedisBloom's,
//! [`blocked`] is ours. Both have the same shape: the fields of the filter, then for each layer its
//! fields, its bit array, and last its item count.

mod arrived;
pub mod blocked;
pub mod classic;
mod fields;

use everbloom::redisbloom::{FilterParts, LayerParts};
use everbloom::{Layout, ScalableBloomFilter};

pub use fields::{FieldReader, FieldWriter, ValueError, ValueType};

/// The type of filters in a layout.
pub const fn value_type(layout: Layout) -> ValueType {
    match layout {
        Layout::Classic => classic::TYPE,
        Layout::Blocked => blocked::TYPE,
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
/// [`ValueError`]
pub fn load<R: FieldReader>(
    layout: Layout,
    reader: &mut R,
    version: u32,
    limit: u64,
) -> Result<ScalableBloomFilter, ValueError<R::Error>> {
    match layout {
        Layout::Classic => classic::load(reader, version, limit),
        Layout::Blocked => blocked::load(reader, version, limit),
    }
}
