//! The common methods of the classes, in groups.
//!
//! Macros, because a class of PyO3 is not generic. Each group names the class and the type of the
//! filter in it.

/// Items without a time: add, update, contains.
macro_rules! item_methods {
    ($class:ident) => {
        #[pymethods]
        impl $class {
            /// Adds an item; True if it is new: `item in filter` was False before.
            fn add(&self, item: &Bound<'_, PyAny>) -> PyResult<bool> {
                $crate::batch::add(&self.0, item, 0)
            }

            /// Adds all items of iterables, arrays and columns.
            #[pyo3(signature = (*items, skip_missing=false))]
            fn update(&self, items: &Bound<'_, PyTuple>, skip_missing: bool) -> PyResult<()> {
                let task = $crate::task::Insert::<false>(0);
                $crate::batch::run_all(&self.0, items, skip_missing, task)
            }

            /// Adds all items of an iterable, an array or a column; for each one, whether it was
            /// new.
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
                let task = $crate::task::Insert::<true>(0);
                $crate::batch::run(&self.0, items, skip_missing, task)
            }
        }

        $crate::class::lookup_methods!($class);
    };
}

/// Lookups without a time.
macro_rules! lookup_methods {
    ($class:ident) => {
        #[pymethods]
        impl $class {
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
                let task = $crate::task::Contains(0);
                $crate::batch::run(&self.0, items, skip_missing, task)
            }

            fn __contains__(&self, item: &Bound<'_, PyAny>) -> PyResult<bool> {
                $crate::batch::contains(&self.0, item, 0)
            }
        }
    };
}

/// A filter as a value: its length, whether it is equal to another, copies.
macro_rules! value_methods {
    ($class:ident, $inner:ty) => {
        impl From<$inner> for $class {
            fn from(filter: $inner) -> $class {
                $class($crate::shared::Shared::new(filter))
            }
        }

        #[pymethods]
        impl $class {
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
                pyo3::IntoPyObjectExt::into_py_any(same.unwrap_or(true), py)
            }

            /// A filter like this one, with the same items.
            fn copy(&self, py: Python<'_>) -> PyResult<Self> {
                self.copy_of(py).map(Self::from)
            }

            fn __copy__(&self, py: Python<'_>) -> PyResult<Self> {
                self.copy(py)
            }

            fn __deepcopy__(&self, py: Python<'_>, _memo: &Bound<'_, PyAny>) -> PyResult<Self> {
                self.copy(py)
            }

            /// The part of the bits that are 1, or of the slots in use. Reads the whole filter.
            fn fill_ratio(&self, py: Python<'_>) -> f64 {
                self.stats(py).fill_ratio
            }

            /// The error rate to expect now. Reads the whole filter.
            fn estimated_error_rate(&self, py: Python<'_>) -> f64 {
                self.stats(py).estimated_error_rate
            }

            fn __sizeof__(&self, py: Python<'_>) -> usize {
                self.0.read(py, <$inner>::memory_usage)
            }

            /// The filter in pieces, for a server: pairs of an iterator and bytes, as BF.SCANDUMP
            /// or CF.SCANDUMP gives them and BF.LOADCHUNK or CF.LOADCHUNK takes them.
            ///
            /// The pieces hold the filter as it is now; later items are not in them. There, and
            /// from ScalableBloomFilter.from_chunks, a BloomFilter is one that does not grow.
            fn chunks(&self, py: Python<'_>) -> PyResult<$crate::chunks::Chunks> {
                self.copy_of(py).map($crate::chunks::Chunks::new)
            }
        }

        impl $class {
            /// A copy of the filter, or MemoryError.
            fn copy_of(&self, py: Python<'_>) -> PyResult<$inner> {
                self.0.detach(py, |shared| {
                    shared.read(|filter| {
                        $crate::memory::check(filter.memory_usage())?;
                        Ok(filter.clone())
                    })
                })
            }

            fn stats(&self, py: Python<'_>) -> everbloom::Stats {
                self.0
                    .detach(py, |shared| shared.read(|filter| filter.stats()))
            }
        }
    };
}

