//! The Redis serialization protocol, RESP2 and RESP3, without a socket.
//!
//! | you are | you need |
//! |---|---|
//! | a server reading requests | [`RequestParser`] and [`Batch`]: spans into your own buffer |
//! | a server writing replies | [`Reply`] and [`encode()`], or the pieces in [`mod@encode`] |
//! | a client writing requests | [`encode_request`] |
//! | a client reading replies | [`Decoder`], or [`decode()`] for a complete buffer |
//!
//! Nothing here reads from a socket, writes to one, waits or knows a command. The caller states
//! limits ([`Limits`], [`DecodeLimits`]) for what the other side of a connection may send. Bytes
//! from there end in a value or in an error, never in a panic.

#![forbid(unsafe_code)]

mod batch;
mod decode;
pub mod encode;
mod inline;
mod limits;
mod number;
mod protocol;
mod reply;
mod request;
mod scan;
mod word;

pub use batch::{Batch, recycle};
pub use decode::{DecodeError, DecodeLimits, Decoder, decode};
pub use encode::{encode, encode_request, try_encode};
pub use inline::{quoted, split_words};
pub use limits::{Limits, ProtocolError};
pub use number::integer;
pub use protocol::Protocol;
pub use reply::Reply;
pub use request::RequestParser;
pub use word::is_same_word;
