//! `everbloom.ScalableBloomFilter`.

use std::path::PathBuf;

use everbloom::{Layer, ScalableBloomFilter as Inner};
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::PyOverflowError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyType};

use crate::argument::{from_bytes_like, from_file, layout_of, name_of, whole};
use crate::batch::{self, Task};
use crate::chunks::{self, Chunks};
use crate::shared::Shared;
use crate::{error, file};

/// A Bloom filter that grows with its items and keeps its error rate.
///
/// ScalableBloomFilter(capacity=100, error_rate=0.01, *, expansion=2, seed=None, layout='blocked')
///
/// capacity: for how many items its first layer is made. Each further layer is made for `expansion`
///   times as many. A filter that begins with the right capacity is smaller and faster.
/// error_rate: for which part of the items that were not added `in` says True. At most 0.25.
/// seed: an int, for the same filter in every run; without a seed each filter has a secret random
///   key, so that nobody can make items that collide.
/// layout: 'blocked' (fast) or 'classic' (bit for bit RedisBloom's).
#[pyclass(module = "everbloom", frozen, weakref)]
pub(crate) struct ScalableBloomFilter(Shared<Inner>);

impl From<Inner> for ScalableBloomFilter {
    fn from(filter: Inner) -> ScalableBloomFilter {
        ScalableBloomFilter(Shared::new(filter))
    }
}

#[pymethods]
impl ScalableBloomFilter {
    #[new]
    #[pyo3(signature = (
        capacity=None, error_rate=0.01, *, expansion=None, seed=None, layout="blocked"
    ))]
    #[pyo3(
        text_signature = "(capacity=100, error_rate=0.01, *, expansion=2, seed=None, \
                          layout='blocked')"
    )]
    fn new(
        py: Python<'_>,
        capacity: Option<&Bound<'_, PyAny>>,
        error_rate: f64,
        expansion: Option<&Bound<'_, PyAny>>,
        seed: Option<&Bound<'_, PyAny>>,
        layout: &str,
    ) -> PyResult<Self> {
        let mut builder = Inner::builder()
            .error_rate(error_rate)
            .layout(layout_of(layout)?);
        if let Some(capacity) = capacity {
            builder = builder.capacity(whole(capacity, "capacity")?);
        }
        if let Some(expansion) = expansion {
            let expansion = u32::try_from(whole(expansion, "expansion")?)
                .map_err(|_| PyOverflowError::new_err("the expansion is 2**32 or more"))?;
            builder = builder.expansion(expansion);
        }
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

    /// Removes all items. The filter keeps its key and its first layer.
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
    /// It is the filter of this moment, whatever is added to it later.
    fn chunks(&self, py: Python<'_>) -> Chunks {
        Chunks::new(self.0.detach(py, |shared| shared.read(Inner::clone)))
    }

    /// The filter of such pieces, from here or from a server. FormatError when some are missing.
    #[classmethod]
    fn from_chunks(_class: &Bound<'_, PyType>, chunks: &Bound<'_, PyAny>) -> PyResult<Self> {
        chunks::collect(chunks).map(Self::from)
    }

    /// How many items the layers are made for, together.
    #[getter]
    fn capacity(&self, py: Python<'_>) -> u64 {
        self.0.read(py, Inner::capacity)
    }

    /// The error rate that it keeps.
    #[getter]
    fn error_rate(&self, py: Python<'_>) -> f64 {
        self.0.read(py, Inner::error_rate)
    }

    /// How many times the items of a layer the next one is made for; 0 when it does not grow.
    #[getter]
    fn expansion(&self, py: Python<'_>) -> u32 {
        self.0.read(py, |filter| match filter.is_fixed() {
            true => 0,
            false => filter.expansion(),
        })
    }

    /// How many layers there are.
    #[getter]
    fn layers(&self, py: Python<'_>) -> usize {
        self.0.read(py, |filter| filter.layers().len())
    }

    /// Length of the bit arrays in bits.
    #[getter]
    fn bits(&self, py: Python<'_>) -> u64 {
        self.0.read(py, Inner::stream_len).saturating_mul(8)
    }

    /// Bits set by an item, for each layer, oldest first.
    #[getter]
    fn hashes(&self, py: Python<'_>) -> Vec<u32> {
        let hashes = |filter: &Inner| filter.layers().iter().map(Layer::hashes).collect();
        self.0.read(py, hashes)
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
                "<everbloom.ScalableBloomFilter: {} items in {} layers, capacity {}, \
                 error rate {}, {}>",
                filter.len(),
                filter.layers().len(),
                filter.capacity(),
                filter.error_rate(),
                name_of(filter.layout())
            )
        })
    }
}
