//! A Python object as an item of a filter.

use everbloom::Item;
use everbloom::hash::{DoubleHash, ItemHasher};
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyInt, PyMemoryView, PyString, PyTuple};

use crate::raw::{self, Buffer};

/// How many tuples may be in each other: a bound for the stack.
const MAX_DEPTH: usize = 16;
/// The longest tuple that is an item, here as in Rust.
const MAX_PARTS: usize = 8;

/// An item, of which a Python object holds the bytes if they never change.
pub(crate) enum Value<'a> {
    Bytes(&'a [u8]),
    /// A copy of bytes that another thread could change.
    Copied(Vec<u8>),
    Small(i64),
    Natural(u128),
    Integer(i128),
    Tuple(Vec<Value<'a>>),
}

impl Item for Value<'_> {
    #[inline]
    fn hash_with<H: ItemHasher>(&self, hasher: &H) -> DoubleHash {
        match self {
            Value::Bytes(bytes) => bytes.hash_with(hasher),
            Value::Copied(bytes) => bytes.hash_with(hasher),
            Value::Small(number) => number.hash_with(hasher),
            Value::Natural(number) => number.hash_with(hasher),
            Value::Integer(number) => number.hash_with(hasher),
            Value::Tuple(parts) => hash_tuple(parts, hasher),
        }
    }
}

fn hash_tuple<H: ItemHasher>(parts: &[Value<'_>], hasher: &H) -> DoubleHash {
    match parts {
        [a] => (a,).hash_with(hasher),
        [a, b] => (a, b).hash_with(hasher),
        [a, b, c] => (a, b, c).hash_with(hasher),
        [a, b, c, d] => (a, b, c, d).hash_with(hasher),
        [a, b, c, d, e] => (a, b, c, d, e).hash_with(hasher),
        [a, b, c, d, e, f] => (a, b, c, d, e, f).hash_with(hasher),
        [a, b, c, d, e, f, g] => (a, b, c, d, e, f, g).hash_with(hasher),
        [a, b, c, d, e, f, g, h] => (a, b, c, d, e, f, g, h).hash_with(hasher),
        // `tuple` below makes no others.
        _ => DoubleHash::default(),
    }
}

impl<'a> Value<'a> {
    /// The item that an object is. May call the object's `__index__`, so no lock may be held.
    #[inline]
    pub(crate) fn of(object: Borrowed<'a, '_, PyAny>) -> PyResult<Value<'a>> {
        if let Ok(text) = object.cast::<PyString>() {
            raw::utf8(text).map(Value::Bytes)
        } else if let Ok(number) = object.cast::<PyInt>() {
            match raw::small_int(number)? {
                Some(number) => Ok(Value::Small(number)),
                None => wide_int(number),
            }
        } else if let Ok(bytes) = object.cast::<PyBytes>() {
            Ok(Value::Bytes(raw::bytes(bytes)))
        } else {
            Value::unusual(object, MAX_DEPTH)
        }
    }

    /// The same for all other types. `depth` is how many tuples may be in this one.
    fn unusual(object: Borrowed<'a, '_, PyAny>, depth: usize) -> PyResult<Value<'a>> {
        if let Ok(tuple) = object.cast::<PyTuple>() {
            Value::tuple(tuple, depth)
        } else if let Ok(bytes) = object.cast::<PyByteArray>() {
            Ok(Value::Copied(bytes.to_vec()))
        } else if let Ok(view) = object.cast::<PyMemoryView>() {
            bytes_of(&view).map(Value::Copied)
        } else if raw::has_index(object) {
            index_of(object)
        } else if is_bool_of_numpy(object) {
            object.is_truthy().map(|truth| Value::Small(truth.into()))
        } else {
            Err(not_an_item(object))
        }
    }

    fn tuple(tuple: Borrowed<'a, '_, PyTuple>, depth: usize) -> PyResult<Value<'a>> {
        if !(1..=MAX_PARTS).contains(&tuple.len()) {
            return Err(PyValueError::new_err(format!(
                "a tuple that is an item has from 1 to {MAX_PARTS} parts, not {}",
                tuple.len()
            )));
        }
        let Some(depth) = depth.checked_sub(1) else {
            return Err(PyValueError::new_err(format!(
                "tuples that are an item may be at most {MAX_DEPTH} deep in each other"
            )));
        };
        let parts = (0..tuple.len()).map(|index| {
            let part = raw::part(tuple, index)?;
            if part.is_instance_of::<PyTuple>() {
                Value::unusual(part, depth)
            } else {
                Value::of(part)
            }
        });
        parts.collect::<PyResult<_>>().map(Value::Tuple)
    }
}

