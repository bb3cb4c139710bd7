//! A data directory that does something more at some operations of another one.

#![allow(
    dead_code,
    missing_docs,
    unreachable_pub,
    reason = "each test binary uses a part of it"
)]

use std::fmt::Debug;
use std::io::{self, Read};

use everbloom_files::storage::{FileStatus, Storage, StorageFile};

/// What it does more; by default nothing.
pub trait Hooks: Debug + Send + Sync {
    /// Before a file of this name is created.
    fn creating(&self, _name: &str) {}

    /// To a file that will be written.
    fn written(&self, file: Box<dyn StorageFile>) -> Box<dyn StorageFile> {
        file
    }

    /// To a file that will be read.
    fn read(&self, _name: &str, file: Box<dyn Read + Send>) -> Box<dyn Read + Send> {
        file
    }
}

/// The directory.
#[derive(Debug)]
pub struct Hooked<D, H> {
    pub disk: D,
    pub hooks: H,
}

impl<D: Storage, H: Hooks> Storage for Hooked<D, H> {
    fn create(&self, name: &str) -> io::Result<Box<dyn StorageFile>> {
        self.hooks.creating(name);
        self.disk.create(name).map(|file| self.hooks.written(file))
    }
    fn append(&self, name: &str) -> io::Result<Box<dyn StorageFile>> {
        self.disk.append(name).map(|file| self.hooks.written(file))
    }
    fn read_from(&self, name: &str, start: u64) -> io::Result<(Box<dyn Read + Send>, u64)> {
        let (file, len) = self.disk.read_from(name, start)?;
        Ok((self.hooks.read(name, file), len))
    }
    fn status(&self, name: &str) -> io::Result<FileStatus> {
        self.disk.status(name)
    }
    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.disk.rename(from, to)
    }
    fn remove(&self, name: &str) -> io::Result<()> {
        self.disk.remove(name)
    }
    fn create_dir(&self, name: &str) -> io::Result<()> {
        self.disk.create_dir(name)
    }
    fn sync_dir(&self, name: &str) -> io::Result<()> {
        self.disk.sync_dir(name)
    }
    fn list(&self, name: &str) -> io::Result<Vec<String>> {
        self.disk.list(name)
    }
}
