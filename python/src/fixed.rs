//! `everbloom.BloomFilter`.

use std::path::PathBuf;

use everbloom::{BloomFilter as Inner, ScalableBloomFilter};
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyType};

use crate::argument::{from_bytes_like, from_file, layout_of, name_of, whole};
use crate::batch::{self, Task};
use crate::chunks::Chunks;
use crate::shared::Shared;
use crate::{error, file};

/// A Bloom filter of fixed size.
///
/// BloomFilter(capacity, error_rate=0.01, *, seed=None, layout='blocked')
///
/// capacity: for how many items it is made. It takes more, but errs more often then.
/// error_rate: for which part of the items that were not added `in` says True, when it is full.
/// seed: an int. Filters with one seed, capacity and error rate can be united; without a seed each
///   filter has a secret random key, so that nobody can make items that collide.
/// layout: 'blocked' (fast) or 'classic' (bit for bit RedisBloom's).
#[pyclass(module = "everbloom", frozen, weakref)]
pub(crate) struct BloomFilter(Shared<Inner>);

impl From<Inner> for BloomFilter {
    fn from(filter: Inner) -> BloomFilter {
        BloomFilter(Shared::new(filter))
    }
}

#[pymethods]
impl BloomFilter {
    #[new]
    #[pyo3(signature = (capacity, error_rate=0.01, *, seed=None, layout="blocked"))]
    fn new(
        py: Python<'_>,
        capacity: &Bound<'_, PyAny>,
        error_rate: f64,
        seed: Option<&Bound<'_, PyAny>>,
        layout: &str,
    ) -> PyResult<Self> {
        let mut builder = Inner::builder()
            .capacity(whole(capacity, "capacity")?)
            .error_rate(error_rate)
            .layout(layout_of(layout)?);
        if let Some(seed) = seed {
            builder = builder.seed(whole(seed, "seed")?);
        }
        let built = py.detach(|| builder.build());
        built.map(Self::from).map_err(error::build)
    }

    /// Adds an item; True if it is new, which is to say that `item in filter` was False.
    fn add(&self, item: &Bound<'_, PyAny>) -> PyResult<bool> {
        batch::add(&self.0, item)
    }

    /// Adds all items of an iterable or an array.
    fn update(&self, items: &Bound<'_, PyAny>) -> PyResult<()> {
        batch::run(&self.0, items, Task::Update).map(drop)
    }

