//! RDB files and DUMP payloads, in Redis's own format.
//!
//! ```text
//! "REDIS" "0009" | "VALKEY" "080"        the version, in digits
//! FA name value                          auxiliary field: two strings; any number of them
//! FE number                              database of the keys that follow: a length
//! FB keys expiring                       size hints: two lengths
//! FC milliseconds                        expiry of the next key: i64, little-endian
//! 00 key value                           a string: two strings
//! 07 key module-id fields... 00          a filter: see `value`
//! FF crc64                               the end: u64, little-endian; 0 when checksums are off
//!
//! length   00xxxxxx                      6 bits
//!          01xxxxxx B                    14 bits, big-endian
//!          80 BBBB       81 BBBBBBBB     32 and 64 bits, big-endian
//! string   length bytes
//!          C0 b   C1 bb   C2 bbbb        an integer in decimal: 8, 16, 32 bits, little-endian
//!          C3 length length bytes        LZF: compressed length, plain length, data
//! ```
//!
//! Version 9 is written: every Redis from 5 on and every Valkey loads it. Versions 6 to 15 are
//! read, which are Redis's, and Valkey's own 80; what is in them that this server does not keep
//! (lists, hashes, other modules' values) is walked over, each with a notice. Encodings that came
//! after version 12 are not known here, and are errors where they occur.
//!
//! | module | what it holds |
//! |---|---|
//! | [`write`](mod@write) | a file, key by key; a filter in one call or piece by piece |
//! | [`read`] | a file as a row of events |
//! | [`payload`] | DUMP and RESTORE: one value in an envelope |
//! | [`value`] | values of modules: type id, fields |
//! | [`length`], [`lzf`] | lengths and strings, their compression |
//! | `pieces` | long strings that come piece by piece |
//! | [`error`] | what is wrong with a file, and where |

pub mod error;
pub mod length;
pub mod lzf;
pub mod payload;
pub mod read;
pub mod value;
pub mod write;

mod checksum;
mod format;
mod output;
mod pieces;
mod skip;
mod source;

pub use checksum::crc64;
pub use error::{Fault, ReadError, WriteError};
pub use format::{MAGIC, NEWEST_VERSION, OLDEST_VERSION, VALKEY_VERSION, WRITTEN_VERSION};
pub use payload::{DumpError, RestoreError, dump, restore};
pub use read::{Event, Reader};
pub use write::{Aux, LogMark, WriteOptions, Writer};
