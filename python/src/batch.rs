//! Many items at once: lists, tuples, iterators, and arrays in memory.
//!
//! Items are taken in chunks. The filter is locked for a chunk at a time, so other threads get
//! their turn, and an iterator may itself use the filter.

use everbloom::{BloomFilter, BytesError, Item, ScalableBloomFilter};
use pyo3::exceptions::{PyMemoryError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyDict, PyList, PyString, PyTuple};

use crate::column::Column;
use crate::item::Value;
use crate::raw::{self, Buffer, Elements};
use crate::shared::{Detached, Shared};

/// Items of a chunk: enough for the filter to prefetch all the time, and few enough to stay in the
/// first cache.
const CHUNK: usize = raw::TEXTS;

/// The operations of both classes of filters.
pub(crate) trait Filter: Send + Sync + Sized {
    fn insert(&mut self, item: &(impl Item + ?Sized)) -> bool;
    fn contains(&self, item: &(impl Item + ?Sized)) -> bool;
    fn insert_each(&mut self, items: &[impl Item], emit: impl FnMut(bool));
    fn contains_each(&self, items: &[impl Item], emit: impl FnMut(bool));
    fn from_bytes(bytes: &[u8]) -> Result<Self, BytesError>;
}

macro_rules! filters {
    ($($name:ty)*) => {
        $(
            impl Filter for $name {
                #[inline]
                fn insert(&mut self, item: &(impl Item + ?Sized)) -> bool {
                    <$name>::insert(self, item)
                }

                #[inline]
                fn contains(&self, item: &(impl Item + ?Sized)) -> bool {
                    <$name>::contains(self, item)
                }

                fn insert_each(&mut self, items: &[impl Item], emit: impl FnMut(bool)) {
                    <$name>::insert_each(self, items, emit);
                }

                fn contains_each(&self, items: &[impl Item], emit: impl FnMut(bool)) {
                    <$name>::contains_each(self, items, emit);
                }

                fn from_bytes(bytes: &[u8]) -> Result<Self, BytesError> {
                    <$name>::from_bytes(bytes)
                }
            }
        )*
    };
}

filters! { BloomFilter ScalableBloomFilter }

/// Inserts one item; whether it is new.
#[inline]
pub(crate) fn add<F: Filter>(filter: &Shared<F>, item: &Bound<'_, PyAny>) -> PyResult<bool> {
    let (py, item) = (item.py(), item.as_borrowed());
    if let Ok(text) = item.cast_exact::<PyString>() {
        let text = raw::utf8(text)?;
        return Ok(filter.write(py, |filter| filter.insert(text)));
    }
    let value = Value::of(item)?;
    Ok(filter.write(py, |filter| filter.insert(&value)))
}

/// Whether one item is in the filter.
#[inline]
pub(crate) fn contains<F: Filter>(filter: &Shared<F>, item: &Bound<'_, PyAny>) -> PyResult<bool> {
    let (py, item) = (item.py(), item.as_borrowed());
    if let Ok(text) = item.cast_exact::<PyString>() {
        let text = raw::utf8(text)?;
        return Ok(filter.read(py, |filter| filter.contains(text)));
    }
    let value = Value::of(item)?;
    Ok(filter.read(py, |filter| filter.contains(&value)))
}

/// The operation on each item.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Task {
    /// Insert it.
    Update,
    /// Insert it, and answer whether it was new.
    Add,
    /// Answer whether it is there.
    Contains,
}

/// A task on its way through the items.
struct Run<'a, F> {
    filter: &'a Shared<F>,
    task: Task,
    /// 0 or 1 for each item so far.
    answers: Vec<u8>,
}

