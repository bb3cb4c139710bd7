//! The manifest: which files are the log, and in what order they are read.
//!
//! ```text
//! file appendonly.aof.2.base.rdb seq 2 type b        base, at most one
//! file appendonly.aof.4.incr.aof seq 4 type h        history, any number
//! file appendonly.aof.5.incr.aof seq 5 type i        increments, in rising order
//! ```
//!
//! Lines are written in this order, and read in any. [`line`](super::line) says what a line is. Two
//! lines for one file are refused: removing the history would remove the log. Before them there may
//! be a line that Redis reads as a comment:
//!
//! ```text
//! #everbloom ended 00f1e2d3c4b5a697 saved            no log is kept since ([`Ended`])
//! ```

use std::collections::HashSet;
use std::fmt::Write;
use std::io::{self, Read};

use thiserror::Error;

use super::line::{FileInfo, FileType, MAX_LINE_BYTES, MAX_SEQ, Problem, parse_line, quoted_name};
use crate::storage::Storage;

/// The largest manifest that is read: thousands of times one that a server leaves behind.
const MAX_BYTES: u64 = 16 << 20;

/// The files of the log, by what they are for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Manifest {
    /// All keys as of one moment; missing in a log that has only increments.
    pub base: Option<FileInfo>,
    /// Files that are no longer part of the log and can be removed.
    pub history: Vec<FileInfo>,
    /// What happened since, oldest first. The last is the one being written.
    pub increments: Vec<FileInfo>,
    /// Since when no log is kept, if snapshots were made since then.
    pub ended: Option<Ended>,
}

/// The mark of a log that is no longer kept. It is set before the first snapshot that is made
/// without a log. Those snapshots have the same id, so a start can tell whether one is newer than
/// the log. It is removed before the log goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    /// Any number that no other end has.
    pub id: u64,
    /// Whether a snapshot that holds all that the log holds was completed since.
    pub saved: bool,
}

/// How the line of [`Ended`] begins.
const ENDED: &str = "#everbloom ended ";

/// What a base file holds, which shows in its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BaseFormat {
    /// An RDB file.
    Rdb,
    /// Commands.
    Commands,
}

impl BaseFormat {
    /// The format that the name of a base gives. `None` for an old-style log that was adopted: it
    /// has the name that it always had.
    pub fn of(base: &FileInfo) -> Option<Self> {
        let formats = [BaseFormat::Rdb, BaseFormat::Commands];
        let end = |format: BaseFormat| format!(".{}.{}", base.seq, format.suffix());
        let mut formats = formats.into_iter();
        formats.find(|format| base.name.ends_with(&end(*format)))
    }

    /// How the names of such bases end.
    fn suffix(self) -> &'static str {
        match self {
            BaseFormat::Rdb => "base.rdb",
            BaseFormat::Commands => "base.aof",
        }
    }
}

/// How the directory and its files are called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Names {
    dir: String,
    file: String,
}

impl Names {
    /// From the settings `appenddirname` and `appendfilename`: names without a path, which the
    /// settings must have checked.
    pub fn new(dir: impl Into<String>, file: impl Into<String>) -> Self {
        Names {
            dir: dir.into(),
            file: file.into(),
        }
    }

    /// The directory of the log, within the data directory.
    pub fn dir(&self) -> &str {
        &self.dir
    }

    /// The old-style log: one file in the data directory itself.
    pub fn old_style(&self) -> &str {
        &self.file
    }

    /// The manifest, from the data directory.
    pub fn manifest(&self) -> String {
        format!("{}/{}.manifest", self.dir, self.file)
    }

    /// A file of the log, from the data directory.
    pub fn path(&self, file: &FileInfo) -> String {
        format!("{}/{}", self.dir, file.name)
    }

    /// The list of files of a log that is being begun, from the data directory: no manifest names
    /// them yet.
    pub fn beginning(&self) -> String {
        format!("{}/temp.begin", self.dir)
    }

    /// The part of a log that a file is by its name, and its number.
    pub(super) fn numbered(&self, name: &str) -> Option<(Part, u64)> {
        let rest = name.strip_prefix(&self.file)?.strip_prefix('.')?;
        let (seq, suffix) = rest.split_once('.')?;
        let part = match suffix {
            "base.rdb" | "base.aof" => Part::Base,
            "incr.aof" => Part::Increment,
            _ => return None,
        };
        // A larger number is nobody's: a manifest cannot name it, and it may have no next one.
        let seq = seq.parse::<u64>().ok().filter(|seq| *seq <= MAX_SEQ)?;
        Some((part, seq))
    }
}

/// A part of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Base,
    Increment,
}

/// Why a manifest cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{file}, line {line}: {problem}")]
pub struct ManifestError {
    /// The manifest.
    pub file: String,
    /// The line, counted from 1.
    pub line: usize,
    /// What is wrong with it.
    pub problem: Problem,
}

