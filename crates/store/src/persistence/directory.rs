//! The data directory and the state of its files.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};

use parking_lot::Mutex;
use thiserror::Error;
use tracing::info;

use everbloom_files::aof::{Manifest, Names};
use everbloom_files::storage::{Disk, Storage, new_dir, new_file};

use super::figures::PersistenceFigures;
use super::log_writer::Writer;
use super::stall::StallWatch;
use crate::machine::{Machine, Running, System};
use crate::settings::Settings;

/// The data directory and the state of its files.
#[derive(Debug)]
pub struct Persistence {
    /// The files.
    pub storage: Arc<dyn Storage>,
    /// The clock and the threads.
    pub(crate) machine: Arc<dyn Machine>,
    /// How the log's files are named.
    pub names: Names,
    /// The files of the log.
    pub(super) log: Mutex<LogFiles>,
    /// Whether a snapshot is being made, for any file.
    pub(super) busy: Arc<AtomicBool>,
    /// Whether a log is kept.
    pub(super) log_state: Mutex<LogState>,
    /// Whether the keys hold all that the log on the disk holds. If not, that log was never read.
    pub(super) includes_log: AtomicBool,
    /// The least number of the journal's file switches that a base must include. What was written
    /// before the last of them may be lost.
    pub(super) lost: AtomicU64,
    /// The number of file switches that the base includes. What was written before the last of them
    /// is not used.
    pub(super) rewritten: AtomicU64,
    /// The base that includes this many switches is complete, and waits for the file that follows
    /// it.
    pub(super) based: AtomicU64,
    /// How often the log could not be written.
    pub(super) failed_writes: AtomicU64,
    /// The writer of the log, once it is loaded.
    pub(super) writer: Mutex<Option<Writer>>,
    /// The thread that makes a snapshot in the background.
    pub(super) job: Mutex<Option<Box<dyn Running>>>,
    /// The writes and fsyncs of the log that have not returned.
    pub(super) stall: Mutex<StallWatch>,
    /// Whether the server is stopping: a background snapshot is then cancelled.
    pub(super) ending: AtomicBool,
    /// The figures for INFO.
    pub figures: PersistenceFigures,
    /// The directory itself, unless there is no storage.
    home: Option<Home>,
}

/// The open data directory.
#[derive(Debug)]
struct Home {
    path: PathBuf,
    /// The lock that keeps other servers out.
    _lock: File,
    /// While this is open, no other directory gets its identity.
    dir: File,
}

/// The files of the log.
#[derive(Debug, Default)]
pub(super) struct LogFiles {
    /// The files.
    pub(super) manifest: Manifest,
    /// The lengths of files that are no longer written, by name.
    pub(super) lengths: BTreeMap<String, u64>,
    /// How many of the journal's file switches are done.
    pub(super) switches: u64,
    /// The switches up to this one failed, if any: the log went on in the file before.
    pub(super) failed: u64,
    /// The log is being begun: the manifest on the disk is that of the log before, if any.
    pub(super) beginning: bool,
    /// A list of files without a line in the manifest lies on the disk.
    pub(super) announced: bool,
}

/// Whether a log is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LogState {
    /// None is wanted.
    Off,
    /// The first file of a log is being written.
    Beginning,
    /// The first file of a log could not be written, for this reason. It is tried again.
    Failed(String),
    /// There is a log with all changes.
    On,
}

/// Why a data directory cannot be used.
#[derive(Debug, Error)]
pub enum OpenError {
    /// It cannot be created, or it is not writable.
    #[error("the data directory {} cannot be written: {source}", dir.display())]
    Unwritable {
        /// The directory.
        dir: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// Its parent folder is missing.
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
    /// Opens and locks the data directory from the settings, if there is one, and creates it when
    /// missing. Its parent folder must exist: otherwise a mistyped path would become a new, empty
    /// directory.
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
        Self::on_machine(storage, Arc::new(System::default()), settings)
    }

    /// The same with another clock and other threads.
    pub fn on_machine(
        storage: Arc<dyn Storage>,
        machine: Arc<dyn Machine>,
        settings: &Settings,
    ) -> Persistence {
        Persistence {
            storage,
            names: Names::new(&settings.appenddirname, &settings.appendfilename),
            log: Mutex::default(),
            busy: Arc::default(),
            log_state: Mutex::new(match settings.appendonly {
                true => LogState::On,
                false => LogState::Off,
            }),
            includes_log: AtomicBool::new(true),
            lost: AtomicU64::new(0),
            rewritten: AtomicU64::new(0),
            based: AtomicU64::new(0),
            failed_writes: AtomicU64::new(0),
            writer: Mutex::default(),
            job: Mutex::default(),
            stall: Mutex::default(),
            ending: AtomicBool::new(false),
            figures: PersistenceFigures::new(machine.now()),
            machine,
            home: None,
        }
    }

    /// Whether a log is kept.
    pub fn log_state(&self) -> LogState {
        self.log_state.lock().clone()
    }

    /// Whether a log is wanted, and its first file is not complete.
    pub(super) fn is_log_missing(&self) -> bool {
        matches!(self.log_state(), LogState::Beginning | LogState::Failed(_))
    }

    /// Whether a log is wanted, and has yet to begin.
    pub fn is_log_awaited(&self) -> bool {
        self.log_state() == LogState::Beginning
    }

    /// Whether the log holds every change whose reply has left.
    pub fn log_holds_all(&self) -> bool {
        self.log_state() == LogState::On && !self.is_lost()
    }

    /// Why the log cannot be written or begun.
    pub fn log_problem(&self) -> Option<String> {
        match self.log_state() {
            LogState::Failed(why) => Some(format!("the log could not be begun: {why}")),
            _ => self.figures.log_error.lock().clone(),
        }
    }

    /// Whether the log must be rewritten from memory, because the log on the disk may be
    /// incomplete.
    pub(super) fn is_lost(&self) -> bool {
        self.rewritten.load(Relaxed) < self.lost.load(Relaxed)
    }

    /// An error if the data directory is gone, or another directory has its name. That one is not
    /// locked, and may belong to another server.
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

    /// The name of a base that is being written.
    pub(super) fn temporary_base(&self) -> String {
        format!("{}/temp.base.rdb", self.names.dir())
    }

    /// The log that is on the disk, before any of it is written, and the lengths of its files as far
    /// as they were read.
    pub(super) fn set_log(&self, manifest: Manifest, lengths: BTreeMap<String, u64>) {
        *self.log.lock() = LogFiles {
            manifest,
            lengths,
            ..LogFiles::default()
        };
    }
}
