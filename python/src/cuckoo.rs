//! `everbloom.CuckooFilter`.

use std::ptr;

use everbloom::CuckooFilter as Inner;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple, PyType};

use crate::argument::{self, narrow, whole};
use crate::chunks;
use crate::class::{file_methods, item_methods, set_methods, union_method, value_methods};
use crate::error;
use crate::item::Value;
use crate::shared::Shared;

/// A cuckoo filter: items can be removed. With an error rate it keeps that rate, also when it grows.
/// Without one it is RedisBloom's, byte for byte.
///
/// CuckooFilter(capacity, error_rate, *, seed=None, expansion=2)
/// CuckooFilter(capacity=None, *, slots=1024, bucket_size=2, max_kicks=20, expansion=1)
///
/// capacity: how many items the first table is expected to take. It grows by further tables.
/// error_rate: for which part of the items that were not added `in` says True.
/// seed: an int for a filter with an error rate; without a seed each has a random key.
/// slots: the slots of the first table instead, as CF.RESERVE counts them.
/// bucket_size: slots of a bucket. `in` says True for about bucket_size / 128 of the items that
///   were not added, in each table.
/// max_kicks: how many items are moved to free a slot for one.
/// expansion: how many times as large as a table the next one is; 0: the filter does not grow.
///
/// Remove only items that were added: another one may take an item of the filter with it.
#[pyclass(module = "everbloom", frozen, weakref)]
pub(crate) struct CuckooFilter(Shared<Inner>);

item_methods!(CuckooFilter);
value_methods!(CuckooFilter, Inner);
file_methods!(CuckooFilter, Inner);
set_methods!(CuckooFilter, Inner, error::cuckoo);
union_method!(CuckooFilter);

#[pymethods]
impl CuckooFilter {
    #[new]
    #[pyo3(signature = (
        capacity=None, error_rate=None, *, seed=None, slots=None, bucket_size=None, max_kicks=None,
        expansion=None
    ))]
    #[pyo3(
        text_signature = "(capacity=None, error_rate=None, *, seed=None, slots=None, \
                             bucket_size=None, max_kicks=None, expansion=None)"
    )]
    #[expect(clippy::too_many_arguments, reason = "they are keywords in Python")]
    fn new(
        py: Python<'_>,
        capacity: Option<&Bound<'_, PyAny>>,
        error_rate: Option<&Bound<'_, PyAny>>,
        seed: Option<&Bound<'_, PyAny>>,
        slots: Option<&Bound<'_, PyAny>>,
        bucket_size: Option<&Bound<'_, PyAny>>,
        max_kicks: Option<&Bound<'_, PyAny>>,
        expansion: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let mut builder = Inner::builder();
        match (capacity, slots) {
            (None, None) => {}
            (Some(items), None) => builder = builder.capacity(whole(items, "capacity")?),
            (None, Some(slots)) => builder = builder.slots(whole(slots, "number of slots")?),
            (Some(_), Some(_)) => {
                return Err(PyValueError::new_err("take a capacity or slots, not both"));
            }
        }
        if let Some(rate) = error_rate {
            builder = builder.error_rate(argument::error_rate(rate)?);
        }
        if let Some(seed) = seed {
            builder = builder.seed(whole(seed, "seed")?);
        }
        if let Some(bucket_size) = bucket_size {
            builder = builder.bucket_size(narrow(bucket_size, "bucket size")?);
        }
        if let Some(max_kicks) = max_kicks {
            builder = builder.max_kicks(narrow(max_kicks, "number of kicks")?);
        }
        if let Some(expansion) = expansion {
            builder = builder.expansion(narrow(expansion, "expansion")?);
        }
        let built = py.detach(|| builder.build());
        built.map(Self::from).map_err(error::cuckoo)
    }

    /// Removes an item once; False when it is not there. Only for items that were added.
    fn remove(&self, item: &Bound<'_, PyAny>) -> PyResult<bool> {
        let value = Value::of(item.as_borrowed())?;
        Ok(self.0.write(item.py(), |filter| filter.remove(&value)))
    }

    /// How often the item was added and not removed, or more.
    fn count(&self, item: &Bound<'_, PyAny>) -> PyResult<u64> {
        let value = Value::of(item.as_borrowed())?;
        Ok(self.0.read(item.py(), |filter| filter.count(&value)))
    }

    /// The filter of such pieces, from here or from a server. FormatError when some are missing.
    #[classmethod]
    fn from_chunks(_class: &Bound<'_, PyType>, chunks: &Bound<'_, PyAny>) -> PyResult<Self> {
        chunks::collect::<Inner>(chunks).map(Self::from)
    }

    /// The error rate that was asked for; None in a filter of RedisBloom's kind.
    #[getter]
    fn error_rate(&self, py: Python<'_>) -> Option<f64> {
        self.0.read(py, |filter| filter.stats().error_rate)
    }

    /// How many items the tables take before the filter grows.
    #[getter]
    fn capacity(&self, py: Python<'_>) -> u64 {
        self.0.read(py, Inner::capacity)
    }

    /// How many times as large as a table the next one is; 0: the filter does not grow.
    #[getter]
    fn expansion(&self, py: Python<'_>) -> u16 {
        self.0.read(py, Inner::expansion)
    }

    /// The slots of all tables. With an error rate 19 of 20 are used at most: see `capacity`.
    #[getter]
    fn slots(&self, py: Python<'_>) -> u64 {
        self.0.read(py, Inner::slots)
    }

    /// How many tables there are.
    #[getter]
    fn tables(&self, py: Python<'_>) -> usize {
        self.0.read(py, Inner::tables)
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        self.0.read(py, |filter| {
            let (items, slots) = (filter.len(), filter.slots());
            format!("<everbloom.CuckooFilter: {items} items, {slots} slots>")
        })
    }
}

impl CuckooFilter {
    /// Adds the items of another filter: what is in both is there twice.
    fn unite(&self, other: &Bound<'_, PyAny>) -> PyResult<()> {
        let (py, other) = (other.py(), Self::same_class(other)?);
        if !ptr::eq(self, other.get()) {
            return self.combine(other, Inner::union);
        }
        let copy = Bound::new(py, self.copy(py)?)?;
        self.combine(&copy, Inner::union)
    }

    #[expect(
        clippy::unnecessary_wraps,
        reason = "other classes refuse some filters"
    )]
    fn accept(filter: Inner) -> Result<Self, &'static str> {
        Ok(filter.into())
    }
}
