//! The tests of this crate: one binary builds faster than four.

mod crash_points;
mod expiry;
mod reader;
mod snapshot;
