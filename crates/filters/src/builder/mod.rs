//! The parameters of a new filter, and its first layer or table.

mod cuckoo;
mod fixed;
mod scalable;

pub use cuckoo::CuckooBuilder;
pub use fixed::BloomBuilder;
pub use scalable::ScalableBuilder;
