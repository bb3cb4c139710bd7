//! The parts of Python's C interface that are stable only from 3.11 on: buffers, and text without a
//! copy. [`arrow`] is Arrow's C interface.
//!
//! CPython 3.9 and 3.10 export the same functions and the same `Py_buffer`, but do not guarantee
//! them. So one extension serves all versions. (On Windows, where the stable interface is a library
//! of its own, they are there from 3.11 on.)
#![allow(unsafe_code, reason = "this is the interface to C")]

pub(crate) mod arrow;

use std::ffi::{CStr, c_char, c_int, c_void};
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::{ptr, slice};

use everbloom::BloomView;
use everbloom::bytes::BytesError;
use pyo3::exceptions::{PyBufferError, PyOverflowError, PyTypeError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyInt, PyList, PyString, PyTuple};

/// The C struct of that name.
#[repr(C)]
struct PyBuffer {
    buf: *mut c_void,
    obj: *mut ffi::PyObject,
    len: ffi::Py_ssize_t,
    itemsize: ffi::Py_ssize_t,
    readonly: c_int,
    ndim: c_int,
    format: *mut c_char,
    shape: *mut ffi::Py_ssize_t,
    strides: *mut ffi::Py_ssize_t,
    suboffsets: *mut ffi::Py_ssize_t,
    internal: *mut c_void,
}

const PYBUF_FORMAT: c_int = 0x4;
const PYBUF_STRIDES: c_int = 0x10 | 0x8;

unsafe extern "C" {
    fn PyUnicode_AsUTF8AndSize(
        text: *mut ffi::PyObject,
        size: *mut ffi::Py_ssize_t,
    ) -> *const c_char;
    fn PyObject_GetBuffer(object: *mut ffi::PyObject, view: *mut PyBuffer, flags: c_int) -> c_int;
    fn PyBuffer_Release(view: *mut PyBuffer);
}

/// The text as UTF-8. Python keeps it with the string, where it stays as long as the string does.
#[inline]
pub(crate) fn utf8<'a>(text: Borrowed<'a, '_, PyString>) -> PyResult<&'a [u8]> {
    let mut size = 0;
    // SAFETY: it is a string, and the interpreter is ours while there is a `Borrowed`.
    let data = unsafe { PyUnicode_AsUTF8AndSize(text.as_ptr(), &raw mut size) };
    if data.is_null() {
        return Err(PyErr::fetch(text.py()));
    }
    // SAFETY: so many bytes are there until the string ends, which never changes.
    Ok(unsafe { slice::from_raw_parts(data.cast(), usize::try_from(size).unwrap_or(0)) })
}

/// How many texts are taken from a list or an array at once.
pub(crate) const TEXTS: usize = 512;

/// UTF-8 of items of a list or an array, all of which are of the type `str` itself.
///
/// The strings are borrowed. While this exists, no Python code may run: it could change the list.
pub(crate) struct Texts<'a> {
    texts: [&'a [u8]; TEXTS],
    count: usize,
}

impl<'a> Texts<'a> {
    /// Those from number `first` on; `None` when there are none, or others among them.
    pub(crate) fn of_list(list: &'a Bound<'_, PyList>, first: usize) -> Option<Texts<'a>> {
        Texts::of(list.py(), list.len().checked_sub(first)?, |index| {
            let index = ffi::Py_ssize_t::try_from(first + index).ok()?;
            // SAFETY: the list has so many items, and lends this one.
            Some(unsafe { ffi::PyList_GetItem(list.as_ptr(), index) })
        })
    }

    /// The same of an array of objects.
    pub(crate) fn of_objects(
        py: Python<'_>,
        objects: Objects<'a>,
        first: usize,
    ) -> Option<Texts<'a>> {
        let count = objects.len().checked_sub(first)?;
        Texts::of(py, count, |index| objects.get(first + index))
    }

    /// `object` gives objects, which live as long as `'a` if no Python code runs.
    fn of(
        py: Python<'_>,
        count: usize,
        object: impl Fn(usize) -> Option<*mut ffi::PyObject>,
    ) -> Option<Texts<'a>> {
        let count = count.min(TEXTS);
        let mut objects = [ptr::null_mut(); TEXTS];
        for (index, slot) in objects.iter_mut().enumerate().take(count) {
            *slot = object(index)?;
            prefetch(slot.cast());
        }
        let mut texts: [&[u8]; TEXTS] = [&[]; TEXTS];
        for (text, &object) in texts.iter_mut().zip(objects.iter().take(count)) {
            // SAFETY: it is an object.
            let is_text = unsafe { ffi::PyUnicode_CheckExact(object) } != 0;
            let mut size = 0;
            // SAFETY: it is a string.
            let data =
                is_text.then(|| unsafe { PyUnicode_AsUTF8AndSize(object, &raw mut size) })?;
            if data.is_null() {
                // The longer way finds the same error.
                drop(PyErr::take(py));
                return None;
            }
            // SAFETY: so many bytes are there as long as the string.
            *text =
                unsafe { slice::from_raw_parts(data.cast(), usize::try_from(size).unwrap_or(0)) };
        }
        (count > 0).then_some(Texts { texts, count })
    }

    pub(crate) fn as_slice(&self) -> &[&'a [u8]] {
        self.texts.get(..self.count).unwrap_or_default()
    }
}

