//! Notices that somebody else has removed, renamed, replaced or changed the AOF's files while the
//! server writes them. What is written to a file without a name is lost with the process.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::time::Duration;

use everbloom_files::aof::{FileInfo, Manifest, ReadManifestError};
use everbloom_files::storage::FileStatus;

use super::directory::{LogFiles, LogState, Persistence};
use super::log_writer::{CheckedFiles, Log};

/// The time from one check to the next.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

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
        let Some(mut files) = persistence.log.try_lock() else {
            return Ok(());
        };
        let Some(current) = files.manifest.increments.last() else {
            return Ok(());
        };
        let checked = Self::check_current(persistence, current, log)
            .and_then(|()| Self::check_earlier(persistence, &mut files, log))
            .and_then(|()| self.check_manifest(persistence, &files));
        match checked {
            Err(Finding::Changed(what)) => Err(what),
            Ok(()) | Err(Finding::Unknown) => Ok(()),
        }
    }

    /// The file that is written must have its name, and exactly what was written. More may be in it
    /// after a write that failed, or while a torn end is.
    fn check_current(
        persistence: &Persistence,
        current: &FileInfo,
        log: &Log,
    ) -> Result<(), Finding> {
        let name = persistence.names.path(current);
        let named = status(persistence, &name)?;
        let written = log.file.status().map_err(|error| finding(&name, &error))?;
        if !named.is_same_file(written) {
            let what = format!("{name} was replaced by another file");
            return Err(Finding::Changed(what));
        }
        let longer = log.may_be_longer(&name, true);
        check_len(&name, log.len(), written.len, longer)
    }

    /// Files that are no longer written must have their lengths. Their inodes do not count: some
    /// file systems give a file that nobody has open another one.
    fn check_earlier(
        persistence: &Persistence,
        files: &mut LogFiles,
        log: &Log,
    ) -> Result<(), Finding> {
        let LogFiles {
            manifest, lengths, ..
        } = files;
        let increments = manifest.increments.split_last();
        let increments = increments.map_or(&[][..], |(_, earlier)| earlier);
        let mut checked = BTreeMap::new();
        for file in manifest.base.iter().chain(increments) {
            let name = persistence.names.path(file);
            let found = status(persistence, &name)?.len;
            // Unknown only after a write that failed.
            let len = lengths.get(&file.name).copied().unwrap_or(found);
            check_len(&name, len, found, log.may_be_longer(&name, false))?;
            checked.insert(file.name.clone(), len);
        }
        *lengths = checked;
        Ok(())
    }

    /// The manifest must name every file. It may name one more: a new increment in which the AOF
    /// could not go on.
    fn check_manifest(
        &mut self,
        persistence: &Persistence,
        files: &LogFiles,
    ) -> Result<(), Finding> {
        let name = persistence.names.manifest();
        let found = status(persistence, &name)?;
        if self.manifest == Some(found) {
            return Ok(());
        }
        let on_disk = match Manifest::read(&*persistence.storage, &persistence.names) {
            Ok(on_disk) => on_disk,
            Err(ReadManifestError::Storage { .. }) => return Err(Finding::Unknown),
            Err(problem) => {
                let what = format!("the manifest was changed: {problem}");
                return Err(Finding::Changed(what));
            }
        };
        // Both are in the order in which the files are read.
        let mut on_disk = on_disk.files();
        let mut is_named = |file: &&FileInfo| on_disk.any(|other| other == *file);
        if let Some(missing) = files.manifest.files().find(|file| !is_named(file)) {
            return Err(Finding::Changed(format!(
                "{name} was changed, and does not name {}",
                missing.name
            )));
        }
        self.manifest = Some(found);
        Ok(())
    }
}

/// Why a check ended early.
enum Finding {
    /// A file is not as the server has left it.
    Changed(String),
    /// The files could not be looked at, for example without a free file descriptor. The next check
    /// tries again.
    Unknown,
}

fn status(persistence: &Persistence, name: &str) -> Result<FileStatus, Finding> {
    let status = persistence.storage.status(name);
    status.map_err(|error| finding(name, &error))
}

/// What an error of `stat` says about a file.
fn finding(name: &str, error: &io::Error) -> Finding {
    match error.kind() {
        ErrorKind::NotFound | ErrorKind::NotADirectory => {
            Finding::Changed(format!("{name} was removed or renamed"))
        }
        ErrorKind::StaleNetworkFileHandle => {
            Finding::Changed(format!("{name} cannot be found any more: {error}"))
        }
        _ => Finding::Unknown,
    }
}

/// `longer` says whether the file may be longer than what was written.
fn check_len(name: &str, written: u64, found: u64, longer: bool) -> Result<(), Finding> {
    match found == written || longer && found > written {
        true => Ok(()),
        false => Err(Finding::Changed(format!(
            "{name} was changed: {written} bytes were written, and it has {found}"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A lost AOF refuses writes and is rewritten. An error that passes must not cause that.
    #[test]
    fn only_an_error_that_proves_a_change_is_one() {
        let proves = |kind| matches!(finding("f", &io::Error::from(kind)), Finding::Changed(_));
        for kind in [
            ErrorKind::NotFound,
            ErrorKind::NotADirectory,
            ErrorKind::StaleNetworkFileHandle,
        ] {
            assert!(proves(kind), "{kind}");
        }
        for kind in [
            ErrorKind::PermissionDenied,
            ErrorKind::Interrupted,
            ErrorKind::OutOfMemory,
            ErrorKind::TimedOut,
            ErrorKind::Other,
        ] {
            assert!(!proves(kind), "{kind}");
        }
    }
}
