//! Values of types that this server does not keep: how to get past them.

use std::io::Read;

use super::VALKEY_VERSION;
use super::error::ReadError;
use super::length::{length, skip_string};
use super::source::Source;

/// A stream's entry id as it is, 64 + 64 bits.
const STREAM_ID: u64 = 16;
/// A point in time.
const TIME: u64 = 8;

/// Walks over a value of a file of that version; answers the name of its type, or nothing when
/// there is no such type.
pub(crate) fn skip_value<R: Read>(
    source: &mut Source<R>,
    version: u16,
    kind: u8,
) -> Result<Option<&'static str>, ReadError> {
    let name = match kind {
        1 | 10 | 14 | 18 => "list",
        2 | 11 | 20 => "set",
        3 | 5 | 12 | 17 => "zset",
        4 | 9 | 13 | 16 | 22..=25 => "hash",
        15 | 19 | 21 => "stream",
        _ => return Ok(None),
    };
    match kind {
        // Plain lists and sets, lists of ziplists.
        1 | 2 | 14 => elements(source, name, |source| skip_string(source, name))?,
        3 => elements(source, name, |source| {
            skip_string(source, name)?;
            skip_decimal(source, name)
        })?,
        5 => elements(source, name, |source| {
            skip_string(source, name)?;
            source.skip(8, name)
        })?,
        4 => elements(source, name, |source| strings(source, 2, name))?,
        // Lists of listpacks and plain nodes: which of both, then the node.
        18 => elements(source, name, |source| {
            length(source, name)?;
            skip_string(source, name)
        })?,
        // Hashes with an expiry for each field: Valkey's, and Redis's before and after the
        // earliest of them came first.
        22 if version == VALKEY_VERSION => elements(source, name, |source| {
            strings(source, 2, name)?;
            source.skip(TIME, name)
        })?,
        22 => elements(source, name, |source| skip_expiring(source, name))?,
        24 => {
            source.skip(TIME, name)?;
            elements(source, name, |source| skip_expiring(source, name))?;
        }
        25 => {
            source.skip(TIME, name)?;
            skip_string(source, name)?;
        }
        15 | 19 | 21 => skip_stream(source, kind, name)?,
        // All that are one string: zipmap, ziplist, intset, listpack.
        _ => skip_string(source, name)?,
    }
    Ok(Some(name))
}

fn elements<R: Read>(
    source: &mut Source<R>,
    name: &'static str,
    mut skip: impl FnMut(&mut Source<R>) -> Result<(), ReadError>,
) -> Result<(), ReadError> {
    for _ in 0..length(source, name)? {
        skip(source)?;
    }
    Ok(())
}

fn strings<R: Read>(
    source: &mut Source<R>,
    count: usize,
    name: &'static str,
) -> Result<(), ReadError> {
    for _ in 0..count {
        skip_string(source, name)?;
    }
    Ok(())
}

fn lengths<R: Read>(
    source: &mut Source<R>,
    count: usize,
    name: &'static str,
) -> Result<(), ReadError> {
    for _ in 0..count {
        length(source, name)?;
    }
    Ok(())
}

/// A number in decimal behind a byte that is its length, or says that it is not finite.
fn skip_decimal<R: Read>(source: &mut Source<R>, name: &'static str) -> Result<(), ReadError> {
    match source.byte(name)? {
        253.. => Ok(()),
        digits => source.skip(digits.into(), name),
    }
}

/// A field of a hash: expiry, name, value.
fn skip_expiring<R: Read>(source: &mut Source<R>, name: &'static str) -> Result<(), ReadError> {
    length(source, name)?;
    strings(source, 2, name)
}

fn skip_stream<R: Read>(
    source: &mut Source<R>,
    kind: u8,
    name: &'static str,
) -> Result<(), ReadError> {
    let (second, third) = (kind >= 19, kind >= 21);
    // Nodes: the first id, a listpack.
    elements(source, name, |source| strings(source, 2, name))?;
    // Length and last id; first id, greatest deleted id, entries ever added.
    lengths(source, if second { 8 } else { 3 }, name)?;
    elements(source, name, |source| {
        skip_string(source, name)?;
        // Last id delivered; entries read.
        lengths(source, if second { 3 } else { 2 }, name)?;
        // Pending entries: id, time and count of deliveries.
        elements(source, name, |source| {
            source.skip(STREAM_ID + TIME, name)?;
            lengths(source, 1, name)
        })?;
        // Consumers: name, last seen and last active, ids of their pending entries.
        elements(source, name, |source| {
            skip_string(source, name)?;
            source.skip(if third { 2 * TIME } else { TIME }, name)?;
            elements(source, name, |source| source.skip(STREAM_ID, name))
        })
    })
}
