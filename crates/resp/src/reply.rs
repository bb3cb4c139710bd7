//! One type for everything that a server can answer.

use std::borrow::Cow;

/// A reply, independent of the protocol version that carries it.
///
/// A command says what it means, such as a boolean or a map. [`encode`](crate::encode()) writes it
/// as the connection's [`Protocol`](crate::Protocol) has it.
///
/// | variant | RESP2 | RESP3 |
/// |---|---|---|
/// | `Simple` | `+OK` | `+OK` |
/// | `Error` | `-ERR text` | `-ERR text` |
/// | `Integer` | `:7` | `:7` |
/// | `Bulk` | `$3` | `$3` |
/// | `Verbatim` | `$4` | `=8`, `txt:` and the text |
/// | `Null` | `$-1` | `_` |
/// | `NullArray` | `*-1` | `_` |
/// | `Array` | `*2` | `*2` |
/// | `Set` | `*2` | `~2` |
/// | `Push` | `*2` | `>2` |
/// | `Map` of 2 pairs | `*4` | `%2` |
/// | `Boolean` | `:1` | `#t` |
/// | `Double` | bulk `1.5` | `,1.5` |
/// | `BigNumber` | bulk | `(123` |
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    /// A short status such as `OK`. A line break in it is sent as a space.
    Simple(Cow<'static, str>),
    /// The text behind the `-`. It begins with its code: `ERR not found`. Line breaks are sent as
    /// spaces.
    Error(Cow<'static, str>),
    /// A signed 64-bit number.
    Integer(i64),
    /// A string of any bytes.
    Bulk(Vec<u8>),
    /// Text for people, as `INFO` answers it.
    Verbatim(Cow<'static, str>),
    /// No value.
    Null,
    /// No array. RESP2 distinguishes it from [`Reply::Null`], RESP3 does not.
    NullArray,
    /// A sequence.
    Array(Vec<Reply>),
    /// A collection without order.
    Set(Vec<Reply>),
    /// A message that is not the answer to a request.
    Push(Vec<Reply>),
    /// Pairs of a key and its value, in the order of sending.
    Map(Vec<(Reply, Reply)>),
    /// True or false.
    Boolean(bool),
    /// A floating-point number, infinities and NaN included.
    Double(f64),
    /// A decimal integer of any size.
    BigNumber(String),
}

impl Reply {
    /// `+OK`.
    pub const OK: Self = Self::Simple(Cow::Borrowed("OK"));

    /// A short status.
    pub fn simple(text: impl Into<Cow<'static, str>>) -> Self {
        Self::Simple(text.into())
    }

    /// An error. The text begins with its code: `ERR not found`.
    pub fn error(text: impl Into<Cow<'static, str>>) -> Self {
        Self::Error(text.into())
    }

    /// A binary-safe string.
    pub fn bulk(bytes: impl Into<Vec<u8>>) -> Self {
        Self::Bulk(bytes.into())
    }

    /// Text meant for people.
    pub fn verbatim(text: impl Into<Cow<'static, str>>) -> Self {
        Self::Verbatim(text.into())
    }

    /// Whether this is an error. An array with errors in it is not an error.
    #[must_use]
    pub const fn is_error(&self) -> bool {
        matches!(self, Self::Error(_))
    }

    /// Whether this is one of the two nulls.
    #[must_use]
    pub const fn is_null(&self) -> bool {
        matches!(self, Self::Null | Self::NullArray)
    }

    /// The text of an error, code included.
    #[must_use]
    pub fn as_error(&self) -> Option<&str> {
        match self {
            Self::Error(text) => Some(text),
            _ => None,
        }
    }

    /// The bytes of a string of any kind.
    #[must_use]
    pub fn as_bytes(&self) -> Option<&[u8]> {
        match self {
            Self::Bulk(bytes) => Some(bytes),
            Self::Simple(text) | Self::Verbatim(text) => Some(text.as_bytes()),
            _ => None,
        }
    }

    /// The elements of a sequence or of a set.
    #[must_use]
    pub fn into_elements(self) -> Option<Vec<Self>> {
        match self {
            Self::Array(elements) | Self::Set(elements) | Self::Push(elements) => Some(elements),
            _ => None,
        }
    }

    /// The number of a [`Reply::Integer`].
    #[must_use]
    pub const fn as_integer(&self) -> Option<i64> {
        match self {
            Self::Integer(number) => Some(*number),
            _ => None,
        }
    }
}

impl From<i64> for Reply {
    fn from(number: i64) -> Self {
        Self::Integer(number)
    }
}

impl From<bool> for Reply {
    fn from(value: bool) -> Self {
        Self::Boolean(value)
    }
}
