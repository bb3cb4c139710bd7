//! The tests of this crate that need no process of their own: one binary builds faster than twelve.
//!
//! Apart: `greedy_clients` and `sparse_filters` measure the memory of their own process, and `corpus`
//! takes files of the fuzzers, which name modules of its root.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    missing_docs
)]

mod batches;
mod bit_batches;
mod bitmaps_beside_redis;
mod bitmaps_model;
mod connection;
mod differential;
mod exactly_once;
mod long_lists;
mod long_values;
mod persistence;
mod replace;
#[path = "../support/mod.rs"]
mod support;
mod transactions;
mod windows;
