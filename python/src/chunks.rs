//! A filter in the pieces that `BF.SCANDUMP` and `CF.SCANDUMP` give, and `BF.LOADCHUNK` and
//! `CF.LOADCHUNK` take.

use std::sync::atomic::{AtomicI64, Ordering};

use everbloom::host::LayeredFilter;
use everbloom::redisbloom::CuckooError;
use everbloom::redisbloom::{ChunkError, FilterParts};
use everbloom::{BloomFilter, CuckooFilter};
use everbloom_commands::format::header;
use everbloom_commands::{bf, cf};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::error::{self, FormatError};
use crate::item;

/// Pairs of an iterator and a piece, for BF.LOADCHUNK.
#[pyclass(module = "everbloom", frozen)]
pub(crate) struct Chunks {
    filter: Source,
    next: AtomicI64,
}

/// A filter to take pieces of.
pub(crate) enum Source {
    Bloom(LayeredFilter),
    Cuckoo(CuckooFilter),
}

impl From<CuckooFilter> for Source {
    fn from(filter: CuckooFilter) -> Source {
        Source::Cuckoo(filter)
    }
}

impl From<BloomFilter> for Source {
    fn from(filter: BloomFilter) -> Source {
        Source::Bloom(filter.into())
    }
}

impl From<LayeredFilter> for Source {
    fn from(filter: LayeredFilter) -> Source {
        Source::Bloom(filter)
    }
}

impl Chunks {
    pub(crate) fn new(filter: impl Into<Source>) -> Chunks {
        Chunks {
            filter: filter.into(),
            next: AtomicI64::new(0),
        }
    }
}

#[pymethods]
impl Chunks {
    fn __iter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    fn __next__<'py>(&self, py: Python<'py>) -> Option<(i64, Bound<'py, PyBytes>)> {
        let next = self.next.load(Ordering::Relaxed);
        let (iterator, piece) = match &self.filter {
            Source::Bloom(filter) => bf::dump::piece(filter, next)?,
            Source::Cuckoo(filter) => cf::dump::piece(filter, u64::try_from(next).ok()?)?,
        };
        self.next.store(iterator, Ordering::Relaxed);
        Some((iterator, PyBytes::new(py, &piece)))
    }
}

/// A filter that is made of pieces.
pub(crate) trait FromChunks: Sized {
    /// An empty filter as the header says, and the number of its first byte.
    fn of_header(header: &[u8]) -> PyResult<Option<(Self, u64)>>;
    fn load(&mut self, offset: u64, piece: &[u8]) -> Result<(), ChunkError>;
    fn bytes(&self) -> u64;
}

impl FromChunks for LayeredFilter {
    fn of_header(header: &[u8]) -> PyResult<Option<(Self, u64)>> {
        let made = |parts: FilterParts| {
            let filter = LayeredFilter::from_parts(&parts, u64::MAX);
            filter
                .map(|filter| (filter, parts.stream_start()))
                .map_err(error::parts)
        };
        header::decode(header).map(made).transpose()
    }

    fn load(&mut self, offset: u64, piece: &[u8]) -> Result<(), ChunkError> {
        self.load_chunk(offset, piece)
    }

    fn bytes(&self) -> u64 {
        self.stream_len()
    }
}

impl FromChunks for CuckooFilter {
    fn of_header(header: &[u8]) -> PyResult<Option<(Self, u64)>> {
        let made = |parts| match CuckooFilter::from_parts(&parts, u64::MAX) {
            Ok(filter) => Ok((filter, 0)),
            Err(error @ CuckooError::OutOfMemory) => Err(error::cuckoo(error)),
            Err(error) => Err(FormatError::new_err(error.to_string())),
        };
        header::cuckoo::decode(header).map(made).transpose()
    }

    fn load(&mut self, offset: u64, piece: &[u8]) -> Result<(), ChunkError> {
        self.load_chunk(offset, piece)
    }

    fn bytes(&self) -> u64 {
        self.stream_len()
    }
}

/// The filter of these pieces, which must be complete and in order.
pub(crate) fn collect<F: FromChunks>(chunks: &Bound<'_, PyAny>) -> PyResult<F> {
    // The filter, the number of its first byte, and how far the pieces have come.
    let mut filter: Option<(F, u64, u64)> = None;
    for chunk in chunks.try_iter()? {
        let (iterator, piece) = chunk?.extract::<(i64, Option<Bound<'_, PyAny>>)>()?;
        let piece = piece.map_or(Ok(Vec::new()), |piece| item::bytes_of(&piece))?;
        // SCANDUMP says so at the end.
        if iterator == 0 && piece.is_empty() {
            break;
        }
        let number = u64::try_from(iterator)
            .ok()
            .and_then(|it| it.checked_sub(1));
        let Some((filter, start, end)) = &mut filter else {
            let made = F::of_header(&piece)?.filter(|(_, start)| number == Some(*start));
            let (made, start) =
                made.ok_or_else(|| FormatError::new_err("the first chunk is not a header"))?;
            filter = Some((made, start, 0));
            continue;
        };
        let begin = *end;
        *end += piece.len() as u64;
        if number != start.checked_add(*end) {
            return Err(FormatError::new_err(format!(
                "a chunk is missing or out of order before iterator {iterator}"
            )));
        }
        let loaded = filter.load(begin, &piece);
        loaded.map_err(|error| FormatError::new_err(error.to_string()))?;
    }
    match filter {
        Some((filter, _, end)) if filter.bytes() == end => Ok(filter),
        Some((filter, _, end)) => Err(FormatError::new_err(format!(
            "the chunks end after {end} of {} bytes",
            filter.bytes()
        ))),
        None => Err(FormatError::new_err("there is no chunk")),
    }
}
