//! Snapshots and the log: the data on the disk, in Redis's own formats.
//!
//! ```text
//! commands -> journal -> log (a thread) -> appendonlydir/...incr.aof
//! keyspace -> keyspace::snapshot -> writer -> dump.rdb, or the base of the log
//! dump.rdb, appendonlydir/ -> load -> keyspace, before the first command
//! ```
//!
//! - [`directory`]: the data directory
//! - `log_files`: the list of the log's files, changed by snapshots and rewrites
//! - [`load`]: reads the data at the start
//! - `load_aof`: reads the files of the AOF
//! - `torn_end`: moves the torn end of the AOF aside
//! - `continuing`: begins or continues the log after that
//! - `newest`: whether the log or the snapshot is read
//! - [`log`]: writes the journal's records to the log
//! - `log_check`: notices that somebody else has changed the AOF's files
//! - `syncing`: runs fsync on the log in the background
//! - [`log_writer`]: the current file of the log
//! - [`writer`]: a snapshot of the keyspace as an RDB file
//! - [`jobs`]: SAVE, BGSAVE, BGREWRITEAOF
//! - [`schedule`]: starts snapshots and rewrites automatically
//! - `stall`: notices writes and fsyncs of the log that do not return
//! - [`figures`]: the figures for INFO

mod continuing;
pub mod directory;
pub mod figures;
pub mod jobs;
pub mod load;
mod load_aof;
pub mod log;
mod log_check;
mod log_files;
pub mod log_writer;
mod newest;
mod progress;
pub mod schedule;
mod stall;
mod syncing;
pub mod torn_end;
pub mod writer;

pub use directory::{LogState, OpenError, Persistence};
