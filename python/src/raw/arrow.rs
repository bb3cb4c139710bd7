//! Columns in Arrow's memory, by its C data interface: C structs in Python's capsules.
//!
//! Whoever made a column (pyarrow, polars, DuckDB) promises what the interface asks: that the
//! buffers are as long as the format and the lengths say, and do not change until the column is released.
#![allow(unsafe_code, reason = "this is the interface to C")]

use std::ffi::{CStr, c_char, c_int, c_void};
use std::ops::Deref;
use std::{mem, slice};

use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyTuple};

type Release<S> = Option<unsafe extern "C" fn(*mut S)>;

/// `ArrowSchema`
#[repr(C)]
struct Schema {
    format: *const c_char,
    name: *const c_char,
    metadata: *const c_char,
    flags: i64,
    n_children: i64,
    children: *mut *mut Schema,
    dictionary: *mut Schema,
    release: Release<Schema>,
    private_data: *mut c_void,
}

/// `ArrowArray`
#[repr(C)]
struct Array {
    length: i64,
    null_count: i64,
    offset: i64,
    n_buffers: i64,
    n_children: i64,
    buffers: *mut *const c_void,
    children: *mut *mut Array,
    dictionary: *mut Array,
    release: Release<Array>,
    private_data: *mut c_void,
}

/// A function that fills a struct. It returns 0, or the number of an error.
type Function<S> = Option<unsafe extern "C" fn(*mut Stream, *mut S) -> c_int>;

/// `ArrowArrayStream`
#[repr(C)]
struct Stream {
    get_schema: Function<Schema>,
    get_next: Function<Array>,
    get_last_error: Option<unsafe extern "C" fn(*mut Stream) -> *const c_char>,
    release: Release<Stream>,
    private_data: *mut c_void,
}

// SAFETY: any thread may read and release what the interface hands over, one at a time; what many
// threads read does not change.
unsafe impl Send for Schema {}
// SAFETY: as above.
unsafe impl Sync for Schema {}
// SAFETY: as above.
unsafe impl Send for Array {}
// SAFETY: as above.
unsafe impl Sync for Array {}
// SAFETY: as above; a stream is never shared.
unsafe impl Send for Stream {}

/// A struct of the interface.
///
/// # Safety
///
/// It may be moved, zeros are one that was released already, and a capsule of this name has one.
unsafe trait Struct: Sized {
    const NAME: &CStr;

    fn release(&mut self) -> &mut Release<Self>;
}

// SAFETY: so says the interface.
unsafe impl Struct for Schema {
    const NAME: &CStr = c"arrow_schema";

    fn release(&mut self) -> &mut Release<Self> {
        &mut self.release
    }
}

// SAFETY: so says the interface.
unsafe impl Struct for Array {
    const NAME: &CStr = c"arrow_array";

    fn release(&mut self) -> &mut Release<Self> {
        &mut self.release
    }
}

// SAFETY: so says the interface.
unsafe impl Struct for Stream {
    const NAME: &CStr = c"arrow_array_stream";

    fn release(&mut self) -> &mut Release<Self> {
        &mut self.release
    }
}

/// A struct that is released in the end.
struct Owned<S: Struct>(S);

impl<S: Struct> Owned<S> {
    /// Moves it out of a capsule. What stays there is marked as released.
    fn of(capsule: &Bound<'_, PyAny>) -> PyResult<Owned<S>> {
        let capsule = capsule.cast::<PyCapsule>()?;
        let inside = capsule.pointer_checked(Some(S::NAME))?.cast::<S>();
        // SAFETY: a capsule of that name holds such a struct, which a consumer moves out.
        let mut moved = unsafe { inside.read() };
        // SAFETY: as above.
        *unsafe { &mut *inside.as_ptr() }.release() = None;
        // Only an empty one has nothing to release.
        match moved.release() {
            Some(_) => Ok(Owned(moved)),
            None => Err(failed("it was released already")),
        }
    }
}

impl<S: Struct> Deref for Owned<S> {
    type Target = S;

    fn deref(&self) -> &S {
        &self.0
    }
}

impl<S: Struct> Drop for Owned<S> {
    fn drop(&mut self) {
        if let Some(release) = *self.0.release() {
            // SAFETY: it is released once, by who owns it.
            unsafe { release(&raw mut self.0) }
        }
    }
}

/// A column: its type, and its chunks of rows.
pub(crate) struct Chunks {
    schema: Owned<Schema>,
    arrays: Vec<Owned<Array>>,
}

impl Chunks {
    /// `None` when the object is no column in Arrow's memory, or of a type that has no items.
    pub(crate) fn of(column: &Bound<'_, PyAny>) -> PyResult<Option<Chunks>> {
        if let Some(export) = column.getattr_opt("__arrow_c_array__")? {
            let (schema, array) = export.call0()?.cast_into::<PyTuple>()?.extract()?;
            let (schema, array): (Bound<'_, PyAny>, Bound<'_, PyAny>) = (schema, array);
            let schema = Owned::<Schema>::of(&schema)?;
            let arrays = vec![Owned::of(&array)?];
            return Ok(ColumnType::of(&schema).map(|_| Chunks { schema, arrays }));
        }
        let Some(export) = column.getattr_opt("__arrow_c_stream__")? else {
            return Ok(None);
        };
        let stream = Owned::<Stream>::of(&export.call0()?)?;
        column.py().detach(|| stream.read())
    }

