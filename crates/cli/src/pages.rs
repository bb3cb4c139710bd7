//! Random access to a file. A page is read when it is first needed, and kept in memory.
//!
//! It is not mapped into memory, because the programs that write these files do so in place. A map
//! of a file that becomes shorter ends the process; here it is an error.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

/// The bytes of one read.
const PAGE: usize = 4096;

/// The maximum number of pages in memory: 1 GiB. Others are read again.
const KEPT: usize = 1 << 18;

/// Only pages of the first 64 GiB of the file can be kept.
const PLACES: usize = 1 << 24;

/// A file of which some pages are in memory.
#[derive(Debug)]
pub(crate) struct Pages {
    file: File,
    /// The pages that are kept, at their numbers.
    pages: Vec<Option<Box<[u8]>>>,
    kept: usize,
}

impl Pages {
    pub(crate) fn new(file: File) -> io::Result<Self> {
        let count = file.metadata()?.len().div_ceil(PAGE as u64);
        let places = usize::try_from(count).unwrap_or(PLACES).min(PLACES);
        let mut pages = Vec::new();
        pages.resize_with(places, || None);
        Ok(Self {
            file,
            pages,
            kept: 0,
        })
    }

    /// The file from a byte on.
    pub(crate) fn reader(&mut self, from: u64) -> io::Result<impl Read> {
        self.file.seek(SeekFrom::Start(from))?;
        Ok(&self.file)
    }

    /// A byte of the file. Reading past the end is an error.
    #[inline]
    pub(crate) fn byte(&mut self, at: u64) -> io::Result<u8> {
        let number = at / PAGE as u64;
        let place = usize::try_from(at % PAGE as u64).unwrap_or(0);
        let slot = usize::try_from(number).ok();
        let page = slot.and_then(|slot| self.pages.get(slot)?.as_deref());
        if let Some(byte) = page.and_then(|page| page.get(place)) {
            return Ok(*byte);
        }
        self.read(number, place)
    }

    /// Reads a page, and keeps it if there is room.
    #[cold]
    fn read(&mut self, number: u64, place: usize) -> io::Result<u8> {
        let mut page = Vec::with_capacity(PAGE);
        let from = self.reader(number * PAGE as u64)?;
        from.take(PAGE as u64).read_to_end(&mut page)?;
        let byte = page.get(place).copied();
        let slot = usize::try_from(number).ok();
        if let Some(slot) = slot.and_then(|slot| self.pages.get_mut(slot))
            && (slot.is_some() || self.kept < KEPT)
        {
            self.kept += usize::from(slot.is_none());
            *slot = Some(page.into_boxed_slice());
        }
        byte.ok_or_else(|| io::Error::other("it became shorter meanwhile"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_file_that_becomes_shorter_is_an_error() {
        let path = std::env::temp_dir().join(format!("everbloom-pages-{}", std::process::id()));
        let bytes: Vec<u8> = (0..=255).cycle().take(10_000).collect();
        fs::write(&path, &bytes).unwrap();
        let file = File::options().read(true).write(true).open(&path).unwrap();
        let mut pages = Pages::new(file.try_clone().unwrap()).unwrap();
        for at in [0, 1, 4095, 4096, 9999] {
            assert_eq!(pages.byte(at).unwrap(), u8::try_from(at % 256).unwrap());
        }
        assert!(pages.byte(10_000).is_err());
        file.set_len(5000).unwrap();
        assert!(pages.byte(9999).is_ok(), "its page was kept");
        let mut fresh = Pages::new(file).unwrap();
        assert_eq!(fresh.byte(4999).unwrap(), 135);
        assert!(fresh.byte(5000).is_err());
        fs::remove_file(path).unwrap();
    }
}
