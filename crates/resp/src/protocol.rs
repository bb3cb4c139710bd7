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
}
