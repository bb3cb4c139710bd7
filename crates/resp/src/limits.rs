//! The limits on requests, and the errors of requests that are malformed or over a limit.

use thiserror::Error;

/// The limits on one request. The defaults are those of Redis 7, except for `max_args`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The most arguments of one request, the command's name included. Default 1 048 576, as in
    /// Redis 6; Redis 7 takes 2^31 - 1.
    pub max_args: usize,
    /// The longest argument in bytes, `proto-max-bulk-len`. Default 512 MiB.
    pub max_bulk: usize,
    /// The longest inline request in bytes without its `\n`, and the longest line with a count or
    /// a length. Default 64 KiB.
    pub max_inline: usize,
    /// Whether the client has authenticated. Default true.
    ///
    /// If false, a request may have at most [`Limits::UNAUTHENTICATED_ARGS`] arguments of at most
    /// [`Limits::UNAUTHENTICATED_BULK`] bytes each. A parse then ends after one request, because
    /// that request may be the `AUTH` that lifts these limits for the next one. See
    /// [`RequestParser::has_more`](crate::RequestParser::has_more).
    pub authenticated: bool,
    /// Whether each request must be written as Redis writes it in a file: it begins with `*`, has
    /// arguments, and each of its lines and arguments ends in `\r\n`. Default false.
    pub strict: bool,
}

impl Limits {
    /// The most arguments of a request before authentication.
    pub const UNAUTHENTICATED_ARGS: usize = 10;
    /// The longest argument in bytes before authentication.
    pub const UNAUTHENTICATED_BULK: usize = 16_384;

    /// The most arguments that this client may use now.
    pub(crate) fn args_now(&self) -> usize {
        if self.authenticated {
            self.max_args
        } else {
            self.max_args.min(Self::UNAUTHENTICATED_ARGS)
        }
    }

    /// The longest argument that this client may use now.
    pub(crate) fn bulk_now(&self) -> usize {
        if self.authenticated {
            self.max_bulk
        } else {
            self.max_bulk.min(Self::UNAUTHENTICATED_BULK)
        }
    }

    /// Checks what ends at `at`, a line or an argument.
    pub(crate) fn check_line_end(&self, buf: &[u8], at: usize) -> Result<(), ProtocolError> {
        match self.strict && !is_line_end(buf, at) {
            true => Err(ProtocolError::NotStrict),
            false => Ok(()),
        }
    }

    /// The error of a count above [`Limits::args_now`].
    #[cold]
    pub(crate) fn args_error(&self, count: usize) -> ProtocolError {
        if count > self.max_args {
            ProtocolError::InvalidMultibulkLength
        } else {
            ProtocolError::UnauthenticatedMultibulkLength
        }
    }

    /// The error of a length above [`Limits::bulk_now`].
    #[cold]
    pub(crate) fn bulk_error(&self, len: usize) -> ProtocolError {
        if len > self.max_bulk {
            ProtocolError::InvalidBulkLength
        } else {
            ProtocolError::UnauthenticatedBulkLength
        }
    }
}

/// Whether `\r\n` ends at `at`.
#[inline]
pub(crate) fn is_line_end(buf: &[u8], at: usize) -> bool {
    buf.get(..at).and_then(<[u8]>::last_chunk) == Some(b"\r\n")
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_args: 1_048_576,
            max_bulk: 512 << 20,
            max_inline: 64 << 10,
            authenticated: true,
            strict: false,
        }
    }
}

/// Why a connection is closed: the start of the next request is unknown.
///
/// `Display` gives the text that Redis 7 sends after `-ERR `, except for
/// [`ProtocolError::ControlCharacter`], which Redis does not refuse. [`ProtocolError::encode`]
/// writes the whole reply. After sending it the server closes the connection.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum ProtocolError {
    /// The number of arguments is not a number, or is above the limit.
    #[error("Protocol error: invalid multibulk length")]
    InvalidMultibulkLength,
    /// The length of an argument is not a number, is negative, or is above the limit.
    #[error("Protocol error: invalid bulk length")]
    InvalidBulkLength,
    /// A line or an argument does not end in `\r\n`, or a request has no arguments or is inline:
    /// see [`Limits::strict`].
    #[error("Protocol error: malformed request")]
    NotStrict,
    /// An argument begins with this byte instead of `$`.
    #[error("Protocol error: expected '$', got '{}'", shown(*.0))]
    ExpectedDollar(u8),
    /// The line with the number of arguments is longer than [`Limits::max_inline`].
    #[error("Protocol error: too big mbulk count string")]
    TooBigMultibulkCount,
    /// The line with the length of an argument is longer than [`Limits::max_inline`].
    #[error("Protocol error: too big bulk count string")]
    TooBigBulkCount,
    /// An inline request is longer than [`Limits::max_inline`].
    #[error("Protocol error: too big inline request")]
    TooBigInline,
    /// An inline request contains a byte below 0x20 other than tab and carriage return.
    #[error("Protocol error: control character in inline request")]
    ControlCharacter,
    /// A quote in an inline request is not closed, or no space follows it.
    #[error("Protocol error: unbalanced quotes in request")]
    UnbalancedQuotes,
    /// Too many arguments for a client that has not authenticated.
    #[error("Protocol error: unauthenticated multibulk length")]
    UnauthenticatedMultibulkLength,
    /// An argument too long for a client that has not authenticated.
    #[error("Protocol error: unauthenticated bulk length")]
    UnauthenticatedBulkLength,
    /// There is no memory for the list of the arguments.
    #[error("no memory for the arguments of a request")]
    OutOfMemory,
}

impl ProtocolError {
    /// Appends the error reply, byte for byte as Redis sends it where Redis knows the error.
    pub fn encode(&self, out: &mut Vec<u8>) {
        if let Self::ExpectedDollar(byte) = *self {
            // Display cannot write this byte unchanged: it may not be ASCII.
            let byte = if matches!(byte, b'\r' | b'\n') {
                b' '
            } else {
                byte
            };
            out.extend_from_slice(b"-ERR Protocol error: expected '$', got '");
            out.push(byte);
            out.extend_from_slice(b"'\r\n");
        } else {
            crate::encode::encode_error(&format!("ERR {self}"), out);
        }
    }
}

/// A byte as the text of an error shows it.
fn shown(byte: u8) -> char {
    match byte {
        b'\r' | b'\n' => ' ',
        byte => char::from(byte),
    }
}
