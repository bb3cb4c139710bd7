//! From a request to its reply.
//!
//! - [`execute`]: the requests of a batch in order
//! - [`executor`]: what they share: the connection, its settings and replies, and the time
//! - [`admission`]: whether a command may run now
//! - [`pipeline`]: requests of a command on one value, grouped when they follow each other
//! - [`run`]: any other command, under the locks of what it names ([`keys`]); [`transaction`]: those
//!   that EXEC runs
//! - [`count`]: commands that count their keys
//! - [`value`]: a command on the value of its one key; [`sinks`]: receive its replies and changes
//! - [`replay`]: the commands of the log, which no client sent

pub mod admission;
pub mod count;
pub mod execute;
pub mod executor;
pub mod keys;
pub mod pipeline;
pub mod replay;
pub mod run;
pub mod sinks;
pub mod transaction;
pub mod value;
