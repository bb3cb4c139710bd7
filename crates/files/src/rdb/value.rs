//! Values of modules.
//!
//! ```text
//! 81 IIIIIIII                            the type's id: a length of 64 bits
//! 01 length                              signed number
//! 02 length                              unsigned number
//! 03 ffff                                f32, little-endian
//! 04 ffffffff                            f64, little-endian
//! 05 string                              bytes
//! 00                                     the end
//! ```
//!
//! An id is the nine characters of the type's name, six bits each, the first in the highest bits,
//! then ten bits of the encoding's version.

use std::io::{self, Read, Write};

use everbloom::Layout;
use everbloom_commands::format::value::{
    FieldReader, FieldWriter, NumberOrBytes, ValueError, load, save, save_array_head,
    save_array_tail, save_head, value_type,
};
use everbloom_commands::{Filter, FilterKind, Parts};

use super::error::{Fault, ReadError, WriteError};
use super::length::{Strings, put_length};
use super::pieces::{each_piece, put_pieces, put_whole};
use super::source::Source;
use crate::limits;

const END: u64 = 0;
const SIGNED: u64 = 1;
const UNSIGNED: u64 = 2;
const FLOAT: u64 = 3;
const DOUBLE: u64 = 4;
const BYTES: u64 = 5;

const fn type_of(kind: FilterKind) -> ModuleType {
    let known = value_type(kind);
    match ModuleType::new(known.name, known.version) {
        Some(module_type) => module_type,
        None => unreachable!(),
    }
}

/// The type of a module's value: its name and the version of its encoding.
///
/// ```
/// # use everbloom_files::rdb::value::ModuleType;
/// let filter = ModuleType::from_id(0x3016_e5a2_89be_f804);
/// assert_eq!((filter.name(), filter.version), ("MBbloom--".into(), 4));
/// assert_eq!(ModuleType::new("MBbloom--", 4), Some(filter));
/// assert_eq!(filter.id(), 0x3016_e5a2_89be_f804);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModuleType {
    /// The characters' numbers.
    name: u64,
    /// Below 1024.
    pub version: u32,
}

impl ModuleType {
    /// The type of that name, if it is one: nine characters of `A-Z a-z 0-9 - _`.
    pub const fn new(name: &str, version: u32) -> Option<ModuleType> {
        if name.len() != 9 || version >> 10 != 0 {
            return None;
        }
        let mut number = 0;
        let mut rest = name.as_bytes();
        while let Some((byte, others)) = rest.split_first() {
            let Some(digit) = digit(*byte) else {
                return None;
            };
            number = number << 6 | digit as u64;
            rest = others;
        }
        Some(ModuleType {
            name: number,
            version,
        })
    }

    /// The type with that id.
    pub fn from_id(id: u64) -> ModuleType {
        let [.., high, low] = id.to_be_bytes();
        ModuleType {
            name: id >> 10,
            version: u16::from_be_bytes([high & 3, low]).into(),
        }
    }

    /// The id.
    pub fn id(self) -> u64 {
        self.name << 10 | u64::from(self.version)
    }

    /// The name.
    pub fn name(self) -> String {
        let digits = (0..9).rev().map(|place| self.name >> (6 * place) & 63);
        digits.filter_map(letter).collect()
    }

    /// The type of filters of a kind, as they are written.
    pub(crate) fn of(kind: FilterKind) -> ModuleType {
        match kind {
            FilterKind::Bloom(Layout::Classic) => {
                const { type_of(FilterKind::Bloom(Layout::Classic)) }
            }
            FilterKind::Bloom(Layout::Blocked) => {
                const { type_of(FilterKind::Bloom(Layout::Blocked)) }
            }
            FilterKind::Cuckoo => const { type_of(FilterKind::Cuckoo) },
            FilterKind::Valkey => const { type_of(FilterKind::Valkey) },
            FilterKind::KeyedCuckoo => const { type_of(FilterKind::KeyedCuckoo) },
        }
    }

    /// The kind of the filters that values of this type are, whatever version.
    pub(crate) fn kind(self) -> Option<FilterKind> {
        let mut kinds = FilterKind::ALL.into_iter();
        kinds.find(|kind| ModuleType::of(*kind).name == self.name)
    }
}

/// The six bits that a character of a name stands for.
const fn digit(byte: u8) -> Option<u8> {
    match byte {
        b'A'..=b'Z' => Some(byte - b'A'),
        b'a'..=b'z' => Some(byte - b'a' + 26),
        b'0'..=b'9' => Some(byte - b'0' + 52),
        b'-' => Some(62),
        b'_' => Some(63),
        _ => None,
    }
}

/// The character that six bits stand for.
fn letter(bits: u64) -> Option<char> {
    let bytes = 0..=u8::MAX;
    bytes
        .filter(|byte| digit(*byte).map(u64::from) == Some(bits))
        .map(char::from)
        .next()
}

/// Writes the value of a filter, from the id to the end of the fields.
pub(crate) fn put_filter<W: Write>(
    out: &mut W,
    strings: &mut Strings,
    filter: &Filter,
) -> io::Result<()> {
    put_length(out, ModuleType::of(filter.kind()).id())?;
    save(filter, &mut Fields { out, strings })?;
    put_end(out)
}

