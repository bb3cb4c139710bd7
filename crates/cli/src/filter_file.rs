//! A filter in a file: the library's stable bytes, read, locked against a second run, and replaced
//! in one step.

use std::error::Error;
use std::ffi::OsString;
use std::fmt::Display;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use everbloom::BloomFilter;
use everbloom::bytes::{BytesError, ReadError};
use everbloom::dcso::DcsoFilter;
use everbloom::host::LayeredFilter;

use crate::failure::Failure;
use crate::filter::{OwnFilter, Writable};
use crate::other::{self, Other, Program};
use crate::records::input::Source;
use crate::records::magic::{self, Format, Unread};
use crate::records::output;
use crate::records::selection::Selection;
use crate::sort::Sort;
use crate::stable;

/// How often to open a file again that another run has just replaced.
const ATTEMPTS: usize = 100;

/// The file is not what is needed; `why` stands behind its name.
fn unusable(path: &Path, why: impl Display) -> Failure {
    Failure::Other(format!("{} {why}", path.display()))
}

fn unsaved(path: &Path, error: impl Display) -> Failure {
    let unchanged = format!("{error}; the file is as it was");
    Failure::of_file("save", path, unchanged)
}

fn no_file(path: &Path) -> Failure {
    let what = if path.is_dir() {
        "is a folder"
    } else {
        "is not a file"
    };
    unusable(path, format!("{what}; name the file of a filter"))
}

/// A filter of another program cannot be used.
pub(crate) fn broken(path: &Path, program: Program, reason: &dyn Error) -> Failure {
    let program = program.name();
    let why = format!(
        "is no whole filter of {program} ({reason}); put a copy in its place, or make it again"
    );
    unusable(path, why)
}

fn locked(path: &Path) -> Failure {
    let why = "is in use by another run; wait until that has ended, or name another file";
    unusable(path, why)
}

/// The filter of a file.
#[derive(Debug)]
pub(crate) enum Found {
    Own(OwnFilter),
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
    /// What was compared when the filter was filled, which is saved with it.
    selection: Selection,
}

