//! A filter in a file: the library's stable bytes, read, locked against a second run, and replaced
//! in one step.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek};
use std::path::{Path, PathBuf};

use everbloom::dcso::DcsoFilter;
use everbloom::{BloomFilter, BytesError, ReadError, ScalableBloomFilter};

use crate::filter::{Filter, Writable};
use crate::other::{self, Other, OtherError, Program};
use crate::stable;

/// How often to open a file again that another run has just replaced.
const ATTEMPTS: usize = 100;

/// Why a filter file cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FilterFileError {
    #[error("cannot {deed} {}: {source}", path.display())]
    Io {
        deed: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    #[error("{} is not a file; a filter needs a file of its own", .0.display())]
    NoFile(PathBuf),
    #[error(
        "{} is in use by another run; wait until that has ended, or name another file", .0.display()
    )]
    Locked(PathBuf),
    #[error(
        "{} is empty: the run that began it has not ended, or was killed; build it again",
        .0.display()
    )]
    Empty(PathBuf),
    #[error("{} is not a filter file; to keep it as it is, name another one", .0.display())]
    Foreign(PathBuf),
    #[error("{} is a filter of {what}; to keep it as it is, name another one", path.display())]
    Taken { path: PathBuf, what: &'static str },
    #[error(
        "{} is a filter that {}, and the new one would be another; to keep it as it is, name \
         another file, or remove this one",
        path.display(),
        if *grows { "grows, as those of dedup" } else { "has a fixed size" }
    )]
    OtherKind { path: PathBuf, grows: bool },
    #[error(
        "{} is a filter of {program}, whose bits fit none of ours; build a filter of what was put \
         into it",
        path.display()
    )]
    Other { path: PathBuf, program: Program },
    #[error(
        "{} unpacks to {bytes} bytes, too many for memory; unpack it with gunzip, and name the \
         result",
        path.display()
    )]
    Packed { path: PathBuf, bytes: u64 },
    #[error(
        "{} is no whole filter of {program} ({reason}); put a copy in its place, or make it again",
        path.display()
    )]
    OtherDamaged {
        path: PathBuf,
        program: Program,
        reason: OtherError,
    },
    #[error(
        "{} has version {version} of the format, which this everbloom does not know; use a \
         newer one",
        path.display()
    )]
    Newer { path: PathBuf, version: u16 },
    #[error(
        "{} holds a filter of fixed size, and dedup needs one that grows; name another file",
        .0.display()
    )]
    Fixed(PathBuf),
    #[error(
        "{} is damaged ({reason}); put a copy in its place, or remove it and begin anew",
        path.display()
    )]
    Damaged { path: PathBuf, reason: BytesError },
    #[error(
        "cannot save {}: {source}; the file is as it was before this run",
        path.display()
    )]
    Save { path: PathBuf, source: io::Error },
}

impl FilterFileError {
    /// A filter of another program cannot be used.
    pub(crate) fn other(path: &Path, program: Program, reason: OtherError) -> Self {
        let path = path.to_owned();
        match reason {
            OtherError::TooLarge(bytes) => FilterFileError::Packed { path, bytes },
            reason => FilterFileError::OtherDamaged {
                path,
                program,
                reason,
            },
        }
    }
}

/// The filter of a file.
#[derive(Debug)]
pub(crate) enum Found {
    Own(Filter),
    Other(Other),
}

/// A filter file that this process alone has open, as far as others ask for the lock too.
///
/// A new file is empty until it is saved for the first time. When that does not happen, it is
/// removed.
#[derive(Debug)]
pub(crate) struct FilterFile {
    /// Without symbolic links, so that saving replaces the file and not a link to it.
    path: PathBuf,
    /// The locked file. The lock ends with it.
    file: File,
    is_empty: bool,
    /// Whether this process made it: only then may it be removed.
    is_ours: bool,
}

