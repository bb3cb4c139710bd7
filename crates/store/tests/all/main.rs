//! The tests of this crate: one binary builds faster than three.

mod crash_points;
mod snapshot;
mod steps;
