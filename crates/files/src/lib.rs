//! Redis's files without a process around them: bytes to named values, and back.
//!
//! | module | what it knows |
//! |---|---|
//! | [`rdb`] | RDB files and DUMP payloads: keys with their values |
//! | [`aof`] | the append-only log: its manifest and its commands |
//! | [`storage`] | the data directory, behind a trait that tests replace |
//! | [`Value`] | what a key can hold: a [`Text`] or a filter |
//!
//! There is no keyspace here, no thread, no clock and no environment. The server, the tools at the
//! shell and the fuzzers use it.

#![forbid(unsafe_code)]

pub mod aof;
#[doc(hidden)]
pub mod limits;
pub mod rdb;
pub mod storage;

mod text;
mod value;

pub use text::{OutOfMemory, Text};
pub use value::{Outline, Value};
