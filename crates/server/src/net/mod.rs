//! Sockets: connections are accepted, read, and written to.
//!
//! - [`listen`]: the sockets that clients connect to
//! - [`files`]: the limit on open files, and how many clients it allows
//! - [`accept`]: accepts connections and gives each to a worker
//! - [`worker`]: the state that the connections of one thread share
//! - [`connections`]: the connections of one thread
//! - [`stream`]: the kinds of connections
//! - [`connection`]: one of them: its requests and replies

pub mod accept;
pub mod connection;
pub mod connections;
pub mod files;
pub mod listen;
pub mod stream;
pub mod worker;
