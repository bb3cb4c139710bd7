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

pub mod aof;
pub mod clients;
pub mod clock;
pub mod config;
pub mod connection;
pub mod dispatch;
pub mod filter_command;
pub mod glob;
pub mod journal;
pub mod keyspace;
pub mod lock;
pub mod native;
pub mod persistence;
pub mod place;
pub mod rdb;
pub mod registry;
pub mod replay;
pub mod running;
pub mod runs;
pub mod server;
pub mod session;
pub mod slowlog;
pub mod stats;
pub mod storage;
pub mod system;
pub mod worker;

pub use config::Settings;
pub use running::{Running, StartError};
pub use server::Server;
