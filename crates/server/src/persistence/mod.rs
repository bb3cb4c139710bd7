//! What outlives the process: snapshots and the log, in Redis's own formats.
//!
//! ```text
//! commands -> journal -> log (a thread) -> appendonlydir/...incr.aof
//! keyspace -> keyspace::snapshot -> writer -> dump.rdb, or the base of the log
//! dump.rdb, appendonlydir/ -> load -> keyspace, before the first command
//! ```
//!
//! - [`load`]: reading it all back at the start
//! - [`log`]: the thread that writes what the journal takes in
//! - [`writer`]: a snapshot of the keyspace as an RDB file
//! - [`jobs`]: SAVE, BGSAVE, BGREWRITEAOF, and what starts them by itself
//! - [`reload`]: the keys as they come back from the files, for DEBUG
//! - [`figures`]: what INFO says of it

pub mod figures;
pub mod jobs;
pub mod load;
pub mod log;
pub mod reload;
pub mod writer;

use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread::JoinHandle;

use parking_lot::{Condvar, Mutex};
use thiserror::Error;

use crate::aof::{Manifest, Names};
use crate::config::Settings;
use crate::storage::{Disk, Storage};
use figures::Figures;

/// The data directory and what is known of its files.
#[derive(Debug)]
pub struct Persistence {
    /// The files.
    pub storage: Arc<dyn Storage>,
    /// How the log's files are named.
    pub names: Names,
    /// The log's manifest, and how many of the journal's switches to a new file are done.
    manifest: Mutex<(Manifest, u64)>,
    switched: Condvar,
    /// A snapshot is being made, for whatever file.
    busy: AtomicBool,
    /// A log is to be kept. Where none is, beginning it has failed and is tried again.
    log_wanted: AtomicBool,
    /// The thread that makes one in the background.
    job: Mutex<Option<JoinHandle<()>>>,
    /// The server ends: a snapshot in the background is given up.
    ending: AtomicBool,
    /// What INFO says.
    pub figures: Figures,
    /// Keeps other servers out of the directory.
    _lock: Option<File>,
}

/// Why a data directory cannot be used.
#[derive(Debug, Error)]
pub enum OpenError {
    /// It cannot be made, or nothing can be written there.
    #[error("the data directory {} cannot be written: {source}", dir.display())]
    Unwritable {
        /// The directory.
        dir: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// Another server is using it.
    #[error(
        "the data directory {} is in use by another server; stop that one, or give this one \
         another with --dir",
        dir.display()
    )]
    InUse {
        /// The directory.
        dir: PathBuf,
    },
}

/// The file in the data directory that the server using it keeps locked.
const LOCK: &str = "everbloom.lock";

impl Persistence {
    /// Opens the data directory that the settings name, if they name one: makes it when missing,
    /// and locks it.
    pub fn open(settings: &Settings) -> Result<Option<Persistence>, OpenError> {
        let Some(dir) = settings.dir.clone() else {
            return Ok(None);
        };
        let unwritable = |source| OpenError::Unwritable {
            dir: dir.clone(),
            source,
        };
        std::fs::create_dir_all(&dir).map_err(unwritable)?;
        let lock = File::create(dir.join(LOCK)).map_err(unwritable)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(std::fs::TryLockError::WouldBlock) => return Err(OpenError::InUse { dir }),
            Err(std::fs::TryLockError::Error(source)) => return Err(unwritable(source)),
        }
        let mut opened = Self::on(Arc::new(Disk::new(&dir)), settings);
        opened._lock = Some(lock);
        Ok(Some(opened))
    }

    /// The files of a storage, with the names that the settings give them.
    pub fn on(storage: Arc<dyn Storage>, settings: &Settings) -> Persistence {
        Persistence {
            storage,
            names: Names::new(&settings.appenddirname, &settings.appendfilename),
            manifest: Mutex::default(),
            switched: Condvar::new(),
            busy: AtomicBool::new(false),
            log_wanted: AtomicBool::new(settings.appendonly),
            job: Mutex::default(),
            ending: AtomicBool::new(false),
            figures: Figures::default(),
            _lock: None,
        }
    }
}
