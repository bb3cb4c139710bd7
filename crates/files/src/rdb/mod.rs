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
//! | [`error`] | what is wrong with a file, and where |

pub mod error;
pub mod length;
pub mod lzf;
pub mod payload;
pub mod read;
pub mod value;
pub mod write;

mod checksum;
mod output;
mod skip;
mod source;

pub use checksum::crc64;
pub use error::{Fault, ReadError};
pub use payload::{RestoreError, dump, restore};
pub use read::{Event, Reader};
pub use write::{Aux, WriteError, WriteOptions, Writer};

/// The version that is written.
pub const WRITTEN_VERSION: u16 = 9;
/// The oldest version of a file that is read.
pub const OLDEST_VERSION: u16 = 6;
/// The newest of Redis's versions that is read.
pub const NEWEST_VERSION: u16 = 15;
/// The version of Valkey 9, which left Redis's count.
pub const VALKEY_VERSION: u16 = 80;
/// How a file may begin, as far as it shows that it is one.
pub const MAGIC: [&[u8; 5]; 2] = [b"REDIS", b"VALKE"];

/// The most memory asked for ahead of the bytes that will fill it.
pub(crate) const PIECE: usize = 1 << 20;

/// The bytes that start what follows; other bytes start a value of that type.
pub(crate) mod opcode {
    /// In Redis's files this is another thing, which is not read.
    pub(crate) const SLOT_IMPORT: u8 = 0xf3;
    pub(crate) const SLOT_INFO: u8 = 0xf4;
    pub(crate) const FUNCTION: u8 = 0xf5;
    pub(crate) const FUNCTION_PRE_GA: u8 = 0xf6;
    pub(crate) const MODULE_AUX: u8 = 0xf7;
    pub(crate) const IDLE: u8 = 0xf8;
    pub(crate) const FREQ: u8 = 0xf9;
    pub(crate) const AUX: u8 = 0xfa;
    pub(crate) const RESIZE: u8 = 0xfb;
    pub(crate) const EXPIRES_MS: u8 = 0xfc;
    pub(crate) const EXPIRES_S: u8 = 0xfd;
    pub(crate) const SELECT: u8 = 0xfe;
    pub(crate) const END: u8 = 0xff;
}

/// The types of values that this server keeps.
pub(crate) mod kind {
    pub(crate) const STRING: u8 = 0;
    pub(crate) const MODULE: u8 = 7;
}
