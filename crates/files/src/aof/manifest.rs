//! The manifest: which files are the log, and in what order they are read.
//!
//! ```text
//! file appendonly.aof.2.base.rdb seq 2 type b        base, at most one
//! file appendonly.aof.4.incr.aof seq 4 type h        history, any number
//! file appendonly.aof.5.incr.aof seq 5 type i        increments, in rising order
//! ```
//!
//! A line is words, paired into keys and values. The keys `file`, `seq` and `type` must be there,
//! in any order and in either case; unknown keys are skipped, for the sake of later versions. A
//! word may be quoted as in an inline request. A line has at most 1024 bytes with its line feed,
//! which the last one must have too. `#` in the first column begins a comment. Lines are written
//! in the order above; they are read in any.
//!
//! All that is Redis 7's. Where it takes what nobody writes, this reader refuses: a number with
//! something behind it or a negative one, a type of several letters, a key given twice, two lines
//! for one file (removing history would remove the log), a name that is not UTF-8.

use std::collections::HashSet;
use std::fmt::Write;
use std::io::{self, Read};

use everbloom_resp::{Batch, Limits, RequestParser};
use thiserror::Error;

use crate::storage::Storage;

/// The longest line, its line feed included.
const MAX_LINE: usize = 1024;

/// The largest manifest that is read: thousands of times one that a server leaves behind.
const MAX_BYTES: u64 = 16 << 20;

/// The largest number of a file that is read, so that there is always a next one.
const MAX_SEQ: u64 = 1 << 62;

/// The files of the log, by what they are for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Manifest {
    /// All keys as of one moment; missing in a log that has only increments.
    pub base: Option<FileInfo>,
    /// Files that are no longer part of the log and can be removed.
    pub history: Vec<FileInfo>,
    /// What happened since, oldest first. The last is the one being written.
    pub increments: Vec<FileInfo>,
}

/// One file of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileInfo {
    /// Its name in the directory of the log.
    pub name: String,
    /// Its number among its kind, from 1.
    pub seq: u64,
}

/// What a base file holds, which shows in its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BaseFormat {
    /// An RDB file.
    Rdb,
    /// Commands.
    Commands,
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

