//! `everbloom.BloomView`.

use std::path::PathBuf;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyType};

use crate::argument::name_of;
use crate::class::lookup_methods;
use crate::error;
use crate::raw::LentView;
use crate::shared::Shared;

/// A filter in borrowed memory, such as a mapped file. Nothing is copied.
///
/// BloomView(data): of bytes, a read-only mmap, or another read-only buffer. BloomView.open(path)
/// maps a file.
///
/// The file must not change while it is open: one that becomes shorter ends the process, and one
/// with other bytes gives wrong answers. `save` and the command line replace a file as a whole, and
/// an open view keeps the old one.
#[pyclass(module = "everbloom", frozen, weakref)]
pub(crate) struct BloomView(Shared<LentView>);

lookup_methods!(BloomView);

#[pymethods]
impl BloomView {
    #[new]
    fn new(data: &Bound<'_, PyAny>) -> PyResult<Self> {
        LentView::new(data, error::bytes).map(Self::of)
    }

    /// Maps a file of save, `everbloom build` or `dedup --state` into memory. Several processes
    /// share its memory.
    #[classmethod]
    fn open(class: &Bound<'_, PyType>, path: PathBuf) -> PyResult<Self> {
        let py = class.py();
        let file = py.import("io")?.call_method1("open", (&path, "rb"))?;
        let mmap = py.import("mmap")?;
        let options = PyDict::new(py);
        options.set_item("access", mmap.getattr("ACCESS_READ")?)?;
        let number = file.call_method0("fileno")?;
        let mapped = mmap.call_method("mmap", (number, 0), Some(&options));
        file.call_method0("close")?;
        let mapped = mapped.map_err(|error| match error.is_instance_of::<PyValueError>(py) {
            true => error::in_file("the file is empty", &path),
            false => error,
        })?;
        let refuse = |error| error::bytes_of_file(error, &path);
        LentView::new(&mapped, refuse).map(Self::of)
    }

    /// Reads all bits, and raises FormatError when they were changed.
    fn verify(&self, py: Python<'_>) -> PyResult<()> {
        let verified = self
            .0
            .detach(py, |shared| shared.read(|lent| lent.view().verify()));
        verified.map_err(error::bytes)
    }

    fn __len__(&self, py: Python<'_>) -> usize {
        let len = self.0.read(py, |lent| lent.view().len());
        usize::try_from(len).unwrap_or(usize::MAX)
    }

    /// How many items the filter is made for; the sum of all layers.
    #[getter]
    fn capacity(&self, py: Python<'_>) -> u64 {
        self.0.read(py, |lent| lent.view().capacity())
    }

    /// The error rate that the filter is made for.
    #[getter]
    fn error_rate(&self, py: Python<'_>) -> f64 {
        self.0.read(py, |lent| lent.view().error_rate())
    }

    /// 'blocked' or 'classic'.
    #[getter]
    fn layout(&self, py: Python<'_>) -> &'static str {
        name_of(self.0.read(py, |lent| lent.view().layout()))
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        self.0.read(py, |lent| {
            let view = lent.view();
            format!(
                "<everbloom.BloomView: {} items, capacity {}, error rate {}>",
                view.len(),
                view.capacity(),
                view.error_rate()
            )
        })
    }
}

impl BloomView {
    fn of(view: LentView) -> BloomView {
        BloomView(Shared::new(view))
    }
}
