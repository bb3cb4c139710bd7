//! Filters whose bits are plain bitmaps on a server, as `SETBIT` and `GETBIT` know them.

mod batch;
mod filter;
mod foreign;
mod java;
mod layout;
mod made;
mod parameters;
mod python;
mod redisson;
mod whole;

pub use filter::BitmapFilter;
pub use parameters::BitmapParameters;
pub use redisson::redisson_default_item;
