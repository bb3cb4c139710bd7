//! Arguments that several classes have.

use std::path::Path;

use everbloom::Layout;
use everbloom::bytes::BytesError;
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};

use crate::{error, file, item, memory};

/// A number of items, or a seed.
pub(crate) fn whole(number: &Bound<'_, PyAny>, what: &str) -> PyResult<u64> {
    number.extract().map_err(|error: PyErr| {
        if error.is_instance_of::<PyOverflowError>(number.py()) {
            match number.lt(0) {
                Ok(true) => PyValueError::new_err(format!("the {what} is below 0")),
                _ => PyOverflowError::new_err(format!("the {what} is 2**64 or more")),
            }
        } else {
            PyTypeError::new_err(format!("the {what} must be an int"))
        }
    })
}

/// A number of a type below 64 bits.
pub(crate) fn narrow<N: TryFrom<u64>>(number: &Bound<'_, PyAny>, what: &str) -> PyResult<N> {
    N::try_from(whole(number, what)?).map_err(|_| {
        let bits = 8 * size_of::<N>();
        PyOverflowError::new_err(format!("the {what} is 2**{bits} or more"))
    })
}

pub(crate) fn error_rate(number: &Bound<'_, PyAny>) -> PyResult<f64> {
    number.extract().map_err(|_| {
        let kind = number.get_type();
        PyTypeError::new_err(format!("the error rate must be a number, not {kind}"))
    })
}

pub(crate) fn generations(number: &Bound<'_, PyAny>) -> PyResult<u32> {
    narrow(number, "number of generations")
}

/// The layout of that name; the blocked one without a name.
pub(crate) fn layout_of(name: Option<&Bound<'_, PyAny>>) -> PyResult<Layout> {
    let Some(name) = name else {
        return Ok(Layout::Blocked);
    };
    let wrong = format!("the layout is 'blocked' or 'classic', not {}", name.repr()?);
    match name.cast::<PyString>() {
        Ok(name) if name == "blocked" => Ok(Layout::Blocked),
        Ok(name) if name == "classic" => Ok(Layout::Classic),
        Ok(_) => Err(PyValueError::new_err(wrong)),
        Err(_) => Err(PyTypeError::new_err(wrong)),
    }
}

pub(crate) fn name_of(layout: Layout) -> &'static str {
    match layout {
        Layout::Blocked => "blocked",
        Layout::Classic => "classic",
    }
}

/// Makes a filter of bytes.
type FromBytes<F> = fn(&[u8]) -> Result<F, BytesError>;

pub(crate) fn from_bytes_like<F: Send>(
    data: &Bound<'_, PyAny>,
    from_bytes: FromBytes<F>,
) -> PyResult<F> {
    let py = data.py();
    if let Ok(bytes) = data.cast::<PyBytes>() {
        let bytes = bytes.as_bytes();
        return py.detach(|| from_bytes(bytes)).map_err(error::bytes);
    }
    // Others may change while they are read.
    let lent = item::lent_by(data)?;
    let lent = lent.bytes()?;
    py.detach(|| {
        memory::check(lent.len())?;
        let copied = lent.to_vec();
        from_bytes(&copied).map_err(error::bytes)
    })
}

pub(crate) fn from_file<F: Send>(
    py: Python<'_>,
    path: &Path,
    from_bytes: FromBytes<F>,
) -> PyResult<F> {
    py.detach(|| {
        let bytes = file::read(path)?;
        from_bytes(&bytes).map_err(|error| error::bytes_of_file(error, path))
    })
}
