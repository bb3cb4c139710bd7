//! Files that are read and written as a whole.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU64, Ordering};

use pyo3::exceptions::{PyMemoryError, PyOSError};
use pyo3::prelude::*;

/// How many links may lead to a file, as on Linux.
const MAX_LINKS: usize = 40;
/// How many names a new file tries.
const MAX_NAMES: usize = 1000;

/// Makes the file hold these bytes, or leaves it as it was: they are written to a file beside it,
/// which takes its place and gets its permissions. A symbolic link stays, and its file is written,
/// also when that does not exist yet. What is no file, such as a device, is refused.
pub(crate) fn write(given: &Path, bytes: &[u8]) -> PyResult<()> {
    let written = behind_links(given).and_then(|path| replace(&path, bytes));
    written.map_err(|error| os_error(&error, given))
}

/// Where symbolic links lead, also when nothing is there.
fn behind_links(given: &Path) -> io::Result<PathBuf> {
    let error = match fs::canonicalize(given) {
        Ok(path) => return Ok(path),
        Err(error) => error,
    };
    let mut path = given.to_owned();
    for _ in 0..MAX_LINKS {
        match fs::read_link(&path) {
            // A relative one begins at the folder of its link.
            Ok(target) => path = folder_of(&path).join(target),
            Err(_) => return Ok(path),
        }
    }
    // The links lead to each other.
    Err(error)
}

fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let found = fs::metadata(path).ok();
    // The rename would replace a pipe or a device. It refuses a folder itself.
    if found
        .as_ref()
        .is_some_and(|found| !found.is_file() && !found.is_dir())
    {
        return Err(io::Error::other("is not a file"));
    }
    let (beside, file) = create_beside(path)?;
    let written = fill(file, bytes, found.map(|found| found.permissions()));
    let written = written.and_then(|()| fs::rename(&beside, path));
    if written.is_err() {
        // The first error says more than one of this.
        let _ = fs::remove_file(&beside);
        return written;
    }
    // The name is on the disk when the folder is. Not all systems have folders that can be synced.
    if let Ok(folder) = File::open(folder_of(path)) {
        let _ = folder.sync_all();
    }
    Ok(())
}

fn fill(mut file: File, bytes: &[u8], permissions: Option<Permissions>) -> io::Result<()> {
    if let Some(permissions) = permissions {
        file.set_permissions(permissions)?;
    }
    file.write_all(bytes)?;
    file.sync_all()
}

/// A new file in the same folder.
fn create_beside(path: &Path) -> io::Result<(PathBuf, File)> {
    let mut names = 0;
    loop {
        names += 1;
        let beside = name_beside(path);
        match OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(&beside)
        {
            // A killed process left it that had the same id: in a container each has the id 1.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && names < MAX_NAMES => {}
            created => return created.map(|file| (beside, file)),
        }
    }
}

/// A name in the same folder that this process has not used yet.
fn name_beside(path: &Path) -> PathBuf {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.{}.{count}.tmp", process::id()))
}

fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    }
}

pub(crate) fn read(path: &Path) -> PyResult<Vec<u8>> {
    fs::read(path).map_err(|error| os_error(&error, path))
}

/// The exception that Python's own functions on files would raise.
fn os_error(error: &io::Error, path: &Path) -> PyErr {
    let path = path.to_string_lossy().into_owned();
    match error.raw_os_error() {
        Some(code) => {
            let text = error.to_string();
            let text = text
                .split(" (os error")
                .next()
                .unwrap_or_default()
                .to_owned();
            PyOSError::new_err((code, text, path))
        }
        None if error.kind() == io::ErrorKind::OutOfMemory => {
            PyMemoryError::new_err(format!("no memory for the file {path}"))
        }
        None => PyOSError::new_err(format!("{error}: {path}")),
    }
}
