//! The RDB codec against recorded files, against Redis, against itself, and against damage.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    missing_docs,
    unreachable_pub
)]

mod blocked;
mod common;
mod damage;
mod foreign;
mod golden;
mod keyed_cuckoo;
mod pieces;
mod redis;
mod round_trip;
mod valkey;
