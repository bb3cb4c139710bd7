//! A data type: what the host calls to save, load, copy, measure and free its values.

use std::any::TypeId;
use std::ffi::{CStr, c_int, c_void};
use std::ptr::null_mut;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, Ordering};

use super::alloc::HOST_ALIGN;
use super::api::api;
use super::context::HostContext;
use super::ffi::{Ctx, DefragCtx, Digest, Io, Str, TYPE_METHODS_VERSION, TypeHandle, TypeMethods};
use super::io::{Defragmenter, Digester, Loader, Rewriter, Saver};

/// A type of values that keys can hold.
///
/// Values may be loaded and freed on any thread.
pub(crate) trait DataType: Sized + Send + Sync + 'static {
    /// Nine characters of `A-Z a-z 0-9 - _`.
    const NAME: &'static CStr;
    /// The version of the encoding that is written.
    const VERSION: c_int;

    /// The place for what registering gives; a static of this type alone.
    fn registration() -> &'static Registration;

    /// Reads a value; `None`, with a line in the log, when there is none to be read.
    fn load(loader: &mut Loader<'_>, version: u32) -> Option<Self>;
    /// Writes the value.
    fn save(&self, saver: &mut Saver<'_>);
    /// Writes the commands that make the value.
    fn rewrite(&self, rewriter: &mut Rewriter<'_>);
    /// The bytes of memory it takes.
    fn memory(&self) -> usize;
    /// Writes all that two equal values have in common.
    fn digest(&self, digester: &mut Digester<'_>);
    /// How much work it is to free it; above 64 the host does it on another thread.
    fn free_effort(&self) -> usize;
    /// A copy; `None` when there is no memory for it.
    fn copy(&self) -> Option<Self>;
    /// Moves the value's parts to where memory is less fragmented, as long as there is time. False
    /// when there is more to do.
    fn defragment(&mut self, defragmenter: &mut Defragmenter<'_>) -> bool;
}

/// What the host gave for a data type.
pub(crate) struct Registration {
    rust_type: OnceLock<TypeId>,
    handle: AtomicPtr<TypeHandle>,
}

impl Registration {
    pub(crate) const fn new() -> Self {
        Registration {
            rust_type: OnceLock::new(),
            handle: AtomicPtr::new(null_mut()),
        }
    }

    /// The host's handle, if this is the registration of that type. The check is what makes a
    /// value's pointer safe to follow, whatever a [`DataType`] says.
    pub(super) fn handle(&self, rust_type: TypeId) -> Option<*mut TypeHandle> {
        let handle = self.handle.load(Ordering::Acquire);
        (self.rust_type.get() == Some(&rust_type) && !handle.is_null()).then_some(handle)
    }

    /// Keeps the handle for a type; false when this is the registration of another one.
    fn keep(&self, rust_type: TypeId, handle: *mut TypeHandle) -> bool {
        let ours = *self.rust_type.get_or_init(|| rust_type) == rust_type;
        if ours {
            // Anew, when an earlier attempt to load the module failed after this.
            self.handle.store(handle, Ordering::Release);
        }
        ours
    }
}

/// Registers a data type; false when the host refuses it, as it does when it has one of that name.
pub(crate) fn register<T: DataType>(context: &HostContext<'_>) -> bool {
    // A defragmentation moves a value by the start of its block, which is where the host put it
    // only if the host's own alignment is enough.
    const { assert!(align_of::<T>() <= HOST_ALIGN) };
    let methods = TypeMethods {
        version: TYPE_METHODS_VERSION,
        rdb_load: load::<T>,
        rdb_save: save::<T>,
        aof_rewrite: rewrite::<T>,
        mem_usage: memory::<T>,
        digest: digest::<T>,
        free: free::<T>,
        aux_load: None,
        aux_save: None,
        aux_save_triggers: 0,
        free_effort: free_effort::<T>,
        unlink: None,
        copy: copy::<T>,
        defrag: defragment::<T>,
    };
    let ctx: *mut Ctx = context.raw();
    // SAFETY: a valid context, a C string, and methods of the version that they say, which the host
    // copies.
    let handle =
        unsafe { (api().create_data_type)(ctx, T::NAME.as_ptr(), T::VERSION, &raw const methods) };
    !handle.is_null() && T::registration().keep(TypeId::of::<T>(), handle)
}

// The functions below are only for the host. It passes values of the type, as `Key::set`, `load`
// or `copy` gave them, and streams that are valid during the call.

unsafe extern "C" fn load<T: DataType>(io: *mut Io, version: c_int) -> *mut c_void {
    // SAFETY: what the host promises.
    let mut loader = unsafe { Loader::new(io) };
    // A version that is no version is newer than all that are known.
    let version = u32::try_from(version).unwrap_or(u32::MAX);
    T::load(&mut loader, version).map_or(null_mut(), into_raw)
}

fn into_raw<T>(value: T) -> *mut c_void {
    Box::into_raw(Box::new(value)).cast()
}

unsafe extern "C" fn save<T: DataType>(io: *mut Io, value: *mut c_void) {
    // SAFETY: what the host promises.
    let (value, mut saver) = unsafe { (&*value.cast::<T>(), Saver::new(io)) };
    value.save(&mut saver);
}

unsafe extern "C" fn rewrite<T: DataType>(io: *mut Io, key: *mut Str, value: *mut c_void) {
    // SAFETY: what the host promises.
    let (value, mut rewriter) = unsafe { (&*value.cast::<T>(), Rewriter::new(io, key)) };
    value.rewrite(&mut rewriter);
}

unsafe extern "C" fn memory<T: DataType>(value: *const c_void) -> usize {
    // SAFETY: what the host promises.
    unsafe { &*value.cast::<T>() }.memory()
}

unsafe extern "C" fn digest<T: DataType>(digest: *mut Digest, value: *mut c_void) {
    // SAFETY: what the host promises.
    let (value, mut digester) = unsafe { (&*value.cast::<T>(), Digester::new(digest)) };
    value.digest(&mut digester);
}

unsafe extern "C" fn free<T: DataType>(value: *mut c_void) {
    // SAFETY: what the host promises; it does not use the value again.
    drop(unsafe { Box::from_raw(value.cast::<T>()) });
}

unsafe extern "C" fn free_effort<T: DataType>(_key: *mut Str, value: *const c_void) -> usize {
    // SAFETY: what the host promises.
    unsafe { &*value.cast::<T>() }.free_effort()
}

unsafe extern "C" fn copy<T: DataType>(
    _from: *mut Str,
    _to: *mut Str,
    value: *const c_void,
) -> *mut c_void {
    // SAFETY: what the host promises.
    let copy = unsafe { &*value.cast::<T>() }.copy();
    copy.map_or(null_mut(), into_raw)
}

unsafe extern "C" fn defragment<T: DataType>(
    ctx: *mut DefragCtx,
    _key: *mut Str,
    value: *mut *mut c_void,
) -> c_int {
    // SAFETY: what the host promises.
    let mut defragmenter = unsafe { Defragmenter::new(ctx) };
    if defragmenter.cursor() == 0 {
        // SAFETY: `value` points to the host's only pointer to a value that was boxed, so that it
        // may be moved and the pointer set to where it is then.
        unsafe { defragmenter.move_block(&mut *value) };
    }
    // SAFETY: as above.
    let done = unsafe { &mut *(*value).cast::<T>() }.defragment(&mut defragmenter);
    c_int::from(!done)
}
