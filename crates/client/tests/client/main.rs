//! Filters on real servers, which are killed when it comes to that.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    reason = "a test fails by panicking"
)]

mod bitmap;
mod cluster;
mod failures;
mod guard;
mod guide;
mod layouts;
mod sentinel;
mod spread;
mod support;
mod waited_for;
