//! A filter in the pieces that `BF.SCANDUMP` gives and `BF.LOADCHUNK` takes.

use std::sync::atomic::{AtomicI64, Ordering};

use everbloom::ScalableBloomFilter as Inner;
use everbloom_commands::bf::dump;
use everbloom_commands::format::header;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::error::{self, FormatError};
use crate::item;

/// Pairs of an iterator and a piece, for BF.LOADCHUNK.
#[pyclass(module = "everbloom", frozen)]
pub(crate) struct Chunks {
    filter: Inner,
    next: AtomicI64,
}

impl Chunks {
    pub(crate) fn new(filter: Inner) -> Chunks {
        Chunks {
            filter,
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
        if next < 0 {
            return None;
        }
        let Some((iterator, piece)) = dump::piece(&self.filter, next) else {
            self.next.store(-1, Ordering::Relaxed);
            return None;
        };
        self.next.store(iterator, Ordering::Relaxed);
        Some((iterator, PyBytes::new(py, &piece)))
    }
}

/// The filter of these pieces, which must be complete and in order.
pub(crate) fn collect(chunks: &Bound<'_, PyAny>) -> PyResult<Inner> {
    let mut filter: Option<Inner> = None;
    // The iterator of the header, and how many bytes the pieces have.
    let (mut start, mut end) = (0, 0);
    for chunk in chunks.try_iter()? {
        let (iterator, piece) = chunk?.extract::<(i64, Bound<'_, PyAny>)>()?;
        let piece = item::bytes_of(&piece)?;
        // BF.SCANDUMP says so at the end.
        if iterator == 0 && piece.is_empty() {
            break;
        }
        let Some(filter) = &mut filter else {
            start = iterator;
            filter = Some(first(iterator, &piece)?);
            continue;
        };
        let begin = end;
        end += piece.len() as u64;
        if iterator.checked_sub(start).and_then(|it| u64::try_from(it).ok()) != Some(end) {
            return Err(FormatError::new_err(format!(
                "a chunk is missing or out of order before iterator {iterator}"
            )));
        }
        let loaded = filter.load_chunk(begin, &piece);
        loaded.map_err(|error| FormatError::new_err(error.to_string()))?;
    }
    match filter {
        Some(filter) if filter.stream_len() == end => Ok(filter),
        Some(filter) => Err(FormatError::new_err(format!(
            "the chunks end after {end} of {} bytes",
            filter.stream_len()
        ))),
        None => Err(FormatError::new_err("there is no chunk")),
    }
}

/// An empty filter as the header says.
fn first(iterator: i64, header: &[u8]) -> PyResult<Inner> {
    let start = u64::try_from(iterator).ok();
    let parts = header::decode(header)
        .filter(|parts| parts.stream_start().checked_add(1) == start);
    let parts = parts.ok_or_else(|| FormatError::new_err("the first chunk is not a header"))?;
    Inner::from_parts(&parts, u64::MAX).map_err(error::parts)
}
