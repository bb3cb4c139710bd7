//! Formats that never change, RedisBloom's and those of the blocked layout: headers of SCANDUMP,
//! values as typed fields, and the numbers of BF.DEBUG.

mod fields;
pub mod g;
pub mod header;
pub mod layout;
mod take;
pub mod value;
