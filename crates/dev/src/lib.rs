//! What the tests of several crates share. Nothing here is part of a program that we ship.
//!
//! - [`Client`] asks a server over a socket.
//! - [`Cluster`] is one of redis-servers with the module.
//! - [`process`] starts programs and ends them; [`peers`] looks for those of other projects.
//! - [`module`](module()) builds the module of Valkey and Redis.
//! - [`Random`] makes numbers that are the same every time.
//! - [`Example`] runs an example and reads its figures.
//! - [`corpus`] replays the seeds of the fuzzers.

#![forbid(unsafe_code)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a helper of a test fails by panicking, as the test does"
)]

mod client;
mod cluster;
pub mod corpus;
mod example;
mod module;
pub mod peers;
pub mod process;
mod random;
mod wait;

pub use client::Client;
pub use cluster::Cluster;
pub use example::Example;
pub use module::module;
pub use process::{Process, Redis, free_port, start_server};
pub use random::Random;
pub use wait::{PATIENCE, StopOnDrop, wait_for, wait_for_ok};
