//! The parameters of a new filter, and its first layer or table.

mod fixed;
mod scalable;

pub use fixed::BloomBuilder;
pub use scalable::ScalableBuilder;