/// What is wrong with a line of a manifest.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Problem {
    /// There is no line at all.
    #[error("expected the line of a file, found an empty manifest")]
    Empty,
    /// It does not end with a line feed.
    #[error("expected a line feed at the end of the line, found the end of the file")]
    Unended,
    /// It is longer than Redis reads.
    #[error("expected a line of at most {MAX_LINE} bytes, found a longer one")]
    TooLong,
    /// Its quotes do not match, it holds a zero byte, or it is not words in pairs.
    #[error("expected \"file NAME seq NUMBER type b|h|i\", found {0:?}")]
    Malformed(String),
    /// `file`, `seq` or `type` is missing.
    #[error("expected the key {0:?}, found none")]
    Missing(&'static str),
    /// `file`, `seq` or `type` is there twice.
    #[error("expected the key {0:?} once, found it again")]
    Repeated(&'static str),
    /// The name leads out of the directory.
    #[error("expected the name of a file without a path, found {0:?}")]
    Path(String),
    /// The number is not one.
    #[error("expected a number from 1 to {MAX_SEQ}, found {0:?}")]
    Number(String),
    /// The type is not one.
    #[error("expected type b, h or i, found {0:?}")]
    Type(String),
    /// A second base.
    #[error("expected one base file, found another: {0:?}")]
    SecondBase(String),
    /// An increment whose number is not above that of the one before.
    #[error("expected an increment with a number above {after}, found {found}")]
    NotRising {
        /// The number of the increment before.
        after: u64,
        /// The number of this one.
        found: u64,
    },
    /// A file that has a line already.
    #[error("expected one line per file, found {0:?} again")]
    SecondLine(String),
}

/// Why the manifest of a data directory cannot be had.
#[derive(Debug, Error)]
pub enum LoadError {
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
}

/// What the type letter of a line says.
enum Kind {
    Base,
    History,
    Increment,
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
            if line.len() > MAX_LINE {
                return Err(fail(number, Problem::TooLong));
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

    fn add(&mut self, info: FileInfo, kind: &Kind) -> Result<(), Problem> {
        match kind {
            Kind::Base if self.base.is_some() => return Err(Problem::SecondBase(info.name)),
            Kind::Base => self.base = Some(info),
            Kind::History => self.history.push(info),
            Kind::Increment => {
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

    /// The manifest's text, byte for byte as Redis writes it: base, history, increments.
    pub fn to_text(&self) -> String {
        let history = self.history.iter().map(|info| (info, 'h'));
        let increments = self.increments.iter().map(|info| (info, 'i'));
        let mut text = String::new();
        for (info, kind) in self
            .base
            .iter()
            .map(|info| (info, 'b'))
            .chain(history)
            .chain(increments)
        {
            text.push_str("file ");
            push_name(&info.name, &mut text);
            // Writing to a String does not fail.
            let _ = writeln!(text, " seq {} type {kind}", info.seq);
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
        let suffix = match format {
            BaseFormat::Rdb => "base.rdb",
            BaseFormat::Commands => "base.aof",
        };
        self.next(names, self.base.as_ref().map_or(0, |base| base.seq), suffix)
    }

    /// The increment after the last.
    pub fn next_increment(&self, names: &Names) -> FileInfo {
        self.next(
            names,
            self.increments.last().map_or(0, |last| last.seq),
            "incr.aof",
        )
    }

    /// The first file with a number above `last` whose name is free: without a base, or without an
    /// increment, counting begins anew, and history may still have the name.
    fn next(&self, names: &Names, last: u64, suffix: &str) -> FileInfo {
        let mut seq = last + 1;
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

    /// With [`Manifest::next_increment`], in which writing goes on: the start of a rewrite.
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
    pub fn read(storage: &dyn Storage, names: &Names) -> Result<Self, LoadError> {
        let file = names.manifest();
        match read_all(storage, &file) {
            Ok(bytes) => Ok(Manifest::parse(&bytes, &file)?),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Manifest::default()),
            Err(source) => Err(LoadError::Storage { file, source }),
        }
    }

    /// The manifest of a data directory; one that names nothing when there is no log.
    ///
    /// An old-style log, one file in the data directory itself, is adopted as Redis adopts it: it
    /// becomes the base, and is moved to the directory of the log under its own name. That happens
    /// where the log has no files, or where an adoption was interrupted after its first step. A
    /// crash at any point leaves what the next start takes up.
    pub fn load(storage: &dyn Storage, names: &Names) -> Result<Self, LoadError> {
        let manifest = Manifest::read(storage, names)?;
        let old = names.old_style();
        adopt(storage, names, manifest).map_err(|source| LoadError::Storage {
            file: old.to_owned(),
            source,
        })
    }

    /// Puts this manifest in place of the one on the disk.
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
fn adopt(storage: &dyn Storage, names: &Names, found: Manifest) -> io::Result<Manifest> {
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
    // The manifest first: a base that is missing says where to go on. The other way round, a crash
    // between the two would leave a directory without a manifest and a log that nobody looks for.
    adopted.store(storage, names)?;
    storage.rename(old, &inside)?;
    storage.sync_dir(names.dir())?;
    storage.sync_dir("")?;
    Ok(adopted)
}

fn parse_line(line: &[u8]) -> Result<(FileInfo, Kind), Problem> {
    let Some(text) = line.strip_suffix(b"\n") else {
        return Err(Problem::Unended);
    };
    let words = split_words(text).filter(|words| words.len() >= 6 && words.len() % 2 == 0);
    let words = words.ok_or_else(|| Problem::Malformed(lossy(text)))?;
    let (mut name, mut seq, mut kind) = (None, None, None);
    for pair in words.chunks_exact(2) {
        let [key, value] = pair else { continue };
        if key.eq_ignore_ascii_case(b"file") {
            set(&mut name, "file", parse_name(value)?)?;
        } else if key.eq_ignore_ascii_case(b"seq") {
            set(&mut seq, "seq", parse_seq(value)?)?;
        } else if key.eq_ignore_ascii_case(b"type") {
            set(&mut kind, "type", parse_kind(value)?)?;
        }
    }
    let name = name.ok_or(Problem::Missing("file"))?;
    let seq = seq.ok_or(Problem::Missing("seq"))?;
    Ok((
        FileInfo { name, seq },
        kind.ok_or(Problem::Missing("type"))?,
    ))
}

/// The words of a line: those of an inline request, for Redis splits both with one function.
fn split_words(text: &[u8]) -> Option<Vec<Vec<u8>>> {
    if text.contains(&0) {
        return None;
    }
    // A blank in front says that this is not a request of the other form, which begins with `*`.
    let mut line = Vec::with_capacity(text.len() + 2);
    line.push(b' ');
    line.extend_from_slice(text);
    line.push(b'\n');
    let mut batch = Batch::new();
    RequestParser::new()
        .parse(&line, &Limits::default(), &mut batch)
        .ok()?;
    (batch.len() == 1).then(|| batch.request(0, &line).map(<[u8]>::to_vec).collect())
}

fn set<T>(field: &mut Option<T>, key: &'static str, value: T) -> Result<(), Problem> {
    match field.replace(value) {
        None => Ok(()),
        Some(_) => Err(Problem::Repeated(key)),
    }
}

fn parse_name(value: &[u8]) -> Result<String, Problem> {
    let out_of_reach =
        |name: &str| matches!(name, "" | "." | "..") || name.contains(['/', '\\', '\0']);
    match std::str::from_utf8(value) {
        Ok(name) if !out_of_reach(name) => Ok(name.to_owned()),
        _ => Err(Problem::Path(lossy(value))),
    }
}

fn parse_seq(value: &[u8]) -> Result<u64, Problem> {
    let digits = value.iter().all(u8::is_ascii_digit);
    let seq = std::str::from_utf8(value)
        .ok()
        .filter(|_| digits)
        .and_then(|text| text.parse().ok());
    seq.filter(|seq| (1..=MAX_SEQ).contains(seq))
        .ok_or_else(|| Problem::Number(lossy(value)))
}

fn parse_kind(value: &[u8]) -> Result<Kind, Problem> {
    match value {
        b"b" => Ok(Kind::Base),
        b"h" => Ok(Kind::History),
        b"i" => Ok(Kind::Increment),
        _ => Err(Problem::Type(lossy(value))),
    }
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Appends a name, quoted where Redis quotes one; and where it holds a single quote, which Redis
/// writes plainly and then cannot read.
fn push_name(name: &str, text: &mut String) {
    let plain = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'\\' | b'"' | b'\'');
    if !name.is_empty() && name.bytes().all(plain) {
        text.push_str(name);
        return;
    }
    text.push('"');
    for byte in name.bytes() {
        match byte {
            b'\\' | b'"' => text.extend(['\\', char::from(byte)]),
            b'\n' => text.push_str("\\n"),
            b'\r' => text.push_str("\\r"),
            b'\t' => text.push_str("\\t"),
            0x07 => text.push_str("\\a"),
            0x08 => text.push_str("\\b"),
            b' '..=b'~' => text.push(char::from(byte)),
            // Writing to a String does not fail.
            other => drop(write!(text, "\\x{other:02x}")),
        }
    }
    text.push('"');
}
