//! Begins or continues the log, once the data is loaded.

use everbloom_files::aof::Manifest;

use super::jobs::write_file;
use super::load::{DataLoader, LoadError};
use super::log_files::Follows;
use super::log_writer::Log;
use super::writer::Purpose;
use crate::keyspace::snapshot::Snapshot;

impl DataLoader<'_> {
    /// Begins a log with the loaded data as its base. It replaces the one on the disk, if any.
    pub(super) fn begin_log(&self, manifest: Manifest) -> Result<Log, LoadError> {
        let Self {
            store,
            persistence,
            settings,
        } = *self;
        let file = persistence.names.manifest();
        let io = LoadError::io(&file);
        let storage = &*persistence.storage;
        storage.create_dir(persistence.names.dir()).map_err(&io)?;
        storage.sync_dir("").map_err(&io)?;
        persistence.set_log(manifest);
        persistence.retire_log().map_err(&io)?;
        let base = persistence.temporary_base();
        let snapshot = Snapshot::begin(&store.keyspace, || ());
        let purpose = Purpose::Base;
        let written = write_file(store, persistence, snapshot, settings, &base, purpose)?;
        persistence
            .install_base(&base, written, Follows::Log)
            .map_err(&io)?;
        let file = persistence.next_file().map_err(&io)?;
        Ok(Log::new(file, 0, self.store.machine.uptime()))
    }

    /// Continues the log that was read, whose last file has `len` bytes.
    pub(super) fn go_on(&self, mut manifest: Manifest, len: u64) -> Result<Log, LoadError> {
        let persistence = self.persistence;
        let file = persistence.names.manifest();
        let io = LoadError::io(&file);
        let storage = &*persistence.storage;
        // A process that was killed may have left names and bytes that were read now and are not
        // yet on the disk. New data must not depend on them before they are.
        storage.sync_dir("").map_err(&io)?;
        storage.sync_dir(persistence.names.dir()).map_err(&io)?;
        persistence.remove_history(&mut manifest).map_err(&io)?;
        // A snapshot that was made before is older from now on.
        if manifest.ended.take().is_some() {
            manifest.store(storage, &persistence.names).map_err(&io)?;
        }
        // A log that was lost may go on in a file behind one that no fsync has brought to the disk.
        let mut last = None;
        for info in manifest.files() {
            let mut file = storage.append(&persistence.names.path(info)).map_err(&io)?;
            file.sync().map_err(&io)?;
            last = Some(file);
        }
        let is_increment = !manifest.increments.is_empty();
        persistence.set_log(manifest);
        persistence.forget_announcement().map_err(&io)?;
        if let Some(file) = last.filter(|_| is_increment) {
            return Ok(Log::new(file, len, self.store.machine.uptime()));
        }
        let file = persistence.next_file().map_err(&io)?;
        Ok(Log::new(file, 0, self.store.machine.uptime()))
    }
}
