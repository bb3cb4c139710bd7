//! The tests of this crate: one binary builds faster than four.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    missing_docs
)]

mod crash_points;
mod expiry;
mod reader;
mod snapshot;
