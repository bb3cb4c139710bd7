//! A filter as typed fields, in an order that never changes.
//!
//! A host stores a value (in an RDB file, or for a module) as a sequence of fields of three types.
//! These modules know the order and meaning of the fields. The host turns fields into bytes, behind
//! [`FieldWriter`] and [`FieldReader`]. Each kind of filters has [its own type](value_type). All have
//! the same shape: the fields of the filter, then for each layer or table its fields, its array, and
//! of a layer last its item count.

mod bloom;
mod cuckoo;
mod fields;
pub mod valkey;

use everbloom::Layout;

use crate::filter::{Filter, FilterKind, Parts};
use crate::format::fields::{HEAD_VERSION, head, without_layers};

use fields::Out;
pub use fields::{FieldReader, FieldWriter, NumberOrBytes, ValueError, ValueType};

/// The type of filters of a kind.
pub const fn value_type(kind: FilterKind) -> ValueType {
    let (name, version) = match kind {
        FilterKind::Bloom(Layout::Classic) => ("MBbloom--", 4),
        FilterKind::Bloom(Layout::Blocked) => ("everbloom", 1),
        FilterKind::Valkey => ("bloomfltr", 2),
        FilterKind::Cuckoo => ("MBbloomCF", 4),
        FilterKind::KeyedCuckoo => ("everblmCF", 1),
    };
    ValueType { name, version }
}

/// The types of filters of all kinds.
pub fn value_types() -> impl Iterator<Item = ValueType> {
    FilterKind::ALL.into_iter().map(value_type)
}

/// Writes a filter as a value of [its kind's type](value_type).
///
/// # Errors
///
/// The writer's.
pub fn save<W: FieldWriter>(filter: &Filter, writer: &mut W) -> Result<(), W::Error> {
    let parts = filter.parts();
    save_head(&parts, writer)?;
    for number in 0..parts.arrays() {
        save_array_head(&parts, number, writer)?;
        writer.bytes(&filter.array(number).unwrap_or_default())?;
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
    let (out, version) = (&mut Out(writer), value_type(parts.kind()).version);
    let mut layers = parts.arrays() as u64;
    match parts {
        Parts::Bloom(parts) if parts.valkey.is_some() => {
            let mut first = parts.layers.first().map_or(0.0, |layer| layer.error_rate);
            let parts = &mut without_layers(parts);
            valkey::head(out, version, parts, &mut layers, &mut first)
        }
        Parts::Bloom(parts) => head(out, HEAD_VERSION, &mut without_layers(parts), &mut layers),
        Parts::Cuckoo(parts) => cuckoo::head(out, cuckoo::NEWEST, &mut { *parts }),
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
        Parts::Bloom(parts) => match parts.layers.get(number).copied() {
            Some(mut layer) => bloom::layer_head(&mut Out(writer), HEAD_VERSION, parts, &mut layer),
            None => Ok(()),
        },
        Parts::Cuckoo(parts) => {
            let table = u16::try_from(number).ok().and_then(|it| parts.table(it));
            writer.unsigned(table.map_or(0, |(buckets, _)| buckets))
        }
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
    kind: FilterKind,
    reader: &mut R,
    version: u32,
    limit: u64,
) -> Result<Filter, ValueError<R::Error>> {
    let known = value_type(kind);
    if !(u32::from(kind.redisbloom_lacks())..=known.version).contains(&version) {
        let type_name = known.name;
        return Err(ValueError::Version { type_name, version });
    }
    match kind {
        FilterKind::Bloom(layout) => bloom::load(layout, reader, version, limit).map(Filter::Bloom),
        FilterKind::Valkey => valkey::load(reader, version, limit).map(Filter::Bloom),
        FilterKind::Cuckoo => cuckoo::load(reader, version, limit).map(Filter::Cuckoo),
        FilterKind::KeyedCuckoo => cuckoo::load_keyed(reader, limit).map(Filter::Cuckoo),
    }
}
