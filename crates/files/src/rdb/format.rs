//! The numbers of the format.

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

/// The bytes that start what follows; other bytes start a value of that type.
pub(super) mod opcode {
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
pub(super) mod kind {
    pub(crate) const STRING: u8 = 0;
    pub(crate) const MODULE: u8 = 7;
}
