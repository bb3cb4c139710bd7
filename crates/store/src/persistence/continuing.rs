//! Begins or continues the log, once the data is loaded.

use std::collections::BTreeMap;

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
        persistence.set_log(manifest, BTreeMap::new());
        let old = persistence.retire_log().map_err(&io)?;
        let base = persistence.temporary_base();
        let snapshot = Snapshot::begin(&store.keyspace, || ());
        let purpose = Purpose::Base;
        let written = write_file(store, persistence, snapshot, settings, &base, purpose);
        let begun = written.map_err(LoadError::from).and_then(|bytes| {
            let installed = persistence.install_base(&base, bytes, Follows::Log);
            let file = installed.and_then(|()| persistence.next_file(None));
            file.map_err(&io)
        });
        if begun.is_err() {
            // The start fails, and leaves nothing behind.
            drop(storage.remove(&base));
            drop(persistence.restore_log(old, None));
        }
        Ok(Log::new(begun?, 0, store.machine.uptime()))
    }

    /// Continues the log that was read, whose files have these lengths by name.
    pub(super) fn go_on(
        &self,
        mut manifest: Manifest,
        mut lengths: BTreeMap<String, u64>,
    ) -> Result<Log, LoadError> {
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
        let current = manifest.increments.last();
        let current = current.and_then(|current| lengths.remove(&current.name));
        persistence.set_log(manifest, lengths);
        persistence.forget_announcement().map_err(&io)?;
        if let (Some(file), Some(len)) = (last, current) {
            return Ok(Log::new(file, len, self.store.machine.uptime()));
        }
        let file = persistence.next_file(None).map_err(&io)?;
        Ok(Log::new(file, 0, self.store.machine.uptime()))
    }
}
