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

use everbloom_files::aof::{self, CommandReader, FileInfo, Manifest, Piece};
use everbloom_files::rdb::{self, Event, Reader, WriteError};
use everbloom_files::storage;
use everbloom_resp::recycle;
use thiserror::Error;
use tracing::{info, warn};

use super::directory::Persistence;
use super::log_writer::Log;
use super::progress::ProgressReader;
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

    fn load_log(&self, replay: &mut dyn Replay) -> Result<Log, LoadError> {
        let persistence = self.persistence;
        let manifest = Manifest::load(&*persistence.storage, &persistence.names)?;
        if manifest.is_empty() || self.is_snapshot_newer(&manifest)? {
            self.load_snapshot()?;
            return self.begin_log(manifest);
        }
        let last_len = self.load_files(&manifest, replay)?;
        self.go_on(manifest, last_len)
    }

    /// Reads all files of the log; returns the length of the last.
    fn load_files(&self, log: &Manifest, replay: &mut dyn Replay) -> Result<u64, LoadError> {
        let (names, figures) = (&self.persistence.names, &self.persistence.figures);
        let files: Vec<FileInfo> = log.files().cloned().collect();
        let mut size = 0;
        let mut last_len = 0;
        let end = self.end_of(&files)?;
        for (number, info) in files.iter().enumerate() {
            last_len = self.load_log_file(&names.path(info), number >= end, replay)?;
            size += last_len;
            if number == 0 {
                figures.log_base_size.store(last_len, Relaxed);
            }
        }
        figures.log_size.store(size, Relaxed);
        figures.log_file_size.store(last_len, Relaxed);
        Ok(last_len)
    }

    /// The number of the last file that has bytes. Empty ones may follow it: after a failed fsync a
    /// rewrite begins a file, and nothing is written to that before the rewrite has succeeded.
    fn end_of(&self, files: &[FileInfo]) -> Result<usize, LoadError> {
        for (number, info) in files.iter().enumerate().rev() {
            let opened = self.open(&self.persistence.names.path(info))?;
            if opened.is_none_or(|(_, len)| len > 0) {
                return Ok(number);
            }
        }
        Ok(0)
    }

    /// Reads one file of the log; returns its length, after truncation if that was needed.
    fn load_log_file(
        &self,
        file: &str,
        is_end: bool,
        replay: &mut dyn Replay,
    ) -> Result<u64, LoadError> {
        let Some((input, len)) = self.open(file)? else {
            let source = io::Error::new(io::ErrorKind::NotFound, "the manifest names it");
            return Err(LoadError::io(file)(source));
        };
        info!("loading {file}, {len} bytes");
        let mut input = ProgressReader::new(input, len, &self.persistence.figures);
        let mut magic = Vec::new();
        let io = LoadError::io(file);
        Read::by_ref(&mut input)
            .take(5)
            .read_to_end(&mut magic)
            .map_err(&io)?;
        let is_rdb = rdb::MAGIC.iter().any(|known| magic == known[..]);
        let input = io::Cursor::new(magic).chain(input);
        // A command that was accepted once must not be refused now because of a setting.
        let budget = self.store.memory;
        let commands = if is_rdb {
            let (input, offset) = self.read_rdb(file, input, true)?;
            CommandReader::starting_at(offset, input, file, budget)
        } else {
            CommandReader::new(Box::new(input) as Box<dyn Read + '_>, file, budget)
        };
        match self.replay(file, commands, replay) {
            Ok(()) => Ok(len),
            Err(LoadError::Log(aof::ReadError::Truncated { valid_up_to, .. }))
                if is_end && self.settings.aof_load_truncated =>
            {
                let kept = self.cut(file, valid_up_to).map_err(&io)?;
                warn!(
                    "{file} ends in the middle of a command: it had {len} bytes and has \
                     {valid_up_to} now, as aof-load-truncated says; the other {} are in {kept}",
                    len.saturating_sub(valid_up_to)
                );
                Ok(valid_up_to)
            }
            Err(error) => Err(error),
        }
    }

    /// Truncates a file to its first `len` bytes. The other bytes are kept in a new file beside it,
    /// whose name is returned.
    fn cut(&self, file: &str, len: u64) -> io::Result<String> {
        let storage = &*self.persistence.storage;
        let mut number = 1;
        let mut kept = format!("{file}.cut-{number}");
        while storage.exists(&kept)? {
            number += 1;
            kept = format!("{file}.cut-{number}");
        }
        let (mut input, _) = storage.read(file)?;
        io::copy(&mut Read::by_ref(&mut input).take(len), &mut io::sink())?;
        let mut beside = storage.create(&kept)?;
        io::copy(&mut input, &mut beside)?;
        beside.sync()?;
        storage.sync_dir(storage::parent(&kept))?;
        let mut file = storage.append(file)?;
        file.truncate(len)?;
        file.sync()?;
        Ok(kept)
    }

    fn replay<R: Read>(
        &self,
        file: &str,
        mut commands: CommandReader<R>,
        replay: &mut dyn Replay,
    ) -> Result<(), LoadError> {
        replay.begin();
        let mut unknown: BTreeMap<String, usize> = BTreeMap::new();
        let mut skip_or_fail = |offset, problem| match problem {
            ReplayError::Unknown(name) if self.settings.rdb_skip_unknown_values => {
                *unknown.entry(name).or_default() += 1;
                Ok(())
            }
            problem => Err(LoadError::Command {
                file: file.into(),
                offset,
                problem,
            }),
        };
        let mut spare: Vec<&'static [u8]> = Vec::new();
        while let Some(piece) = commands.next_piece()? {
            self.stop_if_asked()?;
            match piece {
                Piece::Commands(commands) => {
                    let (batch, mut first) = (commands.batch, 0);
                    let mut args = recycle(spare);
                    batch.resolve(commands.bytes, &mut args);
                    while let Err((failed, problem)) = replay.run_batch(batch, &args, first) {
                        skip_or_fail(commands.offset_of(failed), problem)?;
                        first = failed + 1;
                    }
                    spare = recycle(args);
                }
                Piece::Unit(unit) => {
                    for command in unit.commands() {
                        let args: Vec<&[u8]> = command.args.iter().map(Vec::as_slice).collect();
                        if let Err(problem) = replay.run(&args) {
                            skip_or_fail(command.offset, problem)?;
                        }
                    }
                }
            }
        }
        if !unknown.is_empty() {
            warn!("{file}: left out unknown commands: {unknown:?}");
        }
        if let Some((count, first)) = replay.refusals() {
            warn!("{file}: {count} commands were answered with an error, the first: {first}");
        }
        Ok(())
    }

    /// Loading is cancelled when the server stops.
    fn stop_if_asked(&self) -> Result<(), LoadError> {
        if self.store.is_stopping() {
            return Err(LoadError::Stopped);
        }
        Ok(())
    }

    /// Reads an RDB file; returns the bytes after it, and their offset.
    fn read_rdb<'r, R: Read + 'r>(
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
