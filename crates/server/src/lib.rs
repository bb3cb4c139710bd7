//! A server that speaks RESP and the `BF.*` commands: the first host of `everbloom-commands`.
//!
//! The way of a request:
//!
//! | step | module |
//! |---|---|
//! | a socket is accepted and given to a worker | [`running`], [`worker`] |
//! | its bytes are read and parsed, replies are sent | [`connection`] |
//! | the request is checked, locked for, run, recorded | [`dispatch`], [`filter_command`], [`runs`] |
//! | the key it works on | [`place`], [`lock`], [`keyspace`] |
//! | Redis's own commands | [`native`] |
//! | where its effect goes | [`journal`], [`persistence`] |
//!
//! Around it: [`config`], [`registry`] (all commands by name), [`session`] and [`clients`] (a
//! connection from inside and from outside), [`stats`], [`slowlog`], [`clock`], [`glob`], [`system`].

#![forbid(unsafe_code)]

pub mod clients;
pub mod config;
pub mod dispatch;
pub mod glob;
pub mod native;
pub mod net;
pub mod registry;
pub mod server;
pub mod session;
pub mod slowlog;
pub mod start;
pub mod stats;
pub mod system;

pub use config::Settings;
pub use server::Server;
pub use start::{Running, StartError};
