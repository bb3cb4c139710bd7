//! Standard output without a buffer, and how much of a chunk reached it.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;

/// Standard output.
#[derive(Debug)]
pub(crate) struct Output(File);

/// The bytes that were written before an error, and the error.
pub(crate) type Unwritten = (usize, io::Error);

impl Output {
    /// The standard output of the library would cut what it writes at a line.
    pub(crate) fn stdout() -> io::Result<Self> {
        Ok(Self(io::stdout().as_fd().try_clone_to_owned()?.into()))
    }

    /// Writes all of it, or says how much it wrote.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<(), Unwritten> {
        let mut rest = bytes;
        while !rest.is_empty() {
            let written = bytes.len() - rest.len();
            match self.0.write(rest) {
                Ok(0) => return Err((written, io::ErrorKind::WriteZero.into())),
                Ok(count) => rest = rest.get(count..).unwrap_or_default(),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err((written, error)),
            }
        }
        Ok(())
    }
}
