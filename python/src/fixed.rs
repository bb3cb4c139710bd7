//! `everbloom.BloomFilter`.

use everbloom::BloomFilter as Inner;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple, PyType};

use crate::argument::{error_rate, layout_of, name_of, whole};
use crate::class::{bloom_methods, item_methods, union_method, value_methods};
use crate::error;
use crate::shared::Shared;

/// A Bloom filter of fixed size.
///
/// BloomFilter(capacity, error_rate=0.01, *, seed=None, layout='blocked')
///
/// capacity: for how many items it is made. It takes more, but errs more often then.
/// error_rate: for which part of the items that were not added `in` says True, when it is full.
/// seed: an int. Filters with one seed, capacity and error rate can be united; without a seed each
///   filter has a secret random key, so that an attacker cannot make items that collide.
/// layout: 'blocked' (fast) or 'classic' (bit for bit RedisBloom's).
#[pyclass(module = "everbloom", frozen, weakref)]
pub(crate) struct BloomFilter(Shared<Inner>);

item_methods!(BloomFilter);
value_methods!(BloomFilter, Inner);
bloom_methods!(BloomFilter, Inner);
union_method!(BloomFilter);

#[pymethods]
impl BloomFilter {
    #[new]
    #[pyo3(signature = (capacity, error_rate=0.01, *, seed=None, layout=None))]
    #[pyo3(text_signature = "(capacity, error_rate=0.01, *, seed=None, layout='blocked')")]
    fn new(
        py: Python<'_>,
        capacity: &Bound<'_, PyAny>,
        #[pyo3(from_py_with = error_rate)] error_rate: f64,
        seed: Option<&Bound<'_, PyAny>>,
        layout: Option<&Bound<'_, PyAny>>,
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

    fn __and__(&self, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        self.combined(other, Inner::intersect)
    }

    fn __iand__(&self, other: &Bound<'_, PyAny>) -> PyResult<()> {
        self.combine(Self::same_class(other)?, Inner::intersect)
    }

    /// Makes the filter smaller, with the same items and error rate: the smallest that has room for
    /// this many items. Returns the error rate to expect now.
    ///
    /// Use it for a filter that was made for far too many items. Its size is halved, once or several
    /// times, so the new capacity may be more than this one. A ValueError says that the filter would
    /// not become smaller, and for which capacity it would. Only in the blocked layout.
    fn shrink_to(&self, py: Python<'_>, capacity: &Bound<'_, PyAny>) -> PyResult<f64> {
        let capacity = whole(capacity, "capacity")?;
        let shrunk = self.0.detach(py, |shared| {
            shared.write(|filter| filter.shrink_to(capacity))
        });
        shrunk.map_err(error::shrink)
    }

    /// How many items the filter is made for.
    #[getter]
    fn capacity(&self, py: Python<'_>) -> u64 {
        self.0.read(py, Inner::capacity)
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

impl BloomFilter {
    #[expect(
        clippy::unnecessary_wraps,
        reason = "other classes refuse some filters"
    )]
    fn accept(filter: Inner) -> Result<Self, &'static str> {
        Ok(filter.into())
    }
}
