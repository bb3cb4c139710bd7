//! The parameters of a filter to be, and its first layer.

mod fixed;
mod scalable;

pub use fixed::BloomBuilder;
pub use scalable::ScalableBuilder;