    /// `None` when a chunk is not what its type says.
    pub(crate) fn rows(&self) -> Option<Vec<Rows<'_>>> {
        let arrays = self.arrays.iter();
        arrays.map(|array| Rows::of(&self.schema, array)).collect()
    }
}

impl Owned<Stream> {
    fn read(mut self) -> PyResult<Option<Chunks>> {
        let schema = self.fill(|stream| stream.get_schema)?;
        if ColumnType::of(&schema).is_none() {
            return Ok(None);
        }
        let mut arrays = Vec::new();
        loop {
            let array = self.fill(|stream| stream.get_next)?;
            // The end is an array that is released already.
            if array.release.is_none() {
                return Ok(Some(Chunks { schema, arrays }));
            }
            arrays.push(array);
        }
    }

    /// What a function of the stream gives.
    fn fill<S: Struct>(
        &mut self,
        function: impl FnOnce(&Stream) -> Function<S>,
    ) -> PyResult<Owned<S>> {
        let function = function(self).ok_or_else(|| failed("it has not all functions"))?;
        // SAFETY: zeros are an empty struct, which is to be filled.
        let mut filled = unsafe { Owned(mem::zeroed::<S>()) };
        // SAFETY: the stream was not released.
        match unsafe { function(&raw mut self.0, &raw mut filled.0) } {
            0 => Ok(filled),
            code => Err(self.last_error(code)),
        }
    }

    fn last_error(&mut self, code: c_int) -> PyErr {
        let Some(get_last_error) = self.get_last_error else {
            return failed(&format!("error {code}"));
        };
        // SAFETY: the stream was not released, and its last call failed.
        let text = unsafe { get_last_error(&raw mut self.0) };
        if text.is_null() {
            return failed(&format!("error {code}"));
        }
        // SAFETY: a text that ends with a zero, until the next call.
        failed(&unsafe { CStr::from_ptr(text) }.to_string_lossy())
    }
}

fn failed(what: &str) -> PyErr {
    PyOSError::new_err(format!("the column cannot be read from Arrow: {what}"))
}

/// The types of columns that hold items. Widths are in bytes.
#[derive(Clone, Copy)]
enum ColumnType {
    Null,
    Bits,
    Number { width: usize, signed: bool },
    Fixed { width: usize },
    Offsets { width: usize },
    Views,
}

impl ColumnType {
    /// That of the rows, or of the dictionary's values.
    fn of(schema: &Schema) -> Option<ColumnType> {
        match schema.dictionary() {
            Some(values) => match values.dictionary() {
                Some(_) => None,
                None => ColumnType::of_format(values.format()),
            },
            None => ColumnType::of_format(schema.format()),
        }
    }

    fn of_format(format: &[u8]) -> Option<ColumnType> {
        let number = |width, signed| Some(ColumnType::Number { width, signed });
        match format {
            b"n" => Some(ColumnType::Null),
            b"b" => Some(ColumnType::Bits),
            b"c" => number(1, true),
            b"C" => number(1, false),
            b"s" => number(2, true),
            b"S" => number(2, false),
            b"i" => number(4, true),
            b"I" => number(4, false),
            b"l" => number(8, true),
            b"L" => number(8, false),
            b"u" | b"z" => Some(ColumnType::Offsets { width: 4 }),
            b"U" | b"Z" => Some(ColumnType::Offsets { width: 8 }),
            b"vu" | b"vz" => Some(ColumnType::Views),
            _ => {
                let width = str::from_utf8(format.strip_prefix(b"w:")?).ok()?;
                Some(ColumnType::Fixed {
                    width: width.parse().ok()?,
                })
            }
        }
    }
}

impl Schema {
    fn format(&self) -> &[u8] {
        if self.format.is_null() {
            return &[];
        }
        // SAFETY: a text that ends with a zero, as long as the schema is there.
        unsafe { CStr::from_ptr(self.format) }.to_bytes()
    }

    fn dictionary(&self) -> Option<&Schema> {
        // SAFETY: null, or a schema that ends with this one.
        unsafe { self.dictionary.as_ref() }
    }
}

/// The rows of a chunk, for a thread that need not have the interpreter.
pub(crate) struct Rows<'a> {
    /// The number of the first row in the buffers.
    pub(crate) first: usize,
    pub(crate) len: usize,
    /// A bit for each row, 1 if it has a value; `None` if all have one.
    pub(crate) validity: Option<&'a [u8]>,
    pub(crate) values: Values<'a>,
}

