//! Inputs of the target `state`, and what must be true of them: files as `check` and
//! `dedup --state` open them.
//!
//! An input is tried as it is, and with its checksums made right.

use std::io::Cursor;

use everbloom::bytes::{Note, ReadError};
use everbloom::host::LayeredFilter;
use everbloom::{BloomFilter, CuckooFilter};

use crate::stable::{self, OwnFilter};

#[path = "../../crates/filters/tests/bytes/sealed.rs"]
mod sealed;

/// The files of an input.
pub(crate) fn files(input: &[u8]) -> [Vec<u8>; 2] {
    [input.to_vec(), sealed::sealed(input.to_vec())]
}

/// Reads a file; it is the filter that its bytes are, or they are none. Whether it was a filter.
pub(crate) fn check(file: &[u8]) -> bool {
    let (note, filter) = Note::split(file).unwrap_or((None, file));
    let scalable = LayeredFilter::from_bytes(filter);
    let fixed = BloomFilter::from_bytes(filter);
    let cuckoo = CuckooFilter::from_bytes(filter);
    match stable::read(Cursor::new(file), file.len() as u64) {
        Ok((found, OwnFilter::Growing(filter))) => assert!((found, scalable) == (note, Ok(filter))),
        Ok((found, OwnFilter::Fixed(filter))) => assert!((found, fixed) == (note, Ok(filter))),
        Ok((found, OwnFilter::Cuckoo(filter))) => assert!((found, cuckoo) == (note, Ok(filter))),
        Err(ReadError::Bytes(_)) => {
            // Of two faults each way may name another one.
            assert!(scalable.is_err() && fixed.is_err() && cuckoo.is_err());
            return false;
        }
        Err(ReadError::Io(error)) => panic!("bytes in memory end where they end: {error}"),
    }
    let header = stable::read_header(Cursor::new(file)).unwrap();
    assert!(filter.starts_with(&header));
    true
}
