//! Decides which is newer when the data directory has both a log and a snapshot.
//!
//! A log that is kept is never older than a snapshot. Once it is switched off, each further snapshot
//! is newer. So the first such snapshot marks the manifest ([`Ended`](everbloom_files::aof::Ended)),
//! and they all bear the number of that mark ([`LogMark`]). A log that goes on, or begins, has no
//! mark. A server that was started with `appendonly no` beside a log has never read it; its
//! snapshots say so.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering::Relaxed;

use everbloom_files::aof::Manifest;
use everbloom_files::rdb::{Event, LogMark, Reader};
use tracing::warn;

use super::load::{DataLoader, LoadError};
use crate::clock::utc;

impl DataLoader<'_> {
    /// Loads the snapshot. An older log is ignored; its file names are not reused.
    pub(super) fn load_without_log(&self) -> Result<(), LoadError> {
        let persistence = self.persistence;
        let manifest = Manifest::read(&*persistence.storage, &persistence.names)?;
        if !manifest.is_empty() {
            let ended = manifest.ended.map(|ended| ended.id);
            let mark = self.snapshot_mark()?.flatten();
            let includes = mark.is_some_and(|mark| mark.includes && Some(mark.id) == ended);
            persistence.includes_log.store(includes, Relaxed);
            if !includes {
                warn!(
                    "the log in {} is not read, because appendonly is no; {} may lack changes that \
                     it holds",
                    persistence.names.dir(),
                    self.settings.dbfilename
                );
            }
        }
        persistence.set_log(manifest, BTreeMap::new());
        self.load_snapshot()
    }

    /// What the snapshot says of a log; `None` without a snapshot.
    fn snapshot_mark(&self) -> Result<Option<Option<LogMark>>, LoadError> {
        let file = &self.settings.dbfilename;
        let rdb = |source| LoadError::Rdb {
            file: file.into(),
            source,
        };
        let Some((input, _)) = self.open(file)? else {
            return Ok(None);
        };
        let mut reader = Reader::new(input, self.store.memory).map_err(rdb)?;
        while let Event::Aux { name, value } = reader.next_event().map_err(rdb)? {
            if name == LogMark::AUX_NAME.as_bytes() {
                return Ok(Some(LogMark::parse(&value)));
            }
        }
        Ok(Some(None))
    }

    /// Whether the snapshot is newer than the log: it was made after that had been switched off.
    pub(super) fn is_snapshot_newer(&self, log: &Manifest) -> Result<bool, LoadError> {
        let Some(ended) = log.ended else {
            return Ok(false);
        };
        let file = &self.settings.dbfilename;
        let why = match self.snapshot_mark()? {
            Some(Some(mark)) if mark.id == ended.id && mark.includes => return Ok(true),
            Some(Some(mark)) if mark.id == ended.id => {
                "the snapshot was made by a server that had not read the log (appendonly no)"
            }
            Some(_) if ended.saved => {
                "the log was switched off, and the snapshot that was made then is another one"
            }
            None if ended.saved => {
                warn!("the snapshot that is newer than the log is missing: there is no {file}");
                return Ok(false);
            }
            _ => return Ok(false),
        };
        let names = &self.persistence.names;
        let log = log.files().last();
        let log = log.map_or_else(|| names.manifest(), |newest| names.path(newest));
        Err(LoadError::TwoTruths {
            log_time: self.written(&log),
            log,
            snapshot_time: self.written(file),
            snapshot: file.clone(),
            why,
        })
    }

    /// When a file was written, for people.
    fn written(&self, file: &str) -> String {
        let found = self.persistence.storage.modified(file).ok().flatten();
        found.map_or_else(|| "at an unknown time".into(), utc)
    }
}
