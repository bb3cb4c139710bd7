//! A note in front of a filter's bytes.
//!
//! [`bytes`](crate::bytes) draws it.

use alloc::borrow::ToOwned;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
#[cfg(feature = "std")]
use std::io::{self, Read};

use super::error::BytesError;
#[cfg(feature = "std")]
use super::error::ReadError;
use super::input::{Input, MAGIC, RECORD, VERSION, version};
use crate::hash::murmur64a;

/// The version of bytes with a note in front.
pub(super) const NOTED: u16 = 4;

/// The flag of a critical note.
const CRITICAL: u8 = 1;

/// The bytes before the text.
const START: usize = MAGIC.len() + 6;

const CHECKSUM: usize = size_of::<u64>();

/// A text in front of a filter's bytes, such as what its items are.
///
/// The bytes of a note, followed by those of `to_bytes` or `write_to` of a filter, are a filter
/// with a note. `from_bytes`, `read_from` and [`BloomView`](crate::BloomView) read the filter
/// and skip the note, unless it is critical.
///
/// ```
/// use everbloom::BloomFilter;
/// use everbloom::bytes::{BytesError, Note};
///
/// let mut names = BloomFilter::new(1000, 0.01);
/// names.insert("admin");
/// let note = Note::new("names in small letters").ok_or("too long")?.critical();
/// let bytes = [note.to_bytes(), names.to_bytes()].concat();
///
/// assert_eq!(BloomFilter::from_bytes(&bytes), Err(BytesError::CriticalNote));
/// let (found, filter) = Note::split(&bytes)?;
/// assert_eq!((found, BloomFilter::from_bytes(filter)?), (Some(note), names));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    text: String,
    is_critical: bool,
}

impl Note {
    /// The most bytes of a text.
    pub const MAX_LEN: usize = 4096;

    /// A note with this text, or `None` when it is empty or longer than [`MAX_LEN`](Self::MAX_LEN).
    #[must_use]
    pub fn new(text: impl Into<String>) -> Option<Note> {
        let (text, is_critical) = (text.into(), false);
        (1..=Self::MAX_LEN)
            .contains(&text.len())
            .then_some(Note { text, is_critical })
    }

    /// The note, as one without which the filter answers wrongly: items were changed before they
    /// were inserted, and whoever looks one up must change it, too. Only a program that reads the
    /// note gets the filter.
    #[must_use]
    pub fn critical(self) -> Note {
        let is_critical = true;
        Note {
            is_critical,
            ..self
        }
    }

    /// Whether the filter answers wrongly to those who do not know the note.
    #[must_use]
    pub fn is_critical(&self) -> bool {
        self.is_critical
    }

    /// The text.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The note as bytes, a multiple of 64. Those of the filter follow.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        out.extend(MAGIC);
        out.extend(NOTED.to_le_bytes());
        out.extend([0, u8::from(self.is_critical) * CRITICAL]);
        // At most `MAX_LEN`.
        let len = u16::try_from(self.text.len()).unwrap_or(u16::MAX);
        out.extend(len.to_le_bytes());
        out.extend(self.text.as_bytes());
        out.resize(len_of(self.text.len()) - CHECKSUM, 0);
        out.extend(murmur64a(&out, 0).to_le_bytes());
        out
    }

    /// The note in front of these bytes, if there is one, and the bytes of the filter.
    ///
    /// # Errors
    ///
    /// [`BytesError`] says what is wrong with the note, or that the bytes are not those of a
    /// filter. The bytes of the filter are not checked.
    pub fn split(bytes: &[u8]) -> Result<(Option<Note>, &[u8]), BytesError> {
        if version(bytes)? != NOTED {
            return Ok((None, bytes));
        }
        let mut input = Input(bytes);
        let note = Note::read_after(&input.take()?, |place| {
            place.copy_from_slice(input.slice(place.len())?);
            Ok::<(), BytesError>(())
        })?;
        check_follower(input.0)?;
        Ok((Some(note), input.0))
    }

    /// Reads the note that a reader begins with, if there is one. The second value reads the bytes
    /// of the filter.
    ///
    /// # Errors
    ///
    /// That of the reader, or as [`split`](Self::split).
    #[cfg(feature = "std")]
    pub fn read_from(mut reader: impl Read) -> Result<(Option<Note>, impl Read), ReadError> {
        let mut record = first_record(&mut reader)?;
        let mut note = None;
        if version(&record)? == NOTED {
            let first = record.first_chunk().ok_or(BytesError::Truncated)?;
            let fill = |place: &mut [u8]| reader.read_exact(place).map_err(ReadError::from);
            note = Some(Note::read_after(first, fill)?);
            record = first_record(&mut reader)?;
            check_follower(&record)?;
        }
        Ok((note, io::Cursor::new(record).chain(reader)))
    }

    /// The note that begins with this record of version [`NOTED`]. `fill` gives the next bytes.
    pub(super) fn read_after<E: From<BytesError>>(
        record: &[u8; RECORD],
        mut fill: impl FnMut(&mut [u8]) -> Result<(), E>,
    ) -> Result<Note, E> {
        let mut input = Input(record);
        input.take::<{ MAGIC.len() + size_of::<u16>() }>()?;
        let [zero, flags] = input.take()?;
        let len = usize::from(input.u16()?);
        if len > Self::MAX_LEN {
            return Err(BytesError::Reserved.into());
        }
        let mut bytes = vec![0; len_of(len)];
        let (first, rest) = bytes.split_at_mut(RECORD);
        first.copy_from_slice(record);
        fill(rest)?;
        let (content, checksum) = bytes.split_at(bytes.len() - CHECKSUM);
        if checksum != murmur64a(content, 0).to_le_bytes() {
            return Err(BytesError::HeaderChecksum.into());
        }
        let (text, padding) = content.split_at(START + len);
        let text = core::str::from_utf8(text.get(START..).unwrap_or_default());
        let text = text.map_err(|_| BytesError::Reserved)?;
        let note = Note::new(text.to_owned()).ok_or(BytesError::Reserved)?;
        if zero != 0 || flags > CRITICAL || padding.iter().any(|byte| *byte != 0) {
            return Err(BytesError::Reserved.into());
        }
        Ok(match flags {
            CRITICAL => note.critical(),
            _ => note,
        })
    }

    /// The length of its bytes.
    pub(super) fn len_of_bytes(&self) -> u64 {
        len_of(self.text.len()) as u64
    }
}

/// The next record, or what there is of it.
#[cfg(feature = "std")]
fn first_record(reader: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut record = Vec::new();
    reader.take(RECORD as u64).read_to_end(&mut record)?;
    Ok(record)
}

/// Checks the version of the filter behind a note. These are the bytes of no other file, so without
/// the magic they are damaged.
pub(super) fn check_follower(bytes: &[u8]) -> Result<(), BytesError> {
    match version(bytes) {
        Ok(VERSION) => Ok(()),
        Ok(old @ (1 | 2)) => Err(BytesError::Old(old)),
        Ok(other) => Err(BytesError::Version(other)),
        Err(BytesError::Magic) if bytes.len() < MAGIC.len() => Err(BytesError::Truncated),
        Err(BytesError::Magic) => Err(BytesError::Reserved),
        Err(error) => Err(error),
    }
}

/// The bytes of a note whose text has this length.
fn len_of(text: usize) -> usize {
    (START + text + CHECKSUM).next_multiple_of(RECORD)
}
