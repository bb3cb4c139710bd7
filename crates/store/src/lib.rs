//! The server's data: keys, the journal of their changes, and the files of both.
//!
//! | module | what it is |
//! |---|---|
//! | [`keyspace`] | the keys, in shards with a lock each; snapshots of them |
//! | [`journal`] | the effects of commands, in the order in which they happened |
//! | [`persistence`] | the threads that write snapshots and the log, and read them back |
//! | [`store`] | all of it together |
//! | [`reader`] | reading a large value in pieces while commands change it |
//! | [`health`] | whether data is being loaded, and whether files can be written |
//! | [`replay`] | what a host must do so that a log can be read |
//! | [`settings`], [`clock`] | what the files are called; the time |
//! | [`machine`] | the clock and the threads, which tests replace |
//!
//! This crate knows nothing of sessions or commands. The host runs commands on the shards that it
//! locks, and the store reads back a log through the host's [`Replay`](replay::Replay).

#![forbid(unsafe_code)]

pub mod clock;
pub mod health;
pub mod journal;
pub mod keyspace;
#[doc(hidden)]
pub mod limits;
pub mod machine;
mod pace;
pub mod persistence;
pub mod reader;
pub mod replay;
pub mod settings;
pub mod store;
mod unwritten;

pub use settings::{Fsync, Settings};
pub use store::{Expired, Store};
