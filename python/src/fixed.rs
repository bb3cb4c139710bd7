//! `everbloom.BloomFilter`.

use everbloom::{BloomFilter as Inner, ScalableBloomFilter};
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyType};

use crate::argument::{layout_of, name_of, whole};
use crate::chunks::Chunks;
use crate::class::filter_class;
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

filter_class!(BloomFilter(Inner) {
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
    /// Use it for a filter that was made for far too many items. Only in the blocked layout.
    fn shrink_to(&self, py: Python<'_>, capacity: &Bound<'_, PyAny>) -> PyResult<f64> {
        let capacity = whole(capacity, "capacity")?;
        let shrunk = self.0.detach(py, |shared| {
            shared.write(|filter| filter.shrink_to(capacity))
        });
        shrunk.map_err(error::shrink)
    }

    /// The filter in pieces, for a server: pairs of an iterator and bytes, as BF.SCANDUMP gives
    /// them and BF.LOADCHUNK takes them.
    ///
    /// There, and from ScalableBloomFilter.from_chunks, it is a filter that does not grow.
    fn chunks(&self, py: Python<'_>) -> Chunks {
        Chunks::new(ScalableBloomFilter::from(self.copy_of(py)))
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
});

/// A union, or an intersection.
type Combine = fn(&mut Inner, &Inner) -> Result<(), everbloom::UnionError>;

impl BloomFilter {
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
