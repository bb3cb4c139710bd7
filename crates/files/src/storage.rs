//! The files of a data directory, behind a trait that tests replace with one that crashes.
//!
//! Names are relative to the directory and use `/`. What a crash of the machine leaves behind is
//! what was synced: a file's bytes by [`StorageFile::sync`], its name (made, renamed, removed) by
//! [`Storage::sync_dir`].

use std::fmt::Debug;
use std::fs::{self, DirBuilder, File, Metadata, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// A file that is written.
pub trait StorageFile: Write + Send + Debug {
    /// Returns once everything written is on the disk.
    fn sync(&mut self) -> io::Result<()>;
    /// The same for another thread, while this one writes.
    fn sync_elsewhere(&self) -> io::Result<Syncing>;
    /// Truncates the file to `len` bytes. Further writes append there.
    fn truncate(&mut self, len: u64) -> io::Result<()>;
    /// Which file this is, whatever name it has by now.
    fn status(&self) -> io::Result<FileStatus>;

    /// [Truncates](StorageFile::truncate) the file. An error if it has fewer bytes: it would get
    /// zeros behind them.
    fn shorten(&mut self, len: u64) -> io::Result<()> {
        let found = self.status()?.len;
        if found < len {
            let problem = format!("expected a file of at least {len} bytes, found {found}");
            return Err(io::Error::new(io::ErrorKind::InvalidData, problem));
        }
        self.truncate(len)
    }
}

/// Which file it is, and how long. Its names may change; its device and inode do not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileStatus {
    /// The device that it is on.
    pub device: u64,
    /// Its number there.
    pub inode: u64,
    /// Its length in bytes.
    pub len: u64,
}

impl FileStatus {
    /// Whether both are of one file.
    pub fn is_same_file(self, other: FileStatus) -> bool {
        (self.device, self.inode) == (other.device, other.inode)
    }
}

impl From<Metadata> for FileStatus {
    fn from(metadata: Metadata) -> Self {
        FileStatus {
            device: metadata.dev(),
            inode: metadata.ino(),
            len: metadata.len(),
        }
    }
}

/// Brings to the disk what was written to a file before it is called.
pub type Syncing = Box<dyn FnOnce() -> io::Result<()> + Send>;

/// A data directory.
pub trait Storage: Send + Sync + Debug {
    /// Makes a file, or empties it.
    fn create(&self, name: &str) -> io::Result<Box<dyn StorageFile>>;
    /// Opens a file to write at its end, made when missing.
    fn append(&self, name: &str) -> io::Result<Box<dyn StorageFile>>;
    /// Opens a file to read from byte `start` on, and says how long the whole file is.
    fn read_from(&self, name: &str, start: u64) -> io::Result<(Box<dyn Read + Send>, u64)>;
    /// Which file has this name now.
    fn status(&self, name: &str) -> io::Result<FileStatus>;
    /// Renames a file, and replaces the one of that name.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;
    /// Removes a file.
    fn remove(&self, name: &str) -> io::Result<()>;
    /// Makes a directory, if it is not there.
    fn create_dir(&self, name: &str) -> io::Result<()>;
    /// Returns once the names in a directory (`""` is the data directory itself) are on the disk.
    fn sync_dir(&self, name: &str) -> io::Result<()>;
    /// The names of the files in a directory, without its own.
    fn list(&self, name: &str) -> io::Result<Vec<String>>;

    /// Opens a file to read, and says how long it is.
    fn read(&self, name: &str) -> io::Result<(Box<dyn Read + Send>, u64)> {
        self.read_from(name, 0)
    }

    /// When a file was last written, if that is known: for people, as it may lie.
    fn modified(&self, _name: &str) -> io::Result<Option<SystemTime>> {
        Ok(None)
    }

