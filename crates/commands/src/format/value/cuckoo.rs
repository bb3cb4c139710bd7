//! Values of cuckoo filters. RedisBloom's have their fields in RedisBloom's order:
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
//!
//! A value of a filter with a chosen error rate is of another type. Its version 1 has the fields of
//! version 4, with the fields of the [hash and the rate](keyed) before the tables. A slot has as many
//! bits as the rate needs, so a table has fewer or more bytes than slots.

use everbloom::CuckooFilter;
use everbloom::redisbloom::CuckooParts;

use super::fields::{FieldReader, In, TooWide, ValueError};
use crate::format::fields::{Fields, keyed, no_keyed};

/// The version of [`head`] that is written.
pub(super) const NEWEST: u32 = 4;

/// A value has the parameters, and the buckets of each table, from this version on.
const PARAMETERS_SINCE: u32 = 4;

/// The fields before the tables.
pub(super) fn head<F: Fields>(
    fields: &mut F,
    version: u32,
    parts: &mut CuckooParts,
) -> Result<(), F::Error> {
    fields.number("tables", 8, &mut parts.tables)?;
    fields.number("buckets", 8, &mut parts.buckets)?;
    fields.number("items", 8, &mut parts.items)?;
    if version >= PARAMETERS_SINCE {
        fields.number("deleted", 8, &mut parts.removed)?;
        fields.number("bucket size", 2, &mut parts.bucket_size)?;
        fields.number("iterations", 2, &mut parts.max_kicks)?;
        fields.number("expansion", 2, &mut parts.expansion)?;
    }
    match &mut parts.keyed {
        Some(parts) => keyed(fields, parts),
        None => Ok(()),
    }
}

pub(super) fn load<R: FieldReader>(
    reader: &mut R,
    version: u32,
    limit: u64,
) -> Result<CuckooFilter, ValueError<R::Error>> {
    let parts = CuckooParts {
        bucket_size: 2,
        max_kicks: 20,
        expansion: 1,
        ..CuckooParts::default()
    };
    load_as(parts, reader, version, limit)
}

/// Reads a filter with a chosen error rate.
pub(super) fn load_keyed<R: FieldReader>(
    reader: &mut R,
    limit: u64,
) -> Result<CuckooFilter, ValueError<R::Error>> {
    let parts = CuckooParts {
        keyed: Some(no_keyed()),
        ..CuckooParts::default()
    };
    load_as(parts, reader, NEWEST, limit)
}

fn load_as<R: FieldReader>(
    mut parts: CuckooParts,
    reader: &mut R,
    version: u32,
    limit: u64,
) -> Result<CuckooFilter, ValueError<R::Error>> {
    let mut fields = In(reader, TooWide::Refuse);
    head(&mut fields, version, &mut parts)?;
    parts.validate(limit)?;
    // Takes memory only for tables that have arrived.
    let mut tables = Vec::new();
    for number in 0..parts.tables {
        let (buckets, bytes) = parts.table(number).ok_or(ValueError::Field("tables"))?;
        let mut found = buckets;
        if version >= PARAMETERS_SINCE {
            fields.number("buckets", 8, &mut found)?;
        }
        if found != buckets {
            return Err(ValueError::Field("buckets"));
        }
        tables.push(fields.array(number.into(), bytes)?);
    }
    Ok(CuckooFilter::from_parts_and_slots(&parts, tables, limit)?)
}