impl FilterFile {
    /// Opens the file and locks it. Makes an empty one where there is none.
    pub(crate) fn open(path: &Path) -> Result<Self, FilterFileError> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        let file = Self::open_with(path, &options, File::try_lock)?;
        // A run of hours must not learn at its end that it cannot save.
        file.create_new()
            .and_then(|(new, _)| fs::remove_file(new))
            .map_err(|source| FilterFileError::Save {
                path: file.path.clone(),
                source,
            })?;
        Ok(file)
    }

    /// Opens the file to read it, which several may do at a time.
    pub(crate) fn open_to_read(path: &Path) -> Result<Self, FilterFileError> {
        let mut options = OpenOptions::new();
        options.read(true);
        Self::open_with(path, &options, File::try_lock_shared)
    }

    /// Reads the filter of a file that others may use meanwhile: they replace it in one step.
    pub(crate) fn look(path: &Path) -> Result<Filter, FilterFileError> {
        Self::open_unlocked(path)?.read_any()
    }

    /// The same, or a filter of another program that takes records.
    pub(crate) fn look_at_writable(path: &Path) -> Result<Writable, FilterFileError> {
        Self::open_unlocked(path)?.read_writable()
    }

    /// The same, or opens the filter of another program, which is read while it is asked.
    pub(crate) fn look_at_any(path: &Path) -> Result<Found, FilterFileError> {
        let mut file = Self::open_unlocked(path)?;
        let program = match file.read_any() {
            Ok(filter) => return Ok(Found::Own(filter)),
            Err(FilterFileError::Other { program, .. }) => program,
            Err(error) => return Err(error),
        };
        Other::open(program, &file.file)
            .map(Found::Other)
            .map_err(|reason| FilterFileError::other(path, program, reason))
    }

    fn open_unlocked(path: &Path) -> Result<Self, FilterFileError> {
        let mut options = OpenOptions::new();
        options.read(true);
        Self::open_with(path, &options, |_| Ok(()))
    }

    fn open_with(
        path: &Path,
        options: &OpenOptions,
        lock: impl Fn(&File) -> Result<(), TryLockError>,
    ) -> Result<Self, FilterFileError> {
        let failed = |deed| {
            move |source| FilterFileError::Io {
                deed,
                path: path.to_owned(),
                source,
            }
        };
        for _ in 0..ATTEMPTS {
            let found = fs::metadata(path);
            // Opening something else could wait for ever.
            if found.as_ref().is_ok_and(|found| !found.is_file()) {
                return Err(FilterFileError::NoFile(path.to_owned()));
            }
            let file = options.open(path).map_err(failed("open"))?;
            let metadata = file.metadata().map_err(failed("open"))?;
            if !metadata.is_file() {
                return Err(FilterFileError::NoFile(path.to_owned()));
            }
            match lock(&file) {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => {
                    return Err(FilterFileError::Locked(path.to_owned()));
                }
                Err(TryLockError::Error(source)) => return Err(failed("lock")(source)),
            }
            // Between the two steps another run may have put a new file in this one's place.
            if is_at(&file, path) {
                return Ok(Self {
                    path: fs::canonicalize(path).map_err(failed("find"))?,
                    is_empty: metadata.len() == 0,
                    is_ours: found.is_err(),
                    file,
                });
            }
        }
        Err(FilterFileError::Locked(path.to_owned()))
    }

    /// Whether there was nothing before.
    pub(crate) fn is_new(&self) -> bool {
        self.is_empty
    }

    /// Reads the filter, which must be one that grows; `None` when the file is new. All of it is
    /// checked.
    pub(crate) fn read(&mut self) -> Result<Option<ScalableBloomFilter>, FilterFileError> {
        if self.is_empty {
            return Ok(None);
        }
        match self.read_any()? {
            Filter::Growing(filter) => Ok(Some(filter)),
            Filter::Fixed(_) => Err(FilterFileError::Fixed(self.path.clone())),
        }
    }

    /// Reads the filter. All of it is checked.
    pub(crate) fn read_any(&mut self) -> Result<Filter, FilterFileError> {
        if self.is_empty {
            return Err(FilterFileError::Empty(self.path.clone()));
        }
        let length = self.file.metadata().map(|found| found.len());
        length
            .map_err(ReadError::Io)
            .and_then(|length| stable::read(&self.file, length))
            .map_err(|error| self.unread(error))
    }

    /// Reads a filter that takes records.
    pub(crate) fn read_writable(&mut self) -> Result<Writable, FilterFileError> {
        let program = match self.read_any() {
            Err(FilterFileError::Other { program, .. }) if program == Program::Dcso => program,
            read => return read.map(Writable::Own),
        };
        let mut bytes = Vec::new();
        let read = self.file.rewind();
        let read = read.and_then(|()| self.file.read_to_end(&mut bytes));
        let filter = read.map_err(OtherError::Io).and_then(|_| {
            if bytes.starts_with(&other::GZIP) {
                let packed = io::Error::other("it is packed: unpack it with gunzip first");
                return Err(packed.into());
            }
            Ok(DcsoFilter::from_bytes(bytes)?)
        });
        filter
            .map(Writable::Dcso)
            .map_err(|reason| FilterFileError::other(&self.path, program, reason))
    }

    /// Whether the file may be replaced: it is new, or a filter, damaged or not.
    pub(crate) fn check_is_filter(&mut self) -> Result<(), FilterFileError> {
        self.check_is_of(None)
    }

    /// Whether the file may be replaced by a filter of our own that grows or does not: it is new,
    /// or such a filter, damaged or not. Others would lose more than what is built again.
    pub(crate) fn check_is_own(&mut self, grows: bool) -> Result<(), FilterFileError> {
        self.check_is_of(None)?;
        let header = stable::read_header(&self.file).map_err(|error| self.unread(error.into()))?;
        if !self.is_empty && stable::grows(&header) != grows {
            return Err(FilterFileError::OtherKind {
                path: self.path.clone(),
                grows: !grows,
            });
        }
        Ok(())
    }

    /// The same for a filter that is to be one of this program; none is our own.
    pub(crate) fn check_is_of(&mut self, program: Option<Program>) -> Result<(), FilterFileError> {
        if self.is_empty {
            return Ok(());
        }
        let header = stable::read_header(&self.file).map_err(|error| self.unread(error.into()))?;
        let is_own = !matches!(BloomFilter::from_bytes(&header), Err(BytesError::Magic));
        let found = if is_own { None } else { Some(self.program()?) };
        if found == program {
            return Ok(());
        }
        Err(FilterFileError::Taken {
            path: self.path.clone(),
            what: found.map_or("everbloom", Program::name),
        })
    }

    /// The program that wrote what is not ours.
    fn program(&self) -> Result<Program, FilterFileError> {
        let path = || self.path.clone();
        match other::program(&self.file) {
            Ok(Some(program)) => Ok(program),
            Ok(None) => Err(FilterFileError::Foreign(path())),
            Err(error) => Err(self.unread(error.into())),
        }
    }

    fn unread(&self, error: ReadError) -> FilterFileError {
        let path = self.path.clone();
        match error {
            ReadError::Io(source) => FilterFileError::Io {
                deed: "read",
                path,
                source,
            },
            ReadError::Bytes(BytesError::Magic) => match self.program() {
                Ok(program) => FilterFileError::Other { path, program },
                Err(error) => error,
            },
            ReadError::Bytes(BytesError::Version(version)) => {
                FilterFileError::Newer { path, version }
            }
            ReadError::Bytes(reason) => FilterFileError::Damaged { path, reason },
        }
    }

    /// Replaces the file. Whatever happens meanwhile, the name has the old bytes or the new ones,
    /// and the lock stays.
    pub(crate) fn save(
        &mut self,
        write: impl FnOnce(&File) -> io::Result<()>,
    ) -> Result<(), FilterFileError> {
        self.replace(write).map_err(|source| FilterFileError::Save {
            path: self.path.clone(),
            source,
        })
    }

    fn replace(&mut self, write: impl FnOnce(&File) -> io::Result<()>) -> io::Result<()> {
        // It was removed; another run may have begun, with its own lock.
        if !is_at(&self.file, &self.path) {
            return Err(io::Error::other("it was removed or replaced meanwhile"));
        }
        let (new, file) = self.create_new()?;
        let written = write(&file).and_then(|()| {
            file.set_permissions(self.file.metadata()?.permissions())?;
            file.sync_all()?;
            file.try_lock()?;
            fs::rename(&new, &self.path)
        });
        if let Err(error) = written {
            // Ignore the error: a half-written file is only in the way of the next save.
            let _ = fs::remove_file(&new);
            return Err(error);
        }
        self.file = file;
        self.is_empty = false;
        sync_folder(&self.path)
    }

    /// The file that will replace this one. Only the holder of the lock calls this, so one name is
    /// enough, and leftovers of a killed run are overwritten.
    fn create_new(&self) -> io::Result<(PathBuf, File)> {
        let mut name = self.path.file_name().map_or_else(OsString::new, Into::into);
        name.push(".new");
        let path = self.path.with_file_name(name);
        let file = File::create(&path)?;
        Ok((path, file))
    }
}

