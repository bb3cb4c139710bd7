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
#[path = "../../../files/tests/support/crashing/mod.rs"]
mod crashing;
mod expiry;
#[path = "../../../files/tests/support/hooked.rs"]
mod hooked;
mod reader;
mod snapshot;
mod torn_end;