/// Prefetches the two cache lines that hold most strings.
#[inline]
fn prefetch(object: *const u8) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch of unmapped memory does nothing.
        unsafe {
            _mm_prefetch::<_MM_HINT_T0>(object.cast());
            _mm_prefetch::<_MM_HINT_T0>(object.wrapping_add(64).cast());
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = object;
}

/// The bytes, which stay as they are as long as the object does.
#[inline]
pub(crate) fn bytes<'a>(bytes: Borrowed<'a, '_, PyBytes>) -> &'a [u8] {
    // SAFETY: the bytes of the object live as long as it, and never change.
    unsafe { slice::from_raw_parts(bytes.as_bytes().as_ptr(), bytes.as_bytes().len()) }
}

/// An object with a copy of these bytes. Other threads have the interpreter while they are copied.
pub(crate) fn copied<'py>(py: Python<'py>, bytes: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
    let size = ffi::Py_ssize_t::try_from(bytes.len())?;
    // SAFETY: without bytes to copy it makes an object of this size, or sets an exception.
    let object = unsafe {
        Bound::from_owned_ptr_or_err(py, ffi::PyBytes_FromStringAndSize(ptr::null(), size))?
    };
    let object = object.cast_into::<PyBytes>()?;
    // SAFETY: it is an object of bytes, and so many begin there. Nobody else knows it yet.
    let to: &mut [MaybeUninit<u8>] = unsafe {
        let start = ffi::PyBytes_AsString(object.as_ptr());
        slice::from_raw_parts_mut(start.cast(), bytes.len())
    };
    // SAFETY: both are as long, and the new object's bytes are its own.
    py.detach(|| unsafe {
        ptr::copy_nonoverlapping(bytes.as_ptr(), to.as_mut_ptr().cast(), bytes.len());
    });
    Ok(object)
}

/// A part of the tuple, which keeps it.
pub(crate) fn part<'a, 'py>(
    tuple: Borrowed<'a, 'py, PyTuple>,
    index: usize,
) -> PyResult<Borrowed<'a, 'py, PyAny>> {
    let part = tuple.get_borrowed_item(index)?;
    // SAFETY: the part lives as long as the tuple, which never changes.
    Ok(unsafe { Borrowed::from_ptr(tuple.py(), part.as_ptr()) })
}

/// The number; `None` when it has more than 64 bits.
#[inline]
pub(crate) fn small_int(number: Borrowed<'_, '_, PyInt>) -> PyResult<Option<i64>> {
    let mut overflow = 0;
    // SAFETY: it is an int, and the interpreter is ours while there is a `Borrowed`.
    let value = unsafe { ffi::PyLong_AsLongLongAndOverflow(number.as_ptr(), &raw mut overflow) };
    if overflow != 0 {
        return Ok(None);
    }
    // -1 is a value and the sign of an error.
    match (value == -1).then(|| PyErr::take(number.py())).flatten() {
        Some(error) => Err(error),
        None => Ok(Some(value)),
    }
}

