//! Notices that somebody else has removed, renamed, replaced or changed the AOF's files while the
//! server writes them. What is written to a file without a name is lost with the process.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::time::Duration;

use everbloom_files::aof::{FileInfo, Manifest, ReadManifestError};
use everbloom_files::storage::FileStatus;

use super::directory::{LogFiles, LogState, Persistence};
use super::log_writer::Log;

/// The time from one check to the next.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// The AOF's files as they were at the last check.
#[derive(Debug, Default)]
pub(super) struct CheckedFiles {
    /// The machine's uptime then.
    at: Duration,
    /// The manifest, if it named every file.
    manifest: Option<FileStatus>,
    /// The lengths of the files that are no longer written. Their inodes do not count: some file
    /// systems give a file that nobody has open another one.
    lengths: BTreeMap<String, u64>,
}

impl CheckedFiles {
    /// Whether the next check is due at this uptime of the machine.
    pub(super) fn is_due(&self, now: Duration) -> bool {
        now.saturating_sub(self.at) >= CHECK_INTERVAL
    }

    /// Checks the files of an AOF that goes on in `log`. An error says which of them is not as the
    /// server has left it.
    pub(super) fn check(&mut self, persistence: &Persistence, log: &Log) -> Result<(), String> {
        self.at = persistence.machine.uptime();
        if persistence.log_state() != LogState::On {
            return Ok(());
        }
        // A job that changes the files holds the lock.
        let Some(files) = persistence.log.try_lock() else {
            return Ok(());
        };
        let Some((current, earlier)) = files.manifest.increments.split_last() else {
            return Ok(());
        };
        self.check_current(persistence, current, log)?;
        let earlier = files.manifest.base.iter().chain(earlier);
        self.check_earlier(persistence, earlier)?;
        self.check_manifest(persistence, &files)
    }

    /// The file that is written must have its name, and exactly what was written.
    fn check_current(
        &self,
        persistence: &Persistence,
        current: &FileInfo,
        log: &Log,
    ) -> Result<(), String> {
        let name = persistence.names.path(current);
        let named = status(persistence, &name)?;
        let written = log
            .file
            .status()
            .map_err(|error| unreadable(&name, &error))?;
        if !named.is_same_file(written) {
            return Err(format!("{name} was replaced by another file"));
        }
        match log.good_len() {
            Some(len) => check_len(&name, len, written.len),
            None => Ok(()),
        }
    }

    fn check_earlier<'f>(
        &mut self,
        persistence: &Persistence,
        files: impl Iterator<Item = &'f FileInfo>,
    ) -> Result<(), String> {
        let mut lengths = BTreeMap::new();
        for file in files {
            let name = persistence.names.path(file);
            let found = status(persistence, &name)?.len;
            let len = self.lengths.get(&name).copied().unwrap_or(found);
            check_len(&name, len, found)?;
            lengths.insert(name, len);
        }
        self.lengths = lengths;
        Ok(())
    }

    /// The manifest must name every file. It may name one more: a new increment in which the AOF
    /// could not go on.
    fn check_manifest(
        &mut self,
        persistence: &Persistence,
        files: &LogFiles,
    ) -> Result<(), String> {
        let name = persistence.names.manifest();
        let found = status(persistence, &name)?;
        if self.manifest == Some(found) {
            return Ok(());
        }
        let on_disk = match Manifest::read(&*persistence.storage, &persistence.names) {
            Ok(on_disk) => on_disk,
            // For example no free file descriptor. The next check tries again.
            Err(ReadManifestError::Storage { .. }) => return Ok(()),
            Err(problem) => return Err(format!("the manifest was changed: {problem}")),
        };
        let is_named = |file: &&FileInfo| on_disk.files().any(|other| other == *file);
        if let Some(missing) = files.manifest.files().find(|file| !is_named(file)) {
            return Err(format!(
                "{name} was changed, and does not name {}",
                missing.name
            ));
        }
        self.manifest = Some(found);
        Ok(())
    }
}

fn status(persistence: &Persistence, name: &str) -> Result<FileStatus, String> {
    let status = persistence.storage.status(name);
    status.map_err(|error| match error.kind() {
        ErrorKind::NotFound => format!("{name} was removed or renamed"),
        _ => unreadable(name, &error),
    })
}

fn unreadable(name: &str, error: &io::Error) -> String {
    format!("{name} cannot be found any more: {error}")
}

fn check_len(name: &str, written: u64, found: u64) -> Result<(), String> {
    match found == written {
        true => Ok(()),
        false => Err(format!(
            "{name} was changed: {written} bytes were written, and it has {found}"
        )),
    }
}