impl FilterFile {
    /// Opens the file and locks it. Makes an empty one where there is none.
    pub(crate) fn open(path: &Path) -> Result<Self, Failure> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        let file = Self::open_with(path, &options, File::try_lock)?;
        // A run of hours must not learn at its end that it cannot save.
        file.create_new()
            .and_then(|(new, _)| fs::remove_file(new))
            .map_err(|error| unsaved(&file.path, error))?;
        Ok(file)
    }

    /// Opens a file that is there, to change it.
    pub(crate) fn open_existing(path: &Path) -> Result<Self, Failure> {
        // Opening it to write would make the file.
        match path.try_exists() {
            Ok(false) => Err(Failure::Other(format!(
                "there is no file {}; give the name of a filter file",
                path.display()
            ))),
            Ok(true) | Err(_) => Self::open(path),
        }
    }

    /// Opens the file to read it, which several may do at a time.
    pub(crate) fn open_to_read(path: &Path) -> Result<Self, Failure> {
        Self::open_with(path, OpenOptions::new().read(true), File::try_lock_shared)
    }

    /// Reads the filter of a file that others may use meanwhile: they replace it in one step.
    pub(crate) fn look(path: &Path) -> Result<(OwnFilter, Selection), Failure> {
        let mut file = Self::open_unlocked(path)?;
        Ok((file.read_any()?, file.selection.clone()))
    }

    /// Reads a Bloom filter of a file that others may use meanwhile.
    pub(crate) fn look_at_bloom(path: &Path) -> Result<(LayeredFilter, Selection), Failure> {
        let (filter, selection) = Self::look(path)?;
        match filter.layered() {
            Ok(filter) => Ok((filter, selection)),
            Err(_) => Err(unusable(
                path,
                "is a cuckoo filter, which can be neither copied to a server nor converted; for a \
                 server, add the records there",
            )),
        }
    }

    /// The same, or a filter of another program that takes records.
    pub(crate) fn look_at_writable(path: &Path) -> Result<(Writable, Selection), Failure> {
        let mut file = Self::open_unlocked(path)?;
        Ok((file.read_writable()?, file.selection.clone()))
    }

    /// The same, or opens the filter of another program, which is read while it is asked.
    pub(crate) fn look_at_any(path: &Path) -> Result<(Found, Selection), Failure> {
        let mut file = Self::open_unlocked(path)?;
        let found = match file.read_own()? {
            Ok(filter) => Found::Own(filter),
            Err(program) => Other::open(program, &file.file)
                .map(Found::Other)
                .map_err(|reason| broken(path, program, &*reason))?,
        };
        Ok((found, file.selection.clone()))
    }

    fn open_unlocked(path: &Path) -> Result<Self, Failure> {
        Self::open_with(path, OpenOptions::new().read(true), |_| Ok(()))
    }

    fn open_with(
        path: &Path,
        options: &OpenOptions,
        lock: impl Fn(&File) -> Result<(), TryLockError>,
    ) -> Result<Self, Failure> {
        let failed = |deed| move |error| Failure::of_file(deed, path, error);
        for _ in 0..ATTEMPTS {
            let found = fs::metadata(path);
            // Opening something else could wait for ever.
            if found.as_ref().is_ok_and(|found| !found.is_file()) {
                return Err(no_file(path));
            }
            let file = options.open(path).map_err(failed("open"))?;
            let metadata = file.metadata().map_err(failed("open"))?;
            if !metadata.is_file() {
                return Err(no_file(path));
            }
            match lock(&file) {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => {
                    return Err(locked(path));
                }
                Err(TryLockError::Error(error)) => return Err(failed("lock")(error)),
            }
            // Between the two steps another run may have put a new file in this one's place.
            if is_at(&file, path) {
                return Ok(Self {
                    path: fs::canonicalize(path).map_err(failed("find"))?,
                    is_empty: metadata.len() == 0,
                    is_ours: found.is_err(),
                    file,
                    selection: Selection::default(),
                });
            }
        }
        Err(locked(path))
    }

    /// Refuses to read records from the file, which saving replaces.
    pub(crate) fn check_apart(&self, inputs: &[Source]) -> Result<(), Failure> {
        output::check_apart(&self.file, inputs)
    }

    /// The length of the file.
    pub(crate) fn bytes(&self) -> Result<u64, Failure> {
        let found = self.file.metadata().map_err(|error| self.unread(error))?;
        Ok(found.len())
    }

    /// Whether there was nothing before.
    pub(crate) fn is_new(&self) -> bool {
        self.is_empty
    }

    /// What was compared when the filter was filled, once it was read.
    pub(crate) fn selection(&self) -> &Selection {
        &self.selection
    }

    /// Saves this with the filter from now on.
    pub(crate) fn remember(&mut self, selection: Selection) -> Result<(), Failure> {
        selection.to_note()?;
        self.selection = selection;
        Ok(())
    }

    /// Reads the filter, which must be one that grows; `None` when the file is new. All of it is
    /// checked.
    pub(crate) fn read(&mut self) -> Result<Option<LayeredFilter>, Failure> {
        if self.is_empty {
            return Ok(None);
        }
        match self.read_any()? {
            OwnFilter::Growing(filter) => Ok(Some(filter)),
            OwnFilter::Fixed(_) => Err(unusable(
                &self.path,
                "holds a filter of fixed size, and dedup needs one that grows; name another file",
            )),
            OwnFilter::Cuckoo(_) => Err(unusable(
                &self.path,
                "is a cuckoo filter, and dedup needs a Bloom filter that grows; name another file",
            )),
        }
    }

    /// Reads the filter. All of it is checked.
    pub(crate) fn read_any(&mut self) -> Result<OwnFilter, Failure> {
        self.read_own()?.map_err(|program| {
            let why = format!(
                "is a filter of {}, whose bits fit none of ours; build a filter of what was put \
                 into it",
                program.name()
            );
            unusable(&self.path, why)
        })
    }

    /// Reads the filter, unless another program wrote it.
    fn read_own(&mut self) -> Result<Result<OwnFilter, Program>, Failure> {
        if self.is_empty {
            return Err(unusable(
                &self.path,
                "is empty and no filter: name another file, or make a filter with `everbloom build`; \
                 if a run is making it now, wait until that has ended",
            ));
        }
        let length = self.file.metadata().map(|found| found.len());
        let read = length.map_err(ReadError::Io);
        let error = match read.and_then(|length| stable::read(&self.file, length)) {
            Ok((note, filter)) => {
                let selection = Selection::of_note(note.as_ref());
                self.selection = selection.map_err(|note| {
                    let why = format!(
                        "has a note that this everbloom does not know, and that changes what the \
                         filter finds: {note}; use a newer one, or the program that wrote it"
                    );
                    unusable(&self.path, why)
                })?;
                return Ok(Ok(filter));
            }
            Err(error) => error,
        };
        let why = match error {
            ReadError::Io(error) => return Err(self.unread(error)),
            ReadError::Bytes(BytesError::Magic) => return self.program().map(Err),
            ReadError::Bytes(BytesError::Version(version)) => format!(
                "has version {version} of the format, which this everbloom does not know; use a \
                 newer one"
            ),
            ReadError::Bytes(reason) => format!(
                "is damaged ({reason}); put a copy in its place, or remove it and begin anew"
            ),
        };
        Err(unusable(&self.path, why))
    }

    /// Reads a filter that takes records.
    pub(crate) fn read_writable(&mut self) -> Result<Writable, Failure> {
        let program = match self.read_own()? {
            Err(program) if program == Program::Dcso => program,
            Err(_) => return self.read_any().map(Writable::Own),
            Ok(filter) => return Ok(Writable::Own(filter)),
        };
        let mut read = || -> Result<DcsoFilter, Box<dyn Error>> {
            let mut bytes = Vec::new();
            self.file.rewind()?;
            self.file.read_to_end(&mut bytes)?;
            Ok(DcsoFilter::from_bytes(bytes)?)
        };
        let filter = read().map_err(|reason| broken(&self.path, program, &*reason))?;
        Ok(Writable::Dcso(filter))
    }

    /// Whether the file may be replaced by a filter of our own of this sort: it is new, or such a
    /// filter, whose bits may be damaged. Others would lose more than what is built again.
    pub(crate) fn check_is_own(&mut self, sort: Sort) -> Result<(), Failure> {
        self.check_program(None)?;
        if self.is_empty {
            return Ok(());
        }
        let found = self.sort()?;
        if found == sort {
            return Ok(());
        }
        let why = format!(
            "{}, and the new one would be another; to keep it as it is, name another file, or \
             remove this one",
            found.describe()
        );
        Err(unusable(&self.path, why))
    }

    /// The sort of the filter of ours that is there. Its bits may be damaged, but not its header: a
    /// flipped bit there may make another sort of it.
    fn sort(&self) -> Result<Sort, Failure> {
        let header = stable::read_header(&self.file).map_err(|error| self.unread(error))?;
        // Old versions have one checksum for all.
        let read = || stable::read(&self.file, self.bytes().ok()?).ok();
        let sort = Sort::of_header(&header)
            .or_else(|| read().map(|(_, filter)| Writable::Own(filter).sort()));
        let unknown = "is damaged, or of a newer everbloom, so nobody knows what sort of filter it \
                       is; to keep it as it is, name another file, or remove this one";
        sort.ok_or_else(|| unusable(&self.path, unknown))
    }

    /// Whether the file may be replaced by a filter of this program; `None` is a Bloom filter of
    /// ours. It may if it is new, or such a filter, whose bits may be damaged.
    pub(crate) fn check_is_of(&mut self, program: Option<Program>) -> Result<(), Failure> {
        if !self.is_empty && self.is_own()? && self.sort()? == Sort::Cuckoo {
            let why = format!(
                "{}; to keep it as it is, name another file, or remove this one",
                Sort::Cuckoo.describe()
            );
            return Err(unusable(&self.path, why));
        }
        self.check_program(program)
    }

    /// Whether the bytes are, or were, those of a filter of ours.
    fn is_own(&self) -> Result<bool, Failure> {
        let start = stable::read_start(&self.file).map_err(|error| self.unread(error))?;
        Ok(!matches!(
            BloomFilter::from_bytes(&start),
            Err(BytesError::Magic)
        ))
    }

    fn check_program(&self, program: Option<Program>) -> Result<(), Failure> {
        if self.is_empty {
            return Ok(());
        }
        let found = match self.is_own()? {
            true => None,
            false => Some(self.program()?),
        };
        if found == program {
            return Ok(());
        }
        let what = found.map_or("everbloom", Program::name);
        let why = format!("is a filter of {what}; to keep it as it is, name another one");
        Err(unusable(&self.path, why))
    }

    /// The program that wrote what is not ours.
    fn program(&self) -> Result<Program, Failure> {
        match other::program(&self.file) {
            Ok(Some(program)) => Ok(program),
            Ok(None) => {
                let start = stable::read_start(&self.file).unwrap_or_default();
                let packed =
                    |program| format!("is packed; unpack it with {program}, and name the result");
                let why = match magic::format(&start) {
                    Some(Format::Packed(packing)) => packed(packing.program()),
                    Some(Format::Unread(Unread::Piped { through, .. })) => packed(through),
                    Some(Format::Unread(Unread::Text { what, .. })) => format!(
                        "is {what}, and not a filter file; name one, or another file to make one"
                    ),
                    _ => "is not a filter file; name one, or another file to make one".into(),
                };
                Err(unusable(&self.path, why))
            }
            Err(error) => Err(self.unread(error)),
        }
    }

    fn unread(&self, error: io::Error) -> Failure {
        Failure::of_file("read", &self.path, error)
    }

    /// Replaces the file. Whatever happens meanwhile, the name has the old bytes or the new ones,
    /// and the lock stays.
    pub(crate) fn save(
        &mut self,
        write: impl FnOnce(&File) -> io::Result<()>,
    ) -> Result<(), Failure> {
        let replaced = self.replace(write);
        replaced.map_err(|error| unsaved(&self.path, error))
    }

    fn replace(&mut self, write: impl FnOnce(&File) -> io::Result<()>) -> io::Result<()> {
        // It was removed; another run may have begun, with its own lock.
        if !is_at(&self.file, &self.path) {
            return Err(io::Error::other("it was removed or replaced meanwhile"));
        }
        let note = self.selection.to_note().map_err(io::Error::other)?;
        let allowed = self.file.metadata()?.permissions();
        let (new, file) = self.create_new()?;
        let written = file.set_permissions(allowed).and_then(|()| {
            if let Some(note) = note {
                (&file).write_all(&note.to_bytes())?;
            }
            write(&file)?;
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
        let path = name_beside(&self.path);
        let file = File::create(&path)?;
        Ok((path, file))
    }
}

/// The name, in the same folder, of what will take the place of a file or a folder. No person gives
/// it to a file of theirs.
pub(crate) fn name_beside(path: &Path) -> PathBuf {
    let mut name = OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(".everbloom-new");
    path.with_file_name(name)
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
fn is_at(file: &File, path: &Path) -> bool {
    let id = |found: fs::Metadata| (found.dev(), found.ino());
    let (open, named) = (file.metadata().map(id), fs::metadata(path).map(id));
    matches!((open, named), (Ok(open), Ok(named)) if open == named)
}

/// Makes the new name of a file last.
fn sync_folder(path: &Path) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("/"));
    File::open(folder)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;
    use everbloom::ScalableBloomFilter;
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
            Err(error) if error.to_string().contains("in use by another run")
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
        assert!(matches!(looked, Err(Failure::Other(_))));
        assert!(FilterFile::open_to_read(&path).is_err());
        let filter = ScalableBloomFilter::new(1000, 0.01);
        file.save(|to| filter.write_to(to)).unwrap();
        drop(file);
        assert!(FilterFile::look(&path).is_ok());
        fs::remove_dir_all(folder).unwrap();
    }

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
                Err(Failure::Other(_))
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
                    Err(error) if error.to_string().contains("in use by another run") => {
                        thread::yield_now()
                    }
                    Err(error) => panic!("{error}"),
                }
            };
            let filter = file.read().unwrap();
            let mut filter = filter.unwrap_or_else(|| ScalableBloomFilter::new(1000, 1e-9).into());
            filter.insert(&item);
            file.save(|to| filter.write_to(to)).unwrap();
            assert!(matches!(
                FilterFile::open(&path),
                Err(error) if error.to_string().contains("in use by another run")
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
