//! Reads that go on after a signal.

use std::io::{self, Read};

/// A read that a signal does not end.
pub(crate) fn read_again(reader: &mut (impl Read + ?Sized), place: &mut [u8]) -> io::Result<usize> {
    loop {
        match reader.read(place) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            outcome => return outcome,
        }
    }
}
