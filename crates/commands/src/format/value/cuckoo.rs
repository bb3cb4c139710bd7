//! RedisBloom's values of cuckoo filters, with the fields in RedisBloom's order.
//!
//! ```text
//! field                              type      versions
//! number of tables                   unsigned  all
//! buckets of the first table         unsigned  all
//! items                              unsigned  all
//! items deleted                      unsigned  from 4 on; before: 0
//! bucket size                        unsigned  from 4 on; before: 2
//! most iterations                    unsigned  from 4 on; before: 20
//! expansion                          unsigned  from 4 on; before: 1
//! then for each table, oldest first:
//!   buckets                          unsigned  from 4 on; before: as the first table
//!   slots                            bytes     all; buckets * bucket size of them
//! ```
//!
//! Version 4 is written, 0 to 4 are read. RedisBloom checks next to nothing when it loads one; here
//! everything is checked that the header of a dump is checked for, and that each table is as large
//! as such a header says.

use everbloom::CuckooFilter;
use everbloom::redisbloom::CuckooParts;

use super::fields::{FieldReader, FieldWriter, ValueError, ValueType, narrow};

/// The type.
pub const TYPE: ValueType = ValueType {
    name: "MBbloomCF",
    version: 4,
};

/// A value has the parameters, and the buckets of each table, from this version on.
const PARAMETERS_SINCE: u32 = 4;
const OLD_BUCKET_SIZE: u8 = 2;
const OLD_MAX_KICKS: u16 = 20;
const OLD_EXPANSION: u16 = 1;

pub(super) fn save_head<W: FieldWriter>(
    parts: &CuckooParts,
    writer: &mut W,
) -> Result<(), W::Error> {
    writer.unsigned(parts.tables.into())?;
    writer.unsigned(parts.buckets)?;
    writer.unsigned(parts.items)?;
    writer.unsigned(parts.removed)?;
    writer.unsigned(parts.bucket_size.into())?;
    writer.unsigned(parts.max_kicks.into())?;
    writer.unsigned(parts.expansion.into())
}

pub(super) fn save_table_head<W: FieldWriter>(
    parts: &CuckooParts,
    number: usize,
    writer: &mut W,
) -> Result<(), W::Error> {
    let table = u16::try_from(number).ok().and_then(|it| parts.table(it));
    writer.unsigned(table.map_or(0, |(buckets, _)| buckets))
}

pub(super) fn load<R: FieldReader>(
    reader: &mut R,
    version: u32,
    limit: u64,
) -> Result<CuckooFilter, ValueError<R::Error>> {
    if version > TYPE.version {
        return Err(ValueError::Version {
            type_name: TYPE.name,
            version,
        });
    }
    let mut parts = CuckooParts {
        tables: narrow(reader, "tables")?,
        buckets: reader.unsigned().map_err(ValueError::Read)?,
        items: reader.unsigned().map_err(ValueError::Read)?,
        removed: 0,
        bucket_size: OLD_BUCKET_SIZE,
        max_kicks: OLD_MAX_KICKS,
        expansion: OLD_EXPANSION,
    };
    if version >= PARAMETERS_SINCE {
        parts.removed = reader.unsigned().map_err(ValueError::Read)?;
        parts.bucket_size = narrow(reader, "bucket size")?;
        parts.max_kicks = narrow(reader, "iterations")?;
        parts.expansion = narrow(reader, "expansion")?;
    }
    parts.validate(limit)?;
    // Takes memory only for tables that have arrived.
    let mut tables = Vec::new();
    for number in 0..parts.tables {
        let (buckets, slots) = parts.table(number).ok_or(ValueError::Field("tables"))?;
        if version >= PARAMETERS_SINCE && reader.unsigned().map_err(ValueError::Read)? != buckets {
            return Err(ValueError::Field("buckets"));
        }
        let table = reader.bytes(slots).map_err(ValueError::Read)?;
        if table.len() as u64 != slots {
            return Err(ValueError::BitArray {
                layer: number.into(),
                bytes: table.len() as u64,
                expected: slots,
            });
        }
        tables.push(table);
    }
    Ok(CuckooFilter::from_parts_and_slots(&parts, tables, limit)?)
}
