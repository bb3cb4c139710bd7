//! What the tests of several crates share. Nothing here is part of a program that we ship.
//!
//! - [`house`] checks the workspace's own rules: floors, circles, lengths of lines and files.

#![forbid(unsafe_code)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a helper of a test fails by panicking, as the test does"
)]

pub mod house;
