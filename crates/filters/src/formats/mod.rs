//! Filters as bytes: this library's own, and those of other programs.

pub mod bytes;
pub mod dcso;
pub mod guava;
pub mod redisbloom;
#[cfg(feature = "serde")]
mod serde;
