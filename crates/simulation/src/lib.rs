//! A whole server whose clients, background threads, clock and disk follow from one seed.
//!
//! | module | what it is |
//! |---|---|
//! | [`damage`] | what has become of the log's files while no server ran |
//! | [`forgery`] | headers of dumps that a client has changed |
//! | [`limits`] | thresholds at which the code takes another way, drawn anew |
//! | [`machine`] | the clock and the threads |
//! | [`op`] | the commands |
//! | [`plan`] | the steps of a seed: what happens, in order |
//! | [`model`] | what must be true, slow and obvious |
//! | [`window`] | the same for windows |
//! | [`server`] | the real server on the simulated disk and machine, and its clients |
//! | [`world`] | does the steps, and compares the server with the model |
//! | [`work`] | how much memory a command takes for a moment, and how much it may |
//! | [`shrink`] | leaves out steps as long as the failure stays |
//!
//! A step depends on no other one, so any of them can be left out.

#![forbid(unsafe_code)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    missing_docs,
    reason = "a test fails by panicking; its numbers are its own; variants are commands by name"
)]

#[path = "../../files/tests/support/crashing/mod.rs"]
mod crashing;
pub mod damage;
pub mod forgery;
pub mod limits;
pub mod machine;
pub mod model;
pub mod op;
pub mod plan;
pub mod report;
pub mod server;
pub mod shrink;
pub mod window;
pub mod work;
pub mod world;

pub use plan::Plan;
pub use world::play;
