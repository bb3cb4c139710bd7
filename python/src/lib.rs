//! The Python package `everbloom`: the filters of the crate of that name as Python classes.
//!
//! `everbloom.pyi` says what a Python program sees, with types. Here is how it is done:
//!
//! - [`item`]: a Python object as an item of a filter
//! - [`task`]: what is done with many of them
//! - [`batch`]: many of them, from lists and iterators; [`array`](mod@array): from buffers;
//!   [`column`], [`arrow`]: from columns of tables
//! - [`filter`]: the operations of all filters
//! - [`fixed`], [`scalable`], [`windowed`], [`cuckoo`], [`view`]: the classes; [`class`]: the methods
//!   that several have
//! - [`chunks`]: filters in the pieces of `BF.SCANDUMP`
//! - [`argument`], [`error`], [`file`], [`memory`]: arguments, exceptions, files, memory that may be
//!   refused
//! - [`shared`]: how threads share a filter
//! - [`raw`]: what is not in PyO3 of Python's C interface, and Arrow's
//!
//! Only `raw` and `shared` are `unsafe`.

mod argument;
mod array;
mod arrow;
mod batch;
mod chunks;
mod class;
mod column;
mod cuckoo;
mod error;
mod file;
mod filter;
mod fixed;
mod item;
mod load;
mod memory;
mod raw;
mod scalable;
mod shared;
mod task;
mod view;
mod windowed;

/// Bloom filters: "have I seen this before?" in about ten bits an item.
///
/// >>> from everbloom import BloomFilter
/// >>> seen = BloomFilter(1_000_000, 0.001)
/// >>> seen.add("https://a.example/")
/// True
/// >>> "https://a.example/" in seen
/// True
/// >>> "https://b.example/" in seen
/// False
///
/// "Never added" is certain. "Added" is wrong for a small part of the other items: the error rate
/// that you choose.
///
/// An item is a str (its UTF-8 bytes), a bytes, bytearray or memoryview, an int of at most 128
/// bits, or a tuple of one to eight items. "a" and b"a" are one item; 1, "1" and (1,) are three.
#[pyo3::pymodule(name = "everbloom", gil_used = true)]
mod module {
    use pyo3::prelude::*;

    #[pymodule_export]
    use crate::cuckoo::CuckooFilter;
    #[pymodule_export]
    use crate::error::FormatError;
    #[pymodule_export]
    use crate::fixed::BloomFilter;
    #[pymodule_export]
    use crate::load::load;
    #[pymodule_export]
    use crate::scalable::ScalableBloomFilter;
    #[pymodule_export]
    use crate::view::BloomView;
    #[pymodule_export]
    use crate::windowed::WindowedBloomFilter;

    /// A constant would have another name, and `from everbloom import *` would take it along.
    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