/// Does the task with all items of an iterable. The answers are an array if the items are one of
/// numpy's or a column, a list if not, and `None` when there are none to give.
pub(crate) fn run<'py, F: Filter>(
    filter: &Shared<F>,
    items: &Bound<'py, PyAny>,
    skip_missing: bool,
    task: Task,
) -> PyResult<Bound<'py, PyAny>> {
    let py = items.py();
    let column = Column::of(items, skip_missing)?;
    let items = column.as_ref().map_or(items, |column| &column.values);
    let mut run = Run {
        filter,
        task,
        answers: Vec::new(),
    };
    run.reserve(items.len().unwrap_or(0))?;
    run.any(items)?;
    if task == Task::Update {
        return Ok(py.None().into_bound(py));
    }
    let numpy = match &column {
        Some(_) => py.import("numpy").ok().map(Bound::into_any),
        None => numpy_of(items)?,
    };
    let answers = match &column {
        Some(column) => column.spread(run.answers),
        None => run.answers,
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

impl<F: Filter> Run<'_, F> {
    fn reserve(&mut self, count: usize) -> PyResult<()> {
        if self.task == Task::Update {
            return Ok(());
        }
        self.answers
            .try_reserve_exact(count)
            .map_err(|_| PyMemoryError::new_err("no memory for the answers"))
    }

    fn any(&mut self, items: &Bound<'_, PyAny>) -> PyResult<()> {
        if let Ok(list) = items.cast::<PyList>() {
            return self.list(list);
        }
        if let Ok(tuple) = items.cast::<PyTuple>() {
            return self.objects(items.py(), tuple.iter().map(Ok));
        }
        if items.is_instance_of::<PyString>()
            || items.is_instance_of::<PyBytes>()
            || items.is_instance_of::<PyByteArray>()
        {
            return Err(PyTypeError::new_err(format!(
                "{} is one item: many are a list, another iterable or an array",
                items.get_type().name()?
            )));
        }
        if let Some(buffer) = Buffer::of(items)
            && let Some(kind) = Kind::of(&buffer, items)?
        {
            return self.buffer(items.py(), &buffer, kind);
        }
        self.objects(items.py(), items.try_iter()?)
    }

    /// When one cannot be had or is no item, the task is done with those before it.
    fn objects<'py>(
        &mut self,
        py: Python<'py>,
        objects: impl IntoIterator<Item = PyResult<Bound<'py, PyAny>>>,
    ) -> PyResult<()> {
        let mut objects = objects.into_iter();
        let mut chunk = Vec::with_capacity(CHUNK);
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
                        failure = Some(error);
                        break;
                    }
                }
            }
            self.reserve(values.len())?;
            self.attached(py, &values);
            if let Some(error) = failure {
                return Err(error);
            }
            if chunk.len() < CHUNK {
                return Ok(());
            }
            py.check_signals()?;
        }
    }

    /// Text in a list has a shorter way than other objects, which leads to the same items.
    fn list(&mut self, list: &Bound<'_, PyList>) -> PyResult<()> {
        let py = list.py();
        let mut first = 0;
        while self.filter.is_at_hand(py)
            && let Some(texts) = raw::Texts::of(list, first)
        {
            self.reserve(texts.as_slice().len())?;
            self.attached(py, texts.as_slice());
            first += texts.as_slice().len();
            py.check_signals()?;
        }
        self.objects(py, list.iter().skip(first).map(Ok))
    }

    fn attached<T: Item>(&mut self, py: Python<'_>, items: &[T]) {
        let (task, answers) = (self.task, &mut self.answers);
        match task {
            Task::Contains => self
                .filter
                .read(py, |filter| contains_each(filter, items, answers)),
            task => self
                .filter
                .write(py, |filter| insert_each(filter, items, task, answers)),
        }
    }

    /// Without the interpreter.
    fn buffer(&mut self, py: Python<'_>, buffer: &Buffer<'_>, kind: Kind) -> PyResult<()> {
        let Some(elements) = buffer.elements() else {
            return Err(PyValueError::new_err(format!(
                "an array of items has one dimension, not {}",
                buffer.dimensions()
            )));
        };
        let (filter, task, answers) = (self.filter, self.task, &mut self.answers);
        filter.detach(py, |shared| {
            each_element(shared, elements, kind, task, answers)
        });
        Ok(())
    }
}

