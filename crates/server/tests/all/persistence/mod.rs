//! A server with a data directory: what it keeps, what it finds, what it does in trouble.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    missing_docs
)]

mod always;
pub(crate) mod common;
#[path = "../../../../files/tests/support/crashing/mod.rs"]
mod crashing;
mod expiry;
mod failed_snapshot;
mod found;
mod full;
#[path = "../../../../files/tests/support/held.rs"]
mod held;
#[path = "../../../../files/tests/support/hooked.rs"]
mod hooked;
mod jobs;
mod peers;
mod removed;
mod restart;
mod stalls;
mod torn;
mod trouble;
mod valkey;