/// The values of rows: what is found in the buffers, which are checked by who reads them.
pub(crate) enum Values<'a> {
    Null,
    /// A bit for each row.
    Bits(&'a [u8]),
    /// `width` bytes for each row.
    Numbers {
        numbers: &'a [u8],
        width: usize,
        signed: bool,
    },
    /// `width` bytes for each row.
    Fixed {
        bytes: &'a [u8],
        width: usize,
    },
    /// For each row where it begins, and where the last one ends: numbers of `width` bytes.
    Offsets {
        offsets: &'a [u8],
        width: usize,
        data: &'a [u8],
    },
    /// For each row 16 bytes: the length, then the bytes themselves or where they are.
    Views {
        views: &'a [u8],
        data: Vec<&'a [u8]>,
    },
    Dictionary(Dictionary<'a>),
}

/// For each row the number of its value.
pub(crate) struct Dictionary<'a> {
    /// `width` bytes for each row.
    pub(crate) numbers: &'a [u8],
    pub(crate) width: usize,
    pub(crate) signed: bool,
    pub(crate) values: Box<Rows<'a>>,
}

impl<'a> Rows<'a> {
    fn of(schema: &Schema, array: &'a Array) -> Option<Rows<'a>> {
        let kind = ColumnType::of_format(schema.format())?;
        let (first, len) = (array.first()?, array.len()?);
        let end = first.checked_add(len)?;
        let values = match (kind, schema.dictionary()) {
            (ColumnType::Number { width, signed }, Some(dictionary)) => {
                Values::Dictionary(Dictionary {
                    numbers: array.buffer(1, end.checked_mul(width)?)?,
                    width,
                    signed,
                    values: Box::new(Rows::of(dictionary, array.dictionary()?)?),
                })
            }
            (_, Some(_)) => return None,
            (kind, None) => array.values(kind, end)?,
        };
        // An array of nulls has no buffers.
        let has_validity = !matches!(kind, ColumnType::Null) && array.null_count != 0;
        let validity = has_validity.then(|| array.buffer(0, end.div_ceil(8)));
        Some(Rows {
            first,
            len,
            validity: validity.flatten(),
            values,
        })
    }
}

impl Array {
    fn len(&self) -> Option<usize> {
        usize::try_from(self.length).ok()
    }

    fn first(&self) -> Option<usize> {
        usize::try_from(self.offset).ok()
    }

    fn dictionary(&self) -> Option<&Array> {
        // SAFETY: null, or an array that ends with this one.
        unsafe { self.dictionary.as_ref() }
    }

    /// The buffers of rows of a type, up to the row `end`.
    fn values(&self, kind: ColumnType, end: usize) -> Option<Values<'_>> {
        Some(match kind {
            ColumnType::Null => Values::Null,
            ColumnType::Bits => Values::Bits(self.buffer(1, end.div_ceil(8))?),
            ColumnType::Number { width, signed } => Values::Numbers {
                numbers: self.buffer(1, end.checked_mul(width)?)?,
                width,
                signed,
            },
            ColumnType::Fixed { width } => Values::Fixed {
                bytes: self.buffer(1, end.checked_mul(width)?)?,
                width,
            },
            // Without rows there need not be an offset.
            ColumnType::Offsets { width } if end == 0 => Values::Offsets {
                offsets: &[],
                width,
                data: &[],
            },
            ColumnType::Offsets { width } => {
                let offsets = self.buffer(1, end.checked_add(1)?.checked_mul(width)?)?;
                let len = offset(offsets.get(end * width..)?)?;
                Values::Offsets {
                    offsets,
                    width,
                    data: self.buffer(2, len)?,
                }
            }
            ColumnType::Views => Values::Views {
                views: self.buffer(1, end.checked_mul(16)?)?,
                data: self.data_of_views()?,
            },
        })
    }

    /// The buffers between that of the views and the last one, which has their lengths.
    fn data_of_views(&self) -> Option<Vec<&[u8]>> {
        let last = usize::try_from(self.n_buffers).ok()?.checked_sub(1)?;
        let count = last.checked_sub(2)?;
        let (lengths, _) = self.buffer(last, count * 8)?.as_chunks();
        let buffers = (2..).zip(lengths).map(|(index, length)| {
            self.buffer(index, usize::try_from(i64::from_ne_bytes(*length)).ok()?)
        });
        buffers.collect()
    }

    /// The first bytes of a buffer. `None` when there is no such buffer.
    fn buffer(&self, index: usize, len: usize) -> Option<&[u8]> {
        if len == 0 {
            return Some(&[]);
        }
        let is_there = i64::try_from(index).is_ok_and(|index| index < self.n_buffers);
        if !is_there || self.buffers.is_null() || isize::try_from(len).is_err() {
            return None;
        }
        // SAFETY: there are `n_buffers` of them.
        let buffer: *const c_void = unsafe { *self.buffers.add(index) };
        if buffer.is_null() {
            return None;
        }
        // SAFETY: the callers ask for as many bytes as such an array has, until it is released.
        Some(unsafe { slice::from_raw_parts(buffer.cast(), len) })
    }
}

/// The first offset of these bytes, which are one or more of either width.
fn offset(bytes: &[u8]) -> Option<usize> {
    match bytes.len() {
        4 => usize::try_from(i32::from_ne_bytes(*bytes.first_chunk()?)).ok(),
        _ => usize::try_from(i64::from_ne_bytes(*bytes.first_chunk()?)).ok(),
    }
}
