//! A filter as typed fields, in an order that never changes.
//!
//! A host stores a value (in an RDB file, or for a module) as a sequence of fields of three types.
//! These modules know the order and meaning of the fields. The host turns fields into bytes, behind
//! [`FieldWriter`] and [`FieldReader`]. Each kind of filters has its own type: [`classic`] and
//! [`cuckoo`] are RedisBloom's, [`blocked`] is ours, and [`valkey`] is valkey-bloom's. All have the
//! same shape: the fields of the filter, then for each layer or table its fields, its array, and of
//! a layer last its item count.

mod arrived;
pub mod blocked;
pub mod classic;
pub mod cuckoo;
mod fields;
pub mod valkey;
mod window;

use everbloom::Layout;

use crate::filter::{Filter, Kind, Parts};

pub use fields::{FieldReader, FieldWriter, NumberOrBytes, ValueError, ValueType};

/// The type of filters of a kind.
pub const fn value_type(kind: Kind) -> ValueType {
    match kind {
        Kind::Bloom(Layout::Classic) => classic::TYPE,
        Kind::Bloom(Layout::Blocked) => blocked::TYPE,
        Kind::Valkey => valkey::TYPE,
        Kind::Cuckoo => cuckoo::TYPE,
    }
}

/// Writes a filter as a value of [its kind's type](value_type).
///
/// # Errors
///
/// The writer's.
pub fn save<W: FieldWriter>(filter: &Filter, writer: &mut W) -> Result<(), W::Error> {
    let parts = filter.parts();
    save_head(&parts, writer)?;
    let mut offset = 0;
    for number in 0..parts.arrays() {
        save_array_head(&parts, number, writer)?;
        let array = filter.stream_chunk(offset, usize::MAX).unwrap_or_default();
        offset += array.len() as u64;
        writer.bytes(&array)?;
        save_array_tail(&parts, number, writer)?;
    }
    Ok(())
}

/// Writes the fields before the first array.
///
/// # Errors
///
/// The writer's.
pub fn save_head<W: FieldWriter>(parts: &Parts, writer: &mut W) -> Result<(), W::Error> {
    match parts {
        Parts::Bloom(parts) => match (parts.key, &parts.valkey) {
            (None, None) => classic::save_head(parts, writer),
            (None, Some(valkey)) => valkey::save_head(parts, valkey, writer),
            (Some(key), _) => blocked::save_head(parts, key, writer),
        },
        Parts::Cuckoo(parts) => cuckoo::save_head(parts, writer),
    }
}

/// Writes the fields before an array by its number from 0; nothing when there is no such array.
///
/// # Errors
///
/// The writer's.
pub fn save_array_head<W: FieldWriter>(
    parts: &Parts,
    number: usize,
    writer: &mut W,
) -> Result<(), W::Error> {
    match parts {
        Parts::Bloom(parts) => match (parts.layout(), parts.layers.get(number)) {
            (Layout::Classic, Some(layer)) if parts.valkey.is_some() => {
                blocked::save_layer_head(layer, writer)
            }
            (Layout::Classic, Some(layer)) => classic::save_layer_head(layer, writer),
            (Layout::Blocked, Some(layer)) => blocked::save_layer_head(layer, writer),
            (_, None) => Ok(()),
        },
        Parts::Cuckoo(parts) => cuckoo::save_table_head(parts, number, writer),
    }
}

/// Writes the fields behind that array.
///
/// # Errors
///
/// The writer's.
pub fn save_array_tail<W: FieldWriter>(
    parts: &Parts,
    number: usize,
    writer: &mut W,
) -> Result<(), W::Error> {
    match parts {
        Parts::Bloom(parts) => match parts.layers.get(number) {
            Some(layer) => writer.unsigned(layer.items),
            None => Ok(()),
        },
        Parts::Cuckoo(_) => Ok(()),
    }
}

/// Reads a filter as a value of a kind's type. Its arrays may have `limit` bytes together.
///
/// # Errors
///
/// [`ValueError`]
pub fn load<R: FieldReader>(
    kind: Kind,
    reader: &mut R,
    version: u32,
    limit: u64,
) -> Result<Filter, ValueError<R::Error>> {
    match kind {
        Kind::Bloom(Layout::Classic) => classic::load(reader, version, limit).map(Filter::Bloom),
        Kind::Bloom(Layout::Blocked) => blocked::load(reader, version, limit).map(Filter::Bloom),
        Kind::Valkey => valkey::load(reader, version, limit).map(Filter::Bloom),
        Kind::Cuckoo => cuckoo::load(reader, version, limit).map(Filter::Cuckoo),
    }
}
