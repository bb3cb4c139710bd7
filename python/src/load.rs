//! Filters of any kind in files.

use std::path::PathBuf;

use everbloom::bytes::BytesError;
use everbloom::host::LayeredFilter as Inner;
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;

use crate::cuckoo::CuckooFilter;
use crate::fixed::BloomFilter;
use crate::scalable::ScalableBloomFilter;
use crate::windowed::WindowedBloomFilter;
use crate::{error, file};

/// Reads a filter of any kind from a file: of save, of `everbloom build` or of `dedup --state`. It
/// gets the class that fits.
#[pyfunction]
pub(crate) fn load(py: Python<'_>, path: PathBuf) -> PyResult<Py<PyAny>> {
    let bytes = py.detach(|| file::read(&path))?;
    match py.detach(|| Inner::from_bytes(&bytes)) {
        Ok(filter) if filter.window().is_some() => {
            WindowedBloomFilter::from(filter).into_py_any(py)
        }
        Ok(filter) => ScalableBloomFilter::from(filter).into_py_any(py),
        Err(BytesError::Kind) => match py.detach(|| everbloom::BloomFilter::from_bytes(&bytes)) {
            Ok(filter) => BloomFilter::from(filter).into_py_any(py),
            Err(BytesError::Kind) => {
                let filter = py.detach(|| everbloom::CuckooFilter::from_bytes(&bytes));
                let filter = filter.map_err(|error| error::bytes_of_file(error, &path))?;
                CuckooFilter::from(filter).into_py_any(py)
            }
            Err(error) => Err(error::bytes_of_file(error, &path)),
        },
        Err(error) => Err(error::bytes_of_file(error, &path)),
    }
}