#[cold]
fn wide_int<'a>(number: Borrowed<'_, '_, PyInt>) -> PyResult<Value<'a>> {
    let wide = |error: PyErr| match error.is_instance_of::<PyOverflowError>(number.py()) {
        true => raw::too_wide(),
        false => error,
    };
    if number.lt(0)? {
        number.extract().map(Value::Integer).map_err(wide)
    } else {
        number.extract().map(Value::Natural).map_err(wide)
    }
}

/// The number that a number of another type stands for, such as one of numpy's.
#[cold]
fn index_of<'a>(object: Borrowed<'_, '_, PyAny>) -> PyResult<Value<'a>> {
    let number = object.call_method0("__index__");
    let number = number.map_err(|_| not_an_item(object))?;
    let Ok(number) = number.cast::<PyInt>() else {
        return Err(not_an_item(object));
    };
    match raw::small_int(number.as_borrowed())? {
        Some(number) => Ok(Value::Small(number)),
        None => wide_int(number.as_borrowed()),
    }
}

/// What an object lends that holds bytes.
pub(crate) fn lent_by<'py>(object: &Bound<'py, PyAny>) -> PyResult<Buffer<'py>> {
    Buffer::of(object).ok_or_else(|| match object.get_type().name() {
        Ok(name) => PyTypeError::new_err(format!("this {name} lends no bytes")),
        Err(error) => error,
    })
}

/// A copy of the bytes that an object lends.
pub(crate) fn bytes_of(object: &Bound<'_, PyAny>) -> PyResult<Vec<u8>> {
    Ok(lent_by(object)?.bytes()?.to_vec())
}

/// Whether it is a bool of numpy, which has no `__index__`. Arrays of them are taken, too.
#[cold]
fn is_bool_of_numpy(object: Borrowed<'_, '_, PyAny>) -> bool {
    let name = object.get_type().fully_qualified_name();
    name.is_ok_and(|name| name == "numpy.bool" || name == "numpy.bool_")
}

/// What to write for an object of a type that is no item.
fn instead_of(name: &str) -> &'static str {
    match name {
        "datetime.date" | "datetime.datetime" | "datetime.time" => "; take x.isoformat()",
        "uuid.UUID" => "; take str(x) or x.bytes",
        "float" | "numpy.float64" | "numpy.float32" | "decimal.Decimal" => {
            "; take str(x), or int(x) of a whole number"
        }
        "numpy.datetime64" | "numpy.timedelta64" => "; take x.astype(\"int64\")",
        "pandas.Timestamp" | "pandas._libs.tslibs.timestamps.Timestamp" => "; take x.value",
        "dict" | "list" => "; take a tuple of its parts, or json.dumps(x)",
        "NoneType" => "; leave it out",
        _ => "",
    }
}

#[cold]
fn not_an_item(object: Borrowed<'_, '_, PyAny>) -> PyErr {
    let name = object.get_type().fully_qualified_name();
    let name = name.map_or_else(|_| String::from("this"), |name| name.to_string());
    PyTypeError::new_err(format!(
        "{name} is not an item: items are str, bytes, bytearray, memoryview, int, and tuples of \
         these{}",
        instead_of(&name)
    ))
}
