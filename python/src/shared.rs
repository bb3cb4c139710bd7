//! The lock of a filter.
//!
//! Threads may use one filter at once; they wait for each other, and never see an exception because
//! of it. Two rules keep them from waiting for ever:
//!
//! - Who holds the lock runs no Python code and does not wait for the interpreter. Objects become
//!   items before, and batches that give up the interpreter take and release the lock without it.
//! - Who waits for the lock gives up the interpreter meanwhile.

use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use pyo3::prelude::*;
use pyo3::sync::RwLockExt;

/// A filter that threads share.
#[derive(Default)]
pub(crate) struct Shared<T>(RwLock<T>);

impl<T> Shared<T> {
    pub(crate) fn new(filter: T) -> Shared<T> {
        Shared(RwLock::new(filter))
    }

    #[inline]
    pub(crate) fn read(&self, py: Python<'_>) -> RwLockReadGuard<'_, T> {
        // Nothing panics between two states of a filter.
        let guard = self.0.read_py_attached(py);
        guard.unwrap_or_else(PoisonError::into_inner)
    }

    #[inline]
    pub(crate) fn write(&self, py: Python<'_>) -> RwLockWriteGuard<'_, T> {
        let guard = self.0.write_py_attached(py);
        guard.unwrap_or_else(PoisonError::into_inner)
    }

    /// For a thread that has given up the interpreter.
    pub(crate) fn read_detached(&self) -> RwLockReadGuard<'_, T> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// For a thread that has given up the interpreter.
    pub(crate) fn write_detached(&self) -> RwLockWriteGuard<'_, T> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads two filters, without the interpreter. They must not be the same one.
    pub(crate) fn read_both<R>(&self, other: &Self, read: impl FnOnce(&T, &T) -> R) -> R {
        // All threads take two locks in the same order.
        if self.is_before(other) {
            let mine = self.read_detached();
            read(&mine, &other.read_detached())
        } else {
            let others = other.read_detached();
            read(&self.read_detached(), &others)
        }
    }

    /// Changes this filter by another one, without the interpreter. They must not be the same one.
    pub(crate) fn write_from<R>(&self, other: &Self, write: impl FnOnce(&mut T, &T) -> R) -> R {
        if self.is_before(other) {
            let mut mine = self.write_detached();
            write(&mut mine, &other.read_detached())
        } else {
            let others = other.read_detached();
            write(&mut self.write_detached(), &others)
        }
    }

    fn is_before(&self, other: &Self) -> bool {
        std::ptr::from_ref(self) < std::ptr::from_ref(other)
    }
}
