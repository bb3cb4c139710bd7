//! Many items at once: lists, tuples, iterators, and arrays in memory.
//!
//! Items are taken in chunks. The filter is locked for a chunk at a time, so other threads get
//! their turn, and an iterator may itself use the filter.

use everbloom::Item;
use pyo3::exceptions::{PyMemoryError, PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyDict, PyList, PyMemoryView, PyString, PyTuple};

use crate::array::ElementType;
use crate::column::{Column, Rows};
use crate::error;
use crate::filter::{Filter, Lookup};
use crate::item::Value;
use crate::raw::{self, Buffer, Objects, Texts};
use crate::shared::{Detached, Shared};
use crate::task::{CHUNK, SIGNALS, Stop, Task};

/// Inserts one item; whether it is new.
#[inline]
pub(crate) fn add<F: Filter>(
    filter: &Shared<F>,
    item: &Bound<'_, PyAny>,
    now: u64,
) -> PyResult<bool> {
    let (py, item) = (item.py(), item.as_borrowed());
    let inserted = if let Ok(text) = item.cast_exact::<PyString>() {
        let text = raw::utf8(text)?;
        filter.write(py, |filter| filter.insert(text, now))
    } else {
        let value = Value::of(item)?;
        filter.write(py, |filter| filter.insert(&value, now))
    };
    inserted.map_err(error::insert)
}

/// Whether one item is in the filter.
#[inline]
pub(crate) fn contains<F: Lookup>(
    filter: &Shared<F>,
    item: &Bound<'_, PyAny>,
    now: u64,
) -> PyResult<bool> {
    let (py, item) = (item.py(), item.as_borrowed());
    if let Ok(text) = item.cast_exact::<PyString>() {
        let text = raw::utf8(text)?;
        return Ok(filter.read(py, |filter| filter.contains(text, now)));
    }
    let value = Value::of(item)?;
    Ok(filter.read(py, |filter| filter.contains(&value, now)))
}

/// A task on its way through the items.
struct Run<'a, F, T> {
    filter: &'a Shared<F>,
    task: T,
    /// 0 or 1 for each item so far.
    answers: Vec<u8>,
    /// For each row of a column, whether it has no value, if any has none.
    missing: &'a [bool],
}

/// Does the task with all items of an iterable. The answers are an array if the items are one of
/// numpy's or a column, a list if not, and `None` when there are none to give.
pub(crate) fn run<'py, F: Lookup, T: Task<F>>(
    filter: &Shared<F>,
    items: &Bound<'py, PyAny>,
    skip_missing: bool,
    task: T,
) -> PyResult<Bound<'py, PyAny>> {
    let py = items.py();
    let column = Column::of(items, skip_missing)?;
    let mut run = Run {
        filter,
        task,
        answers: Vec::new(),
        missing: column.as_ref().map_or(&[], |column| &column.missing),
    };
    match column.as_ref().map(|column| &column.rows) {
        Some(Rows::Arrow(rows)) => {
            run.reserve(rows.len())?;
            run.detached(items, |shared, answers| rows.run(shared, task, answers))?;
        }
        Some(Rows::Values(values)) => run.any(values)?,
        None => run.any(items)?,
    }
    if !T::ANSWERS {
        return Ok(py.None().into_bound(py));
    }
    let (numpy, answers) = match &column {
        Some(column) => (
            py.import("numpy").ok().map(Bound::into_any),
            column.spread(run.answers),
        ),
        None => (numpy_of(items)?, run.answers),
    };
    if let Some(numpy) = numpy {
        let options = PyDict::new(py);
        options.set_item("dtype", "bool")?;
        // Not `bytes`: an array of those could not be written to.
        let bytes = PyByteArray::new(py, &answers);
        return numpy.call_method("frombuffer", (bytes,), Some(&options));
    }
    Ok(PyList::new(py, answers.iter().map(|&answer| answer == 1))?.into_any())
}

