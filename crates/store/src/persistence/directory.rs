//! The data directory, and what is known of its files.

use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::thread::JoinHandle;

use parking_lot::{Condvar, Mutex};
use thiserror::Error;
use tracing::info;

use everbloom_files::aof::{Manifest, Names};
use everbloom_files::storage::{Disk, Storage, new_dir, new_file};

use super::figures::Figures;
use super::log_writer::Writer;
use crate::settings::Settings;

/// The data directory and what is known of its files.
#[derive(Debug)]
pub struct Persistence {
    /// The files.
    pub storage: Arc<dyn Storage>,
    /// How the log's files are named.
    pub names: Names,
    /// The files of the log.
    pub(super) log: Mutex<LogFiles>,
    /// Waits for the thread that writes the log to go on to a new file.
    pub(super) switched: Condvar,
    /// A snapshot is being made, for whatever file.
    pub(super) busy: AtomicBool,
    /// A log is to be kept. Where none is, beginning it has failed and is tried again.
    pub(super) log_wanted: AtomicBool,
    /// How many of the journal's switches to a new file a base must be behind, because what was
    /// written before the last of them may be lost.
    pub(super) lost: AtomicU64,
    /// How many the base is behind: what was written before the last of them does not count.
    pub(super) rewritten: AtomicU64,
    /// The base that goes with this many is complete, and waits for the file that follows it.
    pub(super) based: AtomicU64,
    /// How often the log could not be written.
    pub(super) failed_turns: AtomicU64,
    /// Who writes the log, once it is loaded.
    pub(super) writer: Mutex<Option<Writer>>,
    /// The thread that makes a snapshot in the background.
    pub(super) job: Mutex<Option<JoinHandle<()>>>,
    /// The server ends: a snapshot in the background is given up.
    pub(super) ending: AtomicBool,
    /// What INFO says.
    pub figures: Figures,
    /// The directory itself, unless the storage is none.
    home: Option<Home>,
}

/// The data directory as it was opened.
#[derive(Debug)]
struct Home {
    path: PathBuf,
    /// Keeps other servers out of it.
    _lock: File,
    /// While this is open, no other directory gets its identity.
    dir: File,
}

/// The files of the log.
#[derive(Debug, Default)]
pub(super) struct LogFiles {
    /// What they are.
    pub(super) manifest: Manifest,
    /// How many of the journal's switches to a new file are done.
    pub(super) switches: u64,
    /// Those up to this one, if any, came to nothing: the log went on in the file before.
    pub(super) failed: u64,
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
    /// The folder that it would be made in is missing.
    #[error(
        "the data directory {} cannot be made: the folder that it would lie in is missing; make \
         that first, or give another path with --dir",
        dir.display()
    )]
    NoParent {
        /// The directory.
        dir: PathBuf,
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
    /// and locks it. The folder that it lies in must be there: a mistyped path would be a new and
    /// empty directory.
    pub fn open(settings: &Settings) -> Result<Option<Persistence>, OpenError> {
        let Some(dir) = settings.dir.clone() else {
            return Ok(None);
        };
        let unwritable = |source| OpenError::Unwritable {
            dir: dir.clone(),
            source,
        };
        match new_dir().create(&dir) {
            Err(source) if source.kind() == io::ErrorKind::NotFound => {
                return Err(OpenError::NoParent { dir });
            }
            Err(source) if source.kind() != io::ErrorKind::AlreadyExists => {
                return Err(unwritable(source));
            }
            Ok(()) | Err(_) => {}
        }
        let path = dir.canonicalize().map_err(unwritable)?;
        info!("the data directory is {}", path.display());
        let lock = new_file().open(dir.join(LOCK)).map_err(unwritable)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(std::fs::TryLockError::WouldBlock) => return Err(OpenError::InUse { dir }),
            Err(std::fs::TryLockError::Error(source)) => return Err(unwritable(source)),
        }
        let mut opened = Self::on(Arc::new(Disk::new(&dir)), settings);
        opened.home = Some(Home {
            dir: File::open(&dir).map_err(unwritable)?,
            path: dir.clone(),
            _lock: lock,
        });
        Ok(Some(opened))
    }

    /// The files of a storage, with the names that the settings give them.
    pub fn on(storage: Arc<dyn Storage>, settings: &Settings) -> Persistence {
        Persistence {
            storage,
            names: Names::new(&settings.appenddirname, &settings.appendfilename),
            log: Mutex::default(),
            switched: Condvar::new(),
            busy: AtomicBool::new(false),
            log_wanted: AtomicBool::new(settings.appendonly),
            lost: AtomicU64::new(0),
            rewritten: AtomicU64::new(0),
            based: AtomicU64::new(0),
            failed_turns: AtomicU64::new(0),
            writer: Mutex::default(),
            job: Mutex::default(),
            ending: AtomicBool::new(false),
            figures: Figures::default(),
            home: None,
        }
    }

    /// Whether the log must be rewritten from memory, because what is on the disk may
    /// not be whole.
    pub(super) fn is_lost(&self) -> bool {
        self.rewritten.load(Relaxed) < self.lost.load(Relaxed)
    }

    /// An error if the data directory is gone, or another has its name: that one is not locked, and
    /// may be another server's.
    pub(super) fn check_home(&self) -> io::Result<()> {
        let Some(home) = &self.home else {
            return Ok(());
        };
        let found = std::fs::metadata(&home.path).and_then(|found| {
            let own = home.dir.metadata()?;
            Ok((own.dev(), own.ino()) == (found.dev(), found.ino()))
        });
        let what = match found {
            Ok(true) => return Ok(()),
            Ok(false) => "another directory has its name now".into(),
            Err(problem) => problem.to_string(),
        };
        Err(io::Error::other(format!(
            "the data directory {} was removed or renamed while the server uses it: {what}",
            home.path.display()
        )))
    }

    /// The log that is on the disk, before any of it is written.
    pub(super) fn set_log(&self, manifest: Manifest) {
        *self.log.lock() = LogFiles {
            manifest,
            ..LogFiles::default()
        };
    }
}
