//! What outlives the process: snapshots and the log, in Redis's own formats.
//!
//! ```text
//! commands -> journal -> log (a thread) -> appendonlydir/...incr.aof
//! keyspace -> keyspace::snapshot -> writer -> dump.rdb, or the base of the log
//! dump.rdb, appendonlydir/ -> load -> keyspace, before the first command
//! ```
//!
//! - [`directory`]: the data directory
//! - `log_files`: which files the log has, as snapshots and rewrites change them
//! - [`load`]: reading it all back at the start
//! - [`log`]: writes what the journal takes in
//! - `syncing`: the thread that forces the log to the disk meanwhile
//! - [`log_writer`]: the file that it is written to
//! - [`writer`]: a snapshot of the keyspace as an RDB file
//! - [`jobs`]: SAVE, BGSAVE, BGREWRITEAOF
//! - [`schedule`]: what starts them by itself
//! - [`reload`]: the keys as they come back from the snapshot file, for DEBUG RELOAD
//! - [`figures`]: what INFO says of it

pub mod directory;
pub mod figures;
pub mod jobs;
pub mod load;
pub mod log;
mod log_files;
pub mod log_writer;
mod progress;
pub mod reload;
pub mod schedule;
mod syncing;
pub mod writer;

pub use directory::{OpenError, Persistence};
