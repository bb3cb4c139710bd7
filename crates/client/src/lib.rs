#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod bitmap;
#[cfg(feature = "cluster")]
mod cluster;
mod error;
mod guard;
mod name;
mod spread;
mod wire;

pub use bitmap::{BitmapFilter, BitmapParameters, redisson_default_item};
#[cfg(feature = "cluster")]
pub use cluster::cluster_client;
pub use error::{BatchError, Error};
pub use guard::{AsyncSource, Counts, FilterFailure, Guard, ServerFilter, Source};
pub use name::NameError;
pub use redis;
pub use spread::{SpreadFilter, SpreadParameters};
