//! The host's C interface: all unsafe code of the crate, behind types that are safe to use.
//!
//! | module | what it holds |
//! |---|---|
//! | [`ffi`] | C types and constants |
//! | [`api`] | the host's functions, looked up by name |
//! | [`alloc`] | memory from the host |
//! | [`entry`] | where the host enters: the symbol that it looks for, commands, INFO |
//! | [`load`] | what may be done only while the host loads the module |
//! | [`context`] | one call of a command: arguments, the caller, replication |
//! | [`reply`] | replies in the host's words |
//! | [`key`] | an open key |
//! | [`data_type`] | the callbacks of a data type |
//! | [`io`] | fields in and out, and the other streams of those callbacks |
//! | [`config`] | settings |
//! | [`command_info`] | the documentation of a command |
//!
//! **Panics.** The host calls functions of the C ABI, out of which no panic unwinds: Rust ends the
//! process there. A panic is a mistake of ours, after which a filter may be half changed and its
//! replicas different, so that ending is right; [`load`] has the panic's message written to the
//! host's log before.
//!
//! **Threads.** The host calls everything on its main thread, except that it may free and load
//! values on others; so values must be [`Send`], and globals are atomic or locked.
#![allow(unsafe_code)]

pub(crate) mod command_info;
pub(crate) mod config;
pub(crate) mod context;
pub(crate) mod data_type;
pub(crate) mod entry;
pub(crate) mod io;
pub(crate) mod key;
pub(crate) mod load;
pub(crate) mod timer;

mod alloc;
mod api;
mod ffi;
mod reply;
