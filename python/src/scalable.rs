//! `everbloom.ScalableBloomFilter`.

use everbloom::host::Layer;
use everbloom::host::LayeredFilter as Inner;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple, PyType};

use crate::argument::{error_rate, layout_of, name_of, narrow, whole};
use crate::chunks;
use crate::class::{bloom_methods, item_methods, union_method, value_methods};
use crate::error::{self, FormatError};
use crate::shared::Shared;

/// A Bloom filter that grows with its items and keeps its error rate.
///
/// ScalableBloomFilter(capacity=100, error_rate=0.01, *, expansion=2, seed=None, layout='blocked')
///
/// capacity: for how many items its first layer is made. Each further layer is made for `expansion`
///   times as many. A filter that begins with the right capacity is smaller and faster.
/// error_rate: for which part of the items that were not added `in` says True. At most 0.25.
/// seed: an int, for the same filter in every run; without a seed each filter has a secret random
///   key, so that an attacker cannot make items that collide.
/// layout: 'blocked' (fast) or 'classic' (bit for bit RedisBloom's).
#[pyclass(module = "everbloom", frozen, weakref)]
pub(crate) struct ScalableBloomFilter(Shared<Inner>);

item_methods!(ScalableBloomFilter);
value_methods!(ScalableBloomFilter, Inner);
bloom_methods!(ScalableBloomFilter, Inner);
union_method!(ScalableBloomFilter);

#[pymethods]
impl ScalableBloomFilter {
    #[new]
    #[pyo3(signature = (
        capacity=None, error_rate=0.01, *, expansion=None, seed=None, layout=None
    ))]
    #[pyo3(
        text_signature = "(capacity=100, error_rate=0.01, *, expansion=2, seed=None, \
                          layout='blocked')"
    )]
    fn new(
        py: Python<'_>,
        capacity: Option<&Bound<'_, PyAny>>,
        #[pyo3(from_py_with = error_rate)] error_rate: f64,
        expansion: Option<&Bound<'_, PyAny>>,
        seed: Option<&Bound<'_, PyAny>>,
        layout: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let mut builder = Inner::builder()
            .error_rate(error_rate)
            .layout(layout_of(layout)?);
        if let Some(capacity) = capacity {
            builder = builder.capacity(whole(capacity, "capacity")?);
        }
        if let Some(expansion) = expansion {
            builder = builder.expansion(narrow(expansion, "expansion")?);
        }
        if let Some(seed) = seed {
            builder = builder.seed(whole(seed, "seed")?);
        }
        let built = py.detach(|| builder.build());
        built.map(Self::from).map_err(error::build)
    }

    /// The filter of such pieces, from here or from a server. FormatError when some are missing.
    #[classmethod]
    fn from_chunks(_class: &Bound<'_, PyType>, chunks: &Bound<'_, PyAny>) -> PyResult<Self> {
        Self::accept(chunks::collect(chunks)?).map_err(FormatError::new_err)
    }

    /// The growth factor from one layer's capacity to the next; 0 when the filter does not grow.
    #[getter]
    fn expansion(&self, py: Python<'_>) -> u32 {
        self.0.read(py, |filter| match filter.is_fixed() {
            true => 0,
            false => filter.expansion(),
        })
    }

    /// The sum of the layers' capacities.
    #[getter]
    fn capacity(&self, py: Python<'_>) -> u64 {
        self.0.read(py, Inner::capacity)
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

impl ScalableBloomFilter {
    fn accept(filter: Inner) -> Result<Self, &'static str> {
        match filter.window() {
            None => Ok(filter.into()),
            Some(_) => Err("a filter with a window: WindowedBloomFilter reads it"),
        }
    }
}
