//! The tests of the binary `everbloom`, in one binary of tests: it builds faster than twelve.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    missing_docs
)]

mod cli;
mod clients;
mod cluster;
mod copy;
mod dedup;
mod files;
mod generate;
mod guide;
mod inputs;
mod kill;
mod memory;
mod plan;
mod releases;
mod serve;
mod session;
mod sockets;
#[path = "../support/mod.rs"]
mod support;
