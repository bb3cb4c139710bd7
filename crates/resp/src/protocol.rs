//! The two versions of the protocol.

/// The protocol version a connection speaks, as chosen by `HELLO`.
///
/// Requests are the same in both; only replies differ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Protocol {
    /// The version every connection starts with.
    #[default]
    Resp2,
    /// The version with maps, sets, booleans, doubles and pushed messages.
    Resp3,
}

impl Protocol {
    /// The number that `HELLO` takes and reports: 2 or 3.
    #[must_use]
    pub const fn version(self) -> u8 {
        match self {
            Self::Resp2 => 2,
            Self::Resp3 => 3,
        }
    }

    /// The protocol with that number, if there is one.
    #[must_use]
    pub const fn from_version(version: i64) -> Option<Self> {
        match version {
            2 => Some(Self::Resp2),
            3 => Some(Self::Resp3),
            _ => None,
        }
    }
}
