//! Why there is no reply.

use std::io::{self, ErrorKind};

use everbloom_resp::DecodeError;

use super::place::Place;

/// Why there is no reply.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ClientError {
    #[error("cannot connect to {place}: {source}")]
    Connect { place: Place, source: io::Error },
    /// The address or the files of TLS are wrong.
    #[error("{0}")]
    Settings(String),
    #[error("the connection broke: {0}")]
    Broken(#[source] io::Error),
    #[error("the server closed the connection")]
    Closed,
    #[error(
        "the server closed the connection without a reply; is this a port of TLS? try --tls or \
         rediss://"
    )]
    ClosedUnheard,
    #[error("the server was silent for too long")]
    Silent,
    #[error("the server sent something that is not RESP: {0}")]
    NotResp(#[from] DecodeError),
    #[error("the server refused: {text}")]
    Refused { text: String },
    #[error("the server sent an answer of an unexpected kind to {command}")]
    Unexpected { command: &'static str },
}

impl ClientError {
    /// Whether it is what was asked for: a server ends the connection as its answer to SHUTDOWN.
    pub(crate) fn is_answer_to(&self, request: &[&[u8]]) -> bool {
        let is_end = matches!(self, Self::Closed | Self::ClosedUnheard | Self::Broken(_));
        let name = request.first();
        is_end && name.is_some_and(|name| name.eq_ignore_ascii_case(b"shutdown"))
    }

    pub(super) fn of_socket(error: io::Error) -> Self {
        match error.kind() {
            // Systems differ in what they call a timeout.
            ErrorKind::WouldBlock | ErrorKind::TimedOut => Self::Silent,
            _ => Self::Broken(error),
        }
    }
}
