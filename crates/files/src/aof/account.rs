//! Whether a manifest accounts for the files of the log that lie beside it.
//!
//! Every file that holds data of the log has a line before the data is written to it. So a file with
//! data and without a line shows that the manifest is damaged. These files may lie there without a
//! line:
//!
//! - an empty file, whose line was about to be written;
//! - an increment older than those of the manifest: history that Redis was about to remove;
//! - a further base, beside one with a line: a rewrite was interrupted before its last step;
//! - files of a log that was being begun. Nothing needs them before they have a line, and
//!   `temp.begin` lists them before they exist.

use std::io::{self, Read};

use super::line::FileInfo;
use super::manifest::{BaseFormat, Manifest, Names, Part, ReadManifestError, adopt};
use crate::storage::Storage;

/// The longest list of files of a log that is being begun.
const MAX_LIST_BYTES: u64 = 64 << 10;

impl Manifest {
    /// The manifest of a data directory; one that names nothing when there is no log.
    ///
    /// It must account for the files of the log that lie beside it. Files of a log whose beginning
    /// was interrupted become history.
    ///
    /// An old-style log, one file in the data directory itself, is adopted as Redis adopts it: it
    /// becomes the base, and is moved to the directory of the log under its own name. That happens
    /// where the log has no files, or where an adoption was interrupted after its first step. A
    /// crash at any point leaves what the next start takes up.
    pub fn load(storage: &dyn Storage, names: &Names) -> Result<Self, ReadManifestError> {
        let manifest = checked(Manifest::read(storage, names)?, storage, names)?;
        let old = names.old_style();
        adopt(storage, names, manifest).map_err(|source| ReadManifestError::Storage {
            file: old.to_owned(),
            source,
        })
    }

    /// The numbered files in the directory of the log that this manifest does not name.
    pub fn strays(&self, storage: &dyn Storage, names: &Names) -> io::Result<Vec<FileInfo>> {
        let found = match storage.list(names.dir()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            found => found?,
        };
        let is_named = |name: &String| {
            let mut named = self.files().chain(&self.history);
            named.any(|info| info.name == *name)
        };
        let strays = found.into_iter().filter(|name| !is_named(name));
        Ok(strays
            .filter_map(|name| {
                let (_, seq) = names.numbered(&name)?;
                Some(FileInfo { name, seq })
            })
            .collect())
    }

    /// Whether a file without a line may be a part of the log.
    pub fn may_need(&self, stray: &FileInfo, names: &Names) -> bool {
        match names.numbered(&stray.name) {
            Some((Part::Base, _)) => self.base.is_none(),
            Some((Part::Increment, seq)) => {
                let first = self.increments.first();
                first.is_none_or(|first| first.seq <= seq)
            }
            None => false,
        }
    }

    /// Lists files of a log that is being begun: the next base, the next increment, and those that
    /// an earlier attempt has left behind.
    pub fn announce(
        &self,
        left: &[FileInfo],
        storage: &dyn Storage,
        names: &Names,
    ) -> io::Result<()> {
        let base = self.next_base(names, BaseFormat::Rdb).name;
        let increment = self.next_increment(names).name;
        let left = left.iter().map(|info| &info.name);
        let list: String = [&base, &increment]
            .into_iter()
            .chain(left)
            .flat_map(|name| [name, "\n"])
            .collect();
        storage.replace(&names.beginning(), list.as_bytes())
    }
}

/// The manifest if it accounts for all files. Files of a log whose beginning was interrupted are in
/// its history.
fn checked(
    mut manifest: Manifest,
    storage: &dyn Storage,
    names: &Names,
) -> Result<Manifest, ReadManifestError> {
    let failed = |source| ReadManifestError::Storage {
        file: names.dir().to_owned(),
        source,
    };
    let announced = announced(storage, names).map_err(failed)?;
    if announced.is_none()
        && let Some(file) = not_replaced(&manifest, names)
    {
        return Err(ReadManifestError::NotReplaced {
            manifest: names.manifest(),
            file: names.path(file),
        });
    }
    let announced = announced.unwrap_or_default();
    for stray in manifest.strays(storage, names).map_err(failed)? {
        let path = names.path(&stray);
        if announced.lines().any(|name| name == stray.name) {
            manifest.history.push(stray);
        } else if manifest.may_need(&stray, names) && storage.read(&path).map_err(failed)?.1 > 0 {
            return Err(ReadManifestError::Unnamed {
                manifest: names.manifest(),
                file: path,
            });
        }
    }
    Ok(manifest)
}

/// The list of files of a log that was being begun, if there is one.
fn announced(storage: &dyn Storage, names: &Names) -> io::Result<Option<String>> {
    let mut list = String::new();
    match storage.read(&names.beginning()) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        found => found?.0.take(MAX_LIST_BYTES).read_to_string(&mut list)?,
    };
    Ok(Some(list))
}

/// A file of the history that nothing has replaced. A rewrite makes a base history together with
/// the increments that follow it, and only the newest increment stays.
fn not_replaced<'m>(manifest: &'m Manifest, names: &Names) -> Option<&'m FileInfo> {
    let increment = |info: &FileInfo| match names.numbered(&info.name) {
        Some((Part::Increment, seq)) => Some(seq),
        _ => None,
    };
    let mut history = manifest.history.iter();
    let replaced =
        manifest.base.is_some() && (manifest.history.iter()).any(|info| increment(info).is_none());
    if !replaced {
        return history.next();
    }
    let first = manifest.increments.first()?.seq;
    history.find(|info| increment(info).is_some_and(|seq| seq >= first))
}
