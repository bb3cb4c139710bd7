//! `everbloom.WindowedBloomFilter`.

use everbloom::Span;
use everbloom::host::LayeredFilter as Inner;
use everbloom::host::Window;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple, PyType};

use crate::argument::{error_rate, generations, whole};
use crate::batch;
use crate::chunks;
use crate::class::{bloom_methods, value_methods};
use crate::error::{self, FormatError};
use crate::shared::Shared;
use crate::task::{Contains, Insert};

/// A Bloom filter that remembers the items of a window, and forgets older ones.
///
/// WindowedBloomFilter(capacity, error_rate=0.01, *, ticks=None, generations=4, seed=None)
///
/// capacity: how many different items a window has.
/// error_rate: for which part of the items that are not in the window `in` says True.
/// ticks: how long the window is, in units of the caller's clock, such as seconds. Every method
///   then takes the time as `now`, an int. Without ticks, the last `capacity` items are remembered.
/// generations: the window moves in so many steps, or more if they do not divide it. An item may be
///   found for one step longer.
/// seed: an int, for the same filter in every run; without a seed each filter has a secret random
///   key, so that an attacker cannot make items that collide.
///
/// What was added within the window is always found. An item that comes again is remembered from
/// then on.
#[pyclass(module = "everbloom", frozen, weakref)]
pub(crate) struct WindowedBloomFilter(Shared<Inner>);

value_methods!(WindowedBloomFilter, Inner);
bloom_methods!(WindowedBloomFilter, Inner);

#[pymethods]
impl WindowedBloomFilter {
    #[new]
    #[pyo3(signature = (capacity, error_rate=0.01, *, ticks=None, generations=4, seed=None))]
    fn new(
        py: Python<'_>,
        capacity: &Bound<'_, PyAny>,
        #[pyo3(from_py_with = error_rate)] error_rate: f64,
        ticks: Option<&Bound<'_, PyAny>>,
        #[pyo3(from_py_with = generations)] generations: u32,
        seed: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let span = match ticks {
            Some(ticks) => Span::Ticks(whole(ticks, "number of ticks")?),
            None => Span::Items,
        };
        let mut builder = Inner::builder()
            .capacity(whole(capacity, "capacity")?)
            .error_rate(error_rate)
            .window(span, generations, 0);
        if let Some(seed) = seed {
            builder = builder.seed(whole(seed, "seed")?);
        }
        let built = py.detach(|| builder.build());
        built.map(Self::from).map_err(error::build)
    }

    /// Adds an item at a time; True if it was not in the window. Either way, it is remembered from
    /// now on.
    #[pyo3(signature = (item, now=None))]
    fn add(&self, item: &Bound<'_, PyAny>, now: Option<&Bound<'_, PyAny>>) -> PyResult<bool> {
        batch::add(&self.0, item, self.time(item.py(), now)?)
    }

    /// Adds all items of iterables, arrays and columns.
    #[pyo3(signature = (*items, now=None, skip_missing=false))]
    fn update(
        &self,
        items: &Bound<'_, PyTuple>,
        now: Option<&Bound<'_, PyAny>>,
        skip_missing: bool,
    ) -> PyResult<()> {
        let task = Insert::<false>(self.time(items.py(), now)?);
        batch::run_all(&self.0, items, skip_missing, task)
    }

