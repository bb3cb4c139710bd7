//! A data directory in memory that can lose its power, for tests of what survives that.
//!
//! # The model
//!
//! Everything happens first in memory that a power cut empties, and becomes lasting by a sync:
//!
//! ```text
//! file        lasting bytes | changes since the last sync of the file, in order
//!                             (a write at an offset; a cut to a length)
//! directory   lasting names | changes since the last sync of the directory, in order
//!                             (names made, replaced, removed)
//! ```
//!
//! After a power cut ([`CrashingDisk::survivors`]) there is, chosen by a seed:
//! - of each file its lasting bytes with the first so many of its unsynced changes, of which the
//!   last, if it is a write, may be torn: only its first so many bytes are there;
//! - of each directory its lasting names with the first so many of its unsynced changes. Files
//!   choose apart from directories and from each other, so a name can survive without the bytes
//!   behind it, bytes written later without bytes of another file written earlier, and a file that
//!   was synced is gone when its name was not, or the name of the directory it is in.
//!
//! Seed 0 keeps nothing unsynced, seed 1 keeps all of it, other seeds mix.
//!
//! A rename within a directory is one change: the file has the old or the new name. Between two
//! directories it is one change in each, and the old name goes only if the new one is there: the
//! file can survive under both names, never under none.
//!
//! Not modelled, for file systems with a journal do not do it: bytes that survive out of order
//! within one file, zeros or other bytes where a write is missing, lasting bytes that decay.
//!
//! # Operations
//!
//! Counted, from 1: each write, sync, cut, creation, rename, removal, making and syncing of a
//! directory. The one that [`CrashingDisk::crash_at`] names fails, though its effect may survive
//! as far as one without a sync can; everything after it fails, reading too.
//!
//! A full disk ([`CrashingDisk::fail_writes_after`]) takes the first bytes of a write that does
//! not fit, and none after that; what is overwritten or removed makes no room. On a disk of limited
//! size ([`CrashingDisk::limit`]) it does: what counts is the files that have a name. A disk that
//! hangs ([`CrashingDisk::hang`]) neither does an operation nor fails it.

#![allow(
    dead_code,
    missing_docs,
    unreachable_pub,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    reason = "each test binary uses a part of it; the bookkeeping is of its own making"
)]

