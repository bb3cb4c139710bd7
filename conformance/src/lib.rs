//! The recorded answers of RedisBloom, and a runner that compares ours with them.
//!
//! [`transcript`] reads the recorded conversations and [`dump`] the recorded filters. [`runner`]
//! replays conversations against a [`Subject`] and compares every byte. A subject is anything that
//! takes a command and returns the bytes of its reply: the commands in process, our server behind a
//! socket ([`tcp`]), our module inside Redis or Valkey.
#![forbid(unsafe_code)]

pub mod dump;
pub mod runner;
pub mod tcp;
pub mod transcript;

pub use runner::{Report, Rules, Subject, run};
pub use tcp::TcpSubject;

use std::path::PathBuf;

/// The folder of the recorded data.
pub fn golden() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("golden")
}
