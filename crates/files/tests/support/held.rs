//! A data directory whose writes or fsyncs hang until they are released, for tests of what happens
//! meanwhile.

#![allow(
    dead_code,
    missing_docs,
    unreachable_pub,
    clippy::unwrap_used,
    reason = "each test binary uses a part of it"
)]

use std::io::{self, Write};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use everbloom_files::storage::{FileStatus, StorageFile, Syncing};

use super::hooked::{Hooked, Hooks};

/// What can hang.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    Write,
    Sync,
}

/// What holds the operations of a disk.
#[derive(Debug, Default)]
pub struct Brake {
    state: Mutex<Held>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Held {
    operation: Option<Operation>,
    /// Operations that have begun since it is held.
    begun: usize,
}

impl Brake {
    /// Holds every operation of one kind from now on.
    pub fn hold(&self, operation: Operation) {
        self.set(Some(operation));
    }

    /// Lets all operations go on.
    pub fn release(&self) {
        self.set(None);
    }

    fn set(&self, operation: Option<Operation>) {
        *self.state.lock().unwrap() = Held {
            operation,
            begun: 0,
        };
        self.changed.notify_all();
    }

    /// Returns once an operation is held.
    pub fn wait_until_reached(&self) {
        let state = self.state.lock().unwrap();
        let (state, _) = self
            .changed
            .wait_timeout_while(state, Duration::from_secs(30), |state| state.begun == 0)
            .unwrap();
        let begun = state.begun;
        drop(state);
        assert!(begun > 0, "nothing is held");
    }

    fn pass(&self, operation: Operation) {
        let mut state = self.state.lock().unwrap();
        if state.operation == Some(operation) {
            state.begun += 1;
            self.changed.notify_all();
            let is_held = |state: &mut Held| state.operation == Some(operation);
            drop(self.changed.wait_while(state, is_held).unwrap());
        }
    }
}

/// Lets everything go on at the end of a test, also of one that failed.
pub struct ReleaseAtEnd(pub Arc<Brake>);

impl Drop for ReleaseAtEnd {
    fn drop(&mut self) {
        self.0.release();
    }
}

/// Another disk with a brake.
pub type HeldDisk<D> = Hooked<D, Arc<Brake>>;

impl Hooks for Arc<Brake> {
    fn written(&self, file: Box<dyn StorageFile>) -> Box<dyn StorageFile> {
        Box::new(HeldFile(file, Arc::clone(self)))
    }
}

#[derive(Debug)]
struct HeldFile(Box<dyn StorageFile>, Arc<Brake>);

impl Write for HeldFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.1.pass(Operation::Write);
        self.0.write(bytes)
    }
    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl StorageFile for HeldFile {
    fn sync(&mut self) -> io::Result<()> {
        self.1.pass(Operation::Sync);
        self.0.sync()
    }
    fn sync_elsewhere(&self) -> io::Result<Syncing> {
        let (sync, brake) = (self.0.sync_elsewhere()?, Arc::clone(&self.1));
        Ok(Box::new(move || {
            brake.pass(Operation::Sync);
            sync()
        }))
    }
    fn truncate(&mut self, len: u64) -> io::Result<()> {
        self.0.truncate(len)
    }
    fn status(&self) -> io::Result<FileStatus> {
        self.0.status()
    }
}