/// The same of a filter of these parts, whose arrays come [piece by piece](put_pieces); each piece
/// belongs to one array.
pub(super) fn put_filter_in_pieces<W: Write>(
    out: &mut W,
    strings: &mut Strings,
    parts: &Parts,
    next: &mut impl FnMut(&mut Vec<u8>) -> Result<(), WriteError>,
) -> Result<(), WriteError> {
    put_length(out, ModuleType::of(parts.kind()).id())?;
    save_head(parts, &mut Fields { out, strings })?;
    for number in 0..parts.arrays() {
        let len = parts.array_bytes(number).unwrap_or_default();
        save_array_head(parts, number, &mut Fields { out, strings })?;
        if len > limits::WHOLE_BYTES.get_u64() {
            put_length(out, BYTES)?;
            put_pieces(out, strings, (len, true), next)?;
        } else {
            let mut bytes = Vec::new();
            each_piece(len, next, |piece| bytes.write_all(piece))?;
            Fields { out, strings }.bytes(&bytes)?;
        }
        save_array_tail(parts, number, &mut Fields { out, strings })?;
    }
    Ok(put_end(out)?)
}

fn put_end(out: &mut impl Write) -> io::Result<()> {
    put_length(out, END)
}

/// Fields on their way out.
struct Fields<'a, W> {
    out: &'a mut W,
    strings: &'a mut Strings,
}

impl<W: Write> FieldWriter for Fields<'_, W> {
    type Error = io::Error;

    fn unsigned(&mut self, value: u64) -> io::Result<()> {
        put_length(self.out, UNSIGNED)?;
        put_length(self.out, value)
    }

    fn double(&mut self, value: f64) -> io::Result<()> {
        put_length(self.out, DOUBLE)?;
        self.out.write_all(&value.to_le_bytes())
    }

    fn bytes(&mut self, value: &[u8]) -> io::Result<()> {
        put_length(self.out, BYTES)?;
        put_whole(self.out, self.strings, value, true)
    }
}

/// Reads the type of a value.
pub(crate) fn module_type<R: Read>(source: &mut Source<R>) -> Result<ModuleType, ReadError> {
    source.length("a module type's id").map(ModuleType::from_id)
}

/// Reads the fields of a filter of that kind and version, and their end.
pub(crate) fn filter<R: Read>(
    source: &mut Source<R>,
    kind: FilterKind,
    version: u32,
    max_bytes: u64,
) -> Result<Filter, ReadError> {
    let loaded = load(kind, &mut FieldsIn(source), version, max_bytes);
    let filter = loaded.map_err(|error| {
        let offset = source.offset();
        match error {
            ValueError::Read(error) => error,
            ValueError::Version { type_name, version } => {
                ReadError::new(offset, Fault::FilterVersion { type_name, version })
            }
            ValueError::Field(name) => {
                ReadError::unexpected(offset, name, "a value that no filter has")
            }
            ValueError::Parts(error) => ReadError::new(offset, Fault::Filter(error)),
            ValueError::Cuckoo(error) => ReadError::new(offset, Fault::Cuckoo(error)),
            ValueError::BitArray { bytes, .. } => {
                ReadError::unexpected(offset, "a bit array", format_args!("{bytes} bytes"))
            }
        }
    })?;
    opcode(source, END, "the end of a filter")?;
    Ok(filter)
}

/// Walks over fields and their end. Returns how many bytes the strings among them have.
pub(crate) fn skip_fields<R: Read>(source: &mut Source<R>) -> Result<u64, ReadError> {
    const WHAT: &str = "a field of a module's value";
    let mut bytes = 0_u64;
    loop {
        let offset = source.offset();
        match source.length(WHAT)? {
            END => return Ok(bytes),
            SIGNED | UNSIGNED => {
                source.length(WHAT)?;
            }
            FLOAT => source.skip(4, WHAT)?,
            DOUBLE => source.skip(8, WHAT)?,
            BYTES => bytes = bytes.saturating_add(source.skip_string(WHAT)?),
            other => return Err(ReadError::unexpected(offset, WHAT, other)),
        }
    }
}

fn opcode<R: Read>(
    source: &mut Source<R>,
    wanted: u64,
    expected: &'static str,
) -> Result<(), ReadError> {
    let offset = source.offset();
    let found = source.length(expected)?;
    if found == wanted {
        return Ok(());
    }
    let found = format_args!("a field of type {found}");
    Err(ReadError::unexpected(offset, expected, found))
}

struct FieldsIn<'a, R>(&'a mut Source<R>);

impl<R: Read> FieldReader for FieldsIn<'_, R> {
    type Error = ReadError;

    fn unsigned(&mut self) -> Result<u64, ReadError> {
        const WHAT: &str = "a whole number of a filter";
        opcode(self.0, UNSIGNED, WHAT)?;
        self.0.length(WHAT)
    }

    fn double(&mut self) -> Result<f64, ReadError> {
        const WHAT: &str = "a floating-point number of a filter";
        opcode(self.0, DOUBLE, WHAT)?;
        self.0.array(WHAT).map(f64::from_le_bytes)
    }

    fn bytes(&mut self, expected: u64) -> Result<Vec<u8>, ReadError> {
        const WHAT: &str = "a string of a filter";
        opcode(self.0, BYTES, WHAT)?;
        self.0.string_within(expected..=expected, WHAT)
    }

    fn number_or_bytes(&mut self, limit: u64) -> Result<NumberOrBytes, ReadError> {
        const WHAT: &str = "a number or a string of a filter";
        let offset = self.0.offset();
        match self.0.length(WHAT)? {
            UNSIGNED => self.0.length(WHAT).map(NumberOrBytes::Number),
            BYTES => self
                .0
                .string_within(0..=limit, WHAT)
                .map(NumberOrBytes::Bytes),
            other => {
                let found = format_args!("a field of type {other}");
                Err(ReadError::unexpected(offset, WHAT, found))
            }
        }
    }
}
