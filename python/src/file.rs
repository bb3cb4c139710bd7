//! Files that are read and written as a whole.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU64, Ordering};

use pyo3::exceptions::{PyMemoryError, PyOSError};
use pyo3::prelude::*;

/// Makes the file hold these bytes, or leaves it as it was: they are written to a file beside it,
/// which takes its place and gets its permissions. A link goes on to name it.
pub(crate) fn write(given: &Path, bytes: &[u8]) -> PyResult<()> {
    let target = fs::canonicalize(given);
    let path = target.as_deref().unwrap_or(given);
    let beside = name_beside(path);
    let permissions = fs::metadata(path).map(|found| found.permissions());
    let written = write_new(&beside, bytes, permissions.ok());
    let written = written.and_then(|()| fs::rename(&beside, path));
    written.map_err(|error| {
        // It may not even be there.
        let _ = fs::remove_file(&beside);
        os_error(&error, given)
    })?;
    // The name is on the disk when the folder is. Not all systems have folders that can be synced.
    if let Ok(folder) = File::open(folder_of(path)) {
        let _ = folder.sync_all();
    }
    Ok(())
}

fn write_new(path: &Path, bytes: &[u8], permissions: Option<Permissions>) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).open(path)?;
    if let Some(permissions) = permissions {
        file.set_permissions(permissions)?;
    }
    file.write_all(bytes)?;
    file.sync_all()
}

/// A name in the same folder that nothing else has.
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
