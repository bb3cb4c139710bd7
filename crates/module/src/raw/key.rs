//! An open key.

use std::any::TypeId;
use std::ffi::c_int;
use std::marker::PhantomData;
use std::ptr::NonNull;

use super::api::api;
use super::context::{HostContext, HostStr};
use super::data_type::DataType;
use super::ffi::{KEY_READ, KEY_WRITE, KEYTYPE_EMPTY, KeyHandle, OK, TypeHandle};

/// A key that is open, as long as this lives. As it borrows the context of the call exclusively,
/// there is no second one whose value could be the same.
pub(crate) struct Key<'c> {
    raw: NonNull<KeyHandle>,
    holds: Holds,
    context: PhantomData<&'c mut ()>,
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

/// What a key holds.
pub(crate) enum Found<T> {
    Nothing,
    Value(T),
    OtherType,
}

impl<'c> Key<'c> {
    /// Opens a key to read it; `None` when it does not exist.
    pub(crate) fn open_to_read(
        context: &'c mut HostContext<'_>,
        name: HostStr<'_>,
    ) -> Option<Self> {
        Key::open(context, name, KEY_READ)
    }

    /// Opens a key to change it, whether it exists or not.
    pub(crate) fn open_to_write(
        context: &'c mut HostContext<'_>,
        name: HostStr<'_>,
    ) -> Option<Self> {
        Key::open(context, name, KEY_READ | KEY_WRITE)
    }

    fn open(context: &'c mut HostContext<'_>, name: HostStr<'_>, mode: c_int) -> Option<Self> {
        // SAFETY: a valid context and a string of the host.
        let raw = NonNull::new(unsafe { (api().open_key)(context.raw(), name.raw(), mode) })?;
        Some(Key {
            raw,
            // SAFETY: the key was opened just now.
            holds: unsafe { Holds::of(raw) },
            context: PhantomData,
        })
    }

    /// The value, to read it.
    pub(crate) fn value<T: DataType>(&self) -> Found<&T> {
        match self.pointer::<T>() {
            // SAFETY: the host keeps for this type what `set` or a callback of the type gave it, a
            // `T`, and changes or frees it only in calls that this borrow excludes.
            Found::Value(value) => Found::Value(unsafe { value.as_ref() }),
            Found::Nothing => Found::Nothing,
            Found::OtherType => Found::OtherType,
        }
    }

    /// The value, to change it.
    pub(crate) fn value_mut<T: DataType>(&mut self) -> Found<&mut T> {
        match self.pointer::<T>() {
            // SAFETY: as above, and the borrow is exclusive.
            Found::Value(mut value) => Found::Value(unsafe { value.as_mut() }),
            Found::Nothing => Found::Nothing,
            Found::OtherType => Found::OtherType,
        }
    }

    fn pointer<T: DataType>(&self) -> Found<NonNull<T>> {
        let found = match self.holds {
            Holds::Nothing => return Found::Nothing,
            Holds::TypeOfHost => return Found::OtherType,
            Holds::Type(handle) => handle,
        };
        if T::registration().handle(TypeId::of::<T>()) != Some(found) {
            return Found::OtherType;
        }
        // SAFETY: the key holds a value of a module.
        let value = unsafe { (api().get_value)(self.raw.as_ptr()) };
        NonNull::new(value.cast()).map_or(Found::OtherType, Found::Value)
    }

    /// Lets the key hold this value, instead of what it held; false if the key was opened to read.
    pub(crate) fn set<T: DataType>(&mut self, value: Box<T>) -> bool {
        let Some(handle) = T::registration().handle(TypeId::of::<T>()) else {
            return false;
        };
        let value = Box::into_raw(value);
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
