//! Bytes and text in RedisBloom's formats: headers of SCANDUMP, values as typed fields, and the
//! numbers of BF.DEBUG.

pub mod g;
pub mod header;
pub mod value;
