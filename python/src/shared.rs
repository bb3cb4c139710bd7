//! The lock of a filter.
//!
//! Threads may use one filter at the same time; they wait for each other and get no exception. Long
//! work runs detached, without the interpreter, so that other threads can use it.
//!
//! Attached threads take turns by themselves, because only one has the interpreter. So a thread
//! takes the lock only if it is detached, or while another one is detached with this filter. That
//! makes `item in filter` a quarter faster.
//!
//! Three rules keep this sound and free of deadlocks:
//!
//! - A thread that uses a filter attached runs no Python code meanwhile, and does not detach. It
//!   converts objects to items first.
//! - A thread is detached while it waits for the lock.
//! - A thread that needs the locks of two filters takes them in the order of their addresses.
//!
//! The module says `gil_used`, so Python without a global lock gets one when it is imported.
#![allow(unsafe_code, reason = "the interpreter is the lock")]

use std::cell::UnsafeCell;
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use pyo3::prelude::*;
use pyo3::sync::RwLockExt;

/// A filter that threads share.
pub(crate) struct Shared<T> {
    filter: UnsafeCell<T>,
    lock: RwLock<()>,
    /// How many threads are detached with this filter. Changed by attached threads only.
    detached: AtomicUsize,
}

// SAFETY: the rules above say which thread has the filter.
unsafe impl<T: Send + Sync> Sync for Shared<T> {}

impl<T: Send + Sync> Shared<T> {
    pub(crate) fn new(filter: T) -> Shared<T> {
        Shared {
            filter: UnsafeCell::new(filter),
            lock: RwLock::new(()),
            detached: AtomicUsize::new(0),
        }
    }

    /// Whether no thread is detached with the filter, so that an attached one need not wait.
    #[inline]
    pub(crate) fn is_at_hand(&self, _: Python<'_>) -> bool {
        self.detached.load(Relaxed) == 0
    }

    /// Reads the filter attached; `read` runs no Python code.
    #[inline]
    pub(crate) fn read<R>(&self, py: Python<'_>, read: impl FnOnce(&T) -> R) -> R {
        let _guard = (!self.is_at_hand(py)).then(|| self.lock.read_py_attached(py));
        // SAFETY: this thread has the interpreter all the time, and no detached one writes.
        read(unsafe { &*self.filter.get() })
    }

    /// Changes the filter attached; `write` runs no Python code.
    #[inline]
    pub(crate) fn write<R>(&self, py: Python<'_>, write: impl FnOnce(&mut T) -> R) -> R {
        let _guard = (!self.is_at_hand(py)).then(|| self.lock.write_py_attached(py));
        // SAFETY: this thread has the interpreter all the time, and no detached one the filter.
        write(unsafe { &mut *self.filter.get() })
    }

    /// Does something with the filter while others have the interpreter.
    pub(crate) fn detach<R: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(Detached<'_, T>) -> R + Send,
    ) -> R {
        let noted = Noted::new(&self.detached);
        let result = py.detach(|| work(Detached(self)));
        drop(noted);
        result
    }

    /// The same with two filters; `None` when they are one.
    pub(crate) fn detach_both<R: Send>(
        &self,
        other: &Self,
        py: Python<'_>,
        work: impl FnOnce(Detached<'_, T>, Detached<'_, T>) -> R + Send,
    ) -> Option<R> {
        if ptr::eq(self, other) {
            return None;
        }
        let noted = (Noted::new(&self.detached), Noted::new(&other.detached));
        let result = py.detach(|| work(Detached(self), Detached(other)));
        drop(noted);
        Some(result)
    }
}

/// Counts a thread that is detached with a filter. The thread makes and drops it while attached.
struct Noted<'a>(&'a AtomicUsize);

impl Noted<'_> {
    fn new(count: &AtomicUsize) -> Noted<'_> {
        count.fetch_add(1, Relaxed);
        Noted(count)
    }
}

impl Drop for Noted<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

/// A thread's access to a filter. `read` and `write` run no Python code if the thread is attached.
pub(crate) trait Access<T>: Copy {
    fn read<R>(self, read: impl FnOnce(&T) -> R) -> R;
    fn write<R>(self, write: impl FnOnce(&mut T) -> R) -> R;
}

/// An attached thread.
impl<T: Send + Sync> Access<T> for (&Shared<T>, Python<'_>) {
    #[inline]
    fn read<R>(self, read: impl FnOnce(&T) -> R) -> R {
        self.0.read(self.1, read)
    }

    #[inline]
    fn write<R>(self, write: impl FnOnce(&mut T) -> R) -> R {
        self.0.write(self.1, write)
    }
}

/// A detached thread's access to a filter.
pub(crate) struct Detached<'a, T>(&'a Shared<T>);

impl<T> Clone for Detached<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Detached<'_, T> {}

impl<T> Access<T> for Detached<'_, T> {
    fn read<R>(self, read: impl FnOnce(&T) -> R) -> R {
        Detached::read(self, read)
    }

    fn write<R>(self, write: impl FnOnce(&mut T) -> R) -> R {
        Detached::write(self, write)
    }
}

impl<T> Detached<'_, T> {
    pub(crate) fn read<R>(self, read: impl FnOnce(&T) -> R) -> R {
        let _guard = self.lock_to_read();
        // SAFETY: detached threads have the lock, and so have attached ones while there are such.
        read(unsafe { &*self.0.filter.get() })
    }

    pub(crate) fn write<R>(self, write: impl FnOnce(&mut T) -> R) -> R {
        let _guard = self.lock_to_write();
        // SAFETY: as above.
        write(unsafe { &mut *self.0.filter.get() })
    }

    /// Reads two filters.
    pub(crate) fn read_with<R>(self, other: Self, read: impl FnOnce(&T, &T) -> R) -> R {
        let _guards = if self.is_before(other) {
            let first = self.lock_to_read();
            (first, other.lock_to_read())
        } else {
            let first = other.lock_to_read();
            (first, self.lock_to_read())
        };
        // SAFETY: as above.
        unsafe { read(&*self.0.filter.get(), &*other.0.filter.get()) }
    }

    /// Changes this filter by another one.
    pub(crate) fn write_with<R>(self, other: Self, write: impl FnOnce(&mut T, &T) -> R) -> R {
        let (_mine, _others);
        if self.is_before(other) {
            _mine = self.lock_to_write();
            _others = other.lock_to_read();
        } else {
            _others = other.lock_to_read();
            _mine = self.lock_to_write();
        }
        // SAFETY: as above; they are two filters.
        unsafe { write(&mut *self.0.filter.get(), &*other.0.filter.get()) }
    }

    fn is_before(self, other: Self) -> bool {
        ptr::from_ref(self.0) < ptr::from_ref(other.0)
    }

    // Nothing panics between two states of a filter, so there is no poison.

    fn lock_to_read(&self) -> RwLockReadGuard<'_, ()> {
        self.0.lock.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_to_write(&self) -> RwLockWriteGuard<'_, ()> {
        self.0.lock.write().unwrap_or_else(PoisonError::into_inner)
    }
}
