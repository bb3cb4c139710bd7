//! Memory that the system may refuse.

use std::hint::black_box;

use pyo3::exceptions::PyMemoryError;
use pyo3::prelude::*;

/// MemoryError, unless this many bytes can be allocated now.
///
/// The library's `clone` and `to_bytes` end the process when there is no memory. So what they are
/// about to allocate is allocated here first, and freed at once. Between the two, another thread or
/// another process may take that memory; then the process still ends.
pub(crate) fn check(bytes: usize) -> PyResult<()> {
    let mut room = Vec::<u8>::new();
    let reserved = room.try_reserve_exact(bytes);
    // The compiler leaves out an allocation that nobody uses, and takes it to have succeeded.
    black_box(room.as_ptr());
    reserved.map_err(|_| PyMemoryError::new_err(format!("no memory for {bytes} bytes")))
}
