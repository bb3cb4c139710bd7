//! Reads the data directory at the start, before the first command.
//!
//! If there is a log, only the log is read. If `appendonly` is on and there is no log yet, the
//! snapshot is loaded and becomes the log's first base, so that turning the log on loses nothing.
//! (Redis starts empty then.) The same happens after a log was switched off and a snapshot was made
//! since: their marks show which of the two is newer, and not the times of the files.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use everbloom_files::aof;
use everbloom_files::rdb::{self, Event, Reader, WriteError};
use thiserror::Error;
use tracing::{info, warn};

use super::directory::Persistence;
use super::log_writer::Log;
use super::progress::ProgressReader;
use super::torn_end::TornEndError;
use crate::keyspace::{Db, Footprint, SHARDS};
use crate::replay::{Replay, ReplayError};
use crate::settings::Settings;
use crate::store::Store;

/// Why the data of an earlier run could not be loaded. The files on the disk are unchanged.
#[derive(Debug, Error)]
pub enum LoadError {
    /// A snapshot is damaged.
    #[error("{file}: {source}")]
    Rdb {
        /// The file.
        file: String,
        /// The problem, and where it is.
        source: rdb::ReadError,
    },
    /// A file of the log is damaged.
    #[error(transparent)]
    Log(#[from] aof::ReadError),
    /// The log's manifest is damaged.
    #[error(transparent)]
    Manifest(#[from] aof::ReadManifestError),
    /// A command of the log cannot be run by this server.
    #[error("{file}, byte {offset}: {problem}")]
    Command {
        /// The file.
        file: String,
        /// The offset of the command.
        offset: u64,
        /// The reason.
        problem: ReplayError,
    },
    /// A file has a database number that is too high for this server.
    #[error("{file}: it has a database {db}, and `databases` is {databases}")]
    Database {
        /// The file.
        file: String,
        /// Its database.
        db: u64,
        /// The number of databases of this server.
        databases: usize,
    },
    /// A file has values of unknown types.
    #[error(
        "{file}: it holds values of types that this server does not have: {types}. To leave them \
         out, start with --rdb-unknown-values skip (the file then loses them when it is saved \
         again); otherwise load it in Redis or Valkey with the everbloom module"
    )]
    UnknownValues {
        /// The file.
        file: String,
        /// The number of keys of each type.
        types: String,
    },
    /// A file cannot be read or written.
    #[error("{file}: {source}")]
    Io {
        /// The file.
        file: String,
        /// The system's error.
        source: io::Error,
    },
    /// The log and the snapshot may each hold data that the other lacks.
    #[error(
        "{log}, last written {log_time}, and {snapshot}, last written {snapshot_time}: each may \
         hold data that the other lacks, because {why}. Move one of them away: {snapshot} to go on \
         with the log, or the directory of the log to start from {snapshot}"
    )]
    TwoTruths {
        /// The newest file of the log.
        log: String,
        /// When it was written.
        log_time: String,
        /// The snapshot.
        snapshot: String,
        /// When it was written.
        snapshot_time: String,
        /// How this came about.
        why: &'static str,
    },
    /// The torn end of the log cannot be moved aside.
    #[error(transparent)]
    TornEnd(#[from] TornEndError),
    /// The server was stopped meanwhile.
    #[error("asked to stop while loading")]
    Stopped,
    /// The first base of the log cannot be written.
    #[error("the log cannot be begun: {0}")]
    Begin(#[from] WriteError),
}

/// Loads the data, and begins or continues the log if one is wanted. Commands may run when this has
/// returned `Ok`.
pub fn load(
    store: &Store,
    persistence: &Persistence,
    replay: &mut dyn Replay,
) -> Result<Option<Log>, LoadError> {
    let settings = store.settings();
    let started = Instant::now();
    let loader = DataLoader {
        store,
        persistence,
        settings: &settings,
    };
    let log = if settings.appendonly {
        Some(loader.load_log(replay)?)
    } else {
        loader.load_without_log()?;
        None
    };
    let keys: usize = loader.keys();
    let seconds = started.elapsed().as_secs_f64();
    info!("loaded {keys} keys in {seconds:.1} s");
    store.journal.set_logging(log.is_some());
    persistence
        .figures
        .saved_changes
        .store(store.journal.changes(), Relaxed);
    store.health.set_loading(false);
    Ok(log)
}

impl LoadError {
    /// The error of a file that cannot be read or written.
    pub(super) fn io(file: &str) -> impl Fn(io::Error) -> Self {
        move |source| LoadError::Io {
            file: file.into(),
            source,
        }
    }
}

pub(super) struct DataLoader<'l> {
    pub(super) store: &'l Store,
    pub(super) persistence: &'l Persistence,
    pub(super) settings: &'l Settings,
}