    /// Adds all items of an iterable or an array; for each one, whether it was new.
    ///
    /// The answers are a numpy array of bool for an array or a column, and a list otherwise.
    fn add_many<'py>(&self, items: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        batch::run(&self.0, items, Task::Add)
    }

    /// For each item of an iterable or an array, whether it is in the filter.
    ///
    /// The answers are a numpy array of bool for an array or a column, and a list otherwise.
    fn contains_many<'py>(&self, items: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        batch::run(&self.0, items, Task::Contains)
    }

    fn __contains__(&self, item: &Bound<'_, PyAny>) -> PyResult<bool> {
        batch::contains(&self.0, item)
    }

    fn __len__(&self, py: Python<'_>) -> usize {
        usize::try_from(self.0.read(py, Inner::len)).unwrap_or(usize::MAX)
    }

    fn __or__(&self, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        self.combined(other, |filter, other| filter.union(other))
    }

    fn __and__(&self, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        self.combined(other, |filter, other| filter.intersect(other))
    }

    fn __ior__(&self, other: &Bound<'_, PyAny>) -> PyResult<()> {
        self.combine(other_filter(other)?, |filter, other| filter.union(other))
    }

    fn __iand__(&self, other: &Bound<'_, PyAny>) -> PyResult<()> {
        self.combine(other_filter(other)?, |filter, other| {
            filter.intersect(other)
        })
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

    /// Removes all items. The filter keeps its size and its key.
    fn clear(&self, py: Python<'_>) {
        self.0
            .detach(py, |shared| shared.write(|filter| filter.clear()));
    }

    /// A filter like this one, with the same items.
    fn copy(&self, py: Python<'_>) -> Self {
        self.0.detach(py, |shared| shared.read(Inner::clone)).into()
    }

    fn __copy__(&self, py: Python<'_>) -> Self {
        self.copy(py)
    }

    fn __deepcopy__(&self, py: Python<'_>, _memo: &Bound<'_, PyAny>) -> Self {
        self.copy(py)
    }

    /// An empty filter of the same size and key: the two can be united and intersected.
    fn empty_like(&self, py: Python<'_>) -> PyResult<Self> {
        let made = self
            .0
            .detach(py, |shared| shared.read(|filter| filter.empty_like()));
        made.map(Self::from).map_err(error::build)
    }

    /// Makes the filter smaller: as large as one of this capacity and the same error rate, about,
    /// with the same items. Returns the error rate to expect now.
    ///
    /// For a filter that was made for far too many items. Only in the blocked layout.
    fn shrink_to(&self, py: Python<'_>, capacity: &Bound<'_, PyAny>) -> PyResult<f64> {
        let capacity = whole(capacity, "capacity")?;
        let shrunk = self.0.detach(py, |shared| {
            shared.write(|filter| filter.shrink_to(capacity))
        });
        shrunk.map_err(error::shrink)
    }

    /// The filter as bytes, which from_bytes reads, and everbloom's Rust library.
    fn to_bytes<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        let bytes = self
            .0
            .detach(py, |shared| shared.read(|filter| filter.to_bytes()));
        PyBytes::new(py, &bytes)
    }

    /// The filter that to_bytes made into these bytes. FormatError when they are not one.
    #[classmethod]
    fn from_bytes(_class: &Bound<'_, PyType>, data: &Bound<'_, PyAny>) -> PyResult<Self> {
        from_bytes_like::<Inner>(data).map(Self::from)
    }

    /// Writes the filter to a file. The file is replaced as a whole, or stays as it was.
    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        self.0.detach(py, |shared| {
            let bytes = shared.read(|filter| filter.to_bytes());
            file::write(&path, &bytes)
        })
    }

    /// The filter that save wrote. FormatError when the file holds something else.
    #[classmethod]
    fn load(class: &Bound<'_, PyType>, path: PathBuf) -> PyResult<Self> {
        from_file::<Inner>(class.py(), &path).map(Self::from)
    }

    fn __reduce__<'py>(
        this: &Bound<'py, Self>,
    ) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))> {
        let bytes = this.get().to_bytes(this.py());
        Ok((this.get_type().getattr("from_bytes")?, (bytes,)))
    }

    /// The filter in pieces, for a server: pairs of an iterator and bytes, as BF.SCANDUMP gives
    /// them and BF.LOADCHUNK takes them.
    ///
    /// There, and from ScalableBloomFilter.from_chunks, it is a filter that does not grow.
    fn chunks(&self, py: Python<'_>) -> Chunks {
        Chunks::new(ScalableBloomFilter::from(self.copy_of(py)))
    }

    /// How many items it is made for.
    #[getter]
    fn capacity(&self, py: Python<'_>) -> u64 {
        self.0.read(py, Inner::capacity)
    }

    /// The error rate when it holds as many items as its capacity.
    #[getter]
    fn error_rate(&self, py: Python<'_>) -> f64 {
        self.0.read(py, Inner::error_rate)
    }

    /// Length of the bit array in bits.
    #[getter]
    fn bits(&self, py: Python<'_>) -> u64 {
        self.0.read(py, Inner::bits)
    }

    /// Bits set by an item.
    #[getter]
    fn hashes(&self, py: Python<'_>) -> u32 {
        self.0.read(py, Inner::hashes)
    }

    /// 'blocked' or 'classic'.
    #[getter]
    fn layout(&self, py: Python<'_>) -> &'static str {
        name_of(self.0.read(py, Inner::layout))
    }

    /// The part of the bits that are 1. Reads the whole filter.
    fn fill_ratio(&self, py: Python<'_>) -> f64 {
        self.0
            .detach(py, |shared| shared.read(|filter| filter.fill_ratio()))
    }

    /// The error rate to expect now, from the bits that are 1. Reads the whole filter.
    fn estimated_error_rate(&self, py: Python<'_>) -> f64 {
        self.0.detach(py, |shared| {
            shared.read(|filter| filter.estimated_error_rate())
        })
    }

    /// How many different items were added, estimated from the bits that are 1. Reads the whole
    /// filter.
    fn estimated_len(&self, py: Python<'_>) -> u64 {
        self.0
            .detach(py, |shared| shared.read(|filter| filter.estimated_len()))
    }

    fn __sizeof__(&self, py: Python<'_>) -> usize {
        self.0.read(py, Inner::memory_usage)
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        self.0.read(py, |filter| {
            format!(
                "<everbloom.BloomFilter: {} items, capacity {}, error rate {}, {}>",
                filter.len(),
                filter.capacity(),
                filter.error_rate(),
                name_of(filter.layout())
            )
        })
    }
}

/// A union, or an intersection.
type Combine = fn(&mut Inner, &Inner) -> Result<(), everbloom::UnionError>;

impl BloomFilter {
    fn copy_of(&self, py: Python<'_>) -> Inner {
        self.0.detach(py, |shared| shared.read(Inner::clone))
    }

    /// Changes the filter by another one.
    fn combine(&self, other: &Bound<'_, Self>, how: Combine) -> PyResult<()> {
        let (py, other) = (other.py(), other.get());
        let combined = self
            .0
            .detach_both(&other.0, py, |mine, others| mine.write_with(others, how));
        // A filter with itself is itself.
        combined.unwrap_or(Ok(())).map_err(error::union)
    }

    /// A new filter of both; `NotImplemented` when the other one is something else.
    fn combined(&self, other: &Bound<'_, PyAny>, how: Combine) -> PyResult<Py<PyAny>> {
        let py = other.py();
        let Ok(other) = other.cast::<Self>() else {
            return Ok(py.NotImplemented());
        };
        let new = Self::from(self.copy_of(py));
        new.combine(other, how)?;
        new.into_py_any(py)
    }
}

fn other_filter<'a, 'py>(other: &'a Bound<'py, PyAny>) -> PyResult<&'a Bound<'py, BloomFilter>> {
    other.cast::<BloomFilter>().map_err(|_| {
        let name = other.get_type().to_string();
        PyTypeError::new_err(format!(
            "a BloomFilter can be put together with a BloomFilter, not with {name}: to add items, \
             use update"
        ))
    })
}
