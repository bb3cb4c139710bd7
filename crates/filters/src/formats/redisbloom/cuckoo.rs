//! The slots of a cuckoo filter in chunks.

use alloc::borrow::Cow;

use super::parts::{ChunkError, locate};
use crate::cuckoo::{Bytes, CuckooFilter, Packed, Table, Watch};

impl CuckooFilter {
    /// The slots of all tables laid end to end, oldest table first, from `offset` to the end of
    /// that table, at most `max`; `None` at and past the end.
    /// [Example](crate::redisbloom::CuckooParts).
    #[must_use]
    pub fn stream_chunk(&self, offset: u64, max: usize) -> Option<Cow<'_, [u8]>> {
        let (number, start) = locate(self.tables.iter().map(Table::bytes), offset)?;
        let rest = self.tables.get(number)?.slots.get(start..)?;
        Some(Cow::Borrowed(rest.get(..max).unwrap_or(rest)))
    }

    /// Writes slots at `offset` of that stream; they must lie within one table.
    /// [Example](crate::redisbloom::CuckooParts).
    ///
    /// # Errors
    ///
    /// [`ChunkError`] when they do not; nothing has changed then.
    pub fn load_chunk(&mut self, offset: u64, data: &[u8]) -> Result<(), ChunkError> {
        let place = locate(self.tables.iter().map(Table::bytes), offset);
        let (number, start) = place.ok_or(ChunkError::NoLayer)?;
        self.load_table(number, start, data)
    }

    /// The slots of a table, numbered from 0. [Example](Self::load_table).
    #[must_use]
    pub fn table(&self, number: usize) -> Option<&[u8]> {
        self.tables.get(number).map(|table| &*table.slots)
    }

    /// Writes slots at `start` of a table, numbered from 0.
    ///
    /// ```
    /// # use everbloom::CuckooFilter;
    /// let mut filter = CuckooFilter::new(1000);
    /// let mut copy = filter.clone();
    /// filter.insert("a")?;
    /// copy.load_table(0, 0, filter.table(0).unwrap_or_default())?;
    /// assert!(copy.contains("a"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// There is no such table, or they do not lie within it; nothing has changed then.
    pub fn load_table(
        &mut self,
        number: usize,
        start: usize,
        data: &[u8],
    ) -> Result<(), ChunkError> {
        let capture = &mut self.capture;
        let table = self.tables.get_mut(number).ok_or(ChunkError::NoLayer)?;
        let watch = &mut Watch { capture, number };
        let fits = match self.keyed {
            None => table.load::<Bytes>(start, data, watch),
            Some(_) => table.load::<Packed>(start, data, watch),
        };
        fits.then_some(()).ok_or(ChunkError::TooLong)
    }
}