/// Whether the object has `__index__`.
pub(crate) fn has_index(object: Borrowed<'_, '_, PyAny>) -> bool {
    // SAFETY: it is an object, and the interpreter is ours while there is a `Borrowed`.
    unsafe { ffi::PyIndex_Check(object.as_ptr()) != 0 }
}

/// The memory that an object lends: an array of one dimension, or of none or many, which gives no
/// elements.
pub(crate) struct Buffer<'py> {
    lent: Lent,
    /// While it is read, this thread has the interpreter.
    python: PhantomData<Python<'py>>,
}

/// Memory that is given back in the end. The address of the struct must not change: some objects
/// keep it.
struct Lent(Box<PyBuffer>);

// SAFETY: the memory is there as long as it is lent, whatever thread has the struct.
unsafe impl Send for Lent {}
// SAFETY: as above; the struct does not change.
unsafe impl Sync for Lent {}

impl Drop for Lent {
    fn drop(&mut self) {
        // Python frees what is left at its end.
        let _ = Python::try_attach(|_| {
            // SAFETY: it was filled, and is given back once.
            unsafe { PyBuffer_Release(&raw mut *self.0) }
        });
    }
}

/// A view of a filter in memory that an object lends.
pub(crate) struct LentView {
    /// Its bytes are those of `lent`; it ends first.
    view: BloomView<'static>,
    _lent: Lent,
}

impl LentView {
    /// `refuse` makes the exception when the bytes are not a filter.
    pub(crate) fn new(
        object: &Bound<'_, PyAny>,
        refuse: impl FnOnce(BytesError) -> PyErr,
    ) -> PyResult<LentView> {
        let buffer = Buffer::of(object).filter(|buffer| buffer.lent.0.readonly != 0);
        let buffer = buffer.ok_or_else(|| {
            PyTypeError::new_err("a view is of bytes, of a read-only mmap or a read-only buffer")
        })?;
        let bytes = buffer.bytes()?;
        // SAFETY: nobody changes the bytes, and they are lent as long as the view exists.
        let bytes = unsafe { slice::from_raw_parts(bytes.as_ptr(), bytes.len()) };
        Ok(LentView {
            view: BloomView::new(bytes).map_err(refuse)?,
            _lent: buffer.lent,
        })
    }

    /// It lives no longer than the memory.
    pub(crate) fn view(&self) -> &BloomView<'_> {
        &self.view
    }
}

/// The elements of a buffer, for a thread that need not have the interpreter.
#[derive(Clone, Copy)]
pub(crate) struct Elements<'a> {
    first: *const u8,
    stride: isize,
    count: usize,
    size: usize,
    buffer: PhantomData<&'a ()>,
}

// SAFETY: the memory is there as long as the buffer is lent, whatever thread reads it.
unsafe impl Send for Elements<'_> {}
// SAFETY: nothing is written through it.
unsafe impl Sync for Elements<'_> {}

impl<'py> Buffer<'py> {
    /// `None` when the object lends no memory.
    pub(crate) fn of(object: &Bound<'py, PyAny>) -> Option<Buffer<'py>> {
        let mut view = Box::new(PyBuffer {
            buf: ptr::null_mut(),
            obj: ptr::null_mut(),
            len: 0,
            itemsize: 0,
            readonly: 0,
            ndim: 0,
            format: ptr::null_mut(),
            shape: ptr::null_mut(),
            strides: ptr::null_mut(),
            suboffsets: ptr::null_mut(),
            internal: ptr::null_mut(),
        });
        let flags = PYBUF_FORMAT | PYBUF_STRIDES;
        // SAFETY: the object is one, and the view is to be filled.
        let result = unsafe { PyObject_GetBuffer(object.as_ptr(), &raw mut *view, flags) };
        if result != 0 {
            // The exception only says that there is none.
            drop(PyErr::take(object.py()));
            return None;
        }
        Some(Buffer {
            lent: Lent(view),
            python: PhantomData,
        })
    }

    /// What an element is, in the words of Python's `struct`.
    pub(crate) fn format(&self) -> &str {
        if self.lent.0.format.is_null() {
            return "B";
        }
        // SAFETY: a format ends with a zero and lives as long as the view.
        let format = unsafe { CStr::from_ptr(self.lent.0.format) };
        format.to_str().unwrap_or("?")
    }

    pub(crate) fn dimensions(&self) -> c_int {
        self.lent.0.ndim
    }

    /// All of the memory, which other threads may write into as they may into [`Elements`].
    pub(crate) fn bytes(&self) -> PyResult<&[u8]> {
        let bytes = self.elements().and_then(|elements| elements.contiguous());
        bytes.ok_or_else(|| {
            PyBufferError::new_err("the bytes must lie side by side, in one dimension")
        })
    }

    /// Those of an array of objects with one dimension.
    pub(crate) fn objects(&self) -> Option<Objects<'_>> {
        let elements = self.elements()?;
        let are_objects = self.format().ends_with('O') && elements.size == size_of::<usize>();
        are_objects.then_some(Objects {
            elements,
            python: PhantomData,
        })
    }