use std::collections::BTreeMap;
use std::io::{self, Cursor, Read, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use everbloom_files::storage::{FileStatus, Storage, StorageFile, Syncing, parent};

mod hanging;
mod storage;
mod survivors;

use hanging::Hang;
use storage::OpenFile;
use survivors::Choice;

/// The disk. Clones are the same disk.
#[derive(Clone, Debug, Default)]
pub struct CrashingDisk {
    state: Arc<Mutex<State>>,
}

#[derive(Clone, Debug)]
struct State {
    /// By the number that the names point to. A file stays when its last name is gone: it may be
    /// open, and the removal may not last.
    files: Vec<FileState>,
    /// By path; `""` is the data directory itself.
    dirs: BTreeMap<String, DirState>,
    operations: u64,
    crash_at: Option<u64>,
    /// How many bytes can still be written.
    room: Option<u64>,
    /// How many bytes the files with names may have.
    size: Option<usize>,
    syncs_fail: bool,
    /// The next sync of a file fails and loses what it was to make last.
    loses: bool,
    /// The next sync of a directory fails.
    dir_sync_fails: bool,
    /// Writes and syncs do not return.
    hang: Option<Hang>,
    /// How many writes and syncs have failed.
    failures: usize,
    /// The files whose syncs have failed, by the numbers that names point to.
    failed_syncs: Vec<usize>,
    changes: u64,
}

#[derive(Clone, Debug, Default)]
struct FileState {
    lasting: Vec<u8>,
    current: Vec<u8>,
    unsynced: Vec<FileChange>,
}

#[derive(Clone, Debug)]
enum FileChange {
    Write { at: usize, bytes: Vec<u8> },
    Cut(usize),
}

#[derive(Clone, Debug, Default)]
struct DirState {
    lasting: BTreeMap<String, Node>,
    current: BTreeMap<String, Node>,
    unsynced: Vec<DirChange>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Node {
    File(usize),
    Dir,
}

#[derive(Clone, Debug)]
struct DirChange {
    id: u64,
    /// Names with what they point to from now on; `None` is nothing.
    names: Vec<(String, Option<Node>)>,
    /// The directory and the change in it that must last before this one can.
    after: Option<(String, u64)>,
}

impl Default for State {
    fn default() -> Self {
        State {
            files: Vec::new(),
            dirs: BTreeMap::from([(String::new(), DirState::default())]),
            operations: 0,
            crash_at: None,
            room: None,
            size: None,
            syncs_fail: false,
            loses: false,
            dir_sync_fails: false,
            hang: None,
            failures: 0,
            failed_syncs: Vec::new(),
            changes: 0,
        }
    }
}

impl CrashingDisk {
    /// An empty disk that does not crash.
    pub fn new() -> Self {
        Self::default()
    }

    /// Lets the `n`-th operation (counted from the making of the disk, from 1) and everything
    /// after it fail.
    pub fn crash_at(&self, n: u64) {
        self.lock().crash_at = Some(n);
    }

    /// Lets everything fail from now on.
    pub fn crash_now(&self) {
        let mut state = self.lock();
        state.crash_at = Some(state.operations);
    }

    /// Whether the crash has happened.
    pub fn crashed(&self) -> bool {
        self.lock().crashed()
    }

    /// How many operations there were.
    pub fn operations(&self) -> u64 {
        self.lock().operations
    }

    /// Lets the disk be full once `bytes` more have been written.
    pub fn fail_writes_after(&self, bytes: u64) {
        self.lock().room = Some(bytes);
    }

    /// Lets the disk have room for `bytes` beside the files that are there.
    pub fn limit(&self, bytes: usize) {
        let mut state = self.lock();
        state.size = Some(state.used() + bytes);
    }

    /// Lets every sync fail. Nothing is lost by that: a later sync that works is a whole one.
    pub fn fail_syncs(&self) {
        self.lock().syncs_fail = true;
    }

    /// Lets the next sync of a file fail as Linux does it: what it was to make last is still read,
    /// but counts as written, so that no later sync, though it works, makes it last.
    pub fn lose_at_next_sync(&self) {
        self.lock().loses = true;
    }

    /// Lets the next sync of a directory fail. A later one that works is a whole one.
    pub fn fail_next_dir_sync(&self) {
        self.lock().dir_sync_fails = true;
    }

    /// Whether no write and no sync is to fail or to hang.
    pub fn is_well(&self) -> bool {
        let state = self.lock();
        let fails = state.syncs_fail || state.loses || state.dir_sync_fails;
        state.room.is_none() && state.size.is_none() && !fails && state.hang.is_none()
    }

    /// Ends a full disk, one that hangs, and failing syncs.
    pub fn heal(&self) {
        let mut state = self.lock();
        state.room = None;
        state.size = None;
        state.syncs_fail = false;
        state.loses = false;
        state.dir_sync_fails = false;
        state.hang = None;
    }

    /// Puts a lasting file there, and the directories it is in; not an operation.
    pub fn put(&self, name: &str, bytes: &[u8]) {
        let mut state = self.lock();
        state.make_lasting_dirs(parent(name));
        state.files.push(FileState {
            lasting: bytes.to_vec(),
            current: bytes.to_vec(),
            unsynced: Vec::new(),
        });
        let node = Node::File(state.files.len() - 1);
        state.put_lasting(name, node);
    }

    /// The bytes of a file as of now, also after a crash.
    pub fn contents(&self, name: &str) -> Option<Vec<u8>> {
        let state = self.lock();
        let file = state.file(name).ok()?;
        Some(state.files[file].current.clone())
    }

    /// All files with their bytes as of now, also after a crash.
    pub fn files(&self) -> BTreeMap<String, Vec<u8>> {
        let state = self.lock();
        let mut files = BTreeMap::new();
        for (path, dir) in &state.dirs {
            for (name, node) in &dir.current {
                if let Node::File(file) = *node {
                    files.insert(join(path, name), state.files[file].current.clone());
                }
            }
        }
        files
    }

    /// How long a file is now.
    pub fn len(&self, name: &str) -> Option<usize> {
        let state = self.lock();
        let file = state.file(name).ok()?;
        Some(state.files[file].current.len())
    }

    /// How many writes and syncs have failed.
    pub fn failures(&self) -> usize {
        self.lock().failures
    }

    /// How many syncs of files have failed whose names end with this.
    pub fn failed_syncs(&self, end: &str) -> usize {
        let state = self.lock();
        let named = |file: &&usize| {
            let mut names = state.dirs.values().flat_map(|dir| &dir.current);
            names.any(|(name, node)| name.ends_with(end) && *node == Node::File(**file))
        };
        state.failed_syncs.iter().filter(named).count()
    }

    /// Which file a name points to, if it and all its bytes outlast the power.
    pub fn lasting(&self, name: &str) -> Option<usize> {
        let state = self.lock();
        let file = state.file(name).ok()?;
        let (dir, node) = (state.dirs.get(parent(name))?, Some(&Node::File(file)));
        let lasts = state.files[file].unsynced.is_empty() && dir.lasting.get(last(name)) == node;
        lasts.then_some(file)
    }

    /// A disk with what a power cut now could have left: one of the possibilities, by seed.
    pub fn survivors(&self, seed: u64) -> CrashingDisk {
        let survivors = self.lock().survivors(&mut Choice::new(seed));
        CrashingDisk {
            state: Arc::new(Mutex::new(survivors)),
        }
    }

    /// A disk as it is when only the process has died: everything is there, and what was unsynced
    /// still is.
    pub fn after_kill(&self) -> CrashingDisk {
        let state = State {
            crash_at: None,
            ..self.lock().clone()
        };
        CrashingDisk {
            state: Arc::new(Mutex::new(state)),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Keeps the message of a test that panicked elsewhere.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn open(&self, file: usize) -> Box<dyn StorageFile> {
        Box::new(OpenFile {
            disk: self.clone(),
            file,
        })
    }
}

impl State {
    fn crashed(&self) -> bool {
        self.crash_at.is_some_and(|n| self.operations >= n)
    }

    /// Bytes of the files that have a name.
    fn used(&self) -> usize {
        let nodes = self.dirs.values().flat_map(|dir| dir.current.values());
        nodes
            .map(|node| match node {
                Node::File(file) => self.files[*file].current.len(),
                Node::Dir => 0,
            })
            .sum()
    }

    /// How many of so many bytes can still be written.
    fn fits(&self, bytes: usize) -> usize {
        let room = self.room.map_or(bytes, |room| bytes.min(room as usize));
        let left = |size: usize| size.saturating_sub(self.used());
        self.size.map_or(room, |size| room.min(left(size)))
    }

    fn alive(&self) -> io::Result<()> {
        if self.crashed() {
            Err(io::Error::other("the power is off"))
        } else {
            Ok(())
        }
    }

    /// Counts an operation, does it, and fails if it is the one to crash at.
    fn operation<T>(&mut self, run: impl FnOnce(&mut Self) -> io::Result<T>) -> io::Result<T> {
        self.alive()?;
        let result = run(self);
        self.operations += 1;
        self.alive()?;
        result
    }

    /// As [`State::operation`], for one that makes something lasting: at the crash it does not.
    fn sync<T>(&mut self, run: impl FnOnce(&mut Self) -> io::Result<T>) -> io::Result<T> {
        self.operation(|_| Ok(()))?;
        if self.syncs_fail {
            self.failures += 1;
            return Err(io::Error::other("input/output error"));
        }
        run(self)
    }

    fn sync_file(&mut self, file: usize) -> io::Result<()> {
        if std::mem::take(&mut self.loses) {
            self.operation(|_| Ok(()))?;
            self.files[file].unsynced.clear();
            self.failures += 1;
            self.failed_syncs.push(file);
            return Err(io::Error::other("input/output error"));
        }
        let synced = self.sync(|state| {
            let file = &mut state.files[file];
            for change in std::mem::take(&mut file.unsynced) {
                apply(&mut file.lasting, &change);
            }
            Ok(())
        });
        if synced.is_err() {
            self.failed_syncs.push(file);
        }
        synced
    }

    fn sync_names(&mut self, path: &str) -> io::Result<()> {
        if std::mem::take(&mut self.dir_sync_fails) {
            self.operation(|_| Ok(()))?;
            self.failures += 1;
            return Err(io::Error::other("input/output error"));
        }
        self.sync(|state| state.sync_dir(path, u64::MAX))
    }

    fn status(&self, file: usize) -> io::Result<FileStatus> {
        self.alive()?;
        Ok(FileStatus {
            device: 0,
            inode: file as u64,
            len: self.files[file].current.len() as u64,
        })
    }

    fn dir(&mut self, path: &str) -> io::Result<&mut DirState> {
        self.dirs.get_mut(path).ok_or_else(|| not_found(path))
    }

    fn file(&self, path: &str) -> io::Result<usize> {
        let dir = self.dirs.get(parent(path)).ok_or_else(|| not_found(path))?;
        match dir.current.get(last(path)) {
            Some(Node::File(file)) => Ok(*file),
            Some(Node::Dir) => Err(io::ErrorKind::IsADirectory.into()),
            None => Err(not_found(path)),
        }
    }

    /// Changes names in a directory; lasting only with its sync.
    fn change(
        &mut self,
        path: &str,
        names: Vec<(String, Option<Node>)>,
        after: Option<(String, u64)>,
    ) -> io::Result<u64> {
        self.changes += 1;
        let id = self.changes;
        let dir = self.dir(path)?;
        apply_names(&mut dir.current, &names);
        dir.unsynced.push(DirChange { id, names, after });
        Ok(id)
    }

    fn make(&mut self, path: &str) -> io::Result<usize> {
        let file = self.files.len();
        self.change(
            parent(path),
            vec![(last(path).into(), Some(Node::File(file)))],
            None,
        )?;
        self.files.push(FileState::default());
        Ok(file)
    }

    /// Where a file changes its bytes.
    fn change_file(&mut self, file: usize, change: FileChange) {
        let file = &mut self.files[file];
        apply(&mut file.current, &change);
        file.unsynced.push(change);
    }

    fn rename(&mut self, from: &str, to: &str) -> io::Result<()> {
        let node = Some(Node::File(self.file(from)?));
        let gone = (last(from).to_owned(), None);
        let made = (last(to).to_owned(), node);
        if parent(from) == parent(to) {
            return self.change(parent(to), vec![gone, made], None).map(drop);
        }
        let id = self.change(parent(to), vec![made], None)?;
        self.change(parent(from), vec![gone], Some((parent(to).to_owned(), id)))
            .map(drop)
    }

    /// Makes the changes of a directory last, up to and including `id`, and what they wait for.
    fn sync_dir(&mut self, path: &str, id: u64) -> io::Result<()> {
        let dir = self.dir(path)?;
        let count = dir.unsynced.partition_point(|change| change.id <= id);
        let changes: Vec<_> = dir.unsynced.drain(..count).collect();
        for change in changes {
            if let Some((other, id)) = &change.after {
                self.sync_dir(other, *id)?;
            }
            apply_names(&mut self.dir(path)?.lasting, &change.names);
        }
        Ok(())
    }

    fn make_lasting_dirs(&mut self, path: &str) {
        if !self.dirs.contains_key(path) {
            self.make_lasting_dirs(parent(path));
            self.dirs.insert(path.to_owned(), DirState::default());
            self.put_lasting(path, Node::Dir);
        }
    }

    fn put_lasting(&mut self, path: &str, node: Node) {
        let dir = self.dirs.get_mut(parent(path)).unwrap();
        dir.lasting.insert(last(path).to_owned(), node);
        dir.current.insert(last(path).to_owned(), node);
    }
}

fn apply(bytes: &mut Vec<u8>, change: &FileChange) {
    match change {
        FileChange::Write { at, bytes: written } => {
            let end = at + written.len();
            if bytes.len() < end {
                bytes.resize(end, 0);
            }
            bytes[*at..end].copy_from_slice(written);
        }
        FileChange::Cut(len) => bytes.resize(*len, 0),
    }
}

fn apply_names(names: &mut BTreeMap<String, Node>, changes: &[(String, Option<Node>)]) {
    for (name, node) in changes {
        match node {
            Some(node) => names.insert(name.clone(), *node),
            None => names.remove(name),
        };
    }
}

fn last(path: &str) -> &str {
    path.rsplit_once('/').map_or(path, |(_, last)| last)
}

fn join(dir: &str, name: &str) -> String {
    if dir.is_empty() {
        name.to_owned()
    } else {
        format!("{dir}/{name}")
    }
}

fn not_found(path: &str) -> io::Error {
    io::Error::new(
        io::ErrorKind::NotFound,
        format!("{path}: no such file or directory"),
    )
}
