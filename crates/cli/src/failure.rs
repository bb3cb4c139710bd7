//! Why a subcommand ended early, and the exit code for that.

use std::io;

use crate::client::ClientError;
use crate::filter_file::FilterFileError;

/// Why a subcommand ended early. The exit code depends on the kind, so that scripts can distinguish
/// a server that refused from a server that was not there.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    #[error(transparent)]
    Client(#[from] ClientError),
    #[error(transparent)]
    FilterFile(#[from] FilterFileError),
    #[error("{}", described(.0))]
    Io(#[from] io::Error),
    #[error("{0}")]
    Usage(String),
    /// Filters that cannot be merged.
    #[error("{0}")]
    Unlike(String),
    #[error("{0}")]
    Server(String),
    /// A server was lost in the middle of the work.
    #[error("{0}")]
    Lost(String),
}

impl Failure {
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Failure::Client(ClientError::Refused { .. }) | Failure::Server(_) => 1,
            // The reader of our output has ended, as in `| head`. This is not an error.
            Failure::Io(error) if error.kind() == io::ErrorKind::BrokenPipe => 0,
            Failure::Client(_)
            | Failure::FilterFile(_)
            | Failure::Io(_)
            | Failure::Usage(_)
            | Failure::Unlike(_)
            | Failure::Lost(_) => 2,
        }
    }
}

/// What failed is standard input or output, unless the error says more than the system does.
fn described(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(_) => format!("cannot read the input or write the output: {error}"),
        None => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exit_codes_tell_a_refusal_from_an_absent_server() {
        let refused = Failure::Client(ClientError::Refused {
            text: "ERR no".into(),
        });
        assert_eq!(refused.exit_code(), 1);
        assert_eq!(Failure::Client(ClientError::Closed).exit_code(), 2);
        let pipe = io::Error::from(io::ErrorKind::BrokenPipe);
        assert_eq!(Failure::Io(pipe).exit_code(), 0);
    }
}