impl Drop for FilterFile {
    fn drop(&mut self) {
        if self.is_ours
            && self.is_empty
            && is_at(&self.file, &self.path)
            && self.file.metadata().is_ok_and(|found| found.len() == 0)
        {
            // Ignore the error: an empty file is a new one for the next run.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Whether the open file is still the one with this name.
#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let id = |found: fs::Metadata| (found.dev(), found.ino());
    let (open, named) = (file.metadata().map(id), fs::metadata(path).map(id));
    matches!((open, named), (Ok(open), Ok(named)) if open == named)
}

#[cfg(not(unix))]
fn is_at(_file: &File, path: &Path) -> bool {
    path.exists()
}

/// Makes the new name of a file last.
#[cfg(unix)]
fn sync_folder(path: &Path) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("/"));
    File::open(folder)?.sync_all()
}

#[cfg(not(unix))]
fn sync_folder(_path: &Path) -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    fn folder(test: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("everbloom-{test}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    #[test]
    fn a_new_file_that_is_not_saved_goes_away() {
        let folder = folder("new");
        let path = folder.join("seen.bloom");
        let mut file = FilterFile::open(&path).unwrap();
        assert!(file.read().unwrap().is_none());
        assert!(matches!(
            FilterFile::open(&path),
            Err(FilterFileError::Locked(_))
        ));
        drop(file);
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
        fs::remove_dir(folder).unwrap();
    }

    /// Somebody made it with a purpose, such as `mktemp`.
    #[test]
    fn an_empty_file_that_was_there_stays() {
        let folder = folder("empty");
        let path = folder.join("seen.bloom");
        fs::write(&path, "").unwrap();
        let mut file = FilterFile::open(&path).unwrap();
        assert!(file.read().unwrap().is_none());
        drop(file);
        assert_eq!(fs::read(&path).unwrap(), b"");
        fs::remove_dir_all(folder).unwrap();
    }

    /// Though the run that made it has saved nothing yet.
    #[test]
    fn who_only_looks_removes_nothing() {
        let folder = folder("look");
        let path = folder.join("seen.bloom");
        let mut file = FilterFile::open(&path).unwrap();
        let looked = FilterFile::look(&path);
        assert!(matches!(looked, Err(FilterFileError::Empty(_))));
        assert!(FilterFile::open_to_read(&path).is_err());
        let filter = ScalableBloomFilter::new(1000, 0.01);
        file.save(|to| filter.write_to(to)).unwrap();
        drop(file);
        assert!(FilterFile::look(&path).is_ok());
        fs::remove_dir_all(folder).unwrap();
    }

    #[cfg(unix)]
    #[test]
    fn a_file_that_took_the_place_stays() {
        let folder = folder("place");
        let path = folder.join("seen.bloom");
        let filter = ScalableBloomFilter::new(1000, 0.01);
        for other in [true, false] {
            let mut file = FilterFile::open(&path).unwrap();
            fs::remove_file(&path).unwrap();
            if other {
                fs::write(&path, "another").unwrap();
            }
            assert!(matches!(
                file.save(|to| filter.write_to(to)),
                Err(FilterFileError::Save { .. })
            ));
            drop(file);
            assert_eq!(
                fs::read(&path).unwrap_or_default(),
                &b"another"[..7 * usize::from(other)]
            );
            let _ = fs::remove_file(&path);
        }
        fs::remove_dir(folder).unwrap();
    }

    /// The holder of the lock has the newest file, although each save replaces it.
    #[test]
    fn what_each_of_many_adds_stays() {
        const THREADS: u32 = 4;
        const ROUNDS: u32 = 60;
        let folder = folder("lock");
        let path = folder.join("seen.bloom");
        let add = |item: u32| {
            let mut file = loop {
                match FilterFile::open(&path) {
                    Ok(file) => break file,
                    Err(FilterFileError::Locked(_)) => thread::yield_now(),
                    Err(error) => panic!("{error}"),
                }
            };
            let filter = file.read().unwrap();
            let mut filter = filter.unwrap_or_else(|| ScalableBloomFilter::new(1000, 1e-9));
            filter.insert(&item);
            file.save(|to| filter.write_to(to)).unwrap();
            assert!(matches!(
                FilterFile::open(&path),
                Err(FilterFileError::Locked(_))
            ));
        };
        thread::scope(|scope| {
            for number in 0..THREADS {
                let add = &add;
                scope.spawn(move || {
                    (0..ROUNDS).for_each(|round| add(number * ROUNDS + round));
                });
            }
        });
        let filter = FilterFile::open_to_read(&path)
            .unwrap()
            .read()
            .unwrap()
            .unwrap();
        assert_eq!(filter.len(), u64::from(THREADS * ROUNDS));
        fs::remove_dir_all(folder).unwrap();
    }
}