/// A file and its length.
type Opened = (Box<dyn Read + Send>, u64);

impl DataLoader<'_> {
    fn keys(&self) -> usize {
        let keyspace = &self.store.keyspace;
        let shards = (0..SHARDS).map(|index| keyspace.shard(index).read());
        shards
            .map(|shard| shard.dbs().iter().map(Db::len).sum::<usize>())
            .sum()
    }

    /// Opens a file; `None` if it does not exist.
    pub(super) fn open(&self, file: &str) -> Result<Option<Opened>, LoadError> {
        match self.persistence.storage.read(file) {
            Ok(opened) => Ok(Some(opened)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(LoadError::io(file)(source)),
        }
    }

    pub(super) fn load_snapshot(&self) -> Result<(), LoadError> {
        let file = &self.settings.dbfilename;
        if let Some((input, len)) = self.open(file)? {
            info!("loading {file}, {len} bytes");
            let input = ProgressReader::new(input, len, &self.persistence.figures);
            self.read_rdb(file, input, false)?;
            // A process that was killed, or whose last sync failed, may have left a name that is not
            // yet on the disk. What is loaded counts as saved.
            let synced = self.persistence.storage.sync_dir("");
            synced.map_err(LoadError::io(file))?;
        }
        Ok(())
    }

    /// Loading is cancelled when the server stops.
    pub(super) fn stop_if_asked(&self) -> Result<(), LoadError> {
        if self.store.is_stopping() {
            return Err(LoadError::Stopped);
        }
        Ok(())
    }

    /// Reads an RDB file; returns the bytes after it, and their offset.
    pub(super) fn read_rdb<'r, R: Read + 'r>(
        &self,
        file: &str,
        input: R,
        aof_base: bool,
    ) -> Result<(Box<dyn Read + 'r>, u64), LoadError> {
        let rdb = |source| LoadError::Rdb {
            file: file.into(),
            source,
        };
        let now = self.store.machine.now();
        let databases = self.store.keyspace.databases();
        // A value that was accepted once must not be refused now because of a setting.
        let budget = self.store.memory;
        let mut reader = Reader::new(input, budget).map_err(rdb)?;
        let (keyspace, figures) = (&self.store.keyspace, &self.persistence.figures);
        let mut unknown: BTreeMap<String, usize> = BTreeMap::new();
        let mut db = 0;
        let bytes = loop {
            match reader.next_event().map_err(rdb)? {
                Event::End { bytes } => break bytes,
                Event::SelectDb(number) => {
                    db = usize::try_from(number)
                        .ok()
                        .filter(|db| *db < databases)
                        .ok_or_else(|| LoadError::Database {
                            file: file.into(),
                            db: number,
                            databases,
                        })?;
                }
                Event::Key {
                    expires_at,
                    key,
                    value,
                    ..
                } => {
                    self.stop_if_asked()?;
                    // A command after the log's base may extend the life of a key in it.
                    if aof_base || expires_at.is_none_or(|at| at > now.ms) {
                        let key = keyspace.key(db, &key);
                        let mut view = Footprint::of([key]).write(keyspace, now);
                        view.entry(key).insert(value, expires_at);
                        figures.loaded_keys.fetch_add(1, Relaxed);
                    } else {
                        figures.loaded_expired.fetch_add(1, Relaxed);
                    }
                }
                Event::Skipped { type_name, key } => {
                    // Records without a key are settings of modules that we do not have.
                    if key.is_some() || type_name == "function library" {
                        *unknown.entry(type_name.into_owned()).or_default() += 1;
                    }
                }
                Event::Aux { .. } | Event::Resize { .. } => {}
            }
        };
        self.check_unknown(file, &unknown)?;
        let (rest, read_ahead) = reader.into_parts();
        Ok((Box::new(io::Cursor::new(read_ahead).chain(rest)), bytes))
    }

    fn check_unknown(
        &self,
        file: &str,
        unknown: &BTreeMap<String, usize>,
    ) -> Result<(), LoadError> {
        if unknown.is_empty() {
            return Ok(());
        }
        let types: Vec<String> = unknown
            .iter()
            .map(|(name, count)| format!("{count} of type {name}"))
            .collect();
        let types = types.join(", ");
        if !self.settings.rdb_skip_unknown_values {
            return Err(LoadError::UnknownValues {
                file: file.into(),
                types,
            });
        }
        warn!("{file}: left out values of types that this server does not have: {types}");
        Ok(())
    }
}