/// Does the task with the items of several iterables; there are no answers.
pub(crate) fn run_all<F: Lookup>(
    filter: &Shared<F>,
    iterables: &Bound<'_, PyTuple>,
    skip_missing: bool,
    task: impl Task<F>,
) -> PyResult<()> {
    iterables
        .iter()
        .try_for_each(|items| run(filter, &items, skip_missing, task).map(drop))
}

/// The module numpy, if this is one of its arrays.
fn numpy_of<'py>(items: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    if items.is_instance_of::<PyList>() {
        return Ok(None);
    }
    // A program with an array has imported numpy.
    let modules = items.py().import("sys")?.getattr("modules")?;
    let Ok(numpy) = modules.get_item("numpy") else {
        return Ok(None);
    };
    let is_array = items.is_instance(&numpy.getattr("ndarray")?)?;
    Ok(is_array.then_some(numpy))
}

/// How many texts there are before the first object of another type.
fn count_texts<'a>(next: impl Fn(usize) -> Option<Texts<'a>>) -> usize {
    let mut count = 0;
    while let Some(texts) = next(count) {
        count += texts.as_slice().len();
    }
    count
}

impl<F: Lookup, T: Task<F>> Run<'_, F, T> {
    /// The row that holds the item of this number.
    fn row_of(&self, item: usize) -> usize {
        let rows = self.missing.iter().enumerate();
        let mut present = rows.filter(|(_, missing)| !**missing).map(|(row, _)| row);
        present.nth(item).unwrap_or(item)
    }

    /// Fails if one of these objects is no item, before any is added. `first` is the number of the
    /// first one.
    fn check<'py>(
        &self,
        first: usize,
        objects: impl Iterator<Item = PyResult<Bound<'py, PyAny>>>,
    ) -> PyResult<()> {
        for (object, number) in objects.zip(first..) {
            let (object, py) = object.map(|object| (object.clone(), object.py()))?;
            if number % SIGNALS == 0 {
                py.check_signals()?;
            }
            let value = Value::of(object.as_borrowed()).map(drop);
            value.map_err(|error| error::in_row(py, error, self.row_of(number)))?;
        }
        Ok(())
    }

    fn reserve(&mut self, count: usize) -> PyResult<()> {
        if !T::ANSWERS {
            return Ok(());
        }
        self.answers
            .try_reserve_exact(count)
            .map_err(|_| PyMemoryError::new_err("no memory for the answers"))
    }

    fn any(&mut self, items: &Bound<'_, PyAny>) -> PyResult<()> {
        self.reserve(items.len().unwrap_or(0))?;
        if let Ok(list) = items.cast::<PyList>() {
            return self.list(list);
        }
        if let Ok(tuple) = items.cast::<PyTuple>() {
            if T::ADDS {
                self.check(0, tuple.iter().map(Ok))?;
            }
            return self.objects(items.py(), 0, tuple.iter().map(Ok));
        }
        if items.is_instance_of::<PyString>()
            || items.is_instance_of::<PyBytes>()
            || items.is_instance_of::<PyByteArray>()
            || items.is_instance_of::<PyMemoryView>()
        {
            return Err(PyTypeError::new_err(format!(
                "{} is one item: many are a list, another iterable or an array",
                items.get_type().name()?
            )));
        }
        match Buffer::of(items) {
            Some(buffer) => self.buffer(items, &buffer),
            None => self.objects(items.py(), 0, items.try_iter()?),
        }
    }

    /// If an object cannot be fetched or is no item, the task is done with those before it. `first`
    /// is the number of the first one.
    fn objects<'py>(
        &mut self,
        py: Python<'py>,
        first: usize,
        objects: impl IntoIterator<Item = PyResult<Bound<'py, PyAny>>>,
    ) -> PyResult<()> {
        let mut objects = objects.into_iter();
        let mut chunk = Vec::with_capacity(CHUNK);
        let mut done = first;
        loop {
            chunk.clear();
            let mut failure = None;
            for object in objects.by_ref().take(CHUNK) {
                match object {
                    Ok(object) => chunk.push(object),
                    Err(error) => {
                        failure = Some(error);
                        break;
                    }
                }
            }
            let mut values = Vec::with_capacity(chunk.len());
            for object in &chunk {
                match Value::of(object.as_borrowed()) {
                    Ok(value) => values.push(value),
                    Err(error) => {
                        let row = self.row_of(done + values.len());
                        failure = Some(error::in_row(py, error, row));
                        break;
                    }
                }
            }
            done += values.len();
            self.reserve(values.len())?;
            self.attached(py, &values)?;
            if let Some(error) = failure {
                return Err(error);
            }
            if chunk.len() < CHUNK {
                return Ok(());
            }
            py.check_signals()?;
        }
    }

    fn list(&mut self, list: &Bound<'_, PyList>) -> PyResult<()> {
        let py = list.py();
        if T::ADDS {
            let rows = list.len();
            let texts = count_texts(|first| Texts::of_list(list, first));
            self.check(texts, list.iter().skip(texts).map(Ok))?;
            // An item's `__index__` may have changed it.
            if list.len() != rows {
                return Err(PyRuntimeError::new_err(
                    "the list changed while it was read",
                ));
            }
        }
        let done = self.texts(py, |first| Texts::of_list(list, first))?;
        self.objects(py, done, list.iter().skip(done).map(Ok))
    }

    /// An array of objects.
    fn array(&mut self, array: &Bound<'_, PyAny>, objects: Objects<'_>) -> PyResult<()> {
        let py = array.py();
        if T::ADDS {
            let texts = count_texts(|first| Texts::of_objects(py, objects, first));
            self.check(texts, array.try_iter()?.skip(texts))?;
        }
        let done = self.texts(py, |first| Texts::of_objects(py, objects, first))?;
        self.objects(py, done, array.try_iter()?.skip(done))
    }

    /// A fast path for text among objects, with the same items. Returns how many were taken.
    fn texts<'a>(
        &mut self,
        py: Python<'_>,
        next: impl Fn(usize) -> Option<Texts<'a>>,
    ) -> PyResult<usize> {
        let mut done = 0;
        while self.filter.is_at_hand(py)
            && let Some(texts) = next(done)
        {
            self.reserve(texts.as_slice().len())?;
            self.attached(py, texts.as_slice())?;
            done += texts.as_slice().len();
            py.check_signals()?;
        }
        Ok(done)
    }

    fn attached(&mut self, py: Python<'_>, items: &[impl Item]) -> PyResult<()> {
        let done = self.task.run((self.filter, py), items, &mut self.answers);
        done.map_err(error::insert)
    }

    fn buffer(&mut self, items: &Bound<'_, PyAny>, buffer: &Buffer<'_>) -> PyResult<()> {
        let element_type = ElementType::of(buffer, items)?;
        if let ElementType::Objects = element_type {
            return match buffer.objects() {
                Some(objects) => self.array(items, objects),
                None => self.objects(items.py(), 0, items.try_iter()?),
            };
        }
        let Some(elements) = buffer.elements() else {
            return Err(PyValueError::new_err(format!(
                "an array of items has one dimension, not {}",
                buffer.dimensions()
            )));
        };
        let task = self.task;
        self.detached(items, |shared, answers| {
            if T::ADDS {
                element_type.check(elements)?;
            }
            element_type.run(shared, elements, task, answers)
        })
    }

    /// Without the interpreter.
    fn detached(
        &mut self,
        items: &Bound<'_, PyAny>,
        work: impl FnOnce(Detached<'_, F>, &mut Vec<u8>) -> Result<(), Stop> + Send,
    ) -> PyResult<()> {
        let answers = &mut self.answers;
        let done = self
            .filter
            .detach(items.py(), |shared| work(shared, answers));
        done.map_err(|stop| stop.error(items, |element| self.row_of(element)))
    }
}
