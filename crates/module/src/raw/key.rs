//! An open key.

use std::ffi::c_int;
use std::marker::PhantomData;
use std::ops::Deref;
use std::ptr::NonNull;

use super::api::api;
use super::context::{HostContext, HostStr, OwnedStr};
use super::data_type::{DataType, handles};
use super::ffi::{KEY_NOTOUCH, KEY_READ, KEY_WRITE, KEYTYPE_EMPTY, KeyHandle, OK, Str, TypeHandle};

/// A key that is open, as long as this lives. One that is open to be changed borrows the context of
/// the call exclusively, so there is no second one whose value could be the same.
pub(crate) struct Key<'c> {
    raw: NonNull<KeyHandle>,
    holds: Holds,
    context: PhantomData<&'c mut ()>,
}

/// A key that is open to be read; there may be others.
pub(crate) struct ReadKey<'c>(Key<'c>);

impl<'c> Deref for ReadKey<'c> {
    type Target = Key<'c>;

    fn deref(&self) -> &Key<'c> {
        &self.0
    }
}

/// The type of what a key holds, asked for once.
#[derive(Clone, Copy)]
enum Holds {
    Nothing,
    /// A value of a module.
    Type(*mut TypeHandle),
    TypeOfHost,
}

impl Holds {
    /// # Safety
    ///
    /// `key` is open.
    unsafe fn of(key: NonNull<KeyHandle>) -> Self {
        let api = api();
        // SAFETY: an open key. The type of a value that is of no module is null.
        let handle = unsafe { (api.value_type)(key.as_ptr()) };
        if !handle.is_null() {
            return Holds::Type(handle);
        }
        // SAFETY: an open key.
        match unsafe { (api.key_type)(key.as_ptr()) } {
            KEYTYPE_EMPTY => Holds::Nothing,
            _ => Holds::TypeOfHost,
        }
    }
}

impl<'c> Key<'c> {
    /// Opens a key to read it; `None` when it does not exist.
    pub(crate) fn open_to_read(
        context: &'c HostContext<'_>,
        name: HostStr<'_>,
    ) -> Option<ReadKey<'c>> {
        // SAFETY: a string of the host.
        unsafe { Key::open(context, name.raw(), KEY_READ) }.map(ReadKey)
    }

    /// Opens a key to change it, whether it exists or not.
    pub(crate) fn open_to_write(
        context: &'c mut HostContext<'_>,
        name: HostStr<'_>,
    ) -> Option<Self> {
        // SAFETY: a string of the host.
        unsafe { Key::open(context, name.raw(), KEY_READ | KEY_WRITE) }
    }

    /// The same for no client: the key counts as not used.
    pub(crate) fn open_unused(context: &'c mut HostContext<'_>, name: &[u8]) -> Option<Self> {
        let name = OwnedStr::new(name);
        // SAFETY: a string of the host, which keeps it as long as it needs it.
        unsafe { Key::open(context, name.0, KEY_READ | KEY_WRITE | KEY_NOTOUCH) }
    }

    /// # Safety
    ///
    /// `name` is a string of the host.
    unsafe fn open(context: &'c HostContext<'_>, name: *mut Str, mode: c_int) -> Option<Self> {
        // SAFETY: a valid context and a string of the host.
        let raw = NonNull::new(unsafe { (api().open_key)(context.raw(), name, mode) })?;
        Some(Key {
            raw,
            // SAFETY: the key was opened just now.
            holds: unsafe { Holds::of(raw) },
            context: PhantomData,
        })
    }

    /// Whether it holds nothing.
    pub(crate) fn is_empty(&self) -> bool {
        matches!(self.holds, Holds::Nothing)
    }

    /// Whether it holds a value of this type.
    fn is<T: DataType>(&self) -> bool {
        match self.holds {
            Holds::Type(found) => handles::<T>().any(|handle| handle == found),
            Holds::Nothing | Holds::TypeOfHost => false,
        }
    }

    /// The value, to read it.
    pub(crate) fn value<T: DataType>(&self) -> Option<&T> {
        // SAFETY: the host keeps for this type what `set` or a callback of the type gave it, a `T`,
        // and changes or frees it only in calls that this borrow excludes.
        self.pointer::<T>().map(|value| unsafe { value.as_ref() })
    }

    /// The value, to change it.
    pub(crate) fn value_mut<T: DataType>(&mut self) -> Option<&mut T> {
        // SAFETY: as above, and the borrow is exclusive.
        self.pointer::<T>()
            .map(|mut value| unsafe { value.as_mut() })
    }

    fn pointer<T: DataType>(&self) -> Option<NonNull<T>> {
        if !self.is::<T>() {
            return None;
        }
        // SAFETY: the key holds a value of a module.
        let value = unsafe { (api().get_value)(self.raw.as_ptr()) };
        NonNull::new(value.cast())
    }

    /// Lets the key hold this value, instead of what it held; false if the key was opened to read.
    pub(crate) fn set<T: DataType>(&mut self, value: T) -> bool {
        let handle = handles::<T>().nth(value.number());
        let Some(handle) = handle.filter(|handle| !handle.is_null()) else {
            return false;
        };
        let value = Box::into_raw(Box::new(value));
        // SAFETY: an open key, a registered type, and a value of it that the host now owns.
        let set = unsafe { (api().set_value)(self.raw.as_ptr(), handle, value.cast()) };
        if set != OK {
            // SAFETY: the host did not take it.
            drop(unsafe { Box::from_raw(value) });
            return false;
        }
        self.holds = Holds::Type(handle);
        true
    }
}

impl Drop for Key<'_> {
    fn drop(&mut self) {
        // SAFETY: the key is open, and is not used hereafter.
        unsafe { (api().close_key)(self.raw.as_ptr()) };
    }
}