    /// Adds all items of an iterable, an array or a column; for each one, whether it was new in
    /// the window.
    #[pyo3(signature = (items, now=None, *, skip_missing=false))]
    fn add_many<'py>(
        &self,
        items: &Bound<'py, PyAny>,
        now: Option<&Bound<'_, PyAny>>,
        skip_missing: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let task = Insert::<true>(self.time(items.py(), now)?);
        batch::run(&self.0, items, skip_missing, task)
    }

    /// Whether an item is in the window: False is certain.
    #[pyo3(signature = (item, now=None))]
    fn contains(&self, item: &Bound<'_, PyAny>, now: Option<&Bound<'_, PyAny>>) -> PyResult<bool> {
        batch::contains(&self.0, item, self.time(item.py(), now)?)
    }

    /// For each item of an iterable, an array or a column, whether it is in the window.
    #[pyo3(signature = (items, now=None, *, skip_missing=false))]
    fn contains_many<'py>(
        &self,
        items: &Bound<'py, PyAny>,
        now: Option<&Bound<'_, PyAny>>,
        skip_missing: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let task = Contains(self.time(items.py(), now)?);
        batch::run(&self.0, items, skip_missing, task)
    }

    /// Only for a window without ticks: `in` cannot say the time.
    fn __contains__(&self, item: &Bound<'_, PyAny>) -> PyResult<bool> {
        self.contains(item, None)
    }

    /// Begins so many generations, whatever the clock and the number of items say, and forgets
    /// those that are too old then.
    #[pyo3(signature = (count=None, now=None))]
    #[pyo3(text_signature = "($self, count=1, now=None)")]
    fn advance(
        &self,
        py: Python<'_>,
        count: Option<&Bound<'_, PyAny>>,
        now: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let count = count.map_or(Ok(1), |count| whole(count, "count"))?;
        let now = self.time(py, now)?;
        let advanced = self.0.detach(py, |shared| {
            shared.write(|filter| filter.advance(count, now))
        });
        advanced.map_err(error::insert)
    }

    /// A new filter with the items of this one and of the others. At a time, filters that a wrong
    /// clock has moved ahead of it begin again, and do not move the other ones ahead.
    #[pyo3(signature = (*others, now=None))]
    fn union(&self, others: &Bound<'_, PyTuple>, now: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        // Without a time, every filter's clock is taken to be right.
        let now = now.map_or(Ok(u64::MAX), |now| whole(now, "time"))?;
        let new = Self::from(self.copy_of(others.py())?);
        others.iter().try_for_each(|other| {
            new.combine(Self::same_class(&other)?, |filter, other| {
                filter.union_at(other, now).map(drop)
            })
        })?;
        Ok(new)
    }

    /// The filter of such pieces, from here or from a server. FormatError when some are missing.
    #[classmethod]
    fn from_chunks(_class: &Bound<'_, PyType>, chunks: &Bound<'_, PyAny>) -> PyResult<Self> {
        Self::accept(chunks::collect(chunks)?).map_err(FormatError::new_err)
    }

    /// How many different items a window has.
    #[getter]
    fn capacity(&self, py: Python<'_>) -> u64 {
        self.window(py, |window| window.capacity).unwrap_or(0)
    }

    /// How long the window is; None when it is the last `capacity` items.
    #[getter]
    fn ticks(&self, py: Python<'_>) -> Option<u64> {
        self.window(py, |window| window.span.ticks()).flatten()
    }

    /// In how many steps the window moves.
    #[getter]
    fn generations(&self, py: Python<'_>) -> u32 {
        self.window(py, |window| window.generations).unwrap_or(0)
    }

    /// The generations that are kept, oldest first: when each began, and how many items entered
    /// it.
    fn kept(&self, py: Python<'_>) -> Vec<(u64, u64)> {
        self.0.read(py, |filter| {
            let mut layers = filter.layers().iter();
            let kept = filter.window().map(|window| window.kept.iter());
            let kept = kept.into_iter().flatten();
            kept.map(|generation| {
                let own = layers.by_ref().take(generation.layers as usize);
                (generation.began, own.map(everbloom::host::Layer::len).sum())
            })
            .collect()
        })
    }

    /// Length of the bit arrays in bits.
    #[getter]
    fn bits(&self, py: Python<'_>) -> u64 {
        self.0.read(py, Inner::stream_len).saturating_mul(8)
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let window = match self.ticks(py) {
            Some(ticks) => format!("{ticks} ticks"),
            None => "the last items".to_owned(),
        };
        format!(
            "<everbloom.WindowedBloomFilter: {window}, capacity {}, error rate {}>",
            self.capacity(py),
            self.error_rate(py)
        )
    }
}

impl WindowedBloomFilter {
    fn accept(filter: Inner) -> Result<Self, &'static str> {
        match filter.window() {
            Some(_) => Ok(filter.into()),
            None => Err("a filter without a window: ScalableBloomFilter reads it"),
        }
    }

    fn window<R>(&self, py: Python<'_>, read: impl FnOnce(&Window) -> R) -> Option<R> {
        self.0.read(py, |filter| filter.window().map(read))
    }

    /// The time of the clock, which a window of items does not need.
    fn time(&self, py: Python<'_>, now: Option<&Bound<'_, PyAny>>) -> PyResult<u64> {
        match now {
            Some(now) => whole(now, "time"),
            None if self.ticks(py).is_none() => Ok(0),
            None => Err(PyTypeError::new_err(
                "a window of ticks needs the time: add(item, now), contains(item, now)",
            )),
        }
    }
}
