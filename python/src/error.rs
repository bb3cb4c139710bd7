//! Errors of the crate as Python's exceptions.

use std::path::Path;

use everbloom::bytes::BytesError;
use everbloom::redisbloom::CuckooError;
use everbloom::redisbloom::PartsError;
use everbloom::{BuildError, InsertError, ShrinkError, UnionError};
use pyo3::exceptions::{
    PyBufferError, PyMemoryError, PyOverflowError, PyTypeError, PyUnicodeEncodeError, PyValueError,
};
use pyo3::prelude::*;

pyo3::create_exception!(
    everbloom,
    FormatError,
    PyValueError,
    "Bytes, a file or chunks are not a filter: damaged, cut off, or of another kind."
);

pub(crate) fn build(error: BuildError) -> PyErr {
    match error {
        BuildError::TooLarge { .. } | BuildError::OutOfMemory { .. } => {
            PyMemoryError::new_err(error.to_string())
        }
        BuildError::UnexpectedKey => {
            PyValueError::new_err("a seed is for the blocked layout: the classic one has no key")
        }
        _ => PyValueError::new_err(error.to_string()),
    }
}

pub(crate) fn cuckoo(error: CuckooError) -> PyErr {
    match error {
        CuckooError::OutOfMemory | CuckooError::TooLarge { .. } => {
            PyMemoryError::new_err(error.to_string())
        }
        _ => PyValueError::new_err(error.to_string()),
    }
}

pub(crate) fn insert(error: InsertError) -> PyErr {
    match error {
        InsertError::Full | InsertError::CannotGrow | InsertError::Copies => {
            PyValueError::new_err(error.to_string())
        }
        InsertError::OutOfMemory { .. } => PyMemoryError::new_err(error.to_string()),
    }
}

/// The error of an item that is in this row.
pub(crate) fn in_row(py: Python<'_>, error: PyErr, row: usize) -> PyErr {
    if error.is_instance_of::<PyUnicodeEncodeError>(py) {
        // Its text is made of its fields.
        let value = error.value(py);
        let reason = value.getattr("reason").map(|reason| reason.to_string());
        let reason = format!(
            "{}, in row {row}, counted from 0",
            reason.unwrap_or_default()
        );
        // An error without the row is better than none.
        let _ = value.setattr("reason", reason);
        return error;
    }
    let type_ = error.get_type(py);
    let is_ours = [
        py.get_type::<PyTypeError>(),
        py.get_type::<PyValueError>(),
        py.get_type::<PyOverflowError>(),
        py.get_type::<PyBufferError>(),
    ];
    if !is_ours.iter().any(|ours| ours.is(&type_)) {
        return error;
    }
    let text = format!("row {row}, counted from 0: {}", error.value(py));
    PyErr::from_type(type_, text)
}

pub(crate) fn shrink(error: ShrinkError) -> PyErr {
    match error {
        ShrinkError::Build(error) => build(error),
        _ => PyValueError::new_err(error.to_string()),
    }
}

pub(crate) fn union(error: UnionError) -> PyErr {
    match error {
        UnionError::OutOfMemory => PyMemoryError::new_err(error.to_string()),
        _ => PyValueError::new_err(error.to_string()),
    }
}

pub(crate) fn bytes(error: BytesError) -> PyErr {
    match error {
        BytesError::Parts(error) => parts(error),
        BytesError::Kind => FormatError::new_err(ANOTHER_KIND),
        BytesError::CriticalNote => FormatError::new_err(CHANGED),
        _ => FormatError::new_err(error.to_string()),
    }
}

const ANOTHER_KIND: &str =
    "the bytes of another kind of filter: everbloom.load reads a file of any kind";

/// What has a critical note in front.
const CHANGED: &str = "items were changed before they were added, as with --ignore-case, and Python \
                       would look them up as they are: ask the file with `everbloom check`, or \
                       build it without";

/// The same for the bytes of a file.
pub(crate) fn bytes_of_file(error: BytesError, path: &Path) -> PyErr {
    match error {
        BytesError::Parts(PartsError::OutOfMemory | PartsError::TooLarge { .. }) => bytes(error),
        BytesError::Parts(error) => in_file(&error.to_string(), path),
        BytesError::Kind => in_file(ANOTHER_KIND, path),
        BytesError::CriticalNote => in_file(CHANGED, path),
        _ => in_file(&error.to_string(), path),
    }
}

/// Why a file is not such a filter.
pub(crate) fn in_file(reason: &str, path: &Path) -> PyErr {
    FormatError::new_err(format!("{}: {reason}", path.display()))
}

pub(crate) fn parts(error: PartsError) -> PyErr {
    match error {
        PartsError::OutOfMemory | PartsError::TooLarge { .. } => {
            PyMemoryError::new_err(error.to_string())
        }
        _ => FormatError::new_err(error.to_string()),
    }
}

/// A filter and something else cannot be united.
pub(crate) fn other_class(class: &str, other: &Bound<'_, PyAny>) -> PyErr {
    PyTypeError::new_err(format!(
        "a {class} can be put together with a {class}, not with {}: to add items, use update",
        other.get_type()
    ))
}
