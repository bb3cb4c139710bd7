//! Standard output without a buffer, and how much of a chunk reached it.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;

use super::input::Source;
use crate::failure::Failure;

/// Standard output.
#[derive(Debug)]
pub(crate) struct Output {
    file: File,
    /// Whether a sync has failed. The system reports that once.
    is_lost: bool,
}

/// Refuses an input that is also the output: what is written would be read again, for ever, or would
/// destroy what was to be read.
pub(crate) fn check_apart<'a>(
    output: &File,
    inputs: impl IntoIterator<Item = &'a Source>,
) -> Result<(), Failure> {
    let output = output.metadata()?;
    match inputs.into_iter().find(|input| input.is_file(&output)) {
        None => Ok(()),
        Some(input) => {
            let name = input.name();
            let why = format!("{name}: input file is also the output");
            Err(Failure::Other(why))
        }
    }
}

/// The bytes that were written before an error, and the error.
pub(crate) type Unwritten = (usize, io::Error);

impl Output {
    /// The standard output of the library would cut what it writes at a line. None of the inputs may
    /// be the output.
    pub(crate) fn stdout<'a>(
        inputs: impl IntoIterator<Item = &'a Source>,
    ) -> Result<Self, Failure> {
        let file = File::from(io::stdout().as_fd().try_clone_to_owned()?);
        check_apart(&file, inputs)?;
        let is_lost = false;
        Ok(Self { file, is_lost })
    }

    /// Waits until what was written is on the disk, if the output is a file on one.
    pub(crate) fn sync(&mut self) -> io::Result<()> {
        if !self.file.metadata()?.is_file() {
            return Ok(());
        }
        match self.file.sync_data() {
            // There is no disk, as in /proc.
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => Ok(()),
            Err(error) => {
                self.is_lost = true;
                Err(error)
            }
            Ok(()) => Ok(()),
        }
    }

    /// Whether a sync has failed, so that nobody knows what is on the disk.
    pub(crate) fn is_lost(&self) -> bool {
        self.is_lost
    }

    /// Some file systems, such as NFS, tell only now that they could not write.
    pub(crate) fn close(self) -> io::Result<()> {
        Ok(nix::unistd::close(self.file)?)
    }

    /// Writes all of it, or says how much it wrote.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<(), Unwritten> {
        let mut rest = bytes;
        while !rest.is_empty() {
            let written = bytes.len() - rest.len();
            match self.file.write(rest) {
                Ok(0) => return Err((written, io::ErrorKind::WriteZero.into())),
                Ok(count) => rest = rest.get(count..).unwrap_or_default(),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err((written, error)),
            }
        }
        Ok(())
    }
}
