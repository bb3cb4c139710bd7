//! The tests of this crate that need no process of their own: one binary builds faster than twelve.
//!
//! Apart: `atomic_model` is built for loom only, `memory` measures its own process, and the published
//! package leaves `examples` out.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    missing_docs
)]

mod api;
mod atomic;
mod blocked;
mod bytes;
#[path = "../common/mod.rs"]
mod common;
mod cuckoo;
mod cuckoo_rate;
mod cuckoo_union;
mod dcso;
mod floors;
mod gate;
mod golden;
mod guava;
mod items;
mod laws;
mod refused;
mod shrink;
mod sizing;
mod traits;
mod types;
mod union;
mod union_rate;
mod window;
