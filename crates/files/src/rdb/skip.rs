//! Values of types that this server does not keep: how to get past them.

use std::io::Read;

use super::VALKEY_VERSION;
use super::error::ReadError;
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
    let mut value = Foreign { source, name };
    match kind {
        // Plain lists and sets, lists of ziplists.
        1 | 2 | 14 => value.elements(|it| it.strings(1))?,
        3 => value.elements(|it| {
            it.strings(1)?;
            it.decimal()
        })?,
        5 => value.elements(|it| {
            it.strings(1)?;
            it.bytes(8)
        })?,
        4 => value.elements(|it| it.strings(2))?,
        // Lists of listpacks and plain nodes: which of both, then the node.
        18 => value.elements(|it| {
            it.lengths(1)?;
            it.strings(1)
        })?,
        // Hashes with an expiry for each field: Valkey's, and Redis's before and after the
        // earliest of them came first.
        22 if version == VALKEY_VERSION => value.elements(|it| {
            it.strings(2)?;
            it.bytes(TIME)
        })?,
        22 => value.elements(Foreign::expiring)?,
        24 => {
            value.bytes(TIME)?;
            value.elements(Foreign::expiring)?;
        }
        25 => {
            value.bytes(TIME)?;
            value.strings(1)?;
        }
        15 | 19 | 21 => value.stream(kind)?,
        // All that are one string: zipmap, ziplist, intset, listpack.
        _ => value.strings(1)?,
    }
    Ok(Some(name))
}

/// A value that is walked over, and the name of its type.
struct Foreign<'s, R> {
    source: &'s mut Source<R>,
    name: &'static str,
}

impl<R: Read> Foreign<'_, R> {
    fn bytes(&mut self, len: u64) -> Result<(), ReadError> {
        self.source.skip(len, self.name)
    }

    fn strings(&mut self, count: usize) -> Result<(), ReadError> {
        (0..count).try_for_each(|_| self.source.skip_string(self.name).map(drop))
    }

    fn lengths(&mut self, count: usize) -> Result<(), ReadError> {
        (0..count).try_for_each(|_| self.source.length(self.name).map(drop))
    }

    fn elements(
        &mut self,
        skip: impl Fn(&mut Self) -> Result<(), ReadError>,
    ) -> Result<(), ReadError> {
        let count = self.source.length(self.name)?;
        (0..count).try_for_each(|_| skip(self))
    }

    /// A number in decimal behind a byte that is its length, or says that it is not finite.
    fn decimal(&mut self) -> Result<(), ReadError> {
        match self.source.byte(self.name)? {
            253.. => Ok(()),
            digits => self.bytes(digits.into()),
        }
    }

    /// A field of a hash: expiry, name, value.
    fn expiring(&mut self) -> Result<(), ReadError> {
        self.lengths(1)?;
        self.strings(2)
    }

    fn stream(&mut self, kind: u8) -> Result<(), ReadError> {
        let (second, third) = (kind >= 19, kind >= 21);
        // Nodes: the first id, a listpack.
        self.elements(|it| it.strings(2))?;
        // Length and last id; first id, greatest deleted id, entries ever added.
        self.lengths(if second { 8 } else { 3 })?;
        self.elements(|it| {
            it.strings(1)?;
            // Last id delivered; entries read.
            it.lengths(if second { 3 } else { 2 })?;
            // Pending entries: id, time and count of deliveries.
            it.elements(|it| {
                it.bytes(STREAM_ID + TIME)?;
                it.lengths(1)
            })?;
            // Consumers: name, last seen and last active, ids of their pending entries.
            it.elements(|it| {
                it.strings(1)?;
                it.bytes(if third { 2 * TIME } else { TIME })?;
                it.elements(|it| it.bytes(STREAM_ID))
            })
        })
    }
}
