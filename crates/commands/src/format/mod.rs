//! Bytes and text in RedisBloom's formats.

pub mod g;
pub mod header;
