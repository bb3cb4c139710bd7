//! What the files of the data are called, and when they are written.

use std::path::PathBuf;

/// When the log is forced to the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fsync {
    /// Before the reply to a change leaves.
    Always,
    /// Once a second.
    EverySecond,
    /// When the system sees fit.
    No,
}

/// The settings of the store. The default keeps no log and has no directory.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// Databases.
    pub databases: usize,
    /// The data directory; none = nothing is read from files nor written to any.
    pub dir: Option<PathBuf>,
    /// The snapshot's file name in it.
    pub dbfilename: String,
    /// A snapshot is made when so many seconds have passed with at least so many changes.
    pub save: Vec<(u64, u64)>,
    /// Compress strings in snapshots.
    pub rdbcompression: bool,
    /// End snapshots with a checksum.
    pub rdbchecksum: bool,
    /// Refuse writes after a snapshot has failed, until one succeeds.
    pub stop_writes_on_bgsave_error: bool,
    /// What a file holds of types that this server does not have: true = leave it out with a
    /// warning, false = do not start.
    pub rdb_skip_unknown_values: bool,
    /// Keep a log of all changes.
    pub appendonly: bool,
    /// The log's directory in the data directory.
    pub appenddirname: String,
    /// What the log's files are named after.
    pub appendfilename: String,
    /// When the log is forced to the disk.
    pub appendfsync: Fsync,
    /// Take a log whose end is cut off as it is; otherwise do not start.
    pub aof_load_truncated: bool,
    /// Rewrite the log when it has grown by so many percent; 0 = never.
    pub auto_aof_rewrite_percentage: u64,
    /// Do not rewrite a log of fewer bytes of itself.
    pub auto_aof_rewrite_min_size: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            databases: 16,
            dir: None,
            dbfilename: "dump.rdb".into(),
            save: Vec::new(),
            rdbcompression: true,
            rdbchecksum: true,
            stop_writes_on_bgsave_error: true,
            rdb_skip_unknown_values: false,
            appendonly: false,
            appenddirname: "appendonlydir".into(),
            appendfilename: "appendonly.aof".into(),
            appendfsync: Fsync::EverySecond,
            aof_load_truncated: true,
            auto_aof_rewrite_percentage: 100,
            auto_aof_rewrite_min_size: 64 << 20,
        }
    }
}
