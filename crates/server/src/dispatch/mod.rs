//! From a request to its reply.
//!
//! - [`execute`]: the requests of a batch in order
//! - [`turn`]: what they share
//! - [`admission`]: whether a command may run now
//! - [`batch`]: pipelined requests on filters, executed together
//! - [`run`]: a command under the locks of what it names; [`transaction`]: those that EXEC runs
//! - [`locked`]: a command on shards that are locked; [`filter`]: one on a filter; [`place`]: its
//!   key; [`locks`]: the locks of several places
//! - [`replay`]: the commands of the log, which no client sent

pub mod admission;
pub mod batch;
pub mod execute;
pub mod filter;
pub mod locked;
pub mod locks;
pub mod place;
pub mod replay;
pub mod run;
pub mod transaction;
pub mod turn;