/// Why the manifest of a data directory cannot be had.
#[derive(Debug, Error)]
pub enum ReadManifestError {
    /// It is damaged.
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    /// The storage failed, or the manifest is implausibly large.
    #[error("{file}: {source}")]
    Storage {
        /// What was read, written or moved.
        file: String,
        /// What the storage said.
        source: io::Error,
    },
    /// A file of the log lies beside the manifest, and is not named in it.
    #[error(
        "{manifest}: expected a line for {file}, which lies beside it, found none: the manifest is \
         missing, cut off or another's; nothing is changed"
    )]
    Unnamed {
        /// The manifest.
        manifest: String,
        /// The file.
        file: String,
    },
    /// A file is history, and nothing has replaced it.
    #[error(
        "{manifest}: expected a file that replaces {file}, which has type h, found none; nothing \
         is changed"
    )]
    NotReplaced {
        /// The manifest.
        manifest: String,
        /// The file.
        file: String,
    },
}

impl Manifest {
    /// Reads the bytes of the manifest `file`, whose name is for the error.
    pub fn parse(bytes: &[u8], file: &str) -> Result<Self, ManifestError> {
        let fail = |line, problem| ManifestError {
            file: file.to_owned(),
            line,
            problem,
        };
        if bytes.is_empty() {
            return Err(fail(1, Problem::Empty));
        }
        let mut manifest = Manifest::default();
        let mut names = HashSet::new();
        for (line, number) in bytes.split_inclusive(|byte| *byte == b'\n').zip(1..) {
            if line.len() > MAX_LINE_BYTES {
                return Err(fail(number, Problem::TooLong));
            }
            if let Some(mark) = line.strip_prefix(ENDED.as_bytes()) {
                let malformed = || Problem::Mark(String::from_utf8_lossy(mark).into_owned());
                let mark = parse_ended(mark).filter(|_| manifest.ended.is_none());
                manifest.ended = Some(mark.ok_or_else(|| fail(number, malformed()))?);
                continue;
            }
            if line.first() == Some(&b'#') {
                continue;
            }
            let (info, kind) = parse_line(line).map_err(|problem| fail(number, problem))?;
            if !names.insert(info.name.clone()) {
                return Err(fail(number, Problem::SecondLine(info.name)));
            }
            manifest
                .add(info, &kind)
                .map_err(|problem| fail(number, problem))?;
        }
        Ok(manifest)
    }

    fn add(&mut self, info: FileInfo, kind: &FileType) -> Result<(), Problem> {
        match kind {
            FileType::Base if self.base.is_some() => return Err(Problem::SecondBase(info.name)),
            FileType::Base => self.base = Some(info),
            FileType::History => self.history.push(info),
            FileType::Increment => {
                let after = self.increments.last().map_or(0, |last| last.seq);
                if info.seq <= after {
                    return Err(Problem::NotRising {
                        after,
                        found: info.seq,
                    });
                }
                self.increments.push(info);
            }
        }
        Ok(())
    }

    /// The manifest's text, byte for byte as Redis writes it: base, history, increments; before
    /// them the mark of an end.
    pub fn to_text(&self) -> String {
        let history = self.history.iter().map(|info| (info, 'h'));
        let increments = self.increments.iter().map(|info| (info, 'i'));
        let mut text = String::new();
        if let Some(Ended { id, saved }) = self.ended {
            let saved = if saved { " saved" } else { "" };
            // Writing to a String does not fail.
            let _ = writeln!(text, "{ENDED}{id:016x}{saved}");
        }
        for (info, kind) in self
            .base
            .iter()
            .map(|info| (info, 'b'))
            .chain(history)
            .chain(increments)
        {
            let name = quoted_name(&info.name);
            let _ = writeln!(text, "file {name} seq {} type {kind}", info.seq);
        }
        text
    }

    /// Whether it names no file of the log. (History is none.)
    pub fn is_empty(&self) -> bool {
        self.base.is_none() && self.increments.is_empty()
    }

    /// The files of the log in the order in which they are read.
    pub fn files(&self) -> impl Iterator<Item = &FileInfo> {
        self.base.iter().chain(&self.increments)
    }

    /// The base file after this one, which must be written before it is named by a manifest.
    pub fn next_base(&self, names: &Names, format: BaseFormat) -> FileInfo {
        self.next(names, self.base.as_ref(), Part::Base, format.suffix())
    }

    /// The increment after the last.
    pub fn next_increment(&self, names: &Names) -> FileInfo {
        self.next(names, self.increments.last(), Part::Increment, "incr.aof")
    }

    /// The first file with a number above all others of its part, history included, whose name is
    /// free.
    fn next(&self, names: &Names, last: Option<&FileInfo>, part: Part, suffix: &str) -> FileInfo {
        let history = self.history.iter();
        let before = history.filter_map(|info| names.numbered(&info.name));
        let before = before
            .filter(|(other, _)| *other == part)
            .map(|(_, seq)| seq);
        let mut seq = before.chain(last.map(|info| info.seq)).max().unwrap_or(0) + 1;
        loop {
            let name = format!("{}.{seq}.{suffix}", names.file);
            if self
                .files()
                .chain(&self.history)
                .all(|info| info.name != name)
            {
                return FileInfo { name, seq };
            }
            seq += 1;
        }
    }

