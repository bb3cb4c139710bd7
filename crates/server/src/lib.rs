//! A server that speaks RESP and the `BF.*` commands: the first host of `everbloom-commands`.
//!
//! A request takes these steps:
//!
//! | step | module |
//! |---|---|
//! | a socket is accepted and given to a worker; its bytes are read, replies are sent | `net` |
//! | the request is found, admitted, run under its locks, recorded | `dispatch` |
//! | Redis's own commands | `native` |
//! | a command's row, one call of it and what that comes to; its locked keys | `call`, `locked` |
//! | keys, and the journal of effects | [`everbloom_store`] |
//!
//! Around it: `start`, [`config`], `session` and `clients` (a connection from inside and from
//! outside), `address`, `tls`, `stats`, `slowlog`, `glob`, `system`.

#![forbid(unsafe_code)]
// The modules are private; `pub` in them is what a file offers to the others.
#![allow(unreachable_pub)]

pub mod config;

pub mod address;
mod call;
mod clients;
mod dispatch;
mod error;
mod glob;
mod holds;
mod limits;
mod locked;
mod native;
mod net;
mod reply_limit;
mod server;
mod session;
mod slot;
mod slowlog;
mod start;
mod stats;
mod system;
mod tls;
mod totals;
mod version;

pub use config::Settings;
pub use server::Server;
pub use start::{Running, StartError};

/// What those need who look at a running server and change nothing, as `everbloom-watch` does. It may
/// change at any time.
#[doc(hidden)]
pub mod window {
    pub use crate::dispatch::admission::misconf;
    pub use crate::native::table::registry;
    pub use crate::net::files::MAX_METRICS_CONNECTIONS;
    pub use crate::net::listen::{Listener, listen_on_all};
    pub use crate::stats::{
        BUCKETS, CommandStats, Counter, Histogram, WorkerStats, error_codes, of_command,
    };
    pub use crate::system::{cpu_seconds, random_hex, resident_memory};
    pub use crate::totals::{Database, Sent, databases, sent};
}

/// For tests and fuzzers: runs requests without sockets. It may change at any time.
#[doc(hidden)]
pub mod internals {
    pub use crate::call::{Finished, Work};
    pub use crate::clients::Client;
    pub use crate::dispatch::execute::{Executed, execute};
    pub use crate::dispatch::executor::Executor;
    pub use crate::dispatch::replay::Replayer;
    pub use crate::limits::ALL as LIMITS;
    pub use crate::native::table::registry;
    pub use crate::session::Session;
}