    /// Whether a file is there.
    fn exists(&self, name: &str) -> io::Result<bool> {
        match self.read(name) {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// The first name of this beginning and a number that no file has.
    fn free_name(&self, beginning: &str) -> io::Result<String> {
        let mut number = 1;
        loop {
            let name = format!("{beginning}{number}");
            if !self.exists(&name)? {
                return Ok(name);
            }
            number += 1;
        }
    }

    /// Puts `bytes` under `name` so that a crash leaves either the old file or the new one. A
    /// failure before the name is replaced leaves nothing behind.
    fn replace(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let temporary = format!("{name}.tmp");
        let written = self.create(&temporary).and_then(|mut file| {
            file.write_all(bytes)?;
            file.sync()
        });
        let replaced = written.and_then(|()| self.rename(&temporary, name));
        if replaced.is_err() {
            drop(self.remove(&temporary));
        }
        replaced?;
        self.sync_dir(parent(name))
    }
}

/// The directory part of a name.
pub fn parent(name: &str) -> &str {
    name.rsplit_once('/').map_or("", |(parent, _)| parent)
}

/// A directory of the file system.
#[derive(Debug, Clone)]
pub struct Disk {
    root: PathBuf,
}

impl Disk {
    /// The directory `root`.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Disk { root: root.into() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.join(Path::new(name))
    }

    /// Each write goes to the end that the file has then: when somebody has emptied it meanwhile, no
    /// hole hides that.
    fn open_at_end(&self, name: &str) -> io::Result<File> {
        new_file().append(true).open(self.path(name))
    }
}

impl StorageFile for File {
    fn sync(&mut self) -> io::Result<()> {
        self.sync_data()
    }

    fn sync_elsewhere(&self) -> io::Result<Syncing> {
        let file = self.try_clone()?;
        Ok(Box::new(move || file.sync_data()))
    }

    fn truncate(&mut self, len: u64) -> io::Result<()> {
        self.set_len(len)?;
        self.seek(SeekFrom::Start(len)).map(drop)
    }

    fn status(&self) -> io::Result<FileStatus> {
        self.metadata().map(FileStatus::from)
    }
}

/// How a file is opened that may have to be made: nobody else reads what clients have stored.
pub fn new_file() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.create(true).truncate(false).write(true).mode(0o600);
    options
}

/// How a directory is made: nobody else looks into it.
pub fn new_dir() -> DirBuilder {
    let mut builder = DirBuilder::new();
    builder.mode(0o700);
    builder
}

impl Storage for Disk {
    fn create(&self, name: &str) -> io::Result<Box<dyn StorageFile>> {
        let file = self.open_at_end(name)?;
        file.set_len(0)?;
        Ok(Box::new(file))
    }

    fn append(&self, name: &str) -> io::Result<Box<dyn StorageFile>> {
        Ok(Box::new(self.open_at_end(name)?))
    }

    fn read_from(&self, name: &str, start: u64) -> io::Result<(Box<dyn Read + Send>, u64)> {
        let mut file = File::open(self.path(name))?;
        let len = file.metadata()?.len();
        file.seek(SeekFrom::Start(start))?;
        Ok((Box::new(file), len))
    }

    fn status(&self, name: &str) -> io::Result<FileStatus> {
        fs::metadata(self.path(name)).map(FileStatus::from)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.path(from), self.path(to))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        fs::remove_file(self.path(name))
    }

    fn create_dir(&self, name: &str) -> io::Result<()> {
        // Never the data directory itself: its creator locks it.
        match new_dir().create(self.path(name)) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            made => made,
        }
    }

    fn sync_dir(&self, name: &str) -> io::Result<()> {
        File::open(self.path(name))?.sync_all()
    }

    fn modified(&self, name: &str) -> io::Result<Option<SystemTime>> {
        fs::metadata(self.path(name))?.modified().map(Some)
    }

    fn list(&self, name: &str) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(self.path(name))? {
            names.extend(entry?.file_name().into_string().ok());
        }
        names.sort();
        Ok(names)
    }
}
