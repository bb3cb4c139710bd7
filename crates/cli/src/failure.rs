//! Why a subcommand ended early, and the exit code for that.

use std::fmt::Display;
use std::io::{self, Write};
use std::path::Path;

use everbloom::{BuildError, InsertError};

use crate::number::grouped;

/// Writes lines to stderr, each behind the program's name.
pub(crate) fn say(text: &str) {
    for line in text.lines() {
        // Ignore the error: if stderr is closed, nobody can read it.
        let _ = writeln!(io::stderr(), "everbloom: {line}");
    }
}

/// Why a subcommand ended early.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// A server that cannot be reached; it is named.
    #[error("{0}")]
    Connect(String),
    /// The connection to a server has ended.
    #[error("{0}")]
    Ended(String),
    /// A server's answer is an error, with this text.
    #[error("the server refused: {0}")]
    Refused(String),
    #[error("{}", described(.0))]
    Io(#[from] io::Error),
    /// Filters that cannot be merged.
    #[error("{0}")]
    Unlike(String),
    /// One filter of a server that cannot be read or written. Others can.
    #[error("{0}")]
    Filter(String),
    #[error("{0}")]
    Other(String),
}

impl Failure {
    pub(crate) fn other(why: impl Into<String>) -> Self {
        Self::Other(why.into())
    }

    /// One filter of a server that cannot be read or written.
    pub(crate) fn filter(why: impl Into<String>) -> Self {
        Self::Filter(why.into())
    }

    /// The same, and what to do next.
    pub(crate) fn then(self, next: &str) -> Self {
        Self::Other(format!("{self}{next}"))
    }

    /// There is no filter of this capacity.
    pub(crate) fn unmade(capacity: u64, error: BuildError) -> Self {
        let why = match error {
            BuildError::OutOfMemory { bytes } => {
                format!("there is no memory for its {} bytes", grouped(bytes))
            }
            BuildError::TooLarge { bytes } => {
                format!("its {} bytes are over the limit", grouped(bytes))
            }
            other => other.to_string(),
        };
        Self::unmade_because(capacity, why)
    }

    /// A filter that cannot be made, and why.
    pub(crate) fn unmade_because(capacity: u64, why: impl Display) -> Self {
        Self::Other(format!(
            "cannot make a filter for {} records: {why}; give a smaller --capacity or a larger \
             --error-rate",
            grouped(capacity)
        ))
    }

    /// A filter that must grow for the next record, and cannot.
    pub(crate) fn ungrown(error: InsertError) -> Self {
        Self::Other(match error {
            InsertError::OutOfMemory { bytes } => format!(
                "the filter must grow, and there is no memory for the {} bytes",
                grouped(bytes)
            ),
            InsertError::CannotGrow => {
                "the filter must grow, and cannot keep its error rate then".to_owned()
            }
            InsertError::Full | InsertError::Copies => error.to_string(),
        })
    }

    /// A file or a folder that cannot be used.
    pub(crate) fn of_file(deed: &str, path: &Path, error: impl Display) -> Self {
        Self::Other(format!("cannot {deed} {}: {error}", path.display()))
    }

    /// 2 for every error. 1 is an answer of the subcommand, as in grep.
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            failure if failure.is_unread() => 0,
            _ => 2,
        }
    }

    /// Whether the reader of our output has ended, as in `| head`. This is not an error.
    fn is_unread(&self) -> bool {
        matches!(self, Failure::Io(error) if error.kind() == io::ErrorKind::BrokenPipe)
    }
}

/// For a subcommand whose exit code is its answer: that stays, though nobody reads the rest.
pub(crate) fn unless_unread(written: Result<(), Failure>) -> Result<(), Failure> {
    match written {
        Err(failure) if failure.is_unread() => Ok(()),
        written => written,
    }
}

/// What failed is standard input or output, unless the error says more than the system does.
fn described(error: &io::Error) -> String {
    use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    match (error.raw_os_error(), error.kind()) {
        (None, _) => error.to_string(),
        // Reading never gives these errors.
        (Some(_), StorageFull | QuotaExceeded | FileTooLarge) => {
            format!("cannot write the output: {error}")
        }
        (Some(_), _) => format!("cannot read the input or write the output: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_reader_that_has_enough_is_no_error() {
        assert_eq!(Failure::Ended("closed".into()).exit_code(), 2);
        let pipe = io::Error::from(io::ErrorKind::BrokenPipe);
        assert_eq!(Failure::Io(pipe).exit_code(), 0);
        let written = |kind| unless_unread(Err(Failure::Io(io::Error::from(kind))));
        assert!(written(io::ErrorKind::BrokenPipe).is_ok());
        assert!(written(io::ErrorKind::StorageFull).is_err());
    }
}
