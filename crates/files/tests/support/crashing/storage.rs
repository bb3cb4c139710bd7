//! The disk as the storage of the store, counted and failing.

use super::*;

#[derive(Debug)]
pub(super) struct OpenFile {
    pub(super) disk: CrashingDisk,
    pub(super) file: usize,
}

impl Write for OpenFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if bytes.is_empty() {
            return Ok(0);
        }
        self.disk.wait_while_it_hangs(self.file);
        let file = self.file;
        self.disk.lock().operation(|state| {
            // As a file that is opened to append.
            let at = state.files[file].current.len();
            let fits = state.fits(bytes.len());
            if fits == 0 {
                state.failures += 1;
                return Err(io::ErrorKind::StorageFull.into());
            }
            state.room = state.room.map(|room| room - fits as u64);
            state.change_file(
                file,
                FileChange::Write {
                    at,
                    bytes: bytes[..fits].to_vec(),
                },
            );
            Ok(fits)
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        self.disk.lock().alive()
    }
}

impl StorageFile for OpenFile {
    fn sync(&mut self) -> io::Result<()> {
        self.disk.wait_while_it_hangs(self.file);
        self.disk.lock().sync_file(self.file)
    }

    fn sync_elsewhere(&self) -> io::Result<Syncing> {
        let (disk, file) = (self.disk.clone(), self.file);
        Ok(Box::new(move || {
            disk.wait_while_it_hangs(file);
            disk.lock().sync_file(file)
        }))
    }

    fn truncate(&mut self, len: u64) -> io::Result<()> {
        let len = len as usize;
        self.disk.lock().operation(|state| {
            state.change_file(self.file, FileChange::Cut(len));
            Ok(())
        })
    }

    fn status(&self) -> io::Result<FileStatus> {
        self.disk.lock().status(self.file)
    }
}

impl Storage for CrashingDisk {
    fn create(&self, name: &str) -> io::Result<Box<dyn StorageFile>> {
        let file = self.lock().operation(|state| match state.file(name) {
            Ok(file) => {
                state.change_file(file, FileChange::Cut(0));
                Ok(file)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => state.make(name),
            Err(error) => Err(error),
        })?;
        Ok(self.open(file))
    }

    fn append(&self, name: &str) -> io::Result<Box<dyn StorageFile>> {
        let mut state = self.lock();
        state.alive()?;
        let file = match state.file(name) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                state.operation(|state| state.make(name))?
            }
            found => found?,
        };
        Ok(self.open(file))
    }

    /// The bytes as of now: what is written later is not seen.
    fn read_from(&self, name: &str, start: u64) -> io::Result<(Box<dyn Read + Send>, u64)> {
        let state = self.lock();
        state.alive()?;
        let bytes = &state.files[state.file(name)?].current;
        let read = bytes.get(start as usize..).unwrap_or_default().to_vec();
        Ok((Box::new(Cursor::new(read)), bytes.len() as u64))
    }

    fn status(&self, name: &str) -> io::Result<FileStatus> {
        let state = self.lock();
        state.status(state.file(name)?)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.lock().operation(|state| {
            if from == to {
                state.file(from).map(drop)
            } else {
                state.rename(from, to)
            }
        })
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.lock().operation(|state| {
            state.file(name)?;
            state
                .change(parent(name), vec![(last(name).into(), None)], None)
                .map(drop)
        })
    }

    fn create_dir(&self, name: &str) -> io::Result<()> {
        self.lock().operation(|state| {
            if state.dirs.contains_key(name) {
                return Ok(());
            }
            state.change(
                parent(name),
                vec![(last(name).into(), Some(Node::Dir))],
                None,
            )?;
            state.dirs.insert(name.to_owned(), DirState::default());
            Ok(())
        })
    }

    fn sync_dir(&self, name: &str) -> io::Result<()> {
        self.lock().sync_names(name)
    }

    fn list(&self, name: &str) -> io::Result<Vec<String>> {
        let mut state = self.lock();
        state.alive()?;
        Ok(state.dir(name)?.current.keys().cloned().collect())
    }
}
