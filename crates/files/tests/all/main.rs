//! The tests of this crate: one binary builds faster than three.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    missing_docs
)]

mod aof;
#[path = "../support/crashing/mod.rs"]
mod crashing;
mod crashing_disk;
mod rdb;
