//! Names of the data files, and when they are written.

use std::path::PathBuf;

/// When fsync runs on the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fsync {
    /// Before the reply to a change leaves.
    Always,
    /// Once a second.
    EverySecond,
    /// Left to the system.
    No,
}

/// The settings of the store. The default keeps no log and has no directory.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// Databases.
    pub databases: usize,
    /// The data directory. Without one, no files are read or written.
    pub dir: Option<PathBuf>,
    /// The snapshot's file name in it.
    pub dbfilename: String,
    /// A snapshot is made after this many seconds with at least this many changes.
    pub save: Vec<(u64, u64)>,
    /// Compress strings in snapshots.
    pub rdbcompression: bool,
    /// End snapshots with a checksum.
    pub rdbchecksum: bool,
    /// Refuse writes after a snapshot has failed, until one succeeds.
    pub stop_writes_on_bgsave_error: bool,
    /// What to do with values of unknown types in a file: true = skip them with a warning, false =
    /// do not start.
    pub rdb_skip_unknown_values: bool,
    /// Keep a log of all changes.
    pub appendonly: bool,
    /// The log's directory in the data directory.
    pub appenddirname: String,
    /// The prefix of the log's file names.
    pub appendfilename: String,
    /// When fsync runs on the log.
    pub appendfsync: Fsync,
    /// Accept a log with a truncated end; otherwise do not start.
    pub aof_load_truncated: bool,
    /// Rewrite the log when it has grown by this percentage; 0 = never.
    pub auto_aof_rewrite_percentage: u64,
    /// Do not rewrite a log that is smaller than this, in bytes.
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
