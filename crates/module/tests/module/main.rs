//! The module inside a real server: Debian's redis-server, or the one that `VALKEY_SERVER` or
//! `REDIS_SERVER` names.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::expect_used,
    clippy::panic,
    missing_docs,
    unreachable_pub
)]

mod aliases;
mod beside;
mod cluster;
mod conformance;
mod corpus;
mod events;
mod exchange;
mod golden;
mod hostile;
mod info;
mod lifetime;
mod replication;
mod settings;
mod support;
mod usage;
mod valkey;
mod way_back;
mod windows;