/// The methods of a filter of bits.
macro_rules! bloom_methods {
    ($class:ident, $inner:ty) => {
        $crate::class::file_methods!($class, $inner);
        $crate::class::set_methods!($class, $inner, $crate::error::build);

        #[pymethods]
        impl $class {
            /// Removes all items. The filter keeps its key and its size, or its first layer.
            fn clear(&self, py: Python<'_>) {
                self.0
                    .detach(py, |shared| shared.write(|filter| filter.clear()));
            }

            /// The error rate that the filter is made for.
            #[getter]
            fn error_rate(&self, py: Python<'_>) -> f64 {
                self.0.read(py, <$inner>::error_rate)
            }

            /// 'blocked' or 'classic'.
            #[getter]
            fn layout(&self, py: Python<'_>) -> &'static str {
                $crate::argument::name_of(self.0.read(py, <$inner>::layout))
            }

            /// How many different items were added, estimated from the bits that are 1. Reads the
            /// whole filter.
            fn estimated_len(&self, py: Python<'_>) -> u64 {
                self.stats(py).estimated_items
            }
        }

        impl $class {
            /// Adds the items of another filter.
            fn unite(&self, other: &Bound<'_, PyAny>) -> PyResult<()> {
                self.combine(Self::same_class(other)?, |filter, other| {
                    filter.union(other).map(drop)
                })
            }
        }
    };
}

/// A filter in bytes and files. The class has a function `accept` that makes it of a filter that was
/// read, or refuses.
macro_rules! file_methods {
    ($class:ident, $inner:ty) => {
        #[pymethods]
        impl $class {
            /// The filter as bytes. from_bytes and everbloom's Rust library read them.
            fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
                let bytes = self.0.detach(py, |shared| shared.read(Self::encode))?;
                $crate::memory::check(bytes.len())?;
                let copied = $crate::raw::copied(py, &bytes);
                // The system takes the pages of many bytes back for a while.
                py.detach(|| drop(bytes));
                copied
            }

            /// Reads a filter from the bytes of to_bytes. FormatError when they are not a filter.
            #[classmethod]
            fn from_bytes(_class: &Bound<'_, PyType>, data: &Bound<'_, PyAny>) -> PyResult<Self> {
                let filter = $crate::argument::from_bytes_like(data, <$inner>::from_bytes)?;
                Self::accept(filter).map_err($crate::error::FormatError::new_err)
            }

            /// Writes the filter to a file, as `everbloom build` and `dedup --state` write it. The
            /// file is replaced as a whole, or stays as it was.
            fn save(&self, py: Python<'_>, path: std::path::PathBuf) -> PyResult<()> {
                self.0.detach(py, |shared| {
                    let bytes = shared.read(Self::encode)?;
                    $crate::file::write(&path, &bytes)
                })
            }

            /// Reads a file of save, or of the command line. FormatError when the file holds
            /// something else; everbloom.load reads any kind of filter.
            #[classmethod]
            fn load(class: &Bound<'_, PyType>, path: std::path::PathBuf) -> PyResult<Self> {
                let filter = $crate::argument::from_file(class.py(), &path, <$inner>::from_bytes)?;
                Self::accept(filter).map_err(|reason| $crate::error::in_file(reason, &path))
            }

            fn __reduce__<'py>(
                this: &Bound<'py, Self>,
            ) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))> {
                let bytes = this.get().to_bytes(this.py())?;
                Ok((this.get_type().getattr("from_bytes")?, (bytes,)))
            }
        }

        impl $class {
            /// The filter as bytes, or MemoryError.
            fn encode(filter: &$inner) -> PyResult<Vec<u8>> {
                $crate::memory::check(filter.memory_usage())?;
                Ok(filter.to_bytes())
            }
        }
    };
}

/// Putting two filters together. The class has a function `unite` that adds the items of another one.
macro_rules! set_methods {
    ($class:ident, $inner:ty, $unmade:path) => {
        #[pymethods]
        impl $class {
            fn __or__(&self, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
                self.combined(other, |filter, other| filter.union(other).map(drop))
            }

            fn __ior__(&self, other: &Bound<'_, PyAny>) -> PyResult<()> {
                self.unite(other)
            }

            /// An empty filter of the same size and key: the two can be united.
            fn empty_like(&self, py: Python<'_>) -> PyResult<Self> {
                let made = self
                    .0
                    .detach(py, |shared| shared.read(|filter| filter.empty_like()));
                made.map(Self::from).map_err($unmade)
            }
        }

        impl $class {
            /// Changes the filter by another one.
            fn combine(
                &self,
                other: &Bound<'_, Self>,
                how: impl FnOnce(&mut $inner, &$inner) -> Result<(), everbloom::UnionError> + Send,
            ) -> PyResult<()> {
                let (py, other) = (other.py(), other.get());
                let combined = self
                    .0
                    .detach_both(&other.0, py, |mine, others| mine.write_with(others, how));
                // A filter with itself is itself.
                combined.unwrap_or(Ok(())).map_err($crate::error::union)
            }

            /// A new filter of both; `NotImplemented` when the other one is something else.
            fn combined(
                &self,
                other: &Bound<'_, PyAny>,
                how: fn(&mut $inner, &$inner) -> Result<(), everbloom::UnionError>,
            ) -> PyResult<Py<PyAny>> {
                let py = other.py();
                let Ok(other) = other.cast::<Self>() else {
                    return Ok(py.NotImplemented());
                };
                let new = Self::from(self.copy_of(py)?);
                new.combine(other, how)?;
                pyo3::IntoPyObjectExt::into_py_any(new, py)
            }

            fn same_class<'a, 'py>(other: &'a Bound<'py, PyAny>) -> PyResult<&'a Bound<'py, Self>> {
                other
                    .cast::<Self>()
                    .map_err(|_| $crate::error::other_class(stringify!($class), other))
            }
        }
    };
}

/// The union of filters without a time.
macro_rules! union_method {
    ($class:ident) => {
        #[pymethods]
        impl $class {
            /// A new filter with the items of this one and of the others.
            #[pyo3(signature = (*others))]
            fn union(&self, others: &Bound<'_, PyTuple>) -> PyResult<Self> {
                let new = Self::from(self.copy_of(others.py())?);
                others.iter().try_for_each(|other| new.unite(&other))?;
                Ok(new)
            }
        }
    };
}

pub(crate) use {
    bloom_methods, file_methods, item_methods, lookup_methods, set_methods, union_method,
    value_methods,
};
