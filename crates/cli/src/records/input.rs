//! The files to read: plain or packed, which their first bytes tell.

use std::ffi::OsStr;
use std::fs::{self, File, Metadata};
use std::io::{self, Cursor, Read};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, poll};

use super::magic::{self, Format, Packing, Unread};
use super::shared::Shared;
use super::unpack::unpacked;

/// How much a compressed file is guessed to grow.
const USUAL_RATIO: u64 = 4;

/// One input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    Stdin,
    File(PathBuf),
}

impl Source {
    pub(crate) fn of(name: &Path) -> Self {
        if name == Path::new("-") {
            Source::Stdin
        } else {
            Source::File(name.to_owned())
        }
    }

    pub(crate) fn name(&self) -> String {
        match self {
            Source::Stdin => "standard input".to_owned(),
            Source::File(path) => path.display().to_string(),
        }
    }

    fn open_raw(&self) -> io::Result<File> {
        match self {
            Source::Stdin => stdin(),
            Source::File(path) => {
                let file = File::open(path)?;
                if file.metadata()?.is_dir() {
                    return Err(io::Error::from(io::ErrorKind::IsADirectory));
                }
                Ok(file)
            }
        }
    }

    /// Whether it can be read only once. What is missing or a folder cannot be read at all, and
    /// the reader says so.
    pub(crate) fn is_stream(&self) -> bool {
        match self {
            Source::Stdin => true,
            Source::File(path) => {
                fs::metadata(path).is_ok_and(|found| !found.is_file() && !found.is_dir())
            }
        }
    }

    /// What the system tells of it, if it is a regular file.
    fn file(&self) -> Option<Metadata> {
        let metadata = match self {
            Source::Stdin => stdin().ok()?.metadata(),
            Source::File(path) => fs::metadata(path),
        };
        metadata.ok().filter(Metadata::is_file)
    }

    /// The bytes in the file, if it is a regular one.
    fn size(&self) -> Option<u64> {
        self.file().map(|file| file.len())
    }

    /// Whether it is this regular file.
    pub(super) fn is_file(&self, file: &Metadata) -> bool {
        let id = |file: &Metadata| (file.dev(), file.ino());
        file.is_file() && self.file().is_some_and(|own| id(&own) == id(file))
    }

    /// The bytes that a regular file may have when it is unpacked: a guess from its name.
    fn unpacked_size(&self) -> u64 {
        let size = self.size().unwrap_or(0);
        let suffix = match self {
            Source::Stdin => None,
            Source::File(path) => path.extension().and_then(OsStr::to_str),
        };
        match suffix {
            Some("gz" | "zst" | "zstd" | "xz" | "bz2" | "tgz") => size.saturating_mul(USUAL_RATIO),
            _ => size,
        }
    }

    /// Opens the input to read records. `are_lines` says that they are text, so that a byte order
    /// mark is no part of the first one.
    pub(crate) fn open(&self, are_lines: bool, shared: &Arc<Shared>) -> io::Result<Input> {
        shared.opens.store(true, Ordering::SeqCst);
        let file = self.open_raw();
        shared.opens.store(false, Ordering::SeqCst);
        let file = file?;
        let waits = !file.metadata()?.is_file();
        let mut reader: Box<dyn Read + Send> = Box::new(SharedFile {
            file,
            waits,
            shared: Arc::clone(shared),
        });
        let mut packing = None;
        let head = loop {
            let head = magic::read_head(&mut reader)?;
            match magic::format(&head) {
                Some(Format::ByteOrderMark) if are_lines => break Vec::new(),
                Some(Format::ByteOrderMark) | None => break head,
                Some(Format::Unread(format)) => return Err(self.unread(packing, format)),
                Some(Format::Packed(found)) => {
                    if packing.is_some() {
                        let (what, through) = ("packed twice", found.program());
                        return Err(self.unread(packing, Unread::Piped { what, through }));
                    }
                    packing = Some(found);
                    reader = unpacked(found, Cursor::new(head).chain(reader));
                }
            }
        };
        if !head.is_empty() {
            reader = Box::new(Cursor::new(head).chain(reader));
        }
        Ok(Input { reader, waits })
    }

    /// The error for an input of this format, which was in a packed file if there is a packing.
    pub(super) fn unread(&self, packing: Option<Packing>, format: Unread) -> io::Error {
        io::Error::other(match format {
            Unread::Foreign { what, advice } => format!("it is {what}; {advice}"),
            Unread::Piped { what, through } | Unread::Text { what, through } => {
                let programs = packing.map(Packing::program).into_iter().chain([through]);
                let mut pipe: Vec<_> = programs.map(str::to_owned).collect();
                if let Some(first) = pipe.first_mut() {
                    *first += &match self {
                        Source::Stdin => " -".to_owned(),
                        Source::File(path) => format!(" {}", path.display()),
                    };
                }
                format!("it is {what}: {} | everbloom ...", pipe.join(" | "))
            }
        })
    }
}

/// An open input.
pub(crate) struct Input {
    pub(crate) reader: Box<dyn Read + Send>,
    /// Whether a read may wait for a writer.
    pub(crate) waits: bool,
}

/// How much there is to read, as far as that can be known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sizes {
    /// Bytes of all inputs; `None` when one of them is no regular file.
    pub(crate) stored: Option<u64>,
    /// The same for regular files alone, compressed ones as large as they may become.
    pub(crate) unpacked: u64,
}

pub(crate) fn sizes(sources: &[Source]) -> Sizes {
    let add = |sum: u64, source: &Source| Some(sum.saturating_add(source.size()?));
    let unpacked = sources.iter().map(Source::unpacked_size);
    Sizes {
        stored: sources.iter().try_fold(0, add),
        unpacked: unpacked.fold(0, u64::saturating_add),
    }
}

/// Standard input without the buffer of the library.
fn stdin() -> io::Result<File> {
    Ok(io::stdin().as_fd().try_clone_to_owned()?.into())
}

/// How often to look whether a signal came while there is nothing to read.
const PATIENCE_MS: u8 = 50;

/// A file whose bytes are counted as they are read. A signal ends a read that waits, so that the
/// records before it can be handled.
struct SharedFile {
    file: File,
    /// Whether a read may wait for a writer.
    waits: bool,
    shared: Arc<Shared>,
}

impl SharedFile {
    /// Waits until there are bytes, or the end of the file.
    fn wait(&self) -> io::Result<()> {
        loop {
            if self.shared.stop.load(Ordering::SeqCst) {
                return Err(io::Error::other("a signal came"));
            }
            let mut file = [PollFd::new(self.file.as_fd(), PollFlags::POLLIN)];
            match poll(&mut file, PATIENCE_MS) {
                Ok(0) | Err(Errno::EINTR) => {}
                // The read says what is wrong.
                Ok(_) | Err(_) => return Ok(()),
            }
        }
    }
}

impl Read for SharedFile {
    fn read(&mut self, place: &mut [u8]) -> io::Result<usize> {
        if self.waits {
            self.wait()?;
        }
        let count = self.file.read(place)?;
        self.shared.read.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }
}
