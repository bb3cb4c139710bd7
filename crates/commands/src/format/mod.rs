//! Bytes and text in formats that never change, RedisBloom's and the blocked layout's own: headers
//! of SCANDUMP, values as typed fields, and the numbers of BF.DEBUG.

pub mod g;
pub mod header;
pub mod layout;
pub mod value;
