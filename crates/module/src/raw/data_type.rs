//! A data type: what the host calls to save, load, copy, measure and free its values.

use std::any::TypeId;
use std::ffi::{c_int, c_void};
use std::ptr::null_mut;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, Ordering};

use super::alloc::HOST_ALIGN;
use super::api::{api, c_text};
use super::context::HostContext;
use super::ffi::{DefragCtx, Digest, Io, Str, TYPE_METHODS_VERSION, TypeHandle, TypeMethods};
use super::io::{Defragmenter, Digester, Loader, Rewriter, Saver};

/// How many types the host keeps values under.
pub(crate) const TYPES: usize = 5;

/// The type of the values that keys can hold. The host keeps them under several types of its own,
/// by what they are.
///
/// Values may be loaded and freed on any thread.
pub(crate) trait DataType: Sized + Send + Sync + 'static {
    /// The host's types: their names, nine characters of `A-Z a-z 0-9 - _`, and the versions of the
    /// encodings that are written.
    fn types() -> [(&'static str, c_int); TYPES];
    /// The number among these types of the one that the value is kept under.
    fn number(&self) -> usize;

    /// Reads a value of the type of that number; `None`, with a line in the log, when there is none
    /// to be read.
    fn load(loader: &mut Loader, number: usize, version: u32) -> Option<Self>;
    /// Writes the value.
    fn save(&self, saver: &mut Saver);
    /// Writes the commands that make the value.
    fn rewrite(&self, rewriter: &mut Rewriter);
    /// The bytes of memory it takes.
    fn memory(&self) -> usize;
    /// Writes all that two equal values have in common.
    fn digest(&self, digester: &mut Digester);
    /// How much work it is to free it; above 64 the host does it on another thread.
    fn free_effort(&self) -> usize;
    /// A copy; `None` when there is no memory for it.
    fn copy(&self) -> Option<Self>;
    /// Moves the value's parts to where memory is less fragmented, as long as there is time. False
    /// when there is more to do.
    fn defragment(&mut self, defragmenter: &mut Defragmenter) -> bool;
}

/// What the host gave for the types. The check of the Rust type is what makes a value's pointer
/// safe to follow.
static RUST_TYPE: OnceLock<TypeId> = OnceLock::new();
static HANDLES: [AtomicPtr<TypeHandle>; TYPES] = [const { AtomicPtr::new(null_mut()) }; TYPES];

/// The host's types for values of this Rust type, by their numbers; none if it is another type.
#[inline]
pub(super) fn handles<T: DataType>() -> impl Iterator<Item = *mut TypeHandle> {
    let is_known = RUST_TYPE.get() == Some(&TypeId::of::<T>());
    let handles = HANDLES.iter().take_while(move |_| is_known);
    handles.map(|handle| handle.load(Ordering::Acquire))
}

/// Registers the types. An error names the one that the host refuses, as it does when it has one of
/// that name.
pub(crate) fn register<T: DataType>(context: &HostContext<'_>) -> Result<(), &'static str> {
    // A defragmentation moves a value by the start of its block, which is where the host put it
    // only if the host's own alignment is enough.
    const { assert!(align_of::<T>() <= HOST_ALIGN) };
    // As many as there are types, or a type would be left out.
    let loads: [unsafe extern "C" fn(*mut Io, c_int) -> *mut c_void; TYPES] = [
        load::<T, 0>,
        load::<T, 1>,
        load::<T, 2>,
        load::<T, 3>,
        load::<T, 4>,
    ];
    let types = T::types().into_iter().zip(loads).zip(&HANDLES);
    for (((name, version), rdb_load), place) in types {
        let methods = TypeMethods {
            version: TYPE_METHODS_VERSION,
            rdb_load,
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
        let (ctx, c_name) = (context.raw(), c_text(name));
        // SAFETY: a valid context, a C string, and methods of the version that they say. The host
        // copies both.
        let handle = unsafe {
            (api().create_data_type)(ctx, c_name.as_ptr().cast(), version, &raw const methods)
        };
        if handle.is_null() || *RUST_TYPE.get_or_init(TypeId::of::<T>) != TypeId::of::<T>() {
            return Err(name);
        }
        // Anew, when an earlier attempt to load the module failed after this.
        place.store(handle, Ordering::Release);
    }
    Ok(())
}

// The functions below are only for the host. It passes values of the type, as `Key::set`, `load`
// or `copy` gave them, and streams that are valid during the call.

unsafe extern "C" fn load<T: DataType, const NUMBER: usize>(
    io: *mut Io,
    version: c_int,
) -> *mut c_void {
    // A version that is no version is newer than all that are known.
    let version = u32::try_from(version).unwrap_or(u32::MAX);
    T::load(&mut Loader(io), NUMBER, version).map_or(null_mut(), into_raw)
}

fn into_raw<T>(value: T) -> *mut c_void {
    Box::into_raw(Box::new(value)).cast()
}

unsafe extern "C" fn save<T: DataType>(io: *mut Io, value: *mut c_void) {
    // SAFETY: what the host promises.
    unsafe { &*value.cast::<T>() }.save(&mut Saver(io));
}

unsafe extern "C" fn rewrite<T: DataType>(io: *mut Io, key: *mut Str, value: *mut c_void) {
    // SAFETY: what the host promises.
    unsafe { &*value.cast::<T>() }.rewrite(&mut Rewriter { io, key });
}

unsafe extern "C" fn memory<T: DataType>(value: *const c_void) -> usize {
    // SAFETY: what the host promises.
    unsafe { &*value.cast::<T>() }.memory()
}

unsafe extern "C" fn digest<T: DataType>(digest: *mut Digest, value: *mut c_void) {
    // SAFETY: what the host promises.
    unsafe { &*value.cast::<T>() }.digest(&mut Digester(digest));
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
    let (moved, kept) = (0, 0);
    let mut defragmenter = Defragmenter { ctx, moved, kept };
    if defragmenter.cursor() == 0 {
        // SAFETY: `value` points to the host's only pointer to a value that was boxed, so that it
        // may be moved and the pointer set to where it is then.
        unsafe { defragmenter.move_block(&mut *value) };
    }
    // SAFETY: as above.
    let done = unsafe { &mut *(*value).cast::<T>() }.defragment(&mut defragmenter);
    c_int::from(!done)
}
