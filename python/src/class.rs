//! The common methods of both classes of filters.

/// The methods of a class of filters: those in braces, and those that both classes have.
///
/// A macro, because a class of PyO3 is neither generic nor has methods from two places.
macro_rules! filter_class {
    ($class:ident($inner:ty) { $($own:tt)* }) => {
        impl From<$inner> for $class {
            fn from(filter: $inner) -> $class {
                $class($crate::shared::Shared::new(filter))
            }
        }

        #[pymethods]
        impl $class {
            $($own)*

            /// Adds an item; True if it is new: `item in filter` was False before.
            fn add(&self, item: &Bound<'_, PyAny>) -> PyResult<bool> {
                $crate::batch::add(&self.0, item)
            }

            /// Adds all items of an iterable, an array or a column.
            #[pyo3(signature = (items, *, skip_missing=false))]
            fn update(&self, items: &Bound<'_, PyAny>, skip_missing: bool) -> PyResult<()> {
                $crate::batch::run(&self.0, items, skip_missing, $crate::batch::Task::Update)
                    .map(drop)
            }

            /// Adds all items of an iterable, an array or a column; for each one, whether it was new.
            ///
            /// The answers are a numpy array of bool for an array or a column, and a list
            /// otherwise. A row without a value is an error before anything is done, or False
            /// with skip_missing.
            #[pyo3(signature = (items, *, skip_missing=false))]
            fn add_many<'py>(
                &self,
                items: &Bound<'py, PyAny>,
                skip_missing: bool,
            ) -> PyResult<Bound<'py, PyAny>> {
                $crate::batch::run(&self.0, items, skip_missing, $crate::batch::Task::Add)
            }

            /// For each item of an iterable, an array or a column, whether it is in the filter.
            ///
            /// The answers are a numpy array of bool for an array or a column, and a list
            /// otherwise. A row without a value is an error before anything is done, or False
            /// with skip_missing.
            #[pyo3(signature = (items, *, skip_missing=false))]
            fn contains_many<'py>(
                &self,
                items: &Bound<'py, PyAny>,
                skip_missing: bool,
            ) -> PyResult<Bound<'py, PyAny>> {
                $crate::batch::run(&self.0, items, skip_missing, $crate::batch::Task::Contains)
            }

            fn __contains__(&self, item: &Bound<'_, PyAny>) -> PyResult<bool> {
                $crate::batch::contains(&self.0, item)
            }

            fn __len__(&self, py: Python<'_>) -> usize {
                usize::try_from(self.0.read(py, <$inner>::len)).unwrap_or(usize::MAX)
            }

            fn __eq__(&self, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
                let py = other.py();
                let Ok(other) = other.cast::<Self>() else {
                    return Ok(py.NotImplemented());
                };
                let other = other.get();
                let same = self.0.detach_both(&other.0, py, |mine, others| {
                    mine.read_with(others, |mine, others| mine == others)
                });
                // Or they are one.
                same.unwrap_or(true).into_py_any(py)
            }

            /// Removes all items. The filter keeps its key and its size, or its first layer.
            fn clear(&self, py: Python<'_>) {
                self.0
                    .detach(py, |shared| shared.write(|filter| filter.clear()));
            }

            /// A filter like this one, with the same items.
            fn copy(&self, py: Python<'_>) -> Self {
                self.copy_of(py).into()
            }

            fn __copy__(&self, py: Python<'_>) -> Self {
                self.copy(py)
            }

            fn __deepcopy__(&self, py: Python<'_>, _memo: &Bound<'_, PyAny>) -> Self {
                self.copy(py)
            }

            /// The filter as bytes. from_bytes and everbloom's Rust library read them.
            fn to_bytes<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
                let bytes = self
                    .0
                    .detach(py, |shared| shared.read(|filter| filter.to_bytes()));
                PyBytes::new(py, &bytes)
            }

            /// Reads a filter from the bytes of to_bytes. FormatError when they are not a filter.
            #[classmethod]
            fn from_bytes(_class: &Bound<'_, PyType>, data: &Bound<'_, PyAny>) -> PyResult<Self> {
                $crate::argument::from_bytes_like::<$inner>(data).map(Self::from)
            }

            /// Writes the filter to a file. The file is replaced as a whole, or stays as it was.
            fn save(&self, py: Python<'_>, path: std::path::PathBuf) -> PyResult<()> {
                self.0.detach(py, |shared| {
                    let bytes = shared.read(|filter| filter.to_bytes());
                    $crate::file::write(&path, &bytes)
                })
            }

            /// Reads a filter that save wrote. FormatError when the file holds something else.
            #[classmethod]
            fn load(class: &Bound<'_, PyType>, path: std::path::PathBuf) -> PyResult<Self> {
                $crate::argument::from_file::<$inner>(class.py(), &path).map(Self::from)
            }

            fn __reduce__<'py>(
                this: &Bound<'py, Self>,
            ) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))> {
                let bytes = this.get().to_bytes(this.py());
                Ok((this.get_type().getattr("from_bytes")?, (bytes,)))
            }

            /// How many items the filter is made for; the sum of all layers if it grows.
            #[getter]
            fn capacity(&self, py: Python<'_>) -> u64 {
                self.0.read(py, <$inner>::capacity)
            }

            /// The error rate when it holds as many items as its capacity; a filter that grows
            /// keeps it at any size.
            #[getter]
            fn error_rate(&self, py: Python<'_>) -> f64 {
                self.0.read(py, <$inner>::error_rate)
            }

            /// 'blocked' or 'classic'.
            #[getter]
            fn layout(&self, py: Python<'_>) -> &'static str {
                $crate::argument::name_of(self.0.read(py, <$inner>::layout))
            }

            /// The part of the bits that are 1. Reads the whole filter.
            fn fill_ratio(&self, py: Python<'_>) -> f64 {
                self.stats(py).fill_ratio
            }

            /// The error rate to expect now, from the bits that are 1. Reads the whole filter.
            fn estimated_error_rate(&self, py: Python<'_>) -> f64 {
                self.stats(py).estimated_error_rate
            }

            /// How many different items were added, estimated from the bits that are 1. Reads the
            /// whole filter.
            fn estimated_len(&self, py: Python<'_>) -> u64 {
                self.stats(py).estimated_items
            }

            fn __sizeof__(&self, py: Python<'_>) -> usize {
                self.0.read(py, <$inner>::memory_usage)
            }
        }

        impl $class {
            fn copy_of(&self, py: Python<'_>) -> $inner {
                self.0.detach(py, |shared| shared.read(<$inner>::clone))
            }

            fn stats(&self, py: Python<'_>) -> everbloom::Stats {
                self.0
                    .detach(py, |shared| shared.read(|filter| filter.stats()))
            }
        }
    };
}

pub(crate) use filter_class;