    /// With [`Manifest::next_increment`], which takes further commands: the start of a rewrite.
    #[must_use]
    pub fn with_new_increment(&self, names: &Names) -> Self {
        let mut new = self.clone();
        new.increments.push(self.next_increment(names));
        new
    }

    /// With a new base, which holds everything up to the start of the last increment: the old base
    /// and all increments but the last become history.
    #[must_use]
    pub fn after_rewrite(&self, base: FileInfo) -> Self {
        let (last, rewritten) = match self.increments.split_last() {
            Some((last, rewritten)) => (Some(last), rewritten),
            None => (None, Default::default()),
        };
        let history = rewritten.iter().chain(&self.base).chain(&self.history);
        Manifest {
            base: Some(base),
            history: history.cloned().collect(),
            increments: last.into_iter().cloned().collect(),
            ended: None,
        }
    }

    /// Without history: once its files are removed.
    #[must_use]
    pub fn without_history(&self) -> Self {
        Manifest {
            history: Vec::new(),
            ..self.clone()
        }
    }

    /// The manifest that is on the disk; one that names nothing when there is none.
    pub fn read(storage: &dyn Storage, names: &Names) -> Result<Self, ReadManifestError> {
        let file = names.manifest();
        match read_all(storage, &file) {
            Ok(bytes) => Ok(Manifest::parse(&bytes, &file)?),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Manifest::default()),
            Err(source) => Err(ReadManifestError::Storage { file, source }),
        }
    }

    /// Replaces the manifest on the disk by this one.
    ///
    /// One that would not read back is refused: one that names nothing, or a file whose name is so
    /// long that its line, with what is quoted in it, is too long.
    pub fn store(&self, storage: &dyn Storage, names: &Names) -> io::Result<()> {
        let (text, file) = (self.to_text(), names.manifest());
        Manifest::parse(text.as_bytes(), &file)
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        storage.replace(&file, text.as_bytes())
    }
}

/// Reads what follows [`ENDED`], the line feed included.
fn parse_ended(mark: &[u8]) -> Option<Ended> {
    let text = str::from_utf8(mark.strip_suffix(b"\n")?).ok()?;
    let (id, saved) = match text.strip_suffix(" saved") {
        Some(id) => (id, true),
        None => (text, false),
    };
    let id = u64::from_str_radix(id, 16).ok()?;
    Some(Ended { id, saved })
}

/// Reads a manifest, whose length is limited because it is held in memory.
fn read_all(storage: &dyn Storage, file: &str) -> io::Result<Vec<u8>> {
    let (input, _) = storage.read(file)?;
    let mut bytes = Vec::new();
    input.take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_BYTES {
        let text = format!("expected a manifest of at most {MAX_BYTES} bytes, found a longer one");
        return Err(io::Error::new(io::ErrorKind::InvalidData, text));
    }
    Ok(bytes)
}

/// Takes an old-style log in, if there is one to take in.
pub(super) fn adopt(storage: &dyn Storage, names: &Names, found: Manifest) -> io::Result<Manifest> {
    let old = names.old_style();
    let base = FileInfo {
        name: old.to_owned(),
        seq: 1,
    };
    let inside = names.path(&base);
    let interrupted = found.increments.is_empty()
        && found.base.as_ref().is_some_and(|base| base.name == old)
        && !storage.exists(&inside)?;
    if !(found.is_empty() || interrupted) || !storage.exists(old)? {
        return Ok(found);
    }
    let adopted = Manifest {
        base: Some(base),
        ..found
    };
    storage.create_dir(names.dir())?;
    storage.sync_dir("")?;
    // The manifest first: a base that is missing shows where to continue. The other way round, a
    // crash between the two would leave a directory without a manifest and a log that nobody looks
    // for.
    adopted.store(storage, names)?;
    storage.rename(old, &inside)?;
    storage.sync_dir(names.dir())?;
    storage.sync_dir("")?;
    Ok(adopted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_with_a_number_that_no_line_may_have_is_not_counted() {
        let names = Names::new("dir", "log");
        let name = |seq: u64| format!("log.{seq}.incr.aof");
        let largest = Some((Part::Increment, MAX_SEQ));
        assert_eq!(names.numbered(&name(MAX_SEQ)), largest);
        assert_eq!(names.numbered(&name(MAX_SEQ + 1)), None);
        let name = name(u64::MAX);
        let manifest = Manifest {
            history: vec![FileInfo { name, seq: 1 }],
            ..Manifest::default()
        };
        assert_eq!(manifest.next_increment(&names).seq, 1);
    }
}
