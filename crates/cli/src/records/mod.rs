//! The records of files and of standard input, in pieces that go round.
//!
//! One thread reads pieces of the input that end where a record ends ([`reader`]), others find and
//! hash the keys ([`chunk`]), and the caller takes the pieces in order ([`pipeline`]).

pub(crate) mod args;
pub(crate) mod case;
pub(crate) mod chunk;
mod csv;
pub(crate) mod input;
mod json;
mod keys;
pub(crate) mod magic;
mod netstrings;
pub(crate) mod output;
pub(crate) mod pipeline;
mod read;
mod reader;
pub(crate) mod selection;
pub(crate) mod shared;
pub(crate) mod signals;
pub(crate) mod tally;
mod unpack;
