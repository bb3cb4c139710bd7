//! From a request to its reply.
//!
//! - [`execute`]: the requests of a batch in order: found, admitted, run, recorded
//! - [`batch`]: pipelined requests on filters, executed together
//! - [`filter`]: a command of the commands crate, on its one key
//! - [`place`]: that key
//! - [`replay`]: the commands of the log, which no client sent

pub mod batch;
pub mod execute;
pub mod filter;
pub mod place;
pub mod replay;