fn each_element<F: Filter>(
    shared: Detached<'_, F>,
    elements: Elements<'_>,
    kind: Kind,
    task: Task,
    answers: &mut Vec<u8>,
) {
    let mut values = Vec::with_capacity(CHUNK);
    for first in (0..elements.len()).step_by(CHUNK) {
        values.clear();
        let chunk = (first..elements.len()).take(CHUNK);
        values.extend(chunk.filter_map(|index| kind.value(elements.get(index)?)));
        match task {
            Task::Contains => shared.read(|filter| contains_each(filter, &values, answers)),
            task => shared.write(|filter| insert_each(filter, &values, task, answers)),
        }
    }
}

fn contains_each<F: Filter>(filter: &F, items: &[impl Item], answers: &mut Vec<u8>) {
    filter.contains_each(items, |found| answers.push(found.into()));
}

fn insert_each<F: Filter>(filter: &mut F, items: &[impl Item], task: Task, answers: &mut Vec<u8>) {
    if task == Task::Update {
        filter.insert_each(items, drop);
    } else {
        filter.insert_each(items, |new| answers.push(new.into()));
    }
}

/// The type of an array's elements.
#[derive(Clone, Copy)]
enum Kind {
    /// As wide as an element.
    Number { signed: bool, big_endian: bool },
    /// Without the zeros at their end.
    Bytes,
}

impl Kind {
    /// `None` for an array of objects, or of text with four bytes a character.
    fn of(buffer: &Buffer<'_>, array: &Bound<'_, PyAny>) -> PyResult<Option<Kind>> {
        let format = buffer.format();
        let element = format.trim_start_matches(['@', '=', '<', '>', '!']);
        let big_endian = match format.as_bytes().first() {
            Some(b'>' | b'!') => true,
            Some(b'<') => false,
            _ => cfg!(target_endian = "big"),
        };
        let count_of = |kind| {
            element
                .strip_suffix(kind)
                .map(|count: &str| count.parse::<u64>())
        };
        Ok(match element {
            "b" | "h" | "i" | "l" | "q" | "n" => Some(Kind::Number {
                signed: true,
                big_endian,
            }),
            "?" | "B" | "H" | "I" | "L" | "Q" | "N" => Some(Kind::Number {
                signed: false,
                big_endian,
            }),
            "s" => Some(Kind::Bytes),
            "O" | "w" => None,
            _ if matches!(count_of('s'), Some(Ok(_))) => Some(Kind::Bytes),
            _ if matches!(count_of('w'), Some(Ok(_))) => None,
            _ => {
                let dtype = array.getattr("dtype").map(|dtype| dtype.to_string());
                let what = dtype.unwrap_or_else(|_| format!("'{format}'"));
                return Err(PyTypeError::new_err(format!(
                    "an array of {what} is not of items: arrays may be of ints, of bytes, of text \
                     or of objects"
                )));
            }
        })
    }

    #[inline]
    fn value(self, element: &[u8]) -> Option<Value<'_>> {
        match self {
            Kind::Bytes => {
                let len = element.iter().rposition(|&byte| byte != 0);
                element
                    .get(..len.map_or(0, |last| last + 1))
                    .map(Value::Bytes)
            }
            Kind::Number { signed, big_endian } => number(element, signed, big_endian),
        }
    }
}

#[inline]
fn number<'a>(element: &[u8], signed: bool, big_endian: bool) -> Option<Value<'a>> {
    macro_rules! number {
        ($unsigned:ty) => {{
            let bytes = *element.first_chunk()?;
            let number = match big_endian {
                true => <$unsigned>::from_be_bytes(bytes),
                false => <$unsigned>::from_le_bytes(bytes),
            };
            match signed {
                true => Value::Small(number.cast_signed().into()),
                false => match i64::try_from(number) {
                    Ok(number) => Value::Small(number),
                    Err(_) => Value::Natural(number.into()),
                },
            }
        }};
    }
    Some(match element.len() {
        1 => number!(u8),
        2 => number!(u16),
        4 => number!(u32),
        8 => number!(u64),
        _ => return None,
    })
}
