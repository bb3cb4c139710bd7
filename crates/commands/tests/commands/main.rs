//! The commands from outside: every family by example, then properties of all of them together.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss
)]

mod add;
mod cuckoo;
mod cuckoo_merge;
mod cuckoo_refused;
mod documents;
mod dump;
mod effects;
mod forged;
mod growth;
mod hostile;
mod insert;
mod keyed_cuckoo;
mod keyspace;
mod layout;
mod model;
mod reads;
mod replace;
mod reserve;
mod valkey;
mod window;
