//! The parameters of a new filter, and its first layer or table.

mod fixed;
mod layered;
mod scalable;
mod windowed;

pub use fixed::BloomBuilder;
pub use layered::LayeredBuilder;
pub use scalable::ScalableBuilder;
pub use windowed::WindowedBuilder;
