//! Bloom filters: of fixed size, growing, over a window, and shared by threads.

#[cfg(target_has_atomic = "64")]
pub(crate) mod atomic;
pub(crate) mod builder;
pub(crate) mod fixed;
mod generations;
pub(crate) mod group;
pub(crate) mod insertion;
pub(crate) mod layered;
pub(crate) mod layers;
pub(crate) mod options;
pub(crate) mod scalable;
pub(crate) mod sets;
pub(crate) mod shrink;
pub(crate) mod stats;
mod union;
pub(crate) mod window;
pub(crate) mod windowed;
