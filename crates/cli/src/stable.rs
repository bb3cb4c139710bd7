//! The library's stable bytes in a file: which type of filter they are, and the filter.
//!
//! The fuzzer reads files with this code, so it uses the library only.

use std::io::{self, Read, Seek, SeekFrom};

use everbloom::bytes::{BytesError, Note, ReadError};
use everbloom::host::LayeredFilter;
use everbloom::{BloomFilter, CuckooFilter};

/// The first bytes of a file, which tell its length.
const HEADER: u64 = 64;

/// Where the header has the length of the whole.
const LENGTH_AT: usize = 48;

/// Where the version is, in every version.
const VERSION_AT: usize = 8;

/// The version of a note.
const NOTED: u16 = 4;

/// Where a note has the length of its text.
const TEXT_LEN_AT: usize = 12;

/// The bytes of a note before its text, and those of the checksum behind it.
const AROUND_TEXT: u64 = 14 + 8;

/// A filter of ours, of any type.
#[derive(Debug)]
pub(crate) enum OwnFilter {
    Fixed(BloomFilter),
    Growing(LayeredFilter),
    Cuckoo(CuckooFilter),
}

/// Reads the filter of a file that has `found` bytes, and the note in front of it. All of it is
/// checked.
pub(crate) fn read(
    mut file: impl Read + Seek,
    found: u64,
) -> Result<(Option<Note>, OwnFilter), ReadError> {
    let note = read_note(&mut file)?;
    let start = file.stream_position()?;
    let filter = read_filter(file, start, found.saturating_sub(start))?;
    Ok((note, filter))
}

/// Reads the note, if there is one. The filter follows.
fn read_note(mut file: impl Read + Seek) -> Result<Option<Note>, ReadError> {
    file.seek(SeekFrom::Start(0))?;
    let note = Note::read_from(&mut file).map(|(note, _)| note)?;
    let start = note.as_ref().map_or(0, |note| note.to_bytes().len() as u64);
    file.seek(SeekFrom::Start(start))?;
    Ok(note)
}

/// Reads the filter that begins at `start` and has `found` bytes.
fn read_filter(mut file: impl Read + Seek, start: u64, found: u64) -> Result<OwnFilter, ReadError> {
    let mut header = next_header(&mut file)?;
    let length = header.get(LENGTH_AT..).and_then(<[u8]>::first_chunk);
    if length.is_some_and(|bytes| u64::from_le_bytes(*bytes) == found) {
        // The header does not announce more than there is.
        match LayeredFilter::read_from(header.chain(&mut file)) {
            Err(ReadError::Bytes(BytesError::Kind)) => {
                file.seek(SeekFrom::Start(start))?;
                match BloomFilter::read_from(&mut file) {
                    // The bytes in memory say which type they are.
                    Err(ReadError::Bytes(BytesError::Kind)) => {
                        file.seek(SeekFrom::Start(start))?;
                        header = next_header(&mut file)?;
                    }
                    fixed => return fixed.map(OwnFilter::Fixed),
                }
            }
            // Old versions have another number there. Only the header was read.
            Err(ReadError::Bytes(BytesError::Old(_))) => {}
            growing => return growing.map(OwnFilter::Growing),
        }
    }
    // The file is damaged, of an old version, or something else. The check of bytes in memory says
    // which. It gets only the beginning, because a foreign file may be huge.
    let magic_and_version = header.get(..10).unwrap_or_default();
    if let Err(error @ (BytesError::Magic | BytesError::Version(_))) =
        LayeredFilter::from_bytes(magic_and_version)
    {
        return Err(error.into());
    }
    file.read_to_end(&mut header)?;
    Ok(of_bytes(&header)?)
}

/// The filter that these bytes are.
fn of_bytes(bytes: &[u8]) -> Result<OwnFilter, BytesError> {
    match LayeredFilter::from_bytes(bytes) {
        Err(BytesError::Kind) => {}
        growing => return growing.map(OwnFilter::Growing),
    }
    match BloomFilter::from_bytes(bytes) {
        Err(BytesError::Kind) => CuckooFilter::from_bytes(bytes).map(OwnFilter::Cuckoo),
        fixed => fixed.map(OwnFilter::Fixed),
    }
}

/// The first bytes of the file, as many as a header has or the file.
pub(crate) fn read_start(mut file: impl Read + Seek) -> io::Result<Vec<u8>> {
    file.rewind()?;
    next_header(file)
}

/// The first bytes of the filter, behind a note if there is one. A damaged note is skipped, too: it
/// tells its length, and a filter begins with its magic.
pub(crate) fn read_header(mut file: impl Read + Seek) -> io::Result<Vec<u8>> {
    let start = read_start(&mut file)?;
    match note_len(&start) {
        None => Ok(start),
        Some(len) => {
            file.seek(SeekFrom::Start(len))?;
            next_header(file)
        }
    }
}

/// The length of the note that a file begins with, as these first bytes of it say.
fn note_len(start: &[u8]) -> Option<u64> {
    let field = |at: usize| start.get(at..).and_then(<[u8]>::first_chunk);
    if field(VERSION_AT).copied().map(u16::from_le_bytes) != Some(NOTED) {
        return None;
    }
    let text = field(TEXT_LEN_AT).map_or(0, |len| u64::from(u16::from_le_bytes(*len)));
    Some((AROUND_TEXT + text).next_multiple_of(HEADER))
}

fn next_header(file: impl Read) -> io::Result<Vec<u8>> {
    let mut header = Vec::new();
    file.take(HEADER).read_to_end(&mut header)?;
    Ok(header)
}

#[cfg(test)]
#[allow(
    clippy::cast_possible_truncation,
    reason = "it makes bytes for 64-bit machines"
)]
#[path = "../../../fuzz/inputs/state.rs"]
mod input;

#[cfg(test)]
mod tests {
    use everbloom_dev::corpus::seeds;

    use super::input;

    #[test]
    fn what_ends_in_its_header_is_no_filter() {
        let whole = everbloom::BloomFilter::new(100, 0.01).to_bytes();
        assert!(input::check(&whole));
        for len in 0..whole.len() {
            assert!(!input::check(&whole[..len]), "{len}");
        }
    }

    #[test]
    fn the_fuzzers_seeds() {
        let (mut taken, mut refused) = (0, 0);
        for (_, seed) in seeds("state") {
            for file in input::files(&seed) {
                if input::check(&file) {
                    taken += 1;
                } else {
                    refused += 1;
                }
            }
        }
        assert!(taken > 5 && refused > 5, "{taken} {refused}");
    }
}
