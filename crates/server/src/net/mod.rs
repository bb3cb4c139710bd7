//! Sockets: connections are accepted, read, and written to.
//!
//! - [`listen`]: the sockets that clients connect to
//! - [`accept`]: who is let in, and which worker gets the connection
//! - [`worker`]: what the connections of one thread share
//! - [`connections`]: the connections of one thread
//! - [`stream`]: the connections that there are
//! - [`connection`]: one of them: its requests and replies

pub mod accept;
pub mod connection;
pub mod connections;
pub mod listen;
pub mod stream;
pub mod worker;