    /// Those of an array of one dimension.
    pub(crate) fn elements(&self) -> Option<Elements<'_>> {
        let view = &*self.lent.0;
        if view.ndim != 1 || view.shape.is_null() || view.strides.is_null() {
            return None;
        }
        // SAFETY: shape and strides have as many numbers as there are dimensions.
        let (count, stride) = unsafe { (*view.shape, *view.strides) };
        Some(Elements {
            first: view.buf.cast(),
            stride,
            count: usize::try_from(count).ok()?,
            size: usize::try_from(view.itemsize).ok()?,
            buffer: PhantomData,
        })
    }
}

/// The elements of an array of objects.
#[derive(Clone, Copy)]
pub(crate) struct Objects<'a> {
    elements: Elements<'a>,
    /// Objects are read by a thread that has the interpreter.
    python: PhantomData<Python<'a>>,
}

impl Objects<'_> {
    pub(crate) fn len(&self) -> usize {
        self.elements.len()
    }

    /// An object that the array keeps; `None` when there is none.
    #[inline]
    fn get(&self, index: usize) -> Option<*mut ffi::PyObject> {
        let element: *const *mut ffi::PyObject = self.elements.get(index)?.as_ptr().cast();
        // SAFETY: an element is the address of an object, or null.
        let object = unsafe { element.read_unaligned() };
        (!object.is_null()).then_some(object)
    }

    /// Whether all objects are of the type `str` itself.
    pub(crate) fn are_texts(&self) -> bool {
        (0..self.len()).step_by(TEXTS).all(|first| {
            let chunk = || (first..self.len()).take(TEXTS).map(|index| self.get(index));
            chunk().flatten().for_each(|object| prefetch(object.cast()));
            // SAFETY: it is an object of the array, and no Python code runs.
            let is_text = |object| unsafe { ffi::PyUnicode_CheckExact(object) } != 0;
            chunk().all(|object| object.is_some_and(is_text))
        })
    }
}

impl<'a> Elements<'a> {
    pub(crate) fn len(&self) -> usize {
        self.count
    }

    /// The bytes of an element.
    ///
    /// Python lets other threads write into memory that it lends. A program that does so while it
    /// is read here gets answers for items that are partly the old and partly the new ones.
    #[inline]
    pub(crate) fn get(&self, index: usize) -> Option<&'a [u8]> {
        if index >= self.count {
            return None;
        }
        let offset = self.stride.checked_mul(isize::try_from(index).ok()?)?;
        // SAFETY: the element is one of the array, which is lent as long as `'a`.
        Some(unsafe { slice::from_raw_parts(self.first.offset(offset), self.size) })
    }

    /// All elements, if they lie side by side.
    pub(crate) fn contiguous(&self) -> Option<&'a [u8]> {
        let side_by_side = usize::try_from(self.stride) == Ok(self.size);
        if self.count == 0 {
            return Some(&[]);
        }
        let bytes = self.count.checked_mul(self.size)?;
        // SAFETY: that many bytes begin with the first element, and are lent as long as `'a`.
        side_by_side.then(|| unsafe { slice::from_raw_parts(self.first, bytes) })
    }
}

/// An int beyond the range of an item.
pub(crate) fn too_wide() -> PyErr {
    PyOverflowError::new_err("an int item must be from -2**127 to 2**128 - 1")
}
